"""`KeepRules`: finds the spans of a source text that the translation must contain unchanged."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import regex

from dragoman.base.errors import ConfigError
from dragoman.inference.control.numbers import NUMBER, digits_of
from dragoman.text.scripts import unspaced_class
from dragoman.text.words import WORD_CHARACTER

_EMOJI_MODIFIERS = r"\p{Emoji_Modifier}?\uFE0F?\u20E3?[\U000E0020-\U000E007F]*"
_EMOJI = rf"(?:\p{{Emoji_Presentation}}|\p{{Extended_Pictographic}}|\p{{Emoji}}(?=\uFE0F|\u20E3)){_EMOJI_MODIFIERS}"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*+"
_LETTER = WORD_CHARACTER
"""A letter or digit of a word, without the scripts that do not separate words: a name ends where such text begins."""

_EXPRESSION = r"[$@-]?[\p{L}_][\p{L}\p{N}_.$\[\]-]*+"
_PLACEHOLDERS = (
    r"\{\{\{?[^{}\n]{1,200}+\}\}\}?",  # Mustache, Handlebars, Jinja, Angular, i18next, MediaWiki
    r"\{%[^{}\n]{1,200}+\}|<[%?][^<>\n]{1,200}+>",  # Jinja, ERB, PHP
    r"(?<!`)`[^`\s](?:[^`\n]{0,98}[^`\s])?`(?!`)",  # code in plain text
    rf"[$#%@]?\{{\s{{0,9}}(?:{_EXPRESSION}|[0-9]*+)(?:[:!][^{{}}\s]{{0,60}}+|\s{{0,9}},[^{{}}\n]{{1,60}}+)?\s{{0,9}}\}}",
    r"\[\[[^\[\]\n]{1,200}+\]\]",  # MediaWiki, Obsidian
    r"\$t\([^()\n]{1,100}+\)|\$\([A-Za-z_][\w.]{0,90}+\)",  # i18next, make
    r"(?<![\p{L}\p{N}_$])\$" + _NAME + r"\$?",  # shells, PHP, Chrome
    r"%\(\w+\)[-+0#]*+[0-9]*+(?:\.[0-9]+)?[a-zA-Z]",  # Python
    r"%[0-9]++\$[-+0#]*+[0-9]*+(?:\.[0-9]+)?(?:hh|h|ll|l|L|q|j|z|t)?[a-zA-Z@]",  # C, PHP, Java, Objective-C
    r"%[-+0#]*+[0-9]*+(?:\.[0-9]+)?(?:hh|h|ll|l|L|q|j|z|t)?[sdiufgxX@](?![\p{L}\p{N}])",  # C
    r"(?<![\p{L}\p{N}%])%(?:[A-Za-z]|[1-9][0-9]?)(?![\p{L}\p{N}%])|%%",  # strftime, Qt
    r"(?<![\p{L}\p{N}%])%[A-Za-z_][\w.]{0,60}+%",  # Symfony, Windows
    r"(?<![^\s\"'(\[{<>=„“‘«])::?" + _NAME + r"(?!:)",  # Laravel, SQL
    r"(?<![\p{L}\p{N}:]):[a-z0-9_+-]{1,40}+:(?![\p{L}\p{N}:])",  # short names of emoji
    r"(?<![\p{L}\p{N}_])__[\p{L}\p{N}]++(?:_[\p{L}\p{N}]++)*+__(?![\p{L}\p{N}_])",
    r"\*\|[^|\n]{1,60}+\|\*",  # Mailchimp
)

_SEGMENT = r"(?:[{W}@%+=~-]|\.(?=[{W}]))++".replace("{W}", _LETTER)
_NO_PATH_BEFORE = rf"(?<![{_LETTER}@%+=~.:/\\<>-])"
_ENDINGS = (
    "txt|md|rst|html?|xhtml|css|js|mjs|ts|tsx|jsx|json|jsonl|ya?ml|toml|ini|cfg|conf|xml|csv|tsv|py|ipynb|cc?|cpp|hpp|h"
    "|cs|java|kt|go|rs|rb|php|pl|lua|swift|sh|bash|bat|ps1|exe|dll|so|jar|zip|gz|tar|tgz|bz2|xz|zst|7z|rar|pdf|docx?"
    "|xlsx?|pptx?|od[tsp]|rtf|epub|png|jpe?g|gif|svg|webp|bmp|ico|mp[34]|wav|ogg|flac|mkv|avi|mov|log|lock|sql|db|sqlite"
    "|env|pot?|xlf|xliff|srt|vtt|tex|bib|bin|iso|img|deb|rpm|apk|dmg|safetensors|onnx|pt"
)
_PATHS = (
    rf"{_NO_PATH_BEFORE}(?:~(?:[\w-]++)?/|(?:\.\.?/)++|/){_SEGMENT}(?:/{_SEGMENT})*+/?",  # /a/b, ~/a, ./a, ../../a
    rf"{_NO_PATH_BEFORE}{_SEGMENT}(?:/{_SEGMENT})++(?<=\.[a-z0-9]{{1,8}})(?![{_LETTER}/])",  # a/b.c
    rf"{_NO_PATH_BEFORE}[A-Za-z]:[\\/](?![\\/])(?:{_SEGMENT}(?:[\\/]{_SEGMENT})*+[\\/]?)?",  # C:\a
    rf"(?<![\\{_LETTER}])\\\\{_SEGMENT}(?:\\{_SEGMENT})++\\?",  # \\host\a
    rf"{_NO_PATH_BEFORE}(?:[{_LETTER}-]++)?(?:\.[{_LETTER}-]++)++(?<=\.(?:{_ENDINGS}))",  # a.txt
)

_NO_CODE_BEFORE = rf"(?<![{_LETTER}.:/+-])"
_RELEASE = r"[.-]?(?:alpha|beta|a|b|rc|dev|post)\.?[0-9]*+"
_CODES = (
    rf"{_NO_CODE_BEFORE}[0-9]++(?:-[0-9]++){{2,20}}+(?:T[0-9]++(?:[:.][0-9]++)*+(?:Z|[+-][0-9]++(?::[0-9]++)?)?)?"
    rf"(?!{_LETTER})",  # 2024-12-31, 2024-12-31T12:00:00Z, 978-3-16-148410-0
    rf"{_NO_CODE_BEFORE}\+[0-9]++(?:[ \u00A0./()-]{{1,3}}+[0-9]++){{1,20}}+(?!{_LETTER})",  # +49 30 123456
    rf"{_NO_CODE_BEFORE}[vV][0-9]++(?:\.[0-9]++)*+(?:{_RELEASE})?(?!{_LETTER})",  # v1.2
    rf"{_NO_CODE_BEFORE}[0-9]++(?:\.[0-9]++)++{_RELEASE}(?!{_LETTER})",  # 1.2.3-rc1
    rf"{_NO_CODE_BEFORE}(?=[A-Z-]*+[0-9])[A-Z][A-Z0-9]*+(?!{_LETTER})(?:-[A-Z0-9]++(?!{_LETTER}))*+",  # ISO-8859-1, B2
)

_NO_WORD_BEFORE = r"(?<![\p{L}\p{N}])"
_SCHEME = rf"https?|ftps?|{_NO_WORD_BEFORE}[a-z][a-z0-9+.-]{{1,20}}+"
_TOP_LEVEL = "com|org|net|edu|gov|info|io|dev|app|eu|de|at|ch|fr|nl|pl|cz|uk|jp|cn|ru|tv|social|xyz"
_UNSPACED = unspaced_class(r"\p{{Script={}}}")
_URL_CHARACTER = rf"(?:[^\s<>\"”»(){_UNSPACED}，。、；：！？）」』】》]|(?<=[/=_#&%\-{_UNSPACED}])[{_UNSPACED}])"
"""Letters of scripts without blanks only continue an address after a separator or one another, as in `/wiki/中文`."""

_BALANCED = r"\([^\s<>\"”»()]*+\)"
_URL_REST = rf"(?:{_BALANCED}|{_URL_CHARACTER})*(?:{_BALANCED}|(?!['’.,;:!?\]}}…]){_URL_CHARACTER})"

KINDS = {
    "number": NUMBER,
    "url": rf"(?i:(?:{_SCHEME})://|{_NO_WORD_BEFORE}(?:mailto|tel|magnet):(?=\S)|www\.){_URL_REST}"
    rf"|(?<![\p{{L}}\p{{N}}@._-])[a-z0-9-]++(?:\.[a-z0-9-]++)++(?<=\.(?:{_TOP_LEVEL}))(?![\p{{L}}\p{{N}}_]|\.[\p{{L}}\p{{N}}])"
    rf"(?:/(?:{_URL_REST})?)?",
    "email": rf"(?<![{_LETTER}._%+-])(?>[{_LETTER}._%+-]+)@(?>[{_LETTER}-]+)(?:\.(?>[{_LETTER}-]+))+",
    "emoji": rf"(?:[\U0001F1E6-\U0001F1FF]{{2}}|{_EMOJI}(?:\u200D{_EMOJI})*+)++"
    r"|(?<!\S)(?:[:;]['-]?[()DP]|:-[/|]|=[()]|<3)(?![^\s.,!?…])",
    "markup": r"</?\p{L}[^<>]*>|</?[0-9]{1,4}/?>|<!--(?:(?!-->|<!--).)*+-->"
    r"|&(?:[A-Za-z][A-Za-z0-9]{1,30}+|#[0-9]{1,7}+|#x[0-9A-Fa-f]{1,6}+);",
    "placeholder": "|".join(_PLACEHOLDERS),
    "mention": rf"(?<![{_LETTER}@/.+-])@{_LETTER}++(?:[.-]++{_LETTER}++)*+(?:[@/]{_LETTER}++(?:[.-]++{_LETTER}++)*+)?",
    "hashtag": r"(?<![\p{L}\p{N}_&/#])#[\p{L}\p{N}_][\p{L}\p{N}\p{M}_]*+",
    "path": "|".join(_PATHS),
    "code": "|".join(_CODES),
    "escape": r"\\(?:[nrt\"'\\]|[bfv0](?!\p{L})|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|u\{[0-9A-Fa-f]{1,6}\})",
}
"""Named kinds of spans, with a `regex.V1` pattern for each kind. Each pattern takes linear time on any text."""

_SIGNS = {
    "number": r"\p{Nd}",
    "url": r"[:.][^\s.]",
    "email": "@",
    "emoji": r"[#*\p{Nd}\u00A9\u00AE\u203C-\U0010FFFF]|[:;=]\S|<3",
    "markup": "[<&]",
    "placeholder": r"[%${*`]|[:_\[]\S|<[%?]",
    "mention": "@",
    "hashtag": "#",
    "path": r"[/\\]|\.[a-z]",
    "code": "[0-9]",
    "escape": r"\\",
}
"""For each kind, a pattern that matches in any text with a span of the kind. It is found much faster than the span."""

_TIME_LIMIT = 10.0
"""Time limit in seconds for the search for a pattern in one text."""


class Span(NamedTuple):
    """The substring text[start:end]."""

    start: int
    end: int
    text: str


def bare_number(span: Span) -> Span:
    """Return the span of a number without its signs and units, or any other span unchanged."""
    digits = digits_of(span.text)
    start = span.start + span.text.index(digits)
    return Span(start, start + len(digits), digits)


@dataclass(frozen=True)
class KeepRules:
    """Rules that find spans to copy unchanged.

    kinds: names of `KINDS`; patterns: the user's regular expressions, which take precedence.
    """

    kinds: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    @staticmethod
    def of(kinds: Iterable[str] = (), patterns: Iterable[str] = ()) -> "KeepRules | None":
        """Create the rules. Return None if there are neither kinds nor patterns.

        The kind `all` stands for all kinds, and `none` for no kind.

        Raises ConfigError for an unknown kind or an invalid pattern, and TypeError for a single string instead of a
        list.
        """
        if isinstance(kinds, str) or isinstance(patterns, str):
            raise TypeError("keep and keep_patterns must be lists of strings, not a single string")
        names = [each for kind in kinds for each in (KINDS if kind == "all" else [] if kind == "none" else [kind])]
        keep = KeepRules(tuple(dict.fromkeys(names)), tuple(patterns))
        if unknown := [kind for kind in keep.kinds if kind not in KINDS]:
            raise ConfigError(f"unknown kind {unknown[0]!r} to keep: choose among {', '.join(KINDS)}, all and none")
        return keep if keep._compiled else None

    def find(self, text: str) -> list[Span]:
        """Return the spans from left to right.

        Of overlapping matches, only the first is returned, or the longest if several start at the same position. Spans
        are stripped of whitespace, and blank matches are ignored. Raises ConfigError if a pattern exceeds the time
        limit.
        """
        spans = []
        for sign, pattern in self._compiled:
            if sign is not None and sign.search(text) is None:
                continue
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
    def _compiled(self) -> list[tuple["regex.Pattern[str] | None", "regex.Pattern[str]"]]:
        """For each pattern, the pattern of its sign, or None if it has none, and the compiled pattern."""
        compiled: list[tuple[regex.Pattern[str] | None, regex.Pattern[str]]] = []
        for pattern in self.patterns:
            try:
                compiled.append((None, regex.compile(pattern, regex.V1)))
            except regex.error as error:
                raise ConfigError(f"{pattern!r} is not a regular expression: {error}") from None
        return [*compiled, *(_compile_kind(kind) for kind in self.kinds)]


@cache
def _compile_kind(kind: str) -> tuple["regex.Pattern[str]", "regex.Pattern[str]"]:
    return regex.compile(_SIGNS[kind], regex.V1), regex.compile(KINDS[kind], regex.V1)
