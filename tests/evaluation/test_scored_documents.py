"""The documents of files that are scored."""

import gzip
from pathlib import Path

import pytest

from dragoman.evaluation.score import read_documents

TEXTS = '{"text": "one\\ntwo"}\n{"text": "three"}\n'


@pytest.mark.parametrize(
    ("name", "content", "documents"),
    [
        ("test.documents.jsonl", TEXTS, ["one\ntwo", "three"]),
        ("test.jsonl.gz", TEXTS, ["one\ntwo", "three"]),
        ("test.txt", '{"text": "one"}\n', ['{"text": "one"}']),
        ("other.jsonl", '{"content": "one"}\n', ['{"content": "one"}']),
        ("plain.jsonl", "one\ntwo\n", ["one", "two"]),
    ],
)
def test_objects_with_a_text_are_documents(name: str, content: str, documents: list[str], tmp_path: Path) -> None:
    data = content.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert read_documents(tmp_path / name, None, None) == documents


def test_a_division_that_is_chosen_applies_to_the_file_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "test.jsonl").write_text(TEXTS)
    assert read_documents(tmp_path / "test.jsonl", "file", None) == [TEXTS]
