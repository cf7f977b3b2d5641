"""`KeepRules`: finds the spans of a source text that the translation must contain unchanged."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import regex

from dragoman.base.errors import ConfigError
from dragoman.text.words import WORD_CHARACTER

_EMOJI_MODIFIERS = r"\p{Emoji_Modifier}?\uFE0F?\u20E3?[\U000E0020-\U000E007F]*"
_EMOJI = rf"(?:\p{{Emoji_Presentation}}|\p{{Extended_Pictographic}}|\p{{Emoji}}(?=\uFE0F|\u20E3)){_EMOJI_MODIFIERS}"
_EXPRESSION = r"[\p{L}_][\p{L}\p{N}_.$\[\]-]*"

KINDS = {
    "number": rf"(?<!{WORD_CHARACTER})(?>\p{{Nd}}+(?:[.,:/'’\u00A0\u202F]\p{{Nd}}+)*)(?!{WORD_CHARACTER})",
    "url": r"(?i:(?:https?|ftps?)://|www\.)[^\s<>\"”»]*[^\s<>\"”»'’.,;:!?)\]}…]",
    "email": r"(?<![\p{L}\p{N}._%+-])(?>[\p{L}\p{N}._%+-]+)@(?>[\p{L}\p{N}-]+)(?:\.(?>[\p{L}\p{N}-]+))+",
    "emoji": rf"[\U0001F1E6-\U0001F1FF]{{2}}|{_EMOJI}(?:\u200D{_EMOJI})*",
    "markup": r"</?\p{L}[^<>]*>|<!--.*?-->|&(?:[A-Za-z][A-Za-z0-9]*|#[0-9]+|#x[0-9A-Fa-f]+);",
    "placeholder": rf"\{{\{{\s*{_EXPRESSION}\s*\}}\}}|\$?\{{(?:{_EXPRESSION}|[0-9]*)(?:[:!][^{{}}\s]*)?\}}"
    r"|%\(\w+\)[-+0#]*+[0-9]*+(?:\.[0-9]+)?[sdifgxr]|%(?:[0-9]+\$)?[-+0#]*+[0-9]*+(?:\.[0-9]+)?[sdifgx@](?![\p{L}\p{N}])",
}
"""Named kinds of spans, with a `regex.V1` pattern for each kind."""

_TIME_LIMIT = 10.0
"""Time limit in seconds for the search for a pattern in one text."""


class Span(NamedTuple):
    """The substring text[start:end]."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class KeepRules:
    """Rules that find spans to copy unchanged.

    kinds: names of `KINDS`; patterns: the user's regular expressions, which take precedence.
    """

    kinds: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    @staticmethod
    def of(kinds: Iterable[str] = (), patterns: Iterable[str] = ()) -> "KeepRules | None":
        """Create the rules. Return None if there are neither kinds nor patterns. The kind `all` stands for all kinds.

        Raises ConfigError for an unknown kind or an invalid pattern, and TypeError for a single string instead of a
        list.
        """
        if isinstance(kinds, str) or isinstance(patterns, str):
            raise TypeError("keep and keep_patterns must be lists of strings, not a single string")
        names = [each for kind in kinds for each in (KINDS if kind == "all" else [kind])]
        keep = KeepRules(tuple(dict.fromkeys(names)), tuple(patterns))
        if unknown := [kind for kind in keep.kinds if kind not in KINDS]:
            raise ConfigError(f"unknown kind {unknown[0]!r} to keep: choose among {', '.join(KINDS)} and all")
        return keep if keep._compiled else None

    def find(self, text: str) -> list[Span]:
        """Return the spans from left to right.

        Of overlapping matches, only the first is returned, or the longest if several start at the same position. Spans
        are stripped of whitespace, and blank matches are ignored. Raises ConfigError if a pattern exceeds the time
        limit.
        """
        spans = []
        for pattern in self._compiled:
            try:
                for match in pattern.finditer(text, timeout=_TIME_LIMIT):
                    inner = match[0].strip()
                    if inner:
                        start = match.start() + len(match[0]) - len(match[0].lstrip())
                        spans.append(Span(start, start + len(inner), inner))
            except TimeoutError:
                raise ConfigError(
                    f"the pattern {pattern.pattern!r} takes longer than {_TIME_LIMIT:.0f} seconds for one text: "
                    "simplify it"
                ) from None
        kept: list[Span] = []
        for span in sorted(spans, key=lambda each: (each.start, -each.end)):
            if not kept or span.start >= kept[-1].end:
                kept.append(span)
        return kept

    @cached_property
    def _compiled(self) -> list["regex.Pattern[str]"]:
        compiled = []
        for pattern in self.patterns:
            try:
                compiled.append(regex.compile(pattern, regex.V1))
            except regex.error as error:
                raise ConfigError(f"{pattern!r} is not a regular expression: {error}") from None
        return [*compiled, *(regex.compile(KINDS[kind], regex.V1) for kind in self.kinds)]
