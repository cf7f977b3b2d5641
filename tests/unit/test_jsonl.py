"""JSON Lines: fields, nesting, compression, and errors that name file and line."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dragoman.base.errors import DataError
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.lines import has_broken_utf8
from dragoman.data.corpora.readers import check_readable, read_pairs


def corpus(folder: Path, *lines: str, **settings: Any) -> CorpusConfig:
    path = folder / "corpus.jsonl.gz"
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    return CorpusConfig(jsonl=path, **settings)


def test_fields_may_be_nested_or_have_dots_in_their_names(tmp_path: Path) -> None:
    lines = [
        json.dumps({"translation": {"en": "a\tdog\n", "de": "ein Hund"}}),
        '{"translation.en":"x","translation.de":"y"}',
    ]
    found = corpus(tmp_path, *lines, source_field="translation.en", target_field="translation.de")
    assert list(read_pairs(found)) == [Pair(1, "a\tdog\n", "ein Hund"), Pair(2, "x", "y")]


def test_null_and_blank_lines_are_empty_and_incomplete_characters_are_detected(tmp_path: Path) -> None:
    found = list(
        read_pairs(corpus(tmp_path, '{"source": null, "target": "x"}', "", r'{"source":"\ud800","target":"y"}'))
    )
    assert found[:2] == [Pair(1, "", "x"), Pair(2, "", "")]
    assert has_broken_utf8(found[2].source)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{'source': 1}", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('["a", "b"]', "not a JSON object .*list"),
        (
            '{"source": "a", "traget": "b", "meta": {"id": 3}}',
            "no field 'target'; the fields are source, traget, meta.id",
        ),
        ('{"source": "a", "target": ["b"]}', "'target' is not text, but list"),
        ("{}", "the fields are none"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"corpus\.jsonl\.gz, line 2: .*{message}"):
        list(read_pairs(corpus(tmp_path, '{"source": "a", "target": "b"}', line)))


def test_a_wrong_field_is_detected_early(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 1: there is no field 'en'"):
        check_readable(corpus(tmp_path, '{"source": "a", "target": "b"}', source_field="en"))


def test_fields_differ() -> None:
    with pytest.raises(ValidationError, match="are the same"):
        CorpusConfig(jsonl=Path("a"), source_field="target")
