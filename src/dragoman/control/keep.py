"""`KeepRules`: finds the spans of a source text that its translation must contain unchanged."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import regex

from dragoman.base.errors import ConfigError
from dragoman.text.words import WORD_CHARACTER

_MODIFIED = r"\p{Emoji_Modifier}?\uFE0F?\u20E3?[\U000E0020-\U000E007F]*"
_ONE_EMOJI = rf"(?:\p{{Emoji_Presentation}}|\p{{Extended_Pictographic}}|\p{{Emoji}}(?=\uFE0F|\u20E3)){_MODIFIED}"
_INTERPOLATED = r"[\p{L}_][\p{L}\p{N}_.$\[\]-]*"

KINDS = {
    "number": rf"(?<!{WORD_CHARACTER})(?>\p{{Nd}}+(?:[.,:/'’\u00A0\u202F]\p{{Nd}}+)*)(?!{WORD_CHARACTER})",
    "url": r"(?i:(?:https?|ftps?)://|www\.)[^\s<>\"”»]*[^\s<>\"”»'’.,;:!?)\]}…]",
    "email": r"(?<![\p{L}\p{N}._%+-])(?>[\p{L}\p{N}._%+-]+)@(?>[\p{L}\p{N}-]+)(?:\.(?>[\p{L}\p{N}-]+))+",
    "emoji": rf"[\U0001F1E6-\U0001F1FF]{{2}}|{_ONE_EMOJI}(?:\u200D{_ONE_EMOJI})*",
    "markup": r"</?\p{L}[^<>]*>|<!--.*?-->|&(?:[A-Za-z][A-Za-z0-9]*|#[0-9]+|#x[0-9A-Fa-f]+);",
    "placeholder": rf"\{{\{{\s*{_INTERPOLATED}\s*\}}\}}|\$?\{{(?:{_INTERPOLATED}|[0-9]*)(?:[:!][^{{}}\s]*)?\}}"
    r"|%\(\w+\)[-+0#]*+[0-9]*+(?:\.[0-9]+)?[sdifgxr]|%(?:[0-9]+\$)?[-+0#]*+[0-9]*+(?:\.[0-9]+)?[sdifgx@](?![\p{L}\p{N}])",
}
"""Named kinds of spans, each a pattern for `regex.V1`."""

_SECONDS = 10.0
"""Time limit for a user's pattern to search one text."""


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
        """Return the rules, or None if nothing is to be kept. `all` names all kinds.

        Raises ConfigError for an unknown kind or an invalid pattern, TypeError for a bare string.
        """
        if isinstance(kinds, str) or isinstance(patterns, str):
            raise TypeError("keep and keep_patterns must be lists of strings, not a single string")
        named = [each for kind in kinds for each in (KINDS if kind == "all" else [kind])]
        keep = KeepRules(tuple(dict.fromkeys(named)), tuple(patterns))
        if unknown := [kind for kind in keep.kinds if kind not in KINDS]:
            raise ConfigError(f"unknown kind {unknown[0]!r} to keep: choose among {', '.join(KINDS)}, or all")
        return keep if keep._compiled else None

    def find(self, text: str) -> list[Span]:
        """Return the spans from left to right. Of overlapping matches, the first is returned, or the longest if several
        start at the same position.

        Spans are stripped of spaces, and blank matches are ignored. Raises ConfigError if a pattern takes too long.
        """
        found = []
        for pattern in self._compiled:
            try:
                for match in pattern.finditer(text, timeout=_SECONDS):
                    inner = match[0].strip()
                    if inner:
                        start = match.start() + len(match[0]) - len(match[0].lstrip())
                        found.append(Span(start, start + len(inner), inner))
            except TimeoutError:
                raise ConfigError(
                    f"the pattern {pattern.pattern!r} takes longer than {_SECONDS:.0f} seconds for one text: simplify "
                    "it"
                ) from None
        kept: list[Span] = []
        for span in sorted(found, key=lambda each: (each.start, -each.end)):
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
