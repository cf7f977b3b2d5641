"""Cards of notebooks: escaped, well-formed, and readable in light and dark notebooks."""

import base64
import re

from cards import element, pictures, rows, text

from dragoman.base.notebook import Card, Note, Picture, Shown
from dragoman.base.table import Table


class Result(Shown):
    def card(self) -> Card:
        inner = Card("<part>", [Note("BLEU: nrefs:1 & more")])
        picture = Picture(b"\x89PNG", 200, 'a "dark" cell')
        return Card("<script>", ["1 < 2", {"name": "a&b"}, Table([("a",), ("<b>",)]), picture, inner])


def test_texts_are_escaped() -> None:
    assert [each for each in text(Result()).split("\n") if each] == [
        "<script>", "1 < 2", "name", "a&b", "a", "<b>", "<part>", "BLEU: nrefs:1 & more",
    ]  # fmt: skip
    assert rows(Result()) == [["name", "a&b"], ["a"], ["<b>"]]
    assert [each.text for each in element(Result()).iter("p") if each.get("class") == "note"] == [
        "BLEU: nrefs:1 & more"
    ]


def test_a_picture_is_part_of_the_page() -> None:
    (picture,) = pictures(Result())
    source = picture.get("src") or ""
    assert base64.b64decode(source.removeprefix("data:image/png;base64,")) == b"\x89PNG"
    assert (picture.get("width"), picture.get("alt")) == ("200", 'a "dark" cell')


def test_the_style_has_no_colour_that_only_a_light_or_dark_page_allows() -> None:
    style = element(Result()).findtext("style") or ""
    colours = re.findall(r"(?:color|background|border[\w-]*):([^;}]+)", style)
    assert colours and all(
        re.fullmatch(r"inherit|none(!important)?|0|.*rgba\(128,128,128,.*|collapse|\d+px", each) for each in colours
    )
    assert len(element(Result()).findall("style")) == 1
    assert set(re.findall(r"([^{}]+)\{", style)) == {
        each for each in re.findall(r"([^{}]+)\{", style) if ".dragoman-card" in each
    }
