"""Tables of text, in a terminal, in Markdown and in HTML."""

from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from dragoman.base.table import Table

ROWS = [("system", "BLEU"), ("runs/<a>|b", "9.96"), ("", "10.1 & more")]


def test_columns_of_text_have_the_same_width() -> None:
    assert Table(ROWS).text() == "system      BLEU\nruns/<a>|b  9.96\n            10.1 & more"
    assert Table(ROWS, right=1).text() == "system             BLEU\nruns/<a>|b         9.96\n            10.1 & more"
    assert Table(ROWS, right=0).text().splitlines()[0] == "    system         BLEU"


@pytest.mark.parametrize("right", [None, 1])
def test_html_and_markdown_have_the_same_cells(right: int | None) -> None:
    table = Table(ROWS, right)
    rendered = MarkdownIt("commonmark", {"html": False}).enable("table").render("\n".join(table.markdown()))
    for html in (rendered, table.html()):
        read = ElementTree.fromstring(html)
        assert [tuple("".join(cell.itertext()) for cell in row) for row in read.iter("tr")] == ROWS
        aligned = ["right" in cell.get("style", "") for row in read.iter("tr") for cell in row]
        assert aligned == [False, right == 1] * len(ROWS)
