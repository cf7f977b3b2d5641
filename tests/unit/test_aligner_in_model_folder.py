"""A word aligner in the folder of a translation model provides its alignments."""

from pathlib import Path

import pytest
from tiny_model import write_tiny_model
from training_runs import RUN, SETTINGS, write_corpus

import dragoman
from dragoman.alignment.word_aligner import FOLDER, WordAligner
from dragoman.base.errors import ConfigError, ModelError
from dragoman.cli.main import main
from dragoman.tasks.translation import word_aligner as training
from dragoman.translation.alignment import AttentionAligner, AttentionChoice, StoredAligner

SOURCES = ["a man sees a dog", "two dogs", "a dog", "two men", "a man"] * 8
TARGETS = ["ein Mann sieht einen Hund", "zwei Hunde", "ein Hund", "zwei Männer", "ein Mann"] * 8


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tiny_model(tmp_path / "model")
    WordAligner.train(SOURCES, TARGETS)[0].save(tmp_path / "model" / FOLDER)
    return tmp_path / "model"


def test_the_stored_aligner_replaces_the_attention(folder: Path, tmp_path: Path) -> None:
    translator = dragoman.Translator.load(folder, "cpu", engine="torch")
    stored = WordAligner.load(folder / FOLDER)
    texts = ["a dog sees a man", "", "two"], ["ein Hund sieht einen Mann", " ", "zwei"]
    assert translator.align(*texts) == stored.align(*texts)
    assert translator.align(["a man"], ["ein Mann"]) == [((0, 0), (1, 1))]
    chosen = translator.aligner_of(attention=AttentionChoice(layer=1))
    assert isinstance(chosen, AttentionAligner) and isinstance(translator.aligner_of(), StoredAligner)
    (tmp_path / "source").write_text("a man sees two dogs\n\na dog\n")
    options = {"beam": 1, "engine": "torch", "device": "cpu", "quiet": True}
    dragoman.translate_file(folder, tmp_path / "source", tmp_path / "target", alignments=tmp_path / "links", **options)
    lines = [path.read_text().split("\n")[:-1] for path in (tmp_path / "source", tmp_path / "target")]
    expected = [" ".join(f"{i}-{j}" for i, j in links) for links in stored.align(*lines)]
    assert (tmp_path / "links").read_text().split("\n")[:-1] == expected


def test_a_given_aligner_and_folders_without_one(folder: Path) -> None:
    given = WordAligner.train(SOURCES[::-1], TARGETS[::-1])[0]
    assert dragoman.Translator.load(folder, "cpu", engine="torch", aligner=given).aligner_of() is given
    (folder / FOLDER / "meta.json").unlink()
    translator = dragoman.Translator.load(folder, "cpu", engine="torch")  # which does not load the aligner
    with pytest.raises(ModelError, match=r"meta\.json missing"):
        translator.align(["a"], ["ein"])
    (folder / FOLDER).rename(folder / "other")
    translator = dragoman.Translator.load(folder, "cpu", engine="torch")
    assert isinstance(translator.aligner_of(), AttentionAligner)


def test_one_setting_trains_the_aligner_with_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = [*SETTINGS, "train.max_steps=15", "data.aligner.method.kind=ibm1", "data.source_language=en"]
    options = ["train", *write_corpus(tmp_path), *settings]
    assert main(options) == 0
    aligner = WordAligner.load(tmp_path / RUN / FOLDER)
    assert aligner.config.method.kind == "ibm1" and aligner.meta.source_language == "en"
    assert aligner.meta.data == dragoman.Translator.load(tmp_path / RUN, "cpu").meta.data
    assert set(aligner.source_words.words) == set((tmp_path / "train.a").read_text().split())
    assert set(aligner.target_words.words) == set((tmp_path / "train.b").read_text().split())

    def fail(*_: object) -> None:
        raise AssertionError("trained twice")

    monkeypatch.setattr(training.WordAligner, "train", fail)
    assert main([*options, "--resume"]) == 0


def test_vectors_cannot_be_aligned() -> None:
    with pytest.raises(ConfigError, match=r"data\.aligner: the sources are vectors"):
        training.check_library(True)
