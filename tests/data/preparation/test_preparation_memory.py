"""Memory does not grow with the corpus: preparing and planning six times the text takes no more memory."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dragoman.data import dataset
from dragoman.data.batches import epoch, permutation
from dragoman.data.batches.loader import Loader
from dragoman.data.batches.plan import BatchConfig, plan_epoch
from dragoman.data.cleaning import chunks, duplicates
from dragoman.data.cleaning.config import CleaningConfig, TextCleaningConfig
from dragoman.data.corpora import documents
from dragoman.data.corpora.corpus import CorpusConfig, TextCorpusConfig
from dragoman.data.files import lines
from dragoman.data.preparation import fingerprint
from dragoman.data.preparation.prepare import prepare, prepare_texts
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.vocabularies.character import CharacterConfig


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (chunks, "PAIRS", 256),
        (duplicates, "BUCKET", 512),
        (fingerprint, "file_digest", lambda path, _: str(path)),  # its buffer would be most of the peak
        (epoch, "BLOCK", 512),
        (epoch, "SMALL", 1000),
        (permutation, "TABLE", 16),
        (dataset, "_BYTES_PER_CHUNK", 4096),
        (lines, "CHUNK", 4096),
        (documents, "LONGEST", 512),
        (chunks, "BYTES", 8192),
    ):
        monkeypatch.setattr(module, name, value)


@pytest.fixture(autouse=True)
def usual_collection() -> Iterator[None]:
    """Garbage is collected as often as in programs, and not as rarely as in tests, for it counts as memory."""
    thresholds = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*thresholds)


def grows(peak: Callable[[Path, int], int], folder: Path, small: int, large: int) -> bool:
    """Return whether the peak grows by half or more, each time of three.

    The peak includes what other threads allocate, such as those that earlier tests have left behind.
    """
    peak(folder / "first", 2_500)  # imports, and caches that several chunks fill

    def larger(turn: int) -> bool:
        return peak(folder / f"large {turn}", large) >= 1.5 * peak(folder / f"small {turn}", small)

    return all(larger(turn) for turn in range(3))


def peak(folder: Path, pairs: int) -> int:
    """Return the peak of bytes allocated by Python and NumPy, from opening the corpus to the last batch of an epoch."""
    folder.mkdir()
    texts = [f"source {number} {number % 7}\ttarget {number * 7}" for number in range(100_000, 100_000 + pairs)]
    texts[::5] = texts[: len(texts[::5])]  # duplicates, whose line numbers are kept
    corpora = [CorpusConfig(pairs=folder / name) for name in ("a", "b")]
    for corpus, part in zip(corpora, (texts[::2], texts[1::2]), strict=True):
        corpus.files[0].write_text("".join(f"{line}\n" for line in part))
    tokenizer = CharacterConfig(min_frequency=1).learn(["source target 0123456789"])
    del texts
    tracemalloc.start()
    try:
        prepared = prepare(corpora, CleaningConfig(), Tokenizers(tokenizer, tokenizer), folder / "cache", workers=0)
        plan = plan_epoch(prepared.dataset.lengths, BatchConfig(tokens=200), 1, 0, prepared.parts)
        assert sum(len(batch.rows) for batch in Loader(prepared.dataset, plan)) == len(prepared.dataset)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_stays_while_the_corpus_grows(tmp_path: Path) -> None:
    assert not grows(peak, tmp_path, 1_000, 6_000)  # a list with anything per pair would more than double it


def peak_of_a_document(folder: Path, lines: int) -> int:
    """Return the peak for one document of `lines` lines."""
    folder.mkdir()
    corpus = TextCorpusConfig(text=folder / "book", documents="file")
    with corpus.files[0].open("w") as file:
        file.writelines(f"line {number} {number * 7}\n" for number in range(100_000, 100_000 + lines))
    tokenizer = CharacterConfig(min_frequency=1).learn(["line 0123456789\n"])
    tracemalloc.start()
    try:
        prepared = prepare_texts(
            corpus, TextCleaningConfig(), Tokenizers(tokenizer, tokenizer), folder / "cache", 32, workers=0
        )
        dataset = prepared.dataset
        plan = plan_epoch(dataset.lengths, BatchConfig(tokens=640), 1, 0, prepared.parts, special=dataset.special)
        taken = sum(int((dataset.take(rows)[0].lengths - 1).sum()) for rows in plan.batches)
        assert taken == dataset.lengths.sum() == corpus.files[0].stat().st_size + 1
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_stays_while_a_document_grows(tmp_path: Path) -> None:
    assert not grows(peak_of_a_document, tmp_path, 2_000, 12_000)
