"""`mask_dialects`: finds what Markdown dialects add to CommonMark, and hides it from the CommonMark parser.

The dialects are those of GitHub, Hugo, Jekyll, Docusaurus (MDX), MkDocs, MyST, Obsidian and wikis.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple
from zlib import crc32

Kind = Literal["code", "template", "mark", "attached", "open", "close", "line"]
"""What an element is: `code` is a word that translations copy; `template` too, unless it fills a line; `mark` stays
next to a word; `attached` belongs to the markup before it; `open` and `close` enclose text; `line` starts a new line.
"""


class Element(NamedTuple):
    """An element of a dialect within a line. end: the position after it; name: identifies `open` and `close`."""

    end: int
    kind: Kind
    name: str = ""


@dataclass(frozen=True)
class MaskedText:
    """A document whose dialect elements are replaced with mask characters, so that all positions stay the same.

    elements: by their positions. container: the first character of a line that starts an indented container. is_mask:
    matches a mask character.
    """

    text: str
    elements: Mapping[int, Element]
    container: str
    is_mask: re.Pattern[str]


_PUNCTUATION = [chr(0x12470 + index) for index in range(5)]  # Cuneiform punctuation
_LETTERS = (0x100000, 0x10FFFE)  # a private use area

_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")
_PREFIX = r"[ \t>]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*"
_FENCE = re.compile(rf"{_PREFIX}(`{{3,}}(?=[^`\r\n]*$)|~{{3,}}|:{{3,}}(?=\{{))(.*)", re.MULTILINE)
_DIRECTIVE = re.compile(
    r"[ \t]*\{(?:note|warning|tip|important|hint|danger|error|caution|attention|seealso|admonition|dropdown|card|grid"
    r"|tab-set|tab-item|epigraph|sidebar|topic|margin|versionadded|versionchanged|deprecated)[\w-]*\}[ \t]*"
)
_OPTION = re.compile(r"[ \t>]*:[\w-]+:.*")
_MODULE = re.compile(
    r"(?:import\s(?:[^\"'\n]{1,300}\sfrom\s*)?[\"'][^\"'\n]+[\"'];?"
    r"|export\s+(?:default|const|let|var|function|async|class|\{|\*)).*|\{[ \t]*"
)
_COMPONENT = re.compile(r"[ \t]*<[A-Z][\w.]*(?=[\s{]|\Z)")
_COMPONENT_TOKEN = re.compile(r"\"[^\"]*\"|'[^'\n]*'|`[^`]*`|=>|[{}>]")
_LONGEST_COMPONENT, _MOST_OPEN_COMPONENTS = 20_000, 20
_LINE_STARTS = re.compile(
    r"(?P<container>(?:!!!|\?\?\?\+?)[ \t]+[\w-]+(?:[ \t]+[\w-]+)*(?:[ \t]+\"|[ \t]*$)|===[+!]?[ \t]+\")"
    r"|(?P<admonition>:{3,}[ \t]*(?:\{[^{}\n]*\}|[\w-]*)(?:[ \t]*\[|[ \t]*\{[^{}\n]*\})?[ \t]*)"
    r"|(?P<tag><[A-Za-z](?=[^<>\n]*[ \t]markdown[ \t=>])[^<>\n]*>)"  # its content is Markdown in MkDocs
    r"|(?P<abbreviation>\*\[[^\]\n]+\]:[ \t]*)"
    r"|(?P<whole>(?:\[TOC\]|\[\[_?TOC_?\]\]|\([\w:.-]+\)=|\{:[^{}\n]+\}|/{3,}[^\n]*|--8<--[^\n]*)[ \t]*$)",
)
_CALLOUT = re.compile(r"(?:[ \t]*>)+[ \t]*(\[![\w-]+\][+-]?[ \t]*)")
_CONTAINER_PREFIX = re.compile(_PREFIX)

_TEXT = r"(?:[^\n]|\n(?![ \t>]*\n))"
_ATTRIBUTE = r"(?:[#.][\w:.-]+|[\w:-]+=(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|[^\s\"'{}]+))"
_FORMULA_PART = r"(?:(?!\\[)\]])[^\n]|\n(?![ \t>]*\n))"
_FORMULA = rf"(?=(?:(?!\\[)\]])[^\n]){{0,300}}?(?:[\^_={{}}+<>]|\\[A-Za-z])){_FORMULA_PART}{{1,1000}}"
_PATTERNS: dict[str, str] = {
    "math": rf"\\\((?:\w|{_FORMULA})\\\)"
    r"|(?<![\\$\w])\$`[^`\n]{1,300}`\$"
    r"|(?<![\\$\w])\$(?![\s$])(?:[^$\n\\]|\\[^\n]){1,300}?(?<![\s\\])\$(?![\w$])",
    "display": rf"(?<![\\$])\$\$(?!\$)(?:[^$\n]|\n(?![ \t>]*\n)){{1,2000}}?\$\$(?!\$)|\\\[{_FORMULA}\\\]",
    "escape": r"\\[!-/:-@\[-`{-~]",
    "role": r"\{[A-Za-z][\w:+.-]{0,60}\}(?P<ticks>`{1,5})[^`\n]{1,200}(?P=ticks)",
    "span": rf"(?<!`)(?P<run>`{{1,20}})(?!`){_TEXT}{{1,1000}}?(?<!`)(?P=run)(?!`)",
    "comment": r"\{/\*(?:[^*]|\*(?!/)){0,500}\*/\}|<!--(?:(?!-->)[^\n]){0,1000}-->",
    "address": r"<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]{0,1000}>|</?[A-Za-z][^<>{]{0,1000}>",
    "shortcode": rf"\{{\{{[<%](?:(?!\{{\{{)(?:[^`\n]|\n(?![ \t>]*\n)|`[^`]{{0,300}}`)){{0,500}}?[%>]\}}\}}"
    rf"|\{{%(?:(?!\{{%){_TEXT}){{1,500}}?%\}}",
    "template": r"\{\{(?:(?!\{\{)[^\n]){1,300}?\}\}\}?",
    "attributes": rf"\{{:?[ \t]*{_ATTRIBUTE}(?:[ \t]+{_ATTRIBUTE}){{0,20}}[ \t]*\}}|\{{:[^{{}}\n]{{1,200}}\}}",
    "expression": r"\{#[^{}\n]{1,300}#\}|[$#%@]?\{[^\s{}\"'`]{1,100}\}|\{[ \t]*[A-Za-z_$][\w$.]*[ \t]*\}"
    r"|\{[ \t]*[A-Za-z_$!][\w$.]*(?:\(|[ \t]*(?:&&|\|\||\?|=>))[^{}\n]{0,200}\}",
    "embed": r"!\[\[[^\[\]\n]{1,200}\]\]",
    "wiki": r"\[\[(?P<target>[^\[\]\n|]{1,200}?)\\?\|(?P<label>[^\[\]\n|]{1,200})\]\](?![(\[])",
    "page": r"\[\[[^\[\]\n]{1,200}\]\](?![(\[])",
    "footnote": r"\[\^[^\s\[\]]{1,200}\]",
    "url": r"(?<![\w/])(?:https?://|ftp://|www\.)(?:\([^\s<>()\[\]\"`|*]*\)|[^\s<>()\[\]\"`|*]){1,2000}"
    r"(?<![.,;:!?'_~])",
    "email": r"(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}",
    "mention": r"(?<![\w@/.])@[A-Za-z0-9][\w-]{0,38}(?:/[\w.-]*\w)?"
    r"|(?<![\w&#/])(?:[\w.-]{1,39}/[\w.-]{1,100})?#[0-9]{1,9}\b"
    r"|\bGH-[0-9]+\b|\b(?=[0-9a-f]{0,39}[0-9])(?=[0-9a-f]{0,39}[a-f])[0-9a-f]{7,40}\b",
    "emoji": r"(?<![\w:]):(?=[0-9_+-]{0,40}[a-z])[a-z0-9_+-]{1,40}:(?![\w:])",
    "script": r"(?<!\w)[^\W_]{1,30}(?:~(?!~)[^~\s]{1,20}~(?!~)|\^[^\^\s\[\]]{1,20}\^)\w{0,20}",
    "highlight": r"(?<![=\w])==(?=[^\s=])[^=\n]{0,300}(?<=[^\s=])==(?![=\w])"
    r"|(?<![+\w])\+\+(?=[^\s+])[^+\n]{0,300}(?<=[^\s+])\+\+(?![+\w])",
    "strike": r"(?<![~\w])~(?=[^\s~])[^~\n]{0,300}(?<=[^\s~])~(?![~\w])",
}
_INLINE = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _PATTERNS.items()))
_KINDS: dict[str, Kind] = {
    "math": "code",
    "role": "code",
    "shortcode": "mark",
    "template": "template",
    "attributes": "attached",
    "expression": "code",
    "embed": "mark",
    "page": "code",
    "footnote": "attached",
    "url": "code",
    "email": "code",
    "mention": "code",
    "emoji": "mark",
    "script": "code",
}
_WORDS = ("url", "email", "mention", "script")  # elements that start and end with letters
_SKIPPED = ("escape", "span", "address")
_PAGE_SIGNS = re.compile(r"[-_/#.]")


def mask_dialects(text: str, begin: int = 0) -> MaskedText:
    """Find the elements of dialects in a document, from a position after its front matter. Takes linear time."""
    free = [character for character in _PUNCTUATION if character not in text]
    low, high = _LETTERS
    if len(free) < 2 or re.search(f"[{chr(low)}-{chr(high)}]", text):
        return MaskedText(text, {}, "\0\0", re.compile(r"(?!)"))
    masker = _Masker(text, free[0], free[1])
    masker.mask_lines(begin)
    masker.mask_inline()
    pattern = re.compile(f"[{free[0]}{free[1]}{chr(low)}-{chr(high)}]")
    return MaskedText("".join(masker.characters), masker.elements, free[1], pattern)


class _Masker:
    """Replaces elements with mask characters. prose: the ranges of the document outside code blocks."""

    def __init__(self, text: str, punctuation: str, container: str) -> None:
        self.text, self.characters, self.elements = text, list(text), dict[int, Element]()
        self._punctuation, self._container = punctuation, container
        self._prose: list[tuple[int, int]] = []
        self._open_components = 0

    def mask_lines(self, begin: int) -> None:
        """Mask the elements at the start of lines, and find the prose."""
        fence, directive, options = "", False, False
        in_module = False
        after_blank = True
        math_end = self._display_ends()
        skip_until = 0
        for match in _LINE.finditer(self.text, begin):
            start, end = match.span()
            line = match[0].rstrip("\r\n")
            if start < skip_until:
                self._mask_whole(start, line)
                continue
            opening = _FENCE.match(line)
            if fence and not directive:
                if opening and self._closes(opening, fence):
                    fence, begin = "", end
                continue
            if directive and opening and self._closes(opening, fence):
                self._mask_whole(start, line)
                fence, directive = "", False
                continue
            if options and _OPTION.fullmatch(line):
                self._mask_whole(start, line)
                continue
            options = False
            if opening and not fence:
                title = _DIRECTIVE.match(opening[2])
                fence = opening[1]
                if title is not None:
                    directive = options = True
                    self._add(start + opening.start(1), start + opening.start(2) + title.end(), "line")
                elif fence[0] == ":":
                    fence = ""
                    self._mask_start(start, line)
                else:
                    self._prose.append((begin, start))
                continue
            in_module = line.strip() != "" and (in_module or (after_blank and _MODULE.fullmatch(line) is not None))
            after_blank = not line.strip()
            if in_module:
                self._mask_whole(start, line)
            elif _COMPONENT.match(line) and (tag_end := self._component_end(start, end)):
                self._mask_whole(start, line)
                skip_until = tag_end
            elif line.strip() == "$$" and start in math_end:
                self._mask_whole(start, line)
                skip_until = math_end[start]
            else:
                self._mask_start(start, line)
        if not fence or directive:
            self._prose.append((begin, len(self.text)))

    def _closes(self, closing: re.Match[str], fence: str) -> bool:
        return not closing[2].strip() and closing[1].startswith(fence)

    def _component_end(self, start: int, line_end: int) -> int:
        """Return the end of a tag of MDX that has code or several lines, after which its line ends; else 0."""
        depth, limit = 0, start + _LONGEST_COMPONENT
        if self._open_components > _MOST_OPEN_COMPONENTS:  # keeps the time linear
            return 0
        for token in _COMPONENT_TOKEN.finditer(self.text, start, limit):
            depth += {"{": 1, "}": -1}.get(token[0], 0)
            if token[0] == ">" and depth <= 0:
                end = token.end()
                rest = self.text[end : end + 200].partition("\n")[0]
                has_code = end > line_end or "{" in self.text[start:end]
                return end if has_code and not rest.strip() else 0
        self._open_components += 1
        return 0

    def _display_ends(self) -> dict[int, int]:
        """Return, for each line that is `$$`, the end of the next line that ends with `$$`."""
        ends: dict[int, int] = {}
        pending: int | None = None
        for match in re.finditer(r"^([^\r\n]*)\$\$[ \t]*$", self.text, re.MULTILINE):
            if pending is not None:
                ends[pending], pending = match.end(), None
            elif not match[1].strip():
                pending = match.start()
        return ends

    def _mask_whole(self, start: int, line: str) -> None:
        prefix = re.match(r"[ \t]*(?:>[ \t]*)*", line)
        assert prefix is not None
        if line.strip():
            self._add(start + prefix.end(), start + len(line.rstrip()), "line")

    def _mask_start(self, start: int, line: str) -> None:
        if "[!" in line and (callout := _CALLOUT.match(line)):
            self._add(start + callout.start(1), start + callout.end(1), "line")
            return
        prefix = _CONTAINER_PREFIX.match(line)
        assert prefix is not None
        match = _LINE_STARTS.match(line, prefix.end())
        if match is None:
            return
        begin, end, name = start + match.start(), start + match.end(), match.lastgroup
        self._add(begin, end, "line", is_container=name == "container")
        rest = line[match.end() :].rstrip()
        closing = {'"': '"', "[": "]"}.get(match[0].rstrip()[-1:])
        if closing is not None and name in ("container", "admonition") and closing in rest:
            position = rest.rindex(closing)
            self._add(end + position, end + len(rest), "mark")

    def mask_inline(self) -> None:
        """Mask the elements within lines of prose."""
        masked = "".join(self.characters)
        for begin, end in self._prose:
            for match in _INLINE.finditer(masked, begin, end):
                self._mask_match(match)

    def _mask_match(self, match: re.Match[str]) -> None:
        name = match.lastgroup
        assert name is not None
        begin, end = match.span()
        if name in _SKIPPED:
            return
        if name == "comment":
            if match[0].startswith("{"):
                self._add_lines(begin, end, "mark")
        elif name == "display":
            starts_line = not self.text[self.text.rfind("\n", 0, begin) + 1 : begin].strip(" \t>")
            self._add_lines(begin, end, "line" if starts_line else "code")
        elif name == "footnote":
            if match.string[end : end + 1] != ":" or self._precedes_text(begin):
                self._add(begin, end, "attached")
        elif name == "wiki":
            self._mask_wiki(match)
        elif name in ("highlight", "strike"):
            delimiter = match[0][: 1 if name == "strike" else 2]
            self._add(begin, begin + len(delimiter), "open", delimiter)
            self._add(end - len(delimiter), end, "close", delimiter)
        else:
            self._add_lines(begin, end, _KINDS[name], is_word=name in _WORDS)

    def _precedes_text(self, position: int) -> bool:
        """Return whether text or markup precedes a position in its line."""
        return self.text[self.text.rfind("\n", 0, position) + 1 : position].strip(" \t>") != ""

    def _mask_wiki(self, match: re.Match[str]) -> None:
        """Mask a link `[[page|label]]`. In the wikis of GitHub, the label is before the page, so it may be both."""
        page, label = match["target"], match["label"]
        if _PAGE_SIGNS.search(label) or (" " in page.strip() and " " not in label.strip()):
            self._add(*match.span(), "code")
            return
        self._add(match.start(), match.start("label"), "open", "[[")
        self._add(match.end("label"), match.end(), "close", "[[")

    def _add_lines(self, begin: int, end: int, kind: Kind, is_word: bool = False) -> None:
        """Mask an element that may extend over several lines."""
        for part in re.finditer(r"(?m)^[ \t>]*([^ \t>\r\n][^\r\n]*)", self.text[begin:end]):
            self._add(begin + part.start(1), begin + part.end(1), kind, is_word=is_word)

    def _add(
        self, begin: int, end: int, kind: Kind, name: str = "", *, is_word: bool = False, is_container: bool = False
    ) -> None:
        if begin >= end:
            return
        mask = self._punctuation
        if is_word:  # equal texts have equal masks, so that link labels stay different
            low, high = _LETTERS
            mask = chr(low + crc32(self.text[begin:end].encode()) % (high - low))
        self.characters[begin:end] = mask * (end - begin)
        if is_container:
            self.characters[begin] = self._container
        self.elements[begin] = Element(end, kind, name)


def iterate_elements(masked: MaskedText, begin: int, end: int) -> Iterator[tuple[int, Element]]:
    """Yield the elements from `begin` to `end`, if there is nothing else except spaces; else, yield nothing."""
    found = []
    while begin < end:
        element = masked.elements.get(begin)
        if element is not None:
            found.append((begin, element))
            begin = element.end
        elif masked.text[begin] in " \t\r":
            begin += 1
        else:
            return
    yield from found
