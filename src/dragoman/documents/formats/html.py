"""Parses HTML documents. Text and some attributes are translated, and everything else is preserved."""

import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser

from dragoman.documents.passage import Passage, PassageBuilder, Raw

_BLOCK_TAGS = frozenset(
    "address article aside base blockquote body caption center col colgroup dd details dialog dir div dl dt fieldset "
    "figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe legend li link "
    "main menu meta nav noframes noscript ol optgroup option p pre section select source summary table tbody td "
    "template tfoot th thead title tr track ul video audio".split()
)
_VOID_TAGS = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_UNTRANSLATED_TAGS = frozenset("script style code pre textarea kbd samp var tt svg math template object".split())
_COPIED_TAGS = frozenset("code kbd samp var tt".split())
_TRANSLATED_ATTRIBUTES = frozenset(("alt", "title", "placeholder"))
_ATTRIBUTE = re.compile(r"([^\s\"'<>/=]+)(?:\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s\"'>]+))?")
_WHITESPACE = re.compile(r"[ \t\n\r\f]+")


def _escape(text: str, _: bool) -> str:
    return html.escape(text, quote=False)


def _escape_attribute(text: str, _: bool) -> str:
    return html.escape(text)


class _Events(HTMLParser):
    """Collects the syntactic parts of a page in `events`, as (position, kind, tag name)."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.events: list[tuple[int, str, str]] = []
        self.feed(text)
        self.close()

    def _add(self, kind: str, name: str = "") -> None:
        line, column = self.getpos()
        self.events.append((self._lines[line - 1] + column, kind, name))

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


def split_html(text: str) -> Iterator[str | Passage]:
    """Split a page into untranslated parts and passages. The tags of block elements separate passages."""
    events = _Events(text).events
    ends = [*(begin for begin, _, _ in events[1:]), len(text)]
    parts: list[str | Passage] = [text[: events[0][0]] if events else text]
    builder = PassageBuilder(_escape)
    index = 0
    while index < len(events):
        begin, kind, name = events[index]
        raw = text[begin : ends[index]]
        is_untranslated = (
            kind == "start" and name not in _VOID_TAGS and (name in _UNTRANSLATED_TAGS or _is_excluded(raw))
        )
        if is_untranslated:
            last = _end_of(events, index)
            raw = text[begin : ends[last]]
            if name in _BLOCK_TAGS:
                builder.finish(parts.append)
                parts.append(raw)
            else:
                plain = html.unescape(re.sub(r"<[^>]*>", "", raw))
                if name in _COPIED_TAGS or _is_excluded(text[begin : ends[index]]):
                    builder.add_code(_WHITESPACE.sub(" ", plain), raw)
                else:
                    builder.add_mark("empty", (raw,))
            index = last + 1
            continue
        if kind in ("start", "startend", "end"):
            tag = _tag(raw) if kind != "end" else (raw,)
            if name == "br" and kind != "end":
                builder.add_line_break(raw)
            elif name in _BLOCK_TAGS:
                builder.finish(parts.append)
                parts += tag
            elif kind == "end" and name not in _VOID_TAGS:
                builder.add_mark("close", tag, name)
            else:
                builder.add_mark("empty" if kind != "start" or name in _VOID_TAGS else "open", tag, name)
        elif kind == "data":
            _add_text(builder, raw)
        elif kind == "entity":
            _add_entity(builder, raw)
        else:
            builder.add_mark("empty", (raw,))
        index += 1
    builder.finish(parts.append)
    yield from parts


def _add_entity(builder: PassageBuilder, raw: str) -> None:
    decoded = html.unescape(raw)
    if decoded.startswith("&") and len(decoded) > 1:  # no such entity, or text follows its name
        _add_text(builder, raw)
    else:
        builder.add_text(decoded, raw)


def _add_text(builder: PassageBuilder, raw: str) -> None:
    position = 0
    for blank in _WHITESPACE.finditer(raw):
        for character in raw[position : blank.start()]:
            builder.add_text(character, character)
        builder.add_blank(blank[0])
        position = blank.end()
    for character in raw[position:]:
        builder.add_text(character, character)


def _end_of(events: list[tuple[int, str, str]], index: int) -> int:
    """Return the index of the end tag of the element that starts at an index, or the index of the last part."""
    name, depth = events[index][2], 0
    for other in range(index, len(events)):
        _, kind, tag = events[other]
        if tag == name:
            depth += (kind == "start") - (kind == "end")
            if depth == 0:
                return other
    return len(events) - 1


def _attributes(tag: str) -> Iterator[re.Match[str]]:
    """Yield the attributes of a start tag."""
    name = re.match(r"<[^\s/>]+", tag)
    yield from _ATTRIBUTE.finditer(tag, name.end() if name else 0)


def _is_excluded(tag: str) -> bool:
    values = {each[1].lower(): (each[2] or "").strip("\"'") for each in _attributes(tag)}
    return values.get("translate", "").lower() == "no" or "notranslate" in values.get("class", "").split()


def _tag(raw: str) -> Raw:
    """Return a start tag, with a passage for each quoted attribute that is translated."""
    if _is_excluded(raw):
        return (raw,)
    parts: list[str | Passage] = []
    position = 0
    for each in _attributes(raw):
        if each[1].lower() in _TRANSLATED_ATTRIBUTES and (each[2] or "")[:1] in ('"', "'") and len(each[2]) > 2:
            builder = PassageBuilder(_escape_attribute)
            begin, end = each.start(2) + 1, each.end(2) - 1
            for unit in re.finditer(r"(&#?\w+;)|[^&]+|&", raw[begin:end]):
                (_add_text if unit[1] is None else _add_entity)(builder, unit[0])
            parts.append(raw[position:begin])
            builder.finish(parts.append)
            position = end
    return (*parts, raw[position:])
