"""dragoman: `dragoman train` itself, with the gate around its updates; or a reference within the same run."""

from collections.abc import Sequence
from typing import Any

from gate import Gate
from sizes import CLIP, LEARNING_RATE, PIECES, SIZES, SMOOTHING, WARMUP
from worker import Task

NEVER = 10**6


def settings(task: Task) -> dict[str, Any]:
    """Return settings of a run without limit and without cleaning, so that all programs have the same tokens."""
    corpus = task.corpus
    return {
        "data": {
            "train": {"source": corpus["source"], "target": corpus["target"]},
            "valid": {side: str(task.folder / f"valid.{side}.txt.gz") for side in ("source", "target")},
            "cleaning": {"enabled": False},
            "batch": {"tokens": task.tokens, "packed": task.options.get("packed", "auto")},
        },
        "text": {"subword": {"kind": "bpe", "size": PIECES}, "shared": True},
        "model": SIZES[task.model].settings(),
        "train": {
            "max_steps": NEVER,
            "validate_every": NEVER,
            "checkpoint_every": NEVER,
            "patience": None,
            "optimiser": {"kind": "adam"},
            "ema": None,
            "dropout_epochs": 0,
            "clip": CLIP,
            "objective": {"label_smoothing": SMOOTHING},
            "schedule": {"kind": "inverse_sqrt", "peak": LEARNING_RATE, "warmup": WARMUP},
            "precision": "bfloat16" if task.bf16 else "float32",
            "threads": task.threads,
            "cuda_graphs": task.options.get("cuda_graphs", True),
            "compile": task.options.get("compile", False),
            "device": task.device,
            "seed": task.seed,
        },
        "out": str(task.folder / "dragoman" / task.own.name),  # next to the prepared corpus
    }


def train(task: Task, gate: Gate) -> None:
    """Run `dragoman train`. Fails if its tokens differ from those of the corpus file."""
    from dragoman.data.batches.batch import Batch
    from dragoman.tasks.train import train as train_run
    from dragoman.tasks.translation.config import TranslationRun
    from dragoman.training.objectives.objective import TrainingPoint
    from dragoman.training.updates.engine import Engine
    from dragoman.training.updates.update import LaunchedUpdate, Update

    launch_of_ours = Engine.launch
    targets = task.ids("target")
    reference: list[Any] = []
    first = True

    def launch(self: Engine, update: Update, point: TrainingPoint, rate: float, *rest: Any) -> Any:
        nonlocal first
        if first:
            first = False
            check(update.batches[0], targets, gate)
            gate.facts["parameters"] = sum(parameter.numel() for parameter in self.model.parameters())
            self.seed = task.options.get("draws", self.seed)  # only of dropout: model and batches exist already
            if task.options.get("reference"):
                from programs.reference import Reference

                reference.append(Reference(self.model, task))
        gate.next()
        if reference:
            result = reference[0].step(update, point, rate)
            launched = LaunchedUpdate(result.target_tokens, lambda: result)
        else:
            launched = launch_of_ours(self, update, point, rate, *rest)
        batches: Sequence[Batch] = update.batches
        padded = max(batch.labels.numel() for batch in batches)
        gate.count(launched.target_tokens, padded, lambda: launched.result().loss)
        return launched

    Engine.launch = launch  # type: ignore[method-assign]
    train_run(TranslationRun.model_validate(settings(task)))


def check(batch: Any, targets: list[list[int]], gate: Gate) -> None:
    """Exit if a batch does not contain the corpus's tokens."""
    rows = zip(batch.labels[: len(batch.rows)], batch.target_mask, strict=False)
    read = sorted(tuple(row[keep].tolist()[:-1]) for row, keep in rows)
    wanted = {tuple(ids) for ids in targets}
    if not all(row in wanted for row in read):
        gate.fail("its batches contain other tokens than the corpus")
