"""Reading plain text: documents in each format, passages of long documents, line numbers, and errors."""

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from pydantic import Field, ValidationError

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import parse_settings
from dragoman.data.corpora.corpus import TextCorpora, TextCorpusConfig
from dragoman.data.corpora.documents import read_passages, read_texts
from dragoman.data.corpora.items import Passage
from dragoman.data.corpora.readers import check_readable
from dragoman.data.files import lines

TEXT = "\ufeff \r\n = One = \r\n\r\nA dog.\u2028\r\n\tTwo = dogs.\n \n\n = Two = \n = no heading = \nx\ry\n"
PLAIN = TEXT.removeprefix("\ufeff").replace("\r\n", "\n")


def corpus(path: Path, content: str | bytes = TEXT, **settings: Any) -> TextCorpusConfig:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return TextCorpusConfig(text=path, **settings)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, zstandard.compress])
@pytest.mark.parametrize("chunk", [1, 7, 1 << 16])
def test_each_division_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes], chunk: int
) -> None:
    monkeypatch.setattr(lines, "CHUNK", chunk)

    def read(**settings: Any) -> list[tuple[int, str]]:
        content = pack(TEXT.encode())
        return [(each.line, each.text) for each in read_passages(corpus(tmp_path / "text", content, **settings))]

    assert read() == list(enumerate(PLAIN.removesuffix("\n").split("\n"), start=1))
    assert read(documents="blank_line") == [
        (2, " = One = "),
        (4, "A dog.\u2028\n\tTwo = dogs."),
        (8, " = Two = \n = no heading = \nx\ry"),
    ]
    assert read(documents="file") == [(1, PLAIN)]
    first, second = PLAIN.split(" = Two = ")
    assert read(documents="file", heading=" = .* = ") == [(1, first), (8, f" = Two = {second}")]
    assert read(documents="file", heading="A dog.*")[0] == (1, " \n = One = \n\n")


def test_objects_are_documents_with_their_newlines(tmp_path: Path) -> None:
    path = tmp_path / "text.jsonl"
    path.write_text('{"article": {"body": "one\\n\\ntwo\\n"}}\n\n{"article": {"body": null}}\n')
    found = list(read_passages(TextCorpusConfig(jsonl=path, field="article.body")))
    assert found == [Passage(1, "one\n\ntwo\n"), Passage(2, ""), Passage(3, "")]
    with pytest.raises(
        DataError, match=r"text\.jsonl, line 1: there is no field 'text'; the fields are article\.body\. Set field"
    ):
        check_readable(TextCorpusConfig(jsonl=path))


@pytest.mark.parametrize("settings", [{}, {"documents": "blank_line"}, {"documents": "file"}])
def test_long_documents_come_in_passages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    monkeypatch.setattr("dragoman.data.corpora.documents.LONGEST", 40)
    text = "".join(f"line {number} of it\n" for number in range(1, 30)) + "x" * 100 + "\n\nthe end"
    whole = corpus(tmp_path / "text", text, **settings)
    found = list(read_passages(whole))
    assert max(len(each.text) for each in found) == 40
    for each in found:
        line = text.split("\n")[each.line - 1] + "\n"
        assert each.text[:10].split("\n")[0] in line
    documents, parts = [], list[str]()
    for each in found:
        assert each.begins == (not parts)
        parts.append(each.text)
        if each.ends:
            documents.append("".join(parts))
            parts = []
    assert documents == read_texts(whole)
    assert len(documents) == {"line": 32, "blank_line": 2, "file": 1}[whole.documents]
    assert sum(map(len, documents)) == len(text) - {"line": 31, "blank_line": 2, "file": 0}[whole.documents]


def test_all_texts_are_read_for_evaluation_or_an_error_is_raised(tmp_path: Path) -> None:
    assert read_texts(corpus(tmp_path / "a", "one\n\ntwo\n")) == ["one", "", "two"]
    with pytest.raises(DataError, match=r"broken, line 3: broken UTF-8"):
        read_texts(corpus(tmp_path / "broken", b"one\ntwo\nth\xffree\n", documents="file"))
    with pytest.raises(DataError, match="all documents are blank"):
        read_texts(corpus(tmp_path / "blank", " \n\n\t\n"))
    with pytest.raises(DataError, match=r"no file .*missing"):
        read_texts(TextCorpusConfig(text=tmp_path / "missing"))
    with pytest.raises(DataError, match=r"cut is truncated"):
        read_texts(corpus(tmp_path / "cut", gzip.compress(TEXT.encode() * 9)[:-9], documents="file"))


@pytest.mark.parametrize("documents", ["line", "blank_line", "file"])
def test_an_unreadable_corpus_is_reported_at_once(tmp_path: Path, documents: Any) -> None:
    with pytest.raises(DataError, match="empty. Use a file"):
        check_readable(corpus(tmp_path / "empty", "", documents=documents))
    with pytest.raises(DataError, match="is a folder, not a file"):
        check_readable(TextCorpusConfig(text=tmp_path, documents=documents))
    with pytest.raises(DataError, match="not a gz file"):
        check_readable(corpus(tmp_path / "plain.gz", documents=documents))
    check_readable(corpus(tmp_path / "good", documents=documents))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "give either `text` or `jsonl`"),
        ({"text": "a", "jsonl": "b"}, "give either `text` or `jsonl`"),
        ({"jsonl": "b", "documents": "file"}, "leave out `documents` and `heading`"),
        ({"text": "a", "heading": "x"}, "set `documents` to file"),
        ({"text": "a", "documents": "file", "heading": "("}, "not a valid regular expression"),
    ],
)
def test_contradictory_settings_are_rejected(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        TextCorpusConfig(**settings)


class Data(Config):
    """Settings with a field for corpora."""

    train: TextCorpora


def test_settings_are_one_corpus_or_several() -> None:
    one = {"text": "a.txt", "documents": "file"}
    assert isinstance(parse_settings({"train": one}, Data, "here").train, TextCorpusConfig)
    several = parse_settings({"train": [one, {"jsonl": "b", "weight": 2}]}, Data, "here").train
    assert isinstance(several, tuple)
    assert [str(each) for each in several] == ["a.txt", "b"]
    with pytest.raises(ConfigError, match=r"unknown setting train\.1\.fild .*did you mean train\.1\.field"):
        parse_settings({"train": [one, {"jsonl": "b", "fild": "x"}]}, Data, "here")


def test_json_is_read_as_for_pairs(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    for line, message in (
        ("[1]", "not a JSON object"),
        ("{", "not valid JSON"),
        (json.dumps({"text": [1]}), "is not text"),
    ):
        path.write_text(f'{{"text": "fine"}}\n{line}\n')
        with pytest.raises(DataError, match=rf"c\.jsonl, line 2: .*{message}"):
            read_texts(TextCorpusConfig(jsonl=path))


class _Corpora(Config):
    """Settings with corpora, as a run has them."""

    train: TextCorpora = Field(description="Corpora.")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a.txt", TextCorpusConfig(text=Path("a.txt"))),
        ("a", TextCorpusConfig(text=Path("a"))),
        ("a.jsonl.gz", TextCorpusConfig(jsonl=Path("a.jsonl.gz"))),
        (["a.txt", {"jsonl": "b"}], (TextCorpusConfig(text=Path("a.txt")), TextCorpusConfig(jsonl=Path("b")))),
    ],
)
def test_a_corpus_may_be_a_path(value: object, expected: object) -> None:
    assert parse_settings({"train": value}, _Corpora, "here").train == expected
