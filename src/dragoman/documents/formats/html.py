"""HTML documents: text is translated; tags, attributes and everything else are kept."""

import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser

from dragoman.documents.passage import Passage, PassageBuilder, Raw

_BLOCKS = frozenset(
    "address article aside base blockquote body caption center col colgroup dd details dialog dir div dl dt fieldset "
    "figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe legend li link "
    "main menu meta nav noframes noscript ol optgroup option p pre section select source summary table tbody td "
    "template tfoot th thead title tr track ul video audio".split()
)
_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_UNTOUCHED = frozenset("script style code pre textarea kbd samp var tt svg math template object".split())
_KEPT = frozenset("code kbd samp var tt".split())
_TRANSLATED = frozenset(("alt", "title", "placeholder"))
_ATTRIBUTE = re.compile(r"([^\s\"'<>/=]+)(?:\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s\"'>]+))?")
_BLANKS = re.compile(r"[ \t\n\r\f]+")


def _escape(text: str, _: bool) -> str:
    return html.escape(text, quote=False)


def _escape_attribute(text: str, _: bool) -> str:
    return html.escape(text)


class _Events(HTMLParser):
    """Collects the syntactic parts of a page in `found`, as (first character, kind, tag name)."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.found: list[tuple[int, str, str]] = []
        self.feed(text)
        self.close()

    def _add(self, kind: str, name: str = "") -> None:
        line, column = self.getpos()
        self.found.append((self._lines[line - 1] + column, kind, name))

    def parse_html_declaration(self, i: int) -> int:
        # the library fails on unknown marked sections, which HTML treats as comments
        if self.rawdata.startswith("<![", i):
            return self.parse_bogus_comment(i)
        return super().parse_html_declaration(i)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add("start", tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add("startend", tag)

    def handle_endtag(self, tag: str) -> None:
        self._add("end", tag)

    def handle_data(self, data: str) -> None:
        self._add("data")

    def handle_entityref(self, name: str) -> None:
        self._add("entity")

    def handle_charref(self, name: str) -> None:
        self._add("entity")

    def handle_comment(self, data: str) -> None:
        self._add("other")

    def handle_decl(self, decl: str) -> None:
        self._add("other")

    def handle_pi(self, data: str) -> None:
        self._add("other")

    def unknown_decl(self, data: str) -> None:
        self._add("other")


def parts_of_html(text: str) -> Iterator[str | Passage]:
    """Split a page into kept parts and the passages between the tags of block elements."""
    found = _Events(text).found
    ends = [*(begin for begin, _, _ in found[1:]), len(text)]
    parts: list[str | Passage] = [text[: found[0][0]] if found else text]
    builder = PassageBuilder(_escape)
    index = 0
    while index < len(found):
        begin, kind, name = found[index]
        raw = text[begin : ends[index]]
        untouched = kind == "start" and name not in _VOID and (name in _UNTOUCHED or _is_excluded(raw))
        if untouched:
            last = _end_of(found, index)
            raw = text[begin : ends[last]]
            if name in _BLOCKS:
                builder.finish(parts.append)
                parts.append(raw)
            else:
                plain = html.unescape(re.sub(r"<[^>]*>", "", raw))
                if name in _KEPT or _is_excluded(text[begin : ends[index]]):
                    builder.keep(_BLANKS.sub(" ", plain), raw)
                else:
                    builder.mark("empty", (raw,))
            index = last + 1
            continue
        if kind in ("start", "startend", "end"):
            tag = _tag(raw) if kind != "end" else (raw,)
            if name == "br" and kind != "end":
                builder.line_break(raw)
            elif name in _BLOCKS:
                builder.finish(parts.append)
                parts += tag
            elif kind == "end" and name not in _VOID:
                builder.mark("close", tag, name)
            else:
                builder.mark("empty" if kind != "start" or name in _VOID else "open", tag, name)
        elif kind == "data":
            _add_text(builder, raw)
        elif kind == "entity":
            _add_entity(builder, raw)
        else:
            builder.mark("empty", (raw,))
        index += 1
    builder.finish(parts.append)
    yield from parts


def _add_entity(builder: PassageBuilder, raw: str) -> None:
    shown = html.unescape(raw)
    if shown.startswith("&") and len(shown) > 1:  # no such entity, or text follows its name
        _add_text(builder, raw)
    else:
        builder.text(shown, raw)


def _add_text(builder: PassageBuilder, raw: str) -> None:
    at = 0
    for blank in _BLANKS.finditer(raw):
        for character in raw[at : blank.start()]:
            builder.text(character, character)
        builder.blank(blank[0])
        at = blank.end()
    for character in raw[at:]:
        builder.text(character, character)


def _end_of(found: list[tuple[int, str, str]], index: int) -> int:
    """Return the index of the end tag of the element that starts at an index, or the index of the last part."""
    name, depth = found[index][2], 0
    for other in range(index, len(found)):
        _, kind, tag = found[other]
        if tag == name:
            depth += (kind == "start") - (kind == "end")
            if depth == 0:
                return other
    return len(found) - 1


def _attributes(tag: str) -> Iterator[re.Match[str]]:
    """Return the attributes of a start tag."""
    name = re.match(r"<[^\s/>]+", tag)
    yield from _ATTRIBUTE.finditer(tag, name.end() if name else 0)


def _is_excluded(tag: str) -> bool:
    values = {each[1].lower(): (each[2] or "").strip("\"'") for each in _attributes(tag)}
    return values.get("translate", "").lower() == "no" or "notranslate" in values.get("class", "").split()


def _tag(raw: str) -> Raw:
    """Return a start tag, with a passage for each quoted attribute that readers see."""
    if _is_excluded(raw):
        return (raw,)
    parts: list[str | Passage] = []
    at = 0
    for each in _attributes(raw):
        if each[1].lower() in _TRANSLATED and (each[2] or "")[:1] in ('"', "'") and len(each[2]) > 2:
            builder = PassageBuilder(_escape_attribute)
            begin, end = each.start(2) + 1, each.end(2) - 1
            for unit in re.finditer(r"(&#?\w+;)|[^&]+|&", raw[begin:end]):
                (_add_text if unit[1] is None else _add_entity)(builder, unit[0])
            parts.append(raw[at:begin])
            builder.finish(parts.append)
            at = end
    return (*parts, raw[at:])
