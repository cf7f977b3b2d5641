"""Inline markup of AsciiDoc."""

import re

from dragoman.addons.documents.formats.light_markup.lines import add_plain
from dragoman.addons.documents.passage import Passage, Style
from dragoman.addons.documents.passage_builder import PassageBuilder

_BEFORE, _AFTER = r"(?<![^\W_])", r"(?![^\W_])"
_ROLE = r"(?:\[[^\[\]\r\n]{0,200}\])?"
_SCHEME = r"(?:https?|ftp|irc)://"


def _span(name: str, sign: str) -> str:
    """Return the pattern of a span of markup: between doubled signs, or between single ones around words."""
    sign = re.escape(sign)
    inner = rf"(?:[^{sign}]|{sign}(?!{sign}))"
    double = rf"(?P<{name}2>{_ROLE}{sign}{sign}(?=[^{sign}]){inner}*+{sign}{sign})"
    words = rf"(?:[^{sign}]|{sign}(?=[^\W_])|(?<=\s){sign}){{0,2000}}+"  # a sign within a word ends nothing
    return rf"{double}|(?P<{name}>{_BEFORE}{_ROLE}{sign}(?=[^\s{sign}]){words}{sign}{_AFTER})"


_CURVED = r"|(?P<quote>\"`(?=\S)|(?<=\S)`\"|(?<!\w)'`(?=\S)|(?<=\S)`'(?!\w))"
_INLINE = re.compile(
    r"(?P<escaped>\\(?:[*_`#^~{<\[+|]|(?=[a-z]{3,9}:)))"
    r"|(?P<passed>\+{2,3}(?=[^\s+])[^+]*+\+{2,3}|pass:[a-z,]*\[[^\]]{0,1000}+\]"
    rf"|{_BEFORE}\+(?=[^\s+])[^+\r\n]*+\+{_AFTER})"
    r"|(?P<code>``[^`]*+``|(?<![\"'])`(?=[^\s`])[^`]*+`)"
    rf"{_CURVED}"
    r"|(?P<macro>(?:kbd|btn|menu|stem|latexmath|asciimath|image|icon|anchor|indexterm2?|counter2?|footnoteref)"
    r":[^\s\[\]]{0,300}\[[^\]]{0,1000}+\])"
    r"|(?P<index>\(\(\([^()]*+\)\)\)|\[\[[^\[\]\r\n]*+\]\])"
    r"|(?P<note>footnote:[\w-]{0,100}\[[^\]]{0,2000}+\])"
    r"|(?P<xref><<[^<>]*+>>)"
    rf"|(?P<link>(?:(?:link|xref|mailto):[^\s\[\]]{{0,500}}|{_SCHEME}[^\s\[\]<>]*+)\[[^\]]{{0,1000}}+\])"
    rf"|(?P<address>{_SCHEME}[^\s\[\]<>]*+)"
    r"|(?P<reference>\{[\w-]+(?:[:!][^{}\r\n]*)?\}|&(?:\#[0-9]{1,7}|\#x[0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});)"
    rf"|{_span('strong', '*')}|{_span('emphasis', '_')}|{_span('mark', '#')}"
    r"|(?P<raised>\^(?=[^\s^])[^\s^]*+\^)|(?P<lowered>~(?=[^\s~])[^\s~]*+~)"
)
_COMPATIBLE = re.compile(_INLINE.pattern.replace(_CURVED, "").replace(r"(?<![\"'])`", "`"))
_QUOTES = {'"`': "“", '`"': "”", "'`": "‘", "`'": "’"}
_DEEPEST = 3
"""The deepest nesting of spans that is read."""

_SPECIAL = re.compile(
    r"(?<![^\W_])(?P<sign>[*_#`+])(?=\S[\s\S]{0,2000}?(?<=\S)(?P=sign)(?![^\W_]))"
    r"|(?P<double>\*\*|__|##|``)(?=[\s\S]{1,2000}?(?P=double))|(?P<around>[\^~])(?=\S{1,2000}?(?P=around))"
    r"|\{(?=[\w-]+\})|<<(?=[^<>]*>>)|\[\[(?=[^\[\]]*\]\])|(?:https?|ftp|irc)://|"
    r"\b(?:link|xref|image|kbd|footnote|pass|stem):(?=\S{0,300}\[)"
)
"""What markup would be without an escape, which readers would see before anything else."""

_LINK_ATTRIBUTES = re.compile(r"(?:,\s*(?:window|role|opts|options|id|title|rel)\s*=.*|\^)\Z", re.DOTALL)
_BEGINNING = re.compile(
    r"(?:[*-]|\*{2,6}|\.{1,6}|[0-9]{1,9}\.|[A-Za-z]\.|={1,6}|\#{1,6}|<[0-9.]+>)(?=\s)|//|\.(?=\S)|:[\w-]+:|\[[^\]]*\]\Z"
    r"|(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION):(?=\s)"
)


def inline_pattern(is_compatible: bool = False) -> "re.Pattern[str]":
    """Return a pattern that matches inline markup. is_compatible: that of AsciiDoc.py, without curved quotes."""
    return _COMPATIBLE if is_compatible else _INLINE


def escape_asciidoc(text: str, begins: bool) -> str:
    """Write text of a translation. begins: whether it starts a sentence, and thus perhaps a block."""
    written = _SPECIAL.sub(r"\\\g<0>", text)
    # an empty attribute before the text, because most signs at the start of a line have no escape
    return f"{{empty}}{written}" if begins and _BEGINNING.match(text) else written


def escape_cell(text: str, begins: bool) -> str:
    """Like `escape_asciidoc`, for cells of tables, which end at a bar."""
    return _SPECIAL.sub(r"\\\g<0>", text).replace("|", "\\|")


def add_inline(builder: PassageBuilder, match: "re.Match[str]", depth: int = 0) -> None:
    """Add a piece of inline markup to a builder."""
    kind, raw = (match.lastgroup or "").rstrip("2"), match[0]
    if kind == "escaped" and len(raw) > 1:
        builder.add_text(raw[1], raw)
    elif kind == "passed" and "<" not in raw and any(map(str.isalnum, raw.partition("[")[2] or raw)):
        builder.add_code(raw.partition("[")[2].rstrip("]") or raw.strip("+"), raw)
    elif kind in ("escaped", "passed", "index"):
        builder.add_mark("empty", (raw,))
    elif kind == "quote":
        builder.add_text(_QUOTES[raw], raw)
    elif kind == "code":
        builder.add_code(raw.strip("`"), raw)
    elif kind in ("strong", "emphasis", "mark", "raised", "lowered"):
        _add_span(builder, kind, raw, depth)
    elif kind == "note":
        opening = raw[: raw.index("[") + 1]
        inner = PassageBuilder(escape_asciidoc)
        _fill(inner, raw[len(opening) : -1], depth + 1)
        text: list[str | Passage] = []
        inner.finish(text.append)
        builder.add_mark("empty", (opening, *text, "]"))
    elif kind == "link":
        _add_link(builder, raw[: raw.index("[") + 1], raw[raw.index("[") + 1 : -1], "]", depth)
    elif kind == "xref" and "," in raw:
        opening = raw[: raw.index(",") + 1]
        _add_link(builder, opening, raw[len(opening) : -2], ">>", depth)
    else:
        builder.add_code(raw, raw)


def _add_span(builder: PassageBuilder, kind: str, raw: str, depth: int) -> None:
    sign = raw[-1]
    begin = raw.index("]") + 1 if raw.startswith("[") else 0
    width = 2 if raw.startswith(2 * sign, begin) else 1
    style: Style = "raised" if kind in ("raised", "lowered") else "emphasis"
    builder.add_mark("open", (raw[: begin + width],), kind, must_contain_text=True, style=style)
    _fill(builder, raw[begin + width : -width], depth + 1)
    builder.add_mark("close", (raw[-width:],), kind)


def _add_link(builder: PassageBuilder, opening: str, text: str, closing: str, depth: int) -> None:
    """Add a link. What follows the text, such as `window=_blank`, is kept."""
    attributes = _LINK_ATTRIBUTES.search(text)
    end = len(text) if attributes is None else attributes.start()
    if not any(map(str.isalpha, text[:end])):
        raw = opening + text + closing
        builder.add_code(raw, raw)
        return
    builder.add_mark("open", (opening,), opening, style="separate", keep_source=True)
    _fill(builder, text[:end], depth + 1)
    builder.add_mark("close", (text[end:] + closing,), opening)


def _fill(builder: PassageBuilder, text: str, depth: int) -> None:
    """Add the text of a span with the markup in it."""
    at = 0
    for match in _INLINE.finditer(text) if depth < _DEEPEST else ():
        add_plain(builder, text[at : match.start()])
        add_inline(builder, match, depth)
        at = match.end()
    add_plain(builder, text[at:])
