"""A task defined outside the package, the sum of digits learned by a bag of embeddings, is trained like any other.

Run as a program, `test_toy_task.py THREADS [--resume]`, it trains in the working folder.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from training_runs import RUN, Server, differences, outcome, wait_until_reached

from dragoman.checkpoint.tensors import save_tensors
from dragoman.data.batches.plan import BatchConfig, BatchPlan, plan_epoch
from dragoman.metrics.score import Score
from dragoman.nn.dropout import Dropout
from dragoman.training.config import LoopConfig
from dragoman.training.objectives.objective import FIRST, Loss, TrainingPoint
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.run.loop import run
from dragoman.training.task import Content, Job, RunConfig, Task
from dragoman.training.validation import Validation

DIGITS = [[int(digit) for digit in str(number)] for number in range(1000)]
MODULUS = 5


@dataclass(frozen=True)
class Numbers:
    """Digits (B, 3), with 10 as padding, and their sums (B,)."""

    digits: Tensor
    sums: Tensor
    rows: tuple[int, ...]
    task = ""

    @property
    def target_tokens(self) -> int:
        return len(self.rows)

    def to(self, device: torch.device) -> "Numbers":
        return replace(self, digits=self.digits.to(device), sums=self.sums.to(device))

    def split(self, count: int) -> list["Numbers"]:
        places = [place for place in np.array_split(np.arange(len(self.rows)), count) if len(place)]
        return [Numbers(self.digits[at], self.sums[at], tuple(self.rows[row] for row in at)) for at in places]


def numbers(rows: Any) -> Numbers:
    digits = torch.tensor([DIGITS[row] + [10] * (3 - len(DIGITS[row])) for row in rows])
    return Numbers(digits, torch.tensor([sum(DIGITS[row]) % MODULUS for row in rows]), tuple(map(int, rows)))


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.hidden = nn.Embedding(11, 32, padding_idx=10), nn.Linear(32, 32)
        self.out, self.dropout = nn.Linear(32, MODULUS), Dropout(0.1)

    def forward(self, digits: Tensor) -> Tensor:
        return self.out(torch.tanh(self.hidden(self.dropout(self.table(digits).sum(1)))))  # type: ignore[no-any-return]


class CrossEntropy:
    divisible = True

    def __call__(self, model: nn.Module, batch: Numbers, point: TrainingPoint = FIRST) -> Loss:
        total = nn.functional.cross_entropy(model(batch.digits), batch.sums, reduction="sum")
        return Loss(total, float(total.detach()), batch.target_tokens)


class SumJob(Job):
    lengths = np.array([[len(digits)] * 2 for digits in DIGITS[:800]], np.int32)
    batch_tokens = 2048
    contents = {"data": Content("numbers", "d"), "valid": Content("more numbers", "v")}  # noqa: RUF012

    def prepare(self) -> None:
        pass

    def build(self) -> Bag:
        return Bag()

    def plan(self, epoch: int) -> BatchPlan:
        return plan_epoch(self.lengths, BatchConfig(tokens=512), self.run.train.seed, epoch)

    def batches(self, plan: BatchPlan, start: int, epoch: int, pin: bool) -> Iterator[Numbers]:
        return map(numbers, (plan.batches[place] for place in range(start, len(plan))))

    def objective(self, device: torch.device) -> CrossEntropy:
        return CrossEntropy()

    def validator(self, model: nn.Module, device: torch.device) -> "Accuracy":
        return Accuracy(model)

    def write(self, folder: Path, parameters: Mapping[str, Tensor], step: int, *_: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        save_tensors(folder / "model.safetensors", parameters, {"step": str(step)})


class Accuracy:
    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def run(self, runtime: Runtime) -> Validation:
        held_out = numbers(range(800, 1000))
        right = (self.model(held_out.digits).argmax(1) == held_out.sums).float().mean()
        return Validation((Score("accuracy", float(right), key="accuracy", better="higher"),), 0.0)


class SumTask(Task):
    kind: Literal["sum"] = "sum"


class SumRun(RunConfig):
    task: SumTask = SumTask()


def settings(threads: int) -> SumRun:
    rhythm = {"max_steps": 200, "validate_every": 50, "checkpoint_every": 20, "log_every": 10, "metric": "accuracy"}
    machine = {"device": "cpu", "precision": "float32", "threads": threads}
    schedule = {"kind": "cosine", "peak": 0.02}
    return SumRun(train=LoopConfig.model_validate({**rhythm, **machine, "schedule": schedule}), out=Path(RUN))


@pytest.mark.parametrize(
    ("threads", "ranks"),
    [(1, 1), pytest.param(2, 1, marks=pytest.mark.slow), pytest.param(1, 2, marks=pytest.mark.slow)],
    ids=["alone", "threads", "ranks"],
)
def test_trains_and_resumes_bit_for_bit_after_a_kill(server: Server, tmp_path: Path, threads: int, ranks: int) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    command = (__file__, str(threads))
    for folder in (whole, killed):
        folder.mkdir()
    assert [process.wait() for process in server.start_ranks(ranks, whole, *command)] == [0] * ranks
    processes = server.start_ranks(ranks, killed, *command)
    wait_until_reached(processes[0], 90)
    for process in processes:
        process.kill()
        process.wait()
    resumed = server.start_ranks(ranks, killed, *command, "--resume")
    assert [process.wait() for process in resumed] == [0] * ranks
    assert "Resuming at step" in resumed[0].said
    expected = outcome(whole)
    assert differences(expected, outcome(killed)) == []
    accuracies = [line["valid_accuracy"] for line in expected["log"] if "valid_accuracy" in line]
    assert len(accuracies) == 4
    assert accuracies[-1] > 0.9 > accuracies[0]


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(settings(int(sys.argv[1])), SumJob, resume="--resume" in sys.argv)
