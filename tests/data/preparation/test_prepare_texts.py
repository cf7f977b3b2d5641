"""Preparing plain text: vocabularies of one side, several corpora, reused folders, and refusals."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dragoman.base.errors import ConfigError, DataError
from dragoman.data.batches.plan import BatchConfig, plan_epoch
from dragoman.data.cleaning import chunks
from dragoman.data.cleaning.cleaned_corpus import BYTES_PER_PAIR
from dragoman.data.cleaning.config import TextCleaningConfig
from dragoman.data.corpora.corpus import TextCorpusConfig
from dragoman.data.preparation import pipeline
from dragoman.data.preparation.pipeline import PreparedCorpora
from dragoman.data.preparation.prepare import prepare_texts
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers
from dragoman.text.vocabularies.bpe import BPEConfig
from dragoman.text.vocabularies.union import Kinds

TEXT = TextConfig(subword=BPEConfig(size=300, min_frequency=1))
DOCUMENTS = ["A dog runs.\n\nIt is fast.\n", "", "Two dogs sleep.", "A dog runs.\n\nIt is fast.\n", "Ein Hund läuft."]


@pytest.fixture
def corpora(tmp_path: Path) -> list[TextCorpusConfig]:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in DOCUMENTS))
    (tmp_path / "b.txt").write_text("Three cats eat fish.\n" * 3 + "\nThe end.\n")
    return [
        TextCorpusConfig(jsonl=tmp_path / "a.jsonl"),
        TextCorpusConfig(text=tmp_path / "b.txt", documents="blank_line", weight=0.5),
    ]


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(pipeline, "info", said.append)
    monkeypatch.setattr(pipeline, "warn", said.append)
    return said


def run(
    corpora: list[TextCorpusConfig], text: TextConfig | Tokenizers = TEXT, block: int = 5, **cleaning: Any
) -> PreparedCorpora:
    return prepare_texts(corpora, TextCleaningConfig(**cleaning), text, corpora[0].files[0].parent / "cache", block)


def texts(prepared: PreparedCorpora) -> list[str]:
    """Return the documents, joined from their blocks."""
    found: list[list[int]] = []
    for row in range(len(prepared.dataset)):
        ids = prepared.dataset[row][0].tolist()
        if ids[0] == BOS:
            found.append([])
        found[-1] += ids[1:]
    assert all(ids.count(EOS) == 1 and ids[-1] == EOS for ids in found)
    return [prepared.tokenizers.target.decode(ids) for ids in found]


def test_the_shards_contain_the_cleaned_documents(corpora: list[TextCorpusConfig]) -> None:
    prepared = run(corpora)
    kept = [DOCUMENTS[0], DOCUMENTS[2], DOCUMENTS[4]]
    assert texts(prepared) == [*kept, "\n".join(["Three cats eat fish."] * 3), "The end."]
    assert [report.counts for report in prepared.reports] == [{"empty": 1, "duplicates": 1}, {}]
    part = prepared.dataset.parts[0]
    assert sorted(set(part.lines.tolist())) == [1, 3, 5]
    assert prepared.parts == ((len(part), 1.0), (len(prepared.dataset) - len(part), 0.5))
    size = prepared.tokenizers.target.size
    counts = [each.target_counts(size) for each in prepared.dataset.parts]
    assert counts[0][EOS] == 3
    assert_allclose(prepared.dataset.target_counts(size), counts[0] + 0.5 * counts[1])


LEARNED = [kind for config in Kinds.__args__ if (kind := config.model_fields["kind"].default) != "t5"]
"""The kinds of vocabularies that are learned. Those of imported T5 models are not."""


@pytest.mark.parametrize("kind", LEARNED)
def test_one_vocabulary_of_any_kind_is_learned(corpora: list[TextCorpusConfig], kind: str, tmp_path: Path) -> None:
    text = TextConfig.model_validate({"subword": {"kind": kind}})
    prepared = run(corpora[:1], text)
    assert prepared.tokenizers.shared
    subword = text.subword.with_size(1)
    expected = train_tokenizers(TextConfig(subword=subword), [], [DOCUMENTS[place] for place in (0, 2, 4)])
    assert prepared.tokenizers.fingerprint == expected.fingerprint
    prepared.tokenizers.save(tmp_path)
    assert (tmp_path / "tokenizer.json").exists()
    assert Tokenizers.load(tmp_path).fingerprint == expected.fingerprint
    if kind in ("bpe", "unigram", "wordpiece"):  # the others do not know every word and character
        assert texts(prepared) == [DOCUMENTS[place] for place in (0, 2, 4)]


def test_the_size_of_a_vocabulary_depends_on_the_amount_of_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "book").write_text("one two three\n" * 1000)
    asked: list[int] = []

    def with_size(config: BPEConfig, pairs: int) -> BPEConfig:
        asked.append(pairs)
        return config.model_copy(update={"size": 300})

    monkeypatch.setattr(BPEConfig, "with_size", with_size)
    run([TextCorpusConfig(text=tmp_path / "book", documents="file")], TextConfig())
    assert asked == [14_000 // BYTES_PER_PAIR]


def test_folders_are_reused_for_the_same_block_division_and_text(
    corpora: list[TextCorpusConfig], messages: list[str]
) -> None:
    first = run(corpora)
    found = texts(first)
    messages.clear()
    second = run(corpora)
    assert sum(message.startswith("Data: reused") and " tokens of " in message for message in messages) == 2
    assert (second.fingerprints, texts(second)) == (first.fingerprints, found)
    next((corpora[0].files[0].parent / "cache").glob("*/text.bin")).write_bytes(b"")
    assert texts(run(corpora)) == found
    tokenizers = first.tokenizers
    seen = {*first.fingerprints}
    others = [
        run(corpora, tokenizers, 6),
        run(corpora, tokenizers, empty=False),
        run([corpora[0], corpora[1].model_copy(update={"documents": "line"})], tokenizers),
        run([corpora[0], corpora[1].model_copy(update={"documents": "file"})], tokenizers),
        run([corpora[0], corpora[1].model_copy(update={"documents": "file", "heading": "The .*"})], tokenizers),
    ]
    for other in others:
        assert other.fingerprints[1] not in seen
        seen.add(other.fingerprints[1])
    assert run(corpora, tokenizers).fingerprints == first.fingerprints


def test_of_two_vocabularies_the_target_s_is_used(corpora: list[TextCorpusConfig]) -> None:
    source, target = (train_tokenizers(TEXT, [word], []).source for word in ("eins zwei", "A dog runs Two dogs sleep"))
    prepared = run(corpora[:1], Tokenizers(source, target))
    assert prepared.dataset[0][0].tolist() == [BOS, *target.encode(DOCUMENTS[0])][:6]


def test_temperatures_count_tokens(corpora: list[TextCorpusConfig]) -> None:
    plain = [corpora[0], corpora[1].model_copy(update={"weight": 1.0})]
    prepared = prepare_texts(plain, TextCleaningConfig(), TEXT, plain[0].files[0].parent / "cache", 5, temperature=2.0)
    tokens = np.array([part.lengths.sum() for part in prepared.dataset.parts])
    shares = np.array([weight for _, weight in prepared.parts]) * tokens
    assert_allclose(shares / shares.sum(), np.sqrt(tokens) / np.sqrt(tokens).sum())


def test_settings_that_plain_text_does_not_support_are_rejected(corpora: list[TextCorpusConfig]) -> None:
    for settings, message in (
        ({"shared": False}, "remove text.shared"),
        ({"vectors": {"width": 2}}, "remove text.vectors"),
        ({"subword": {"dropout": 0.1}}, "text.subword.dropout resamples the splits"),
    ):
        with pytest.raises(ConfigError, match=message):
            run(corpora, TextConfig.model_validate(settings))
    with pytest.raises(ConfigError, match="replaces weights"):
        prepare_texts(corpora, TextCleaningConfig(), TEXT, Path("nowhere"), 5, temperature=2.0)
    corpora[1].files[0].write_text("\x00\n")
    with pytest.raises(DataError, match="Cleaning dropped everything in .*b.txt"):
        run(corpora)
    corpora[1].files[0].unlink()
    with pytest.raises(DataError, match=r"no file .*b\.txt"):
        run(corpora)
    assert list((corpora[0].files[0].parent / "cache").iterdir()) == []


def test_a_document_of_many_blocks_is_the_same_as_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"The {number}th dog  sleeps,\n\tall day.\n" for number in range(300))
    (tmp_path / "book").write_text(text)
    corpus = [TextCorpusConfig(text=tmp_path / "book", documents="file")]
    whole = run(corpus, block=64)
    monkeypatch.setattr("dragoman.data.corpora.documents.LONGEST", 100)
    monkeypatch.setattr(chunks, "BYTES", 700)
    monkeypatch.setattr(chunks, "PAIRS", 9)
    parts = prepare_texts(corpus, TextCleaningConfig(), whole.tokenizers, tmp_path / "other", 64, workers=0)
    assert texts(parts) == texts(whole) == [text]
    rows = np.arange(len(whole.dataset))
    assert len(parts.dataset) == len(rows)
    (expected,), (found,) = whole.dataset.take(rows), parts.dataset.take(rows)
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.lengths.tolist() == expected.lengths.tolist()
    assert len(set(parts.dataset.lines.tolist())) == len(rows)
    plan = plan_epoch(whole.dataset.lengths, BatchConfig(tokens=256), 1, 0, whole.parts, special=whole.dataset.special)
    assert sorted(map(len, plan.batches))[2:] == [4] * (len(rows) // 4 - 1)  # 4 rows of 64 fill it exactly
