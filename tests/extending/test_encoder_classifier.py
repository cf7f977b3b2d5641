"""An encoder-only classifier with its own kind of model and task trains, resumes, is described and has a card."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from tiny_model import tiny_config, write_tiny_model
from torch import Tensor, nn
from training_runs import RUN, Server, differences, outcome, wait_until_reached

from dragoman import describe, train
from dragoman.checkpoint.tensors import load_tensors
from dragoman.data.batches.batch import Batch, collate
from dragoman.data.batches.plan import BatchConfig, BatchPlan, plan_epoch
from dragoman.metrics.score import Score
from dragoman.models.families.family import SideContext
from dragoman.models.families.union import EncoderConfig
from dragoman.models.interface import Trial
from dragoman.models.kinds.registry import ModelKind, register
from dragoman.models.settings import ModelSettings
from dragoman.nn.dropout import DropoutConfig
from dragoman.nn.embedding import Embedding, token_table
from dragoman.nn.positions.rotary import RotaryConfig
from dragoman.tasks import registry
from dragoman.text.tokenizers import VocabularySizes
from dragoman.training.objectives.objective import Loss
from dragoman.training.task import Content, Job, RunConfig, Task
from dragoman.training.validation import Validation

HEAD = {"head.weight", "head.bias"}
LINES = [" ".join(np.random.default_rng(row).choice(["a", "dog", "man", "sleeps"], 5)) for row in range(600)]


class ClassifierConfig(ModelSettings):
    kind: Literal["classifier"] = "classifier"
    encoder: EncoderConfig

    def build_for(self, sizes: VocabularySizes) -> "Classifier":
        return Classifier(self, sizes.source)


class Classifier(nn.Module):
    limits = ()

    def __init__(self, config: ClassifierConfig, size: int) -> None:
        super().__init__()
        positions, table = RotaryConfig(), token_table(size, 8)
        embedding = Embedding(table, positions.build_embedding(8), dropout=0.1)
        self.encoder = config.encoder.build(SideContext(embedding, 8, DropoutConfig(), positions))
        self.head = nn.Linear(8, 2)

    def trial(self, length: int) -> Trial:
        tokens = torch.ones(1, length, dtype=torch.int64, device=self.head.weight.device)
        return Trial((tokens, tokens > 0))

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        return self.head(self.encoder(tokens, mask).summary)  # type: ignore[no-any-return]


class ClassificationRun(RunConfig):
    task: Task = Task(kind="dog_counting")
    model: ClassifierConfig


class ClassificationJob(Job):
    batch_tokens = 512
    contents = {"data": Content("lines", "d"), "valid": Content("more lines", "v")}  # noqa: RUF012
    divisible = False

    def prepare(self) -> None:
        self.ids = self.tokenizers.source.encode_batch(LINES)

    @property
    def lengths(self) -> Any:
        return np.array([[len(ids)] for ids in self.ids[:500]], np.int32)

    def plan(self, epoch: int) -> BatchPlan:
        return plan_epoch(self.lengths, BatchConfig(tokens=512), self.run.train.seed, epoch)

    def batch(self, rows: Any) -> Batch:
        labels = [[LINES[row].count("dog") > 1] for row in rows]
        return collate([self.ids[row] for row in rows], labels, list(rows))

    def batches(self, plan: BatchPlan, start: int, epoch: int, pin: bool) -> Iterator[Batch]:
        return (self.batch(plan.batches[place]) for place in range(start, len(plan)))

    def objective(self, device: torch.device) -> Any:
        return self

    def __call__(self, model: nn.Module, batch: Batch, *_: Any) -> Loss:
        total = nn.functional.cross_entropy(model(batch.source, batch.source_mask), batch.labels[:, 0], reduction="sum")
        return Loss(total, total.detach(), batch.target_tokens)

    def validator(self, model: nn.Module, device: torch.device) -> Any:
        def judge(*_: Any) -> Validation:
            held_out = self.batch(range(500, 600))
            right = model(held_out.source, held_out.source_mask).argmax(1) == held_out.labels[:, 0]
            return Validation((Score("accuracy", float(right.float().mean()), key="accuracy", better="higher"),), 0.0)

        return SimpleNamespace(run=judge)


register(ModelKind("classifier", ClassifierConfig, "classifier", ("source",), "labels", frozenset({"predict"}), "it"))
registry.register(registry.TaskKind("dog_counting", ClassificationRun, ClassificationJob))


def recipe(start: str) -> dict[str, Any]:
    encoder = tiny_config().encoder.model_dump(mode="json")
    rhythm = {"max_steps": 120, "validate_every": 40, "checkpoint_every": 20, "log_every": 10, "metric": "accuracy"}
    machine = {"device": "cpu", "precision": "float32", "threads": 1, "schedule": {"kind": "cosine", "peak": 0.02}}
    sections = {"model": {"encoder": encoder}, "train": {**rhythm, **machine, "start": start}}
    return {"task": {"kind": "dog_counting"}, **sections, "out": RUN}


@pytest.mark.slow
def test_learns_resumes_bit_for_bit_is_described_and_has_a_card(server: Server, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir(), killed.mkdir()
    write_tiny_model(tmp_path / "start")
    command = (__file__, str(tmp_path / "start"))
    assert [process.wait() for process in server.start_ranks(1, whole, *command)] == [0]
    (process,) = server.start_ranks(1, killed, *command)
    wait_until_reached(process, 50)
    process.kill()
    process.wait()
    (resumed,) = server.start_ranks(1, killed, *command, "--resume")
    assert resumed.wait() == 0
    assert "Resuming at step" in resumed.said
    assert differences(outcome(whole), outcome(killed)) == []
    assert outcome(whole)["log"][-1]["valid_accuracy"] > 0.8
    assert describe(whole / RUN, depth=1).whole.parts == describe(recipe(command[1]), depth=1).whole.parts
    card = (whole / RUN / "README.md").read_text()
    assert "\n# Classifier" in card and "| accuracy |" in card


def test_starts_from_a_translators_encoder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = write_tiny_model(tmp_path / "start").state_dict()
    settings = {"train.max_steps": 1, "train.schedule.peak": 1e-30, "out": str(tmp_path / RUN)}
    train(recipe(str(tmp_path / "start")), settings)
    ours = load_tensors(tmp_path / RUN / "model.safetensors")[0]
    assert {name for name in ours if name not in start or not torch.equal(ours[name], start[name])} == HEAD
    assert "copied encoder.embedding, encoder. New: head" in " ".join(capsys.readouterr().err.split())


if __name__ == "__main__":
    train(recipe(sys.argv[1]), resume="--resume" in sys.argv)
