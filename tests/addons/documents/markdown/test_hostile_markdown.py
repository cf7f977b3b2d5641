"""Markdown that repeats one piece many times is parsed and written in linear time."""

from collections.abc import Callable
from math import isqrt

import pytest
from growth import check_linear, seconds_of

from dragoman.addons.documents.formats.markdown.markdown import parse_markdown
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.passage import Passage, raw_text

pytest.importorskip("mdit_py_plugins")

LENGTH = 500
"""The length of the shorter document in characters."""


def repeat(piece: str, start: str = "", end: str = "") -> Callable[[int], str]:
    return lambda length: start + piece * (length // len(piece)) + end


def grow(line: Callable[[int], str], start: str = "") -> Callable[[int], str]:
    """Return lines whose lengths grow, so that the square of their number is the length."""
    return lambda length: start + "".join(map(line, range(1, isqrt(length))))


def number(line: str, end: str = "") -> Callable[[int], str]:
    """Return a line with a different number each time."""
    return lambda length: "".join(line.format(index) for index in range(length // len(line))) + end


def nest(opening: str, closing: str) -> Callable[[int], str]:
    return lambda length: opening * (length // 8) + "a" + closing * (length // 8)


DOCUMENTS = {
    "links": repeat("[a]("),
    "half links": repeat("]("),
    "brackets": repeat("["),
    "images": nest("![", "](b)"),
    "nested links": nest("[", "][b]"),
    "wiki links": repeat("[[a "),
    "mentions": repeat("@a"),
    "growing code": grow(lambda index: "a" + "`" * index),
    "rules": repeat("---\n"),
    "front matter": repeat("a: b\n", "---\n", "---\n"),
    "front matter's brackets": repeat("[", "---\na: ", "\n---\n"),
    "nested admonitions": grow(lambda index: "    " * index + "!!! x\n"),
    "admonitions": repeat("!!! x\n"),
    "stars": repeat("*"),
    "emphasis": repeat("*a **b "),
    "underscores": repeat("_a "),
    "quotes": repeat(">"),
    "nested quotes": grow(lambda index: ">" * index + " a\n"),
    "lazy quotes": repeat("a\n", ">" * 20 + "a\n"),
    "pipes": repeat("|"),
    "table": repeat("|c|d|\n", "|a|b|\n|-|-|\n"),
    "footnotes": number("[^{}] ", "\n\n[^1]: a\n"),
    "definitions of footnotes": repeat("[^1]: a\n\n"),
    "formulas": repeat("$a "),
    "formulas in lines": repeat("$$a\n"),
    "shortcodes": repeat("{{< a "),
    "templates": repeat("{{"),
    "attributes": repeat("a{.a .b"),
    "comments": repeat("a <!--"),
    "tags": repeat("a <b>"),
    "elements": repeat("<kbd>a</kbd> "),
    "unfinished tags": repeat('a <a href="'),
    "blocks of HTML": repeat("<div>a\n\n"),
    "untranslated blocks": repeat("<p translate=no>\n\na\n\n</p>\n\n"),
    "references": repeat("&a"),
    "definitions": number("[a{}]: b\n"),
    "equal headings": repeat("# a\n"),
    "headings of HTML": repeat("<h1>a</h1>\n\n"),
    "list": repeat("- "),
    "nested list": grow(lambda index: "  " * index + "- a\n"),
    "descriptions": repeat("a\n: b\n\n"),
    "fences": grow(lambda index: "`" * (index + 3) + "\n"),
    "directives": repeat("```{note}\na\n```\n"),
    "addresses": repeat("http://"),
    "e-mail": repeat("a@b."),
}


def read_and_write(text: str) -> None:
    parsed = parse_markdown(text, Languages("en", "de"))
    parsed.write([raw_text(part) if isinstance(part, Passage) else part for part in parsed.parts])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_parsing_and_writing_take_linear_time(name: str) -> None:
    check_linear(lambda length: read_and_write(DOCUMENTS[name](length)), LENGTH)


def test_a_table_that_lacks_most_cells_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    table = "|a" * 256 + "|\n" + "|-" * 256 + "|\n" + "|b|\n" * 256
    text = "A\n\n" + f"{table}\n" * 50
    assert seconds_of(lambda: read_and_write(text)) < 2  # 3,276,800 cells would take 30 s and 3 GB
    assert "50 block(s) of Markdown remain untranslated, the first in line 3" in " ".join(
        capsys.readouterr().err.split()
    )
