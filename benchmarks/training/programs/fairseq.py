"""fairseq's own training program and batches, with the gate around its updates."""

import sys
from math import log
from typing import Any

from gate import Gate
from sizes import CLIP, DROPOUT, LEARNING_RATE, SMOOTHING, WARMUP
from worker import Task

NEVER = 10**9


def binarise(task: Task) -> str:
    """Run `fairseq-preprocess`; returns the folder."""
    from fairseq_cli import preprocess

    vocabulary = task.own / "vocabulary.txt"
    vocabulary.write_text("".join(f"{word} 1\n" for word in range(4, task.corpus["size"])))
    folder = str(task.own / "binary")
    sys.argv = [
        "fairseq-preprocess", "--source-lang", "source", "--target-lang", "target",
        "--trainpref", str(task.folder / "train"), "--validpref", str(task.folder / "valid"), "--destdir", folder,
        "--srcdict", str(vocabulary), "--joined-dictionary", "--workers", "1",
    ]  # fmt: skip
    preprocess.cli_main()
    return folder


def train(task: Task, gate: Gate) -> None:
    """Run `fairseq-train`."""
    from fairseq.trainer import Trainer
    from fairseq_cli import train as program

    original_step = Trainer.train_step

    def step(self: Any, samples: Any, raise_oom: bool = False) -> Any:
        gate.facts["parameters"] = sum(parameter.numel() for parameter in self.model.parameters())
        gate.next()
        logged = original_step(self, samples, raise_oom)
        tokens = sum(int(sample["ntokens"]) for sample in samples)
        padded = max(sample["target"].numel() for sample in samples)
        gate.count(tokens, padded, float(logged["loss"]) * log(2))  # it reports bits
        return logged

    Trainer.train_step = step
    sizes = task.sizes
    stack = [
        option
        for side in ("encoder", "decoder")
        for option in (
            f"--{side}-embed-dim", str(sizes.width), f"--{side}-ffn-embed-dim", str(sizes.feedforward),
            f"--{side}-layers", str(sizes.layers), f"--{side}-attention-heads", str(sizes.heads),
        )
    ]  # fmt: skip
    sys.argv = [
        "fairseq-train", binarise(task), "--arch", "transformer", *stack, "--share-all-embeddings",
        "--dropout", str(DROPOUT), "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--clip-norm", str(CLIP),
        "--lr", str(LEARNING_RATE), "--lr-scheduler", "inverse_sqrt", "--warmup-updates", str(WARMUP),
        "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", str(SMOOTHING),
        "--max-tokens", str(task.tokens), "--max-update", str(NEVER), "--seed", str(task.seed),
        "--no-save", "--disable-validation", "--log-format", "simple", "--log-interval", "1", "--num-workers", "0",
        *(["--cpu"] if task.device == "cpu" else []), *(["--bf16"] if task.bf16 else []),
    ]  # fmt: skip
    program.cli_main()
