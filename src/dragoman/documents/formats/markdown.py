"""Markdown as a document: its blocks and marks stay as they are."""

import re
from collections.abc import Iterator
from typing import Any

from dragoman.base.log import warn
from dragoman.documents.libraries import library
from dragoman.documents.passage import Passage, as_text
from dragoman.documents.passage_builder import PassageBuilder

_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n.*?\r?\n(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")
_SPECIAL = re.compile(r"[\\`*\[\]<|]|~(?=~)|(?<=~)~|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
_BEGINNING = re.compile(r"(?:#{1,6}(?=\s|\Z)|[>+-]|[0-9]{1,9}(?=[.)])|=+\s*\Z)")


def _escape(text: str, begins: bool) -> str:
    """What would be markup gets a backslash before it."""
    found = _BEGINNING.match(text) if begins else None
    escaped = _SPECIAL.sub(r"\\\g<0>", text)
    if found is None:
        return escaped
    if found[0].isdigit():
        return f"{found[0]}\\{escaped[found.end() :]}"
    return "\\" + escaped


class _Inline:
    """The library's parser of what stands in a block, which also tells where links and pictures end."""

    def __init__(self) -> None:
        package = library("markdown_it", "markdown-it-py")
        self.parser: Any = package.MarkdownIt("commonmark").enable(["table", "strikethrough"])
        self.parser.core.ruler.disable(["inline", "text_join"])
        self._ends: dict[int, int] = {}
        self._content = ""
        links = library("markdown_it.rules_inline", "markdown-it-py")
        for name, rule in (("link", links.link), ("image", links.image), ("backticks", links.backtick)):
            self.parser.inline.ruler.at(name, self._watched(rule))
        self.parser.inline.ruler.at("autolink", self._watched(links.autolink))

    def _watched(self, rule: Any) -> Any:
        def watched(state: Any, silent: bool) -> bool:
            begin = state.pos
            done = bool(rule(state, silent))
            if done and not silent and state.src == self._content:
                self._ends[begin] = state.pos
            return done

        return watched

    def tokens(self, content: str, environment: Any) -> tuple[list[Any], dict[int, int]]:
        """The tokens of a block's text, and by where each link, picture or code begins where it ends."""
        self._content, self._ends = content, {}
        found: list[Any] = []
        self.parser.inline.parse(content, self.parser, environment, found)
        return found, self._ends


def parts_of_markdown(text: str) -> Iterator[str | Passage]:
    """A passage for each heading, paragraph and cell."""
    inline = _Inline()
    front = _FRONT_MATTER.match(text)
    begin = 0 if front is None else front.end()
    lines = [match for match in _LINE.finditer(text, begin) if match[0]]
    environment: dict[str, Any] = {}
    tokens = inline.parser.parse(text[begin:].replace("\0", "\ufffd"), environment)
    at, cell = 0, begin
    for token in tokens:
        if token.type != "inline" or not token.content:
            continue
        first = lines[token.map[0]].start()
        places = _places(token.content, text, [line.span() for line in lines[slice(*token.map)]], max(cell, first))
        passage = None if places is None else _passage(token.content, text, places, inline, environment)
        if places is None or passage is None:
            line = text.count("\n", 0, first) + 1
            warn(f"line {line}: a block of Markdown whose marks could not be found again stays untranslated")
            continue
        yield text[at : places[0]]
        yield passage
        at = cell = places[-1]
    yield text[at:]


def _places(content: str, text: str, lines: list[tuple[int, int]], begin: int) -> list[int] | None:
    """Where each character of a block's text stands in the document, and where the last ends; None if unclear."""
    found: list[int] = []
    parts = content.split("\n")
    if len(parts) > len(lines):
        return None
    for number, (part, (start, stop)) in enumerate(zip(parts, lines, strict=False)):
        inked = part.strip(" \t")
        pattern = re.escape(inked).replace(r"\|", r"\\?\|").replace("\ufffd", "[\ufffd\0]")
        match = re.compile(pattern).search(text, max(start, begin), stop)
        if match is None:
            return None
        where = _aligned(inked, match[0])
        lead = len(part) - len(part.lstrip(" \t")) if inked else 0
        found += [match.start()] * lead + [match.start() + each for each in where]
        tail = part[lead + len(inked) :]
        found += [min(match.end() + each, stop) for each in range(len(tail))]
        if number < len(parts) - 1:
            found.append(min(match.end() + len(tail), stop))
        else:
            found.append(match.end())
    return found


def _aligned(content: str, raw: str) -> list[int]:
    """Where each character stands in the same with a backslash before signs of tables."""
    found, place = [], 0
    for character in content:
        if character == "|" and raw[place : place + 2] == "\\|":
            found.append(place)
            place += 2
        else:
            found.append(place)
            place += 1
    return found


def _passage(content: str, text: str, places: list[int], inline: _Inline, environment: Any) -> Passage | None:
    """A block's text with its marks; None where it cannot be told where they stand."""
    tokens, ends = inline.tokens(content, environment)
    builder = PassageBuilder(_escape)
    at = 0
    links: list[int] = []
    raw = lambda begin, end: text[places[begin] : places[end]]  # noqa: E731
    place = 0
    while place < len(tokens):
        token = tokens[place]
        kind = token.type
        if kind == "text":
            if not content.startswith(token.content, at):
                return None
            for character in token.content:
                if character in " \t":
                    builder.blank(raw(at, at + 1))
                else:
                    builder.text(character, raw(at, at + 1))
                at += 1
        elif kind == "text_special":
            if not content.startswith(token.markup, at):
                return None
            end = at + len(token.markup)
            builder.text(token.content, raw(at, end))
            at = end
        elif kind in ("softbreak", "hardbreak"):
            end = re.compile(r"[ \t]*\\?\n[ \t]*").match(content, at)
            if end is None:
                return None
            (builder.blank if kind == "softbreak" else builder.line_break)(raw(at, end.end()))
            at = end.end()
        elif kind in ("code_inline", "image") or (kind == "link_open" and token.markup == "autolink"):
            end = ends.get(at)
            if end is None:
                return None
            if kind == "image":
                builder.mark("empty", _image(token, content, at, end, raw))
            else:
                shown = token.content if kind == "code_inline" else content[at + 1 : end - 1]
                builder.keep(shown, raw(at, end))
            place += 2 if kind == "link_open" else 0
            at = end
        elif kind == "link_open":
            if at not in ends:
                return None
            links.append(ends[at])
            builder.mark("open", (raw(at, at + 1),), "link")
            at += 1
        elif kind == "link_close":
            end = links.pop()
            builder.mark("close", (raw(at, end),), "link")
            at = end
        elif kind == "html_inline":
            _add_html(builder, token.content, raw(at, at + len(token.content)))
            at += len(token.content)
        elif token.markup and content.startswith(token.markup, at):
            end = at + len(token.markup)
            builder.mark("open" if token.nesting > 0 else "close", (raw(at, end),), token.markup, fragile=True)
            at = end
        else:
            return None
        place += 1
    if content[at:].strip():
        return None
    found: list[str | Passage] = []
    builder.finish(found.append)
    passage = next((each for each in found if isinstance(each, Passage)), None)
    whole = text[places[0] : places[-1]]
    return passage if passage is not None and as_text(passage) == whole else None


def _add_html(builder: PassageBuilder, tag: str, raw: str) -> None:
    match = re.match(r"<(/?)([A-Za-z][\w-]*)", tag)
    if match is None or tag.endswith("/>") or match[2].lower() in ("img", "wbr", "input"):
        builder.mark("empty", (raw,))
    elif match[2].lower() == "br":
        builder.line_break(raw)
    else:
        builder.mark("close" if match[1] else "open", (raw,), match[2].lower())


def _image(token: Any, content: str, begin: int, end: int, raw: Any) -> tuple[str | Passage, ...]:
    """A picture, with a passage for its description, where that is plain text."""
    plain = all(child.type == "text" for child in token.children or ())
    alt = "".join(child.content for child in token.children or ())
    if not plain or not alt.strip() or not content.startswith(f"![{alt}]", begin) or "\n" in alt:
        return (raw(begin, end),)
    builder = PassageBuilder(_escape)
    for place, character in enumerate(alt, start=begin + 2):
        (builder.blank if character in " \t" else lambda one, c=character: builder.text(c, one))(raw(place, place + 1))
    parts: list[str | Passage] = [raw(begin, begin + 2)]
    builder.finish(parts.append)
    return (*parts, raw(begin + 2 + len(alt), end))
