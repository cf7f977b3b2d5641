"""Runs of every task that start from a folder of any kind: copied parts, new parts, and refusals."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_language_model import TEXTS, write_tiny_language_model
from tiny_model import SOURCES, TARGETS, write_tiny_model
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import load_settings
from dragoman.checkpoint.folder import load_model_folder
from dragoman.tasks.registry import TASKS, open_job
from dragoman.training.task import Job

STACK = {"layers": 1, "heads": 2, "feedforward": 16, "norm": "pre"}
WRITER = {"preset": None, "width": 8, "decoder": {"kind": "transformer", **STACK}, "positions": {"kind": "rotary"}}
TRANSLATOR = {**WRITER, "encoder": {"kind": "transformer", **STACK}}
OWN_TEXT = {"text": {"subword": {"kind": "character"}}}


@pytest.fixture(autouse=True)
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("\n".join(TEXTS * 3), encoding="utf-8")
    Path("pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in zip(SOURCES, TARGETS, strict=True)) * 3)


def started(task: str, train: dict[str, Any], **sections: Any) -> tuple[Job, dict[str, Tensor]]:
    """Return the job of a run, and the initial values of its model."""
    file = {"pairs": "pairs.tsv"} if task == "translation" else {"text": "text.txt"}
    whole = {
        "task": {"kind": task},
        "data": {"train": file, "valid": file},
        "train": {"max_steps": 1, **train},
        "out": "run",
        **sections,
    }
    job = open_job(load_settings(whole, [], TASKS[task].run))
    job.prepare()
    torch.manual_seed(7)
    model = job.build()
    job.initialise(model)
    return job, model.state_dict()


def stored(folder: str) -> dict[str, Tensor]:
    return load_model_folder(Path(folder), torch.device("cpu")).model.state_dict()


def same(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> set[str]:
    """Return the names of equal parameters."""
    return {name for name in ours if name in theirs and torch.equal(ours[name], theirs[name])}


def test_a_language_model_continues_one_with_its_settings_and_vocabulary() -> None:
    write_tiny_language_model(Path("start"))
    job, ours = started("language_model", {"start": "start"})
    assert same(ours, stored("start")) == set(ours)
    assert job.run.model.width == 8
    assert job.tokenizers is not None
    assert job.tokenizers.fingerprint == load_model_folder(Path("start"), torch.device("cpu")).tokenizers.fingerprint
    with pytest.raises(
        ConfigError, match=r"does not match the settings of this run: .*model.width \(16 in this run, 8 in the folder\)"
    ):
        started("language_model", {"start": "start"}, model={"width": 16})


def test_a_language_model_takes_a_translators_decoder(capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(Path("start"))
    _, ours = started("language_model", {"start": "start"}, model=WRITER)
    assert same(ours, stored("start")) == set(ours)  # which has no attention over a source
    told = " ".join(capsys.readouterr().err.split())
    assert "train.start=start: copied decoder.embedding, decoder, decoder.projection." in told
    assert "Not used: encoder.embedding; encoder" in told


def test_a_translator_takes_a_language_models_decoder(capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_language_model(Path("start"), model=WRITER)
    job, ours = started("translation", {"start": "start"}, model=TRANSLATOR)
    new = set(ours) - same(ours, stored("start"))
    assert "decoder.embedding.tokens.weight" not in new
    assert any(".cross_attention." in name for name in new)
    assert not [name for name in new if name.startswith("decoder.") and "cross_attention" not in name]
    assert job.tokenizers is not None and job.tokenizers.has_single_tokenizer
    assert "parameters of decoder (decoder.layers.0.cross_attention" in " ".join(capsys.readouterr().err.split())


def test_rows_of_another_vocabulary_are_not_taken() -> None:
    write_tiny_model(Path("start"))
    _, ours = started("language_model", {"start": "start"}, model=WRITER, **OWN_TEXT)
    new = set(ours) - same(ours, stored("start"))
    assert new == {"decoder.embedding.tokens.weight", "decoder.projection.weight"}


def test_named_parts_alone_are_taken_from_another_architecture() -> None:
    write_tiny_model(Path("start"))
    recurrent = {**TRANSLATOR, "decoder": {"kind": "recurrent"}, "target_positions": {"kind": "none"}}
    train = {"start": "start", "start_parts": ["encoder"]}
    _, ours = started("translation", train, model=recurrent, **OWN_TEXT)
    expected = {name for name in ours if name.startswith("encoder.") and not name.startswith("encoder.embedding.")}
    assert expected and same(ours, stored("start")) == expected


def test_different_settings_with_equal_shapes_cause_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(Path("start"))
    other = {**WRITER, "decoder": {**WRITER["decoder"], "heads": 4}}  # type: ignore[dict-item]
    started("language_model", {"start": "start"}, model=other)
    assert "model.decoder.heads is 4 in this run and 2 in the folder" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("train", "model", "message"),
    [
        ({}, {**WRITER, "width": 16}, "no part of the model in train.start=start, a translation model, fits"),
        ({"start_parts": ["decoder"]}, {**WRITER, "width": 16}, "decoder of start does not fit this run's model"),
        ({"start_parts": ["encoder"]}, WRITER, "this run's model has no part encoder. Its parts are decoder.embedding"),
        ({"start_parts": ["head"]}, WRITER, "the model in start has no part head. Its parts are encoder.embedding"),
    ],
)
def test_a_start_without_matching_parts_is_refused(train: dict[str, Any], model: dict[str, Any], message: str) -> None:
    write_tiny_model(Path("start"))
    with pytest.raises(ConfigError, match=message):
        started("language_model", {"start": "start", **train}, model=model, **OWN_TEXT)


def test_parts_need_a_start() -> None:
    with pytest.raises(ConfigError, match=r"train.start_parts requires train.start"):
        started("language_model", {"start_parts": ["decoder"]})


def test_parts_of_another_width_are_left_in_the_folder() -> None:
    """The vocabulary is the same, so only the widths of its embedding and projection keep them from being copied."""
    write_tiny_model(Path("start"))
    wider = {**WRITER, "width": 16}
    with pytest.raises(ConfigError, match=r"no part of the model in train.start=start.* fits .*different shape"):
        started("language_model", {"start": "start"}, model=wider)
