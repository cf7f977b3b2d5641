"""`separators`: what divides a message into its plural forms in the notations that put `|` between them.

Laravel and Symfony (`{0} no dogs|[1,19] some|[20,*] many`, `one: a dog|other: dogs`), Vue (`no dogs | {n} dogs`),
Polyglot (`%{n} dog |||| %{n} dogs`), Java and Yii (`0#no dogs|1#one dog|1<some`, `n==1#one dog|n>1#many`).
"""

from collections.abc import Sequence

import regex

_NUMBER = r"[+-]?(?:[0-9]{1,9}(?:\.[0-9]{1,9})?|Inf|\*)"
_INTERVAL = rf"[\[\]]\s*{_NUMBER}\s*,\s*{_NUMBER}\s*[\[\]]"
_NUMBERS = r"\{[0-9]{1,9}(?:\s*,\s*[0-9]{1,9})*\}"
_BAR = regex.compile(
    rf"{_INTERVAL}|\{{\{{[^{{}}]*+\}}\}}|\{{(?:[^{{}}]|\{{[^{{}}]*+\}})*+\}}|\([^()]*+\)|\[[^\[\]]*+\]|<[^<>]*+>|`[^`]*+`"
    r"|(?P<bar>(?<![ \t\n])[ \t\n]*+(?<!\|)(?:\|{4}|\|)(?!\|))"
)
"""A bar outside brackets and tags, where it would stand for a choice: `[start|stop]`."""

_CASE = regex.compile(rf"\s*+(?:(?P<interval>{_INTERVAL})|(?P<numbers>{_NUMBERS}))(?=\s|\p{{L}})")
_LABELS = (
    regex.compile(r"\s*+\w+:(?=\s)"),
    regex.compile(r"\s*+[n0-9(-][n0-9%()=!<>&.\s-]{0,100}?(?:\#|<(?![=\s0-9])|≤)"),
)
"""Labels and conditions, which all forms have."""


def separators(text: str, are_spaced: bool = False) -> list[tuple[int, int]]:
    """Return the (begin, end) of each bar with the numbers for which the form after it is meant.

    The first one may have no bar. are_spaced: whether a bar needs blanks around it, unless numbers are stated.
    """
    bars = [match.span("bar") for match in _BAR.finditer(text) if match["bar"]] if "|" in text else []
    if not bars:
        return []
    starts = [0, *(end for _, end in bars)]
    ends = [*(begin for begin, _ in bars), len(text)]
    cases = _cases(text, starts, ends)
    if are_spaced and cases == starts:
        bars = [(begin, end) for begin, end in bars if text[begin].isspace() and text[end : end + 1].isspace()]
        return bars
    first = [(0, cases[0])] if cases[0] else []
    return [*first, *((begin, end) for (begin, _), end in zip(bars, cases[1:], strict=True))]


def _cases(text: str, starts: Sequence[int], ends: Sequence[int]) -> list[int]:
    """Return the positions after the numbers or the label at the start of each form; its start if it has none."""
    for pattern in _LABELS:
        labels = [pattern.match(text, start, end) for start, end in zip(starts, ends, strict=True)]
        if all(label is not None for label in labels):
            return [label.end() for label in labels if label is not None]
    found = [_CASE.match(text, start, end) for start, end in zip(starts, ends, strict=True)]
    braces = [match["numbers"] for match in found if match is not None and match["numbers"]]
    # `{0}` may also be a placeholder: that of the only form with a number, or one that all forms share
    are_placeholders = len(set(braces)) < len(braces) or (len(braces) == 1 and found[0] is None)
    return [
        start if match is None or (match["numbers"] and are_placeholders) else match.end()
        for start, match in zip(starts, found, strict=True)
    ]
