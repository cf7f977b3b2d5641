"""Inline markup of reStructuredText."""

import re

from dragoman.addons.documents.formats.light_markup.lines import add_plain, add_span
from dragoman.addons.documents.passage_builder import PassageBuilder

_TARGET = re.compile(r"(?P<text>[^<>`]*[^<>`\s])(?P<target>\s+<[^<>`]*>)\Z")
_ROLE = re.compile(r"(?P<role>:[\w:+.-]+:)`(?P<content>[^`]*)`\Z")
_TEXT_ROLES = {":emphasis:": "emphasis", ":strong:": "emphasis", ":sup:": "raised", ":sub:": "raised"}
_RAISED = {":superscript:": "raised", ":subscript:": "raised"}

_NO_WORD = r"(?<![^\W_])"
_INLINE = re.compile(
    r"\\(?P<escaped>[\s\S])"
    rf"|{_NO_WORD}(?P<literal>``(?=\S)(?:[^`]|`(?!`))*+``)"
    r"|(?P<role>:[A-Za-z][\w+.-]{0,40}(?::[\w+.-]{1,40}){0,3}:`(?:[^`\\]|\\[\s\S])*+`)"
    rf"|{_NO_WORD}(?P<phrase>_?`(?=[^\s`])(?:[^`\\]|\\[\s\S])*+`(?:__?(?!\w)|:[\w+.-]+:)?)"
    rf"|{_NO_WORD}(?P<strong>\*\*(?=[^\s*])(?:[^*\\]|\\[\s\S])*+\*\*(?![^\W_]))"
    rf"|{_NO_WORD}(?P<emphasis>(?<!\*)\*(?=[^\s*])(?:[^*\\]|\\[\s\S])*+\*(?![^\W_*]))"
    r"|(?P<substitution>\|(?=[^\s|])[^|\r\n]*+\|(?:__?(?!\w))?)"
    r"|(?P<note>\[(?:[0-9]+|[#*][\w.-]*|[A-Za-z][\w.-]*)\]_(?!\w))"
    r"|(?P<address>(?<![\w/])(?:https?|ftp)://[^\s<>`]++)"
    r"|(?P<reference>(?<![\w.:/@-])[^\W_]++(?:[.:+_-][^\W_]++)*+__?(?!\w))"
)
_SPECIAL = re.compile(r"[\\`]|\*(?=[^\s*])|\|(?=[^\s|])|(?<=[^\W_])_(?!\w)|(?<=\S)::\Z")
_BEGINNING = re.compile(
    r"[-+•](?=\s)|\*(?=\s)|(?:[0-9]{1,9}|[A-Za-z]|#)[.)](?=\s)|\((?:[0-9]{1,9}|[A-Za-z]|#)\)(?=\s)|\.\.(?=\s)|__(?=\s)"
    r"|\|(?=\s)|>>>|:(?=[^\s:`][^:`]*:(?:\s|\Z))|[=~^#+\"'-]{4,}\Z"
)


def inline_pattern() -> "re.Pattern[str]":
    """Return a pattern that matches inline markup."""
    return _INLINE


def escape_rst(text: str, begins: bool) -> str:
    """Write text of a translation. begins: whether it starts a sentence, and thus perhaps a block."""
    written = _SPECIAL.sub(r"\\\g<0>", text)
    return f"\\{written}" if begins and _BEGINNING.match(text) and not written.startswith("\\") else written


def add_inline(builder: PassageBuilder, match: "re.Match[str]") -> None:
    """Add a piece of inline markup to a builder."""
    kind, raw = match.lastgroup, match[0]
    if kind == "escaped":
        character = match["escaped"]
        if character.isspace():
            builder.add_mark("empty", (raw,))
        else:
            builder.add_text(character, raw)
    elif kind in ("strong", "emphasis"):
        delimiter = "**" if kind == "strong" else "*"
        add_span(builder, delimiter, raw[len(delimiter) : -len(delimiter)], delimiter, _fill)
    elif kind == "literal":
        builder.add_code(raw[2:-2], raw)
    elif kind in ("role", "phrase"):
        _add_role(builder, raw)
    elif kind == "note":
        builder.add_mark("empty", (raw,))
    else:
        builder.add_code(raw.rstrip("_") if kind == "reference" else raw, raw)


def _add_role(builder: PassageBuilder, raw: str) -> None:
    """Add interpreted text or a link. The text before a target is translated; a name without a target is kept."""
    role = _ROLE.match(raw)
    prefix = "" if role is None else role["role"]
    content = raw[raw.index("`") + 1 : raw.rindex("`")]
    opening, closing = raw[: raw.index("`") + 1], raw[raw.rindex("`") :]
    found = _TARGET.match(content)
    if found is not None and (prefix or closing.endswith("_")) and not content.startswith("!"):
        add_span(builder, opening, found["text"], found["target"] + closing, _fill)
    elif (style := (_TEXT_ROLES | _RAISED).get(prefix)) is not None:
        builder.add_mark("open", (opening,), opening, must_contain_text=True, style=style)  # type: ignore[arg-type]
        _fill(builder, content)
        builder.add_mark("close", (closing,), opening)
    else:
        builder.add_code(content, raw)


def _fill(builder: PassageBuilder, text: str) -> None:
    """Add the text of a span, in which only backslashes are special."""
    at = 0
    for found in re.finditer(r"\\([\s\S])", text):
        add_plain(builder, text[at : found.start()])
        if found[1].isspace():
            builder.add_mark("empty", (found[0],))
        else:
            builder.add_text(found[1], found[0])
        at = found.end()
    add_plain(builder, text[at:])
