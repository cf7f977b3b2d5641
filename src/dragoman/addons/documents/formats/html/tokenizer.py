"""`tokenize`: divides an HTML page into tags, text and the rest, as browsers do, in linear time.

The states follow the tokenization of the HTML standard, https://html.spec.whatwg.org/multipage/parsing.html, with two
additions that browsers do not have: CDATA sections of XHTML, and the code of template languages (PHP, ERB, Jinja,
Handlebars), which is a token of its own. Every token has its position in the page, which lxml, selectolax and html5lib
do not report. tree-sitter-html reports positions, but is neither linear nor reads pages like browsers
(docs/EXPERIMENTS.md, "HTML parsers").
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple

from dragoman.addons.documents.formats.html.elements import FOREIGN_BREAKOUT_TAGS, RAW_TEXT_TAGS, TEXT_TAGS
from dragoman.base.cancellation import check_cancelled

Kind = Literal["start", "end", "text", "raw", "expression", "statement", "other"]
"""The kind of a token. text: text with character references; raw: text without, such as a script; expression: code of a
template that stands for text, such as `{{ name }}`; statement: other code of a template; other: comments,
declarations, and everything that browsers drop.
"""

MAX_TEMPLATE_LENGTH = 2000
"""The maximum length of code between curly brackets. Longer code is text."""

_SPACE = r"[\t\n\f\r ]"
_NEXT = re.compile(r"<|\{[{%#]")
_TAG_NAME = re.compile(r"[^\t\n\f\r />]*")
_BEFORE_ATTRIBUTE = re.compile(r"[\t\n\f\r /]*")
_ATTRIBUTE_NAME = re.compile(r"=?[^\t\n\f\r />=]*")
_EQUALS = re.compile(rf"{_SPACE}*={_SPACE}*")
_UNQUOTED = re.compile(r"[^\t\n\f\r >]*")
_TEMPLATE = re.compile(r"<\?(?:php|=|\s)|<%|\{[{%#]")
_COMMENT_END = re.compile(r"--!?>")
_XML = re.compile(r"[\s\ufeff]*<\?xml\b")
_PROLOGUE = re.compile(
    r"(?>[\s\ufeff]+|<!--(?>.*?-->)|<\?(?>.*?\?>)|<!doctype(?>(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>))*+",
    re.DOTALL | re.IGNORECASE,
)
"""What may precede the first element of a page."""

_XHTML = re.compile(
    r"<!doctype[^>]*\bDTD XHTML|\sxmlns(?::\w+)?\s*=\s*[\"']http://www\.w3\.org/1999/xhtml[\"']", re.IGNORECASE
)
_LONGEST_ROOT = 10_000
"""The number of characters of the first start tag that are searched for a namespace."""

_SCRIPT = re.compile(r"<!--|-->|<(/?)script(?=[\t\n\f\r />])", re.IGNORECASE)
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LOWER = {ord(letter): letter.lower() for letter in _LETTERS}
_CLOSING = {"<?": "?>", "<%": "%>", "{{": "}}", "{%": "%}", "{#": "#}"}
_INTEGRATION_POINTS = frozenset("foreignobject desc title annotation-xml mi mo mn ms mtext".split())


class Attribute(NamedTuple):
    """An attribute. name: in lower case; begin, end: the position of its value, without quotes."""

    name: str
    begin: int
    end: int
    quoted: bool


class Token(NamedTuple):
    """A part of a page. name: the tag name, in lower case; closed: whether the tag ends with `/>`."""

    kind: Kind
    begin: int
    end: int
    name: str = ""
    attributes: tuple[Attribute, ...] = ()
    closed: bool = False


def tokenize(page: str, is_xml: bool = False) -> Iterator[Token]:
    """Yield the tokens of a page. Their concatenation is the page.

    is_xml: whether the page is XML in any case, such as a page of an e-book; else it is if it begins like XHTML.
    """
    return _Tokenizer(page, is_xml or begins_like_xhtml(page)).tokens()


def begins_like_xhtml(page: str) -> bool:
    """Return whether a page has an XML declaration, a document type of XHTML, or a first element in its namespace."""
    found = _match(_PROLOGUE, page, 0)
    first = page[found.end() : found.end() + _LONGEST_ROOT].partition(">")[0]
    return _XML.match(page) is not None or any(map(_XHTML.search, (found[0], first)))


class _Tokenizer:
    def __init__(self, page: str, is_xml: bool) -> None:
        self._page, self._is_xml = page, is_xml
        self._foreign: list[str] = []
        self._foreign_names = Counter[str]()
        self._absent: dict[str, int] = {}

    def tokens(self) -> Iterator[Token]:
        page, begin, position = self._page, 0, 0
        while (found := _NEXT.search(page, position)) is not None:
            check_cancelled()
            token = self._markup(found.start())
            if token is None:
                position = found.end()
                continue
            if begin < token.begin:
                yield Token("text", begin, token.begin)
            yield token
            begin = position = token.end
            if token.kind in ("start", "end"):
                self._follow(token)
            if token.kind == "start" and not self._in_foreign_content():
                content = self._raw_content(token)
                if content is not None:
                    if content.begin < content.end:
                        yield content
                    begin = position = content.end
        if begin < len(page):
            yield Token("text", begin, len(page))

    def _markup(self, begin: int) -> Token | None:
        """Return the token that starts at a position, or None if it is text."""
        page = self._page
        if page[begin] == "{":
            end = self._template_end(begin)
            return None if end is None else Token(_template_kind(page, begin), begin, end)
        following = page[begin + 1 : begin + 2]
        if following in _LETTERS and following:
            return self._tag("start", begin, begin + 1)
        if following == "/":
            after = page[begin + 2 : begin + 3]
            if not after:
                return None
            if after in _LETTERS:
                return self._tag("end", begin, begin + 2)
            return Token("other", begin, self._after(">", begin + 2))
        if following == "!":
            return Token("other", begin, self._declaration_end(begin))
        if following == "?":
            end = self._template_end(begin) if _TEMPLATE.match(page, begin) else None
            if end is not None or page.startswith("<?php", begin):  # PHP does not require a closing tag
                return Token(_template_kind(page, begin), begin, len(page) if end is None else end)
            return Token("other", begin, self._after(">", begin + 2))
        if following == "%":
            end = self._template_end(begin)
            return None if end is None else Token(_template_kind(page, begin), begin, end)
        return None

    def _declaration_end(self, begin: int) -> int:
        page = self._page
        if page.startswith("<!--", begin):
            if page.startswith(">", begin + 4):
                return begin + 5
            if page.startswith("->", begin + 4):
                return begin + 6
            found = _COMMENT_END.search(page, begin + 4)
            return len(page) if found is None else found.end()
        if page.startswith("<![CDATA[", begin) and (self._is_xml or self._in_foreign_content()):
            return self._after("]]>", begin + 9)
        return self._after(">", begin + 2)

    def _tag(self, kind: Kind, begin: int, name_begin: int) -> Token:
        """Return the tag that starts at a position. Browsers drop a tag that never ends, and everything in it."""
        page = self._page
        name = _match(_TAG_NAME, page, name_begin)
        attributes: list[Attribute] = []
        position, length = name.end(), len(page)
        while True:
            check_cancelled()
            blank = _match(_BEFORE_ATTRIBUTE, page, position)
            position = blank.end()
            if position >= length:
                return Token("other", begin, length)
            if page[position] == ">":
                closed = page[position - 1] == "/" and blank.start() < position
                return Token(kind, begin, position + 1, _lower(name[0]), tuple(attributes), closed)
            template_end = self._template_end(position)
            if template_end is not None:
                position = template_end
                continue
            attribute = _match(_ATTRIBUTE_NAME, page, position)
            position = attribute.end()
            equals = _EQUALS.match(page, position)
            if equals is None:
                attributes.append(Attribute(_lower(attribute[0]), position, position, False))
                continue
            position = equals.end()
            quote = page[position : position + 1]
            if quote in ("'", '"'):
                end = self._quote_end(quote, position + 1)
                if end < 0:
                    return Token("other", begin, length)
                attributes.append(Attribute(_lower(attribute[0]), position + 1, end, True))
                position = end + 1
            else:
                end = _match(_UNQUOTED, page, self._template_end(position) or position).end()
                attributes.append(Attribute(_lower(attribute[0]), position, end, False))
                position = end

    def _quote_end(self, quote: str, begin: int) -> int:
        """Return the position of the closing quote of a value, or -1. Quotes within code of templates do not count."""
        end = self._page.find(quote, begin)
        while end >= 0:
            template = _TEMPLATE.search(self._page, begin, end)
            if template is None:
                break
            begin = self._template_end(template.start()) or template.end()
            if begin > end:
                end = self._page.find(quote, begin)
        return end

    def _template_end(self, begin: int) -> int | None:
        """Return the end of the code of a template that starts at a position, or None if there is no such code."""
        page = self._page
        opening = page[begin : begin + 2]
        if opening not in _CLOSING or not _TEMPLATE.match(page, begin):
            return None
        closing = _CLOSING[opening]
        if opening[0] == "{":
            end = page.find(closing, begin + 2, begin + MAX_TEMPLATE_LENGTH)
            if end >= 0 and opening == "{{" and page.startswith("{{{", begin) and page.startswith("}}}", end):
                end += 1
            return None if end < 0 else end + 2
        if begin >= self._absent.get(closing, len(page)):
            return None
        end = page.find(closing, begin + 2)
        if end < 0:
            self._absent[closing] = begin
            return None
        return end + 2

    def _after(self, delimiter: str, begin: int) -> int:
        """Return the position after the next occurrence of a delimiter, or the end of the page."""
        found = self._page.find(delimiter, begin)
        return len(self._page) if found < 0 else found + len(delimiter)

    def _in_foreign_content(self) -> bool:
        return bool(self._foreign) and self._foreign[-1] in ("svg", "math")

    def _follow(self, token: Token) -> None:
        """Keep track of the elements of SVG and MathML, whose text is not raw."""
        if token.kind == "start":
            if self._in_foreign_content() and token.name in FOREIGN_BREAKOUT_TAGS:
                while self._in_foreign_content():
                    self._foreign_names[self._foreign.pop()] -= 1
            elif not token.closed and (
                token.name in ("svg", "math") or (self._in_foreign_content() and token.name in _INTEGRATION_POINTS)
            ):
                self._foreign.append(token.name)
                self._foreign_names[token.name] += 1
        elif self._foreign_names[token.name]:
            while True:
                name = self._foreign.pop()
                self._foreign_names[name] -= 1
                if name == token.name:
                    break

    def _raw_content(self, token: Token) -> Token | None:
        """Return the content of an element whose content is not markup, or None for any other element."""
        page, begin = self._page, token.end
        if token.closed and self._is_xml:
            return None
        if token.name == "plaintext":
            return Token("raw", begin, len(page))
        if token.name == "script":
            return Token("raw", begin, self._script_end(begin))
        if token.name in RAW_TEXT_TAGS or token.name in TEXT_TAGS:
            found = re.compile(rf"</{token.name}(?=[\t\n\f\r />])", re.IGNORECASE).search(page, begin)
            end = len(page) if found is None else found.start()
            return Token("text" if token.name in TEXT_TAGS else "raw", begin, end)
        return None

    def _script_end(self, begin: int) -> int:
        """Return the end of a script. Within a comment, the end tag of a script that started there does not count."""
        in_comment = in_inner_script = False
        position = begin
        while (found := _SCRIPT.search(self._page, position)) is not None:
            position = found.end()
            if found[0] == "<!--":
                if not in_comment:
                    in_comment = True
                    position -= 2  # `<!-->` is a whole comment
            elif found[0] == "-->":
                in_comment = in_inner_script = False
            elif not found[1]:
                in_inner_script = in_comment
            elif in_inner_script:
                in_inner_script = False
            else:
                return found.start()
        return len(self._page)


def _template_kind(page: str, begin: int) -> Kind:
    is_expression = page.startswith(("{{", "<?=", "<?php echo ", "<%="), begin)
    is_block = page.startswith(("{{#", "{{/", "{{^", "{{!", "{{>", "{{else"), begin)
    return "expression" if is_expression and not is_block else "statement"


def _lower(name: str) -> str:
    """Return a name with its ASCII letters in lower case."""
    return name.lower() if name.isascii() else name.translate(_LOWER)


def _match(pattern: re.Pattern[str], page: str, begin: int) -> re.Match[str]:
    found = pattern.match(page, begin)
    assert found is not None  # the pattern matches the empty text
    return found
