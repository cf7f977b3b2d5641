"""The table "Where to add something" of docs/architecture.md names files and folders that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("## Where to add something")[2].partition("\n## ")[0]
ROWS = [line.split("|")[1:-1] for line in TABLE.splitlines() if line.startswith("| ") and "---" not in line][1:]
PATH = re.compile(r"`((?:[\w.]+/)+[\w.]*|dragoman/__init__\.py)`")
QUESTIONS = (  # design questions that the tree must answer
    *("a scorer", "a position scheme", "a cache layout", "an n-gram model", "a language model"),
    *("an encoder-only classifier", "pre-training of a masked language model", "a loss", "a metric", "a search rule"),
    *("an ensemble", "a second engine", "an import or export format", "a route of the server", "a picture"),
    *("a word aligner", "a phrase-based decoder", "a graph-attention node classifier"),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_the_named_files_exist(row: list[str]) -> None:
    named = PATH.findall("|".join(row[1:]))
    assert named
    for path in named:
        at = [ROOT / path, ROOT / "src" / path, ROOT / "src" / "dragoman" / path]
        assert any(each.exists() for each in at), path


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_has_one_answer(question: str) -> None:
    assert sum(row[0].strip().startswith(question) for row in ROWS) == 1
