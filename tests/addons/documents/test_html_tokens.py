"""The tokens of HTML pages are those of html5lib, which follows the HTML standard, for any page."""

import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.addons.documents.formats.html.text import add_text
from dragoman.addons.documents.formats.html.tokenizer import tokenize

pytest.importorskip("html5lib")

RAW = ("style", "xmp", "iframe", "noembed", "noframes")
SIGNS = [
    *(
        "<",
        ">",
        "/",
        "=",
        '"',
        "'",
        " ",
        "\n",
        "\t",
        "a",
        "b",
        "x",
        "!",
        "-",
        "--",
        "?",
        "&",
        "<a ",
        "<p>",
        "</p>",
        "<b",
    ),
    *(
        "</b>",
        "<!--",
        "-->",
        "--!>",
        "<!",
        "<!doctype html>",
        "<script>",
        "</script>",
        "<script",
        "<style>",
        "</style>",
    ),
    *("<title>", "</title>", "<textarea>", "</textarea >", "<![CDATA[", "]]>", "<img alt=", 'title="', "</", "<xmp>"),
    *("</xmp/>", "<plaintext>", "A", "É", "<br/>", "<BR", "</SCRIPT>", "&amp;", "&lt", "&notit;", "&copy=", "&#65;"),
    *("&#x41", "&Notin", "&no", "&unknown;"),
]


class Text:
    """Collects decoded text."""

    def __init__(self) -> None:
        self.text = ""

    def add_text(self, text: str, raw: str) -> None:
        self.text += text

    def add_blank(self, raw: str) -> None:
        self.text += raw


def decoded(raw: str, in_attribute: bool = False) -> str:
    text = Text()
    add_text(text, raw, in_attribute)
    return text.text


def html5lib_tokens(page: str) -> list[tuple[Any, ...]]:
    from html5lib._tokenizer import HTMLTokenizer
    from html5lib.constants import tokenTypes

    tokenizer, found, names = HTMLTokenizer(page), [], {number: name for name, number in tokenTypes.items()}
    for token in tokenizer:
        match names[token["type"]]:
            case "Characters" | "SpaceCharacters":
                found.append(("text", token["data"]))
            case "StartTag" | "EmptyTag":
                name = token["name"]
                found.append(("start", name, dict(token["data"])))
                if name in RAW:
                    tokenizer.state = tokenizer.rawtextState
                elif name in ("title", "textarea"):
                    tokenizer.state = tokenizer.rcdataState
                elif name == "script":
                    tokenizer.state = tokenizer.scriptDataState
                elif name == "plaintext":
                    tokenizer.state = tokenizer.plaintextState
            case "EndTag":
                found.append(("end", token["name"]))
            case "Comment" | "Doctype":
                found.append(("other",))
    return joined(found)


def own_tokens(page: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for token in tokenize(page):
        raw = page[token.begin : token.end]
        is_dropped = re.match(r"</>|</?[A-Za-z]", raw) is not None
        if token.kind in ("text", "raw"):
            found.append(("text", decoded(raw) if token.kind == "text" else raw))
        elif token.kind == "start":
            values: dict[str, str] = {}
            for each in token.attributes:
                values.setdefault(each.name, decoded(page[each.begin : each.end], in_attribute=True))
            found.append(("start", token.name, values))
        elif token.kind == "end":
            found.append(("end", token.name))
        elif not is_dropped:
            found.append(("other",))
    return joined(found)


def joined(tokens: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the tokens with adjacent texts joined."""
    result: list[tuple[Any, ...]] = []
    for token in tokens:
        if token[0] == "text" and result and result[-1][0] == "text":
            result[-1] = ("text", result[-1][1] + token[1])
        elif token != ("text", ""):
            result.append(token)
    return result


@settings(max_examples=200, deadline=None)
@given(page=st.lists(st.sampled_from(SIGNS), max_size=14).map("".join))
@example("<script><!-- <script></script> --></script>x")
@example("<script><!--></script>x")
@example("<!--> <!---> <!-- --!> <!-->")
@example("<a b='&copy=1&copy2&copy;&copy' c=&amp/>")
def test_tokens_are_those_of_html5lib(page: str) -> None:
    assert own_tokens(page) == html5lib_tokens(page)


@settings(max_examples=150, deadline=None)
@given(
    page=st.lists(st.sampled_from([*SIGNS, "{{", "}}", "{%", "%}", "<?php ", "?>", "<%", "%>"]), max_size=20).map(
        "".join
    )
)
def test_tokens_cover_the_page(page: str) -> None:
    tokens = list(tokenize(page))
    assert "".join(page[token.begin : token.end] for token in tokens) == page
    assert all(token.begin < token.end for token in tokens)
