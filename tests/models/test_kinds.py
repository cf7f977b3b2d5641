"""Kinds of models and tasks defined outside the package: supported commands, and how others are refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
import torch
from tiny_model import tiny_tokenizers, write_tiny_model
from torch import nn

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.settings.load import dump_settings
from dragoman.checkpoint.folder import load_model_folder, write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.cli.main import main
from dragoman.models.description.describe import describe_model
from dragoman.models.description.description_text import numbers_text
from dragoman.models.interface import Trial
from dragoman.models.kinds.registry import ABILITIES, KINDS, LANGUAGE_MODEL, TRANSLATION_MODEL, ModelKind, register
from dragoman.models.settings import ModelSettings
from dragoman.tasks.registry import LANGUAGE_MODEL as TEXT_TASK
from dragoman.tasks.registry import TaskKind
from dragoman.tasks.registry import register as register_task
from dragoman.tasks.train import load_recipe
from dragoman.text.tokenizers import VocabularySizes


class GraphConfig(ModelSettings):
    kind: Literal["graph"] = "graph"
    classes: int = 3

    def build_for(self, sizes: VocabularySizes) -> "GraphModel":
        return GraphModel(self.classes)


class GraphModel(nn.Module):
    """Reads a graph's adjacency (N, N); it has neither a vocabulary nor a decoder."""

    limits = ()

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.head = nn.Linear(1, classes)

    def trial(self, length: int) -> Trial:
        return Trial((torch.ones(length, length, device=self.head.weight.device),))

    def forward(self, adjacency: torch.Tensor) -> torch.Tensor:
        return self.head(adjacency.sum(1, keepdim=True))  # type: ignore[no-any-return]


GRAPH = ModelKind(
    name="graph",
    config=GraphConfig,
    title="node classifier",
    sides=(),
    activity="labels",
    abilities=frozenset({"predict"}),
    use="`graphs predict`",
    tokenizers=False,
)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A model folder of the kind, which is registered meanwhile."""
    register(GRAPH)
    config = GraphConfig()
    section = dump_settings(config).replace("\n", "\n  ").strip()
    parameters = {name: value.detach() for name, value in GraphModel(3).named_parameters()}
    write_model_folder(tmp_path / "nodes", parameters, f"model:\n  {section}\n", None, Meta(step=5))
    yield tmp_path / "nodes"
    del KINDS["graph"]


@pytest.mark.parametrize(
    ("command", "ability"),
    [
        (["translate"], "translate"),
        (["generate", "--prompt", "a"], "generate"),
        (["score", "--target", __file__], "score"),
        (["evaluate", "--source", __file__, "--reference", __file__], "translate"),
        (["inspect", "a dog", "--out", "pictures"], "inspect"),
        (["export", "--to", "marian", "--out", "theirs"], "export"),
        (["export", "--to", "ctranslate2", "--out", "theirs"], "export"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_command_that_a_kind_does_not_support_is_refused_with_a_reason(
    folder: Path, command: list[str], ability: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command[0], str(folder), *command[1:]]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert f"{folder} is a node classifier; it cannot {ABILITIES[ability]}: use `graphs predict`" in said


def test_it_cannot_be_distilled_or_fused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["distill", str(folder), "--student", "tiny", "--out", str(tmp_path / "student")]) == 2
    assert "it cannot be distilled into a student" in " ".join(capsys.readouterr().err.split())
    write_tiny_model(tmp_path / "translator")
    source = tmp_path / "source"
    source.write_text("a dog runs\n")
    options = ["-i", str(source), "--language-model", str(folder)]
    assert main(["translate", str(tmp_path / "translator"), *options]) == 1
    assert "it cannot be fused with a search" in " ".join(capsys.readouterr().err.split())


def test_a_model_without_text_needs_no_tokenizers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = load_model_folder(folder, torch.device("cpu"))
    assert isinstance(loaded.model, GraphModel)
    with pytest.raises(ModelError, match="processes no text"):
        loaded.tokenizers  # noqa: B018
    assert "\n# Node classifier\n" in (folder / "README.md").read_text()
    assert main(["describe", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "trained for 5 steps" in shown
    assert "vocabular" not in shown


def test_a_model_without_a_decoder_is_measured() -> None:
    found = describe_model(GraphConfig(), VocabularySizes(0, 0), 4)
    assert found.operations.per_source_token * 4 == 2 * 4 * 3  # (4, 1) times (1, 3), 2 per multiply-add
    assert found.operations.per_target_token == found.memory["cache"] == 0
    assert "peak of a forward pass" in numbers_text(found)


def test_text_models_without_tokenizers_are_refused(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "model")
    (tmp_path / "model" / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"is not a model folder: tokenizer.json missing"):
        load_model_folder(tmp_path / "model", torch.device("cpu"))


def test_languages_are_those_of_the_sides() -> None:
    assert TRANSLATION_MODEL.languages("en", "de") == "en → de"
    assert TRANSLATION_MODEL.languages(None, "de") == "source → de"
    assert LANGUAGE_MODEL.languages("en", None) is None
    assert LANGUAGE_MODEL.languages(None, "de") == "de"


def test_names_are_unique() -> None:
    assert register(TRANSLATION_MODEL) is TRANSLATION_MODEL
    with pytest.raises(ValueError, match="another kind of model is registered as 'decoder_only'"):
        register(ModelKind("decoder_only", GraphConfig, "graph", (), "labels", frozenset(), ""))
    with pytest.raises(ValueError, match="unknown abilities fly"):
        register(ModelKind("bird", GraphConfig, "bird", (), "flies", frozenset({"fly"}), ""))
    assert "bird" not in KINDS
    with pytest.raises(ValueError, match="already a task called 'language_model'"):
        register_task(TaskKind("language_model", TEXT_TASK.run, TEXT_TASK.open_job))


def test_an_unknown_kind_is_named(tmp_path: Path) -> None:
    write_model_folder(
        tmp_path / "bird", {"a": torch.zeros(1)}, "model: {kind: encoder_decoder}\n", tiny_tokenizers(), Meta(step=1)
    )
    (tmp_path / "bird" / "config.yaml").write_text("model: {kind: bird}\n")
    with pytest.raises(ModelError, match="unknown kind 'bird': expected one of encoder_decoder, decoder_only"):
        load_model_folder(tmp_path / "bird", torch.device("cpu"))
    with pytest.raises(ConfigError, match=r"task.kind: unknown kind 'fly'"):
        load_recipe({"task": {"kind": "fly"}}, ())
