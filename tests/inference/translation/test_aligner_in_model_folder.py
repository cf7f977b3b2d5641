"""A word aligner in the folder of a translation model provides its alignments."""

from pathlib import Path

import pytest
from tiny_model import write_tiny_model
from training_runs import RUN, SETTINGS, write_corpus

import dragoman
from dragoman.base.errors import ConfigError, ModelError
from dragoman.checkpoint.folder import ALIGNER
from dragoman.cli.main import main
from dragoman.inference.translation.alignment import AttentionAligner, StoredAligner
from dragoman.models.attention_weights import AttentionChoice
from dragoman.statistical.alignment.word_aligner import WordAligner
from dragoman.tasks.translation import aligner_training as training

SOURCES = ["a man sees a dog", "two dogs", "a dog", "two men", "a man"] * 8
TARGETS = ["ein Mann sieht einen Hund", "zwei Hunde", "ein Hund", "zwei Männer", "ein Mann"] * 8


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tiny_model(tmp_path / "model")
    WordAligner.train(SOURCES, TARGETS)[0].save(tmp_path / "model" / ALIGNER)
    return tmp_path / "model"


def test_the_stored_aligner_replaces_the_attention(folder: Path, tmp_path: Path) -> None:
    translator = dragoman.Translator.load(folder, "cpu", engine="torch")
    stored = WordAligner.load(folder / ALIGNER)
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
    (folder / ALIGNER / "meta.json").unlink()
    translator = dragoman.Translator.load(folder, "cpu", engine="torch")  # which does not load the aligner
    with pytest.raises(ModelError, match=r"meta\.json missing"):
        translator.align(["a"], ["ein"])
    (folder / ALIGNER).rename(folder / "other")
    translator = dragoman.Translator.load(folder, "cpu", engine="torch")
    assert isinstance(translator.aligner_of(), AttentionAligner)


def test_one_setting_trains_the_aligner_with_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = [*SETTINGS, "train.max_steps=2", "data.aligner.method.kind=ibm1", "data.source_language=en"]
    options = ["train", *write_corpus(tmp_path), *settings]
    assert main(options) == 0
    aligner = WordAligner.load(tmp_path / RUN / ALIGNER)
    assert aligner.config.method.kind == "ibm1" and aligner.meta.source_language == "en"
    assert aligner.meta.data == dragoman.Translator.load(tmp_path / RUN, "cpu").meta.data
    assert set(aligner.source_words.words) == set((tmp_path / "train.a").read_text().split())
    assert set(aligner.target_words.words) == set((tmp_path / "train.b").read_text().split())

    def fail(*_: object) -> None:
        raise AssertionError("trained twice")

    monkeypatch.setattr(training.WordAligner, "train", fail)
    assert main([*options, "--resume"]) == 0


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_export_copies_the_aligner(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    assert main(["export", str(folder), "--out", str(tmp_path / "exported"), "--to", "ctranslate2"]) == 0
    assert contents(tmp_path / "exported" / ALIGNER) == contents(folder / ALIGNER)
    texts = ["a dog sees a man"], ["ein Hund sieht einen Mann"]
    exported = dragoman.Translator.load(tmp_path / "exported", "cpu")
    assert exported.align(*texts) == WordAligner.load(folder / ALIGNER).align(*texts)


def test_average_copies_the_aligner_of_the_last_model_or_of_its_run(folder: Path, tmp_path: Path) -> None:
    checkpoints = [folder / "checkpoints" / f"step-0000000{step}" for step in (1, 2)]
    for each in checkpoints:
        write_tiny_model(each)
    (folder / ALIGNER / ".unfinished").mkdir()
    dragoman.average([*checkpoints], tmp_path / "of-run", quiet=True)
    (folder / ALIGNER / ".unfinished").rmdir()
    assert contents(tmp_path / "of-run" / ALIGNER) == contents(folder / ALIGNER)
    assert dragoman.Translator.load(tmp_path / "of-run", "cpu").align(["a man"], ["ein Mann"]) == [((0, 0), (1, 1))]
    WordAligner.train(SOURCES[::-1], TARGETS[::-1])[0].save(checkpoints[1] / ALIGNER)
    dragoman.average([*checkpoints], tmp_path / "own", quiet=True)
    assert contents(tmp_path / "own" / ALIGNER) == contents(checkpoints[1] / ALIGNER) != contents(folder / ALIGNER)
    write_tiny_model(tmp_path / "plain")
    dragoman.average([folder, tmp_path / "plain"], tmp_path / "none", quiet=True)
    assert not (tmp_path / "none" / ALIGNER).exists()


def test_the_card_and_the_description_of_an_aligner(folder: Path) -> None:
    card = (folder / ALIGNER / "README.md").read_text()
    assert "| Values | " in card and "step" not in card
    assert "It aligns the words of text similar to its training data best. Expect errors on other text. It has" in card
    text = str(dragoman.describe(folder / ALIGNER))
    assert text.startswith(f"{folder / ALIGNER}: a word aligner, estimated from counts\n")
    assert " values, which are estimated from counts (" in text.splitlines()[-1]
    assert "FLOPs" not in text


@pytest.mark.parametrize("setting", ["data.aligner", "data.shortlist"])
def test_vectors_cannot_be_aligned(setting: str) -> None:
    with pytest.raises(ConfigError, match=f"{setting}: the sources are vectors"):
        training.check_library([setting], True)
