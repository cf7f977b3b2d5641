"""The lists of "Where to add something" in docs/architecture.md name files and folders that exist."""

import re

import pytest
from repository import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Where to add something")[2].partition("\n## ")[0]
ITEMS = re.findall(r"^- \*\*(.+?)\*\*(.*(?:\n  .*)*)", SECTION, flags=re.MULTILINE)
"""What can be added, and where."""
PATH = re.compile(r"`((?:[\w.]+/)+[\w.]*|dragoman/__init__\.py)`")
QUESTIONS = (  # design questions that the tree must answer
    *("a scorer", "a position scheme", "a cache layout", "an n-gram model", "a language model"),
    *("an encoder-only classifier", "pre-training of a masked language model", "a loss", "a metric", "a search rule"),
    *("an ensemble", "a second engine", "an import or export format", "a route of the server", "a picture"),
    *("a word aligner", "a phrase-based decoder", "a graph-attention node classifier"),
)


def test_every_item_is_read() -> None:
    assert len(ITEMS) == len(re.findall("^- ", SECTION, flags=re.MULTILINE)) > 35


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item[0])
def test_the_named_files_exist(item: tuple[str, str]) -> None:
    named = PATH.findall(item[1])
    assert named
    for path in named:
        at = [ROOT / path, ROOT / "src" / path, ROOT / "src" / "dragoman" / path]
        assert any(each.exists() for each in at), path


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_has_one_answer(question: str) -> None:
    assert sum(name.startswith(question) for name, _ in ITEMS) == 1
