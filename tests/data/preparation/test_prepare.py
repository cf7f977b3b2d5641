"""Preparing a corpus: the contents of the shards, when they are reused, and when they are prepared again."""

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman.base.errors import DataError
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.dataset import Dataset, DatasetWriter, Sentences, id_dtypes
from dragoman.data.preparation import fingerprint, pipeline
from dragoman.data.preparation import prepare as module
from dragoman.data.preparation.pipeline import PreparedCorpora
from dragoman.data.preparation.prepare import prepare
from dragoman.text.tokenizers import TextConfig, train_tokenizers
from dragoman.text.vocabularies.bpe import BPEConfig

TEXT = TextConfig(subword=BPEConfig(size=300, min_frequency=1))
SOURCES = ["A dog runs.", "", "Two dogs sleep.", "A dog runs.", "word " * 30]
TARGETS = ["Ein Hund läuft.", "leer", "Zwei Hunde schlafen.", "Ein Hund läuft.", "Wort " * 30]


@pytest.fixture
def corpus(tmp_path: Path) -> CorpusConfig:
    for name, lines in (("source", SOURCES), ("target", TARGETS)):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return CorpusConfig(source=tmp_path / "source", target=tmp_path / "target")


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(module, "info", said.append)
    monkeypatch.setattr(pipeline, "info", said.append)
    monkeypatch.setattr(pipeline, "warn", said.append)
    return said


def run(corpus: CorpusConfig, text: Any = TEXT, **cleaning: Any) -> PreparedCorpora:
    assert corpus.source is not None
    return prepare(corpus, CleaningConfig(**cleaning), text, corpus.source.parent / "cache")


def pairs(prepared: PreparedCorpora) -> list[tuple[str, str]]:
    source, target = prepared.tokenizers.source, prepared.tokenizers.target
    return [
        (source.decode(a), target.decode(b)) for a, b in (prepared.dataset[row] for row in range(len(prepared.dataset)))
    ]


def test_the_shards_contain_the_cleaned_pairs(corpus: CorpusConfig) -> None:
    prepared = run(corpus, max_tokens=30)
    assert pairs(prepared) == [(SOURCES[0], TARGETS[0]), (SOURCES[2], TARGETS[2])]
    assert prepared.dataset.lines.tolist() == [1, 3]
    assert prepared.reports[0].counts == {"empty": 1, "max_tokens": 1, "duplicates": 1}
    lengths = [[len(side) for side in prepared.dataset[row]] for row in range(2)]
    assert prepared.dataset.lengths.tolist() == lengths
    assert prepared.dataset.lengths.dtype == np.int32


@pytest.mark.parametrize("shared", [True, False])
def test_a_vocabulary_is_learned_from_the_kept_pairs(corpus: CorpusConfig, shared: bool) -> None:
    text = TextConfig(subword=TEXT.subword, shared=shared)
    expected = train_tokenizers(text, [SOURCES[0], SOURCES[2]], [TARGETS[0], TARGETS[2]])
    found = run(corpus, text, max_characters=100).tokenizers
    assert (found.fingerprint, found.source.size) == (expected.fingerprint, expected.source.size)


def test_nothing_is_dropped_without_cleaning(corpus: CorpusConfig) -> None:
    assert pairs(run(corpus, enabled=False)) == list(zip(SOURCES, TARGETS, strict=True))


def test_a_second_call_reuses_the_shards_and_reports_it(corpus: CorpusConfig, messages: list[str]) -> None:
    first = run(corpus)
    assert any(message.startswith("Data: preparing") for message in messages)
    messages.clear()
    second = run(corpus)
    assert any(message.startswith("Data: reused") for message in messages)
    assert pairs(first) == pairs(second)
    assert first.dataset.fingerprint == second.dataset.fingerprint
    assert first.reports[0].table() == second.reports[0].table()
    assert first.tokenizers.fingerprint == second.tokenizers.fingerprint


def test_dropout_reuses_the_shards_and_reaches_the_tokenizers(corpus: CorpusConfig, messages: list[str]) -> None:
    plain = run(corpus)
    messages.clear()
    dropping = run(corpus, TextConfig(subword=BPEConfig(size=300, min_frequency=1, dropout=0.1)))
    assert any("reused" in message for message in messages)
    assert (plain.tokenizers.source.dropout, dropping.tokenizers.source.dropout) == (0.0, 0.1)


def test_changed_contents_of_the_same_size_and_time_are_noticed(corpus: CorpusConfig) -> None:
    assert corpus.source is not None
    first = run(corpus)
    before = corpus.source.stat()
    corpus.source.write_bytes(corpus.source.read_bytes().replace(b"Two", b"Ten"))
    os.utime(corpus.source, ns=(before.st_atime_ns, before.st_mtime_ns))
    second = run(corpus)
    assert pairs(second)[1][0] == "Ten dogs sleep."
    assert second.dataset.fingerprint != first.dataset.fingerprint


def test_large_files_are_read_again_only_when_they_have_changed(
    corpus: CorpusConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def noting(file: Any, kind: str) -> Any:
        read.append(Path(file.name).name)
        return file_digest(file, kind)

    file_digest = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", noting)
    assert corpus.source is not None
    monkeypatch.setattr(fingerprint, "LARGE", corpus.source.stat().st_size)
    monkeypatch.setattr(fingerprint, "SETTLED", float("inf"))
    first = run(corpus).dataset.fingerprint
    assert read.count("source") == 1
    run(corpus)
    assert read.count("source") == 2  # too recent to be trusted
    monkeypatch.setattr(fingerprint, "SETTLED", -1.0)
    run(corpus)
    run(corpus)
    assert (read.count("source"), read.count("target")) == (3, 3)
    before = corpus.source.stat()
    corpus.source.write_bytes(corpus.source.read_bytes().replace(b"Two", b"Ten"))
    os.utime(corpus.source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert run(corpus).dataset.fingerprint != first
    (corpus.source.parent / "cache" / "digests.json").write_text("{")
    assert run(corpus).dataset.fingerprint != first


def test_other_rules_or_subwords_make_other_shards(corpus: CorpusConfig) -> None:
    first = run(corpus).dataset.fingerprint
    assert run(corpus, duplicates=False).dataset.fingerprint != first
    assert run(corpus, TextConfig(subword=BPEConfig(size=299, min_frequency=1))).dataset.fingerprint != first
    assert run(corpus, TextConfig(subword=TEXT.subword, shared=False)).dataset.fingerprint != first


def test_validation_data_use_the_tokenizers_of_training(corpus: CorpusConfig, tmp_path: Path) -> None:
    trained = run(corpus).tokenizers
    (tmp_path / "v.tsv").write_text("Hello 😀\tHallo 😀\n", encoding="utf-8")
    valid = prepare(CorpusConfig(pairs=tmp_path / "v.tsv"), CleaningConfig(enabled=False), trained, tmp_path / "cache")
    assert valid.tokenizers is trained
    assert pairs(valid) == [("Hello 😀", "Hallo 😀")]


@pytest.mark.parametrize(
    "file", ["source.bin", "target.offsets.bin", "lines.bin", "dataset.json", "cleaning.json", "tokenizer.json"]
)
@pytest.mark.parametrize("damage", ["truncated", "flipped", "missing"])
def test_damaged_shards_are_prepared_again(corpus: CorpusConfig, messages: list[str], file: str, damage: str) -> None:
    good = pairs(run(corpus))
    assert corpus.source is not None
    (path,) = (corpus.source.parent / "cache").glob(f"*/{file}")
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(content[:-5] if damage == "truncated" else bytes([content[0] ^ 1]) + content[1:])
    messages.clear()
    assert pairs(run(corpus)) == good
    assert any("damaged" in message or "Cannot read" in message or "must hold" in message for message in messages)
    messages.clear()
    run(corpus)
    assert any("reused" in message for message in messages)


def test_shards_of_another_version_are_prepared_again(corpus: CorpusConfig, messages: list[str]) -> None:
    first = run(corpus)
    assert corpus.source is not None
    (path,) = (corpus.source.parent / "cache").glob("*/dataset.json")
    path.write_text(path.read_text().replace('"format": 2', '"format": 1'))
    messages.clear()
    again = run(corpus)
    assert any("another version" in message for message in messages)
    assert (pairs(again), again.dataset.fingerprint) == (pairs(first), first.dataset.fingerprint)


def test_a_failed_preparation_leaves_nothing_behind(corpus: CorpusConfig) -> None:
    assert corpus.source is not None
    with pytest.raises(DataError, match="Cleaning dropped everything"):
        run(corpus, max_tokens=1)
    with pytest.raises(DataError, match="Cleaning dropped everything"):
        run(corpus, max_characters=1)
    with corpus.source.open("a") as file:
        file.write("one more\n")
    with pytest.raises(DataError, match="6"):
        run(corpus)
    assert list((corpus.source.parent / "cache").iterdir()) == []


def test_a_missing_file_is_named(corpus: CorpusConfig) -> None:
    assert corpus.target is not None
    corpus.target.unlink()
    with pytest.raises(DataError, match=str(corpus.target)):
        run(corpus)


@pytest.mark.parametrize(("size", "dtype"), [(1 << 16, np.uint16), (1 << 16 | 1, np.uint32)])
def test_ids_are_stored_in_the_type_that_the_vocabulary_needs(tmp_path: Path, size: int, dtype: type) -> None:
    writer = DatasetWriter(tmp_path, id_dtypes({"source": size, "target": 300}))
    writer.add(np.array([1]), Sentences.of([[size - 1, 4]]), Sentences.of([[]]))
    writer.add(np.array([5]), Sentences.of([[]]), Sentences.of([[299]]))
    writer.finish("print")
    dataset = Dataset(tmp_path)
    assert [[side.tolist() for side in dataset[row]] for row in (0, 1)] == [[[size - 1, 4], []], [[], [299]]]
    assert dataset[0][0].dtype == dtype
    with pytest.raises(IndexError):
        dataset[2]


def test_findings_are_stored_with_the_prepared_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = [("a dog\f here", "ein Hund hier"), ("&quot;yes&quot;", "&quot;ja&quot;"), ("Собака", "Der Hund")]
    good = [(f"The dog number {number} runs.", f"Der Hund Nummer {number} läuft.") for number in range(30)]
    lines = "".join(f"{source}\t{target}\n" for source, target in [*good, *odd])
    (tmp_path / "a.tsv").write_text(lines, encoding="utf-8")
    corpus, text = CorpusConfig(pairs=tmp_path / "a.tsv"), TEXT
    arguments = corpus, CleaningConfig(), text, tmp_path / "prepared"
    (first,) = prepare(*arguments, workers=0, languages=("en", "de")).reports
    log = " ".join(capsys.readouterr().err.split())
    assert "U+000C form feed 1 source of" in log
    assert (
        "contain the escape &quot;. The model learns to write it unless data.cleaning.unescape=true replaces it" in log
    )
    assert first.counts == {"wrong_script": 1}
    (second,) = prepare(*arguments, workers=0, languages=("en", "de")).reports
    assert second.to_json() == first.to_json() and second.table() == first.table()
    assert "Data: reused" in capsys.readouterr().err
    (third,) = prepare(*arguments, workers=0, languages=("ru", "de")).reports
    assert third.counts == {"wrong_script": 32}


def test_a_corpus_of_which_nothing_is_kept_names_the_settings(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("Собака\tДер Хунд\n\tx\n", encoding="utf-8")
    corpus, text = CorpusConfig(pairs=tmp_path / "a.tsv"), TEXT
    expected = r"relax data\.cleaning\.empty, data\.cleaning\.wrong_script\.(?s:.*)expected source of .*: Latn"
    with pytest.raises(DataError, match=expected):
        prepare(corpus, CleaningConfig(), text, tmp_path / "prepared", workers=0, languages=("en", "de"))
