"""JSON Lines: fields, nesting, compression, and errors that name file and line."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dragoman.base.errors import DataError
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.readers import check_readable, read_pairs
from dragoman.data.files import lines
from dragoman.data.files.jsonl import _ArrayReader
from dragoman.data.files.lines import has_broken_utf8


def objects_of(path: Path) -> CorpusConfig:
    return CorpusConfig(pairs=path, format="jsonl")


def corpus(folder: Path, *lines: str, **settings: Any) -> CorpusConfig:
    path = folder / "corpus.jsonl.gz"
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    return CorpusConfig(pairs=path, format="jsonl", **settings)


def test_fields_may_be_nested_or_have_dots_in_their_names(tmp_path: Path) -> None:
    objects = [
        json.dumps({"translation": {"en": "a\tdog\n", "de": "ein Hund"}}),
        '{"translation.en":"x","translation.de":"y"}',
    ]
    found = corpus(tmp_path, *objects, source_column="translation.en", target_column="translation.de")
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
        check_readable(corpus(tmp_path, '{"source": "a", "target": "b"}', source_column="en"))


def test_fields_differ() -> None:
    with pytest.raises(ValidationError, match="are the same"):
        CorpusConfig(pairs=Path("a"), source_column="target", target_column="target")


@given(
    st.lists(st.fixed_dictionaries({"source": st.text(), "target": st.text()})),
    st.sampled_from([None, 0, 2]),
    st.integers(1, 200),
)
def test_an_array_has_the_objects_that_python_reads(
    entries: list[dict[str, str]], indent: int | None, piece: int
) -> None:
    for text in (json.dumps(entries, indent=indent), json.dumps(entries, indent=indent, ensure_ascii=False)):
        pieces = [text[start : start + piece] for start in range(0, len(text), piece)]
        found = list(_ArrayReader(Path("a"), pieces[0], iter(pieces[1:])).read())
        assert [entry for _, entry in found] == entries
        assert all("{" in text.split("\n")[line - 1] for line, _ in found)
        assert [line for line, _ in found] == sorted(line for line, _ in found)


@pytest.mark.parametrize("packed", [False, True])
def test_an_array_is_a_corpus(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "corpus.json"
    content = '\ufeff\r\n[ {"source": "a",\r\n"target": "b"},\r\n\r\n{"source": "c", "target": "ü"} ]\r\n'
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    corpus = CorpusConfig(pairs=path, format="jsonl")
    check_readable(corpus)
    assert list(read_pairs(corpus)) == [Pair(2, "a", "b"), Pair(5, "c", "ü")]


def test_an_array_on_one_line_may_be_longer_than_any_other_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "corpus.json"
    monkeypatch.setattr(lines, "LONGEST_LINE", 1 << 17)
    entries = [{"source": "x" * 1000, "target": str(number)} for number in range(300)]
    path.write_text(json.dumps(entries))
    with pytest.raises(DataError, match="longer than"):
        list(lines.open_lines(path, "json"))
    assert [pair.target for pair in read_pairs(objects_of(path))] == [entry["target"] for entry in entries]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"source": "a", "target": "b"},\n{"source": "a"}]', "line 2: there is no field 'target'"),
        ('[{"source": "a", "target": "b"}\n{"source": "a"}]', "line 2: not valid JSON .there is no comma"),
        ('[{"source": "a", "target": "b"},\n{"source": x}]', "line 2: not valid JSON .Expecting value"),
        ('[{"source": "a", "target": "b"},', "line 1: the JSON array has no end"),
        ('[{"source": "a", "target": "b"}] []', "line 1: there is more text after the JSON array"),
        ('["a", "b"]', "line 1: not a JSON object .*, but str"),
        ('[{"source": "a", "target": "b"},]', "line 1: not valid JSON"),
        ("[" * 100_000, "line 1: not valid JSON"),
        ("[]", "is empty"),
    ],
)
def test_errors_in_arrays_name_the_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "corpus.json"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        list(read_pairs(objects_of(path)))


def test_line_ends_blank_lines_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"source": "a", "target": "b"}\r\n\r\n{"source": "c", "target": "d"}')
    assert list(read_pairs(objects_of(path))) == [Pair(1, "a", "b"), Pair(2, "", ""), Pair(3, "c", "d")]
