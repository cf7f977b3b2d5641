"""A plain loop around torch.nn.Transformer's layers, with the batches and rates of benchmarks/training."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from programs.plain import PlainTransformer, batches, stack
from recorder import Recorder
from sizes import CLIP, SMOOTHING, rate
from torch import Tensor, nn
from torch.nn import functional
from worker import Task

_SENTENCES = 64
"""Batch size of translation."""


def train(task: Task, recorder: Recorder) -> dict[str, Any]:
    """Train until the limit, from the checkpoint if there is one. Returns facts for the results."""
    torch.manual_seed(task.seed)
    corpus, checkpoint = task.corpus, task.own / "checkpoint.pt"
    model = PlainTransformer(task.sizes, corpus["size"], corpus["pad"], task.options["dropout"])
    optimiser = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
    updates = 0
    if checkpoint.exists():
        state = torch.load(checkpoint)
        updates = state["updates"]
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])

    def save() -> None:
        state = {"updates": recorder.updates, "model": model.state_dict(), "optimiser": optimiser.state_dict()}
        write(state, checkpoint)

    def translate() -> list[str]:
        with torch.autocast("cpu", torch.bfloat16, enabled=task.bf16):
            return list(translations(model.eval(), task))

    recorder.begin(updates, translate)
    read = islice(batches(task), updates, None)
    recorder.start()
    while not recorder.over:
        source, inputs, labels = next(read)
        model.train()
        torch.manual_seed(1_000_003 * task.seed + recorder.updates)  # so that a resumed run draws the same dropout
        for group in optimiser.param_groups:
            group["lr"] = rate(recorder.updates + 1)
        with torch.autocast("cpu", torch.bfloat16, enabled=task.bf16):
            logits = model(source, inputs)
            loss = functional.cross_entropy(
                logits.flatten(0, 1), labels.flatten(), ignore_index=corpus["pad"], label_smoothing=SMOOTHING
            )
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        recorder.step(int((labels != corpus["pad"]).sum()))
        if recorder.due:
            recorder.point(save, translate)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return {"parameters": parameters, "precision": "bfloat16" if task.bf16 else "float32"}


def write(state: dict[str, Any], path: Path) -> None:
    """Write the checkpoint atomically."""
    torch.save(state, path.with_suffix(".part"))
    os.replace(path.with_suffix(".part"), path)


def translations(model: PlainTransformer, task: Task) -> Iterator[str]:
    """Return the translations of the validation set, as lines of ids, in order."""
    rows = [[int(word) for word in line.split()] for line in (task.folder / "valid.source").open()]
    order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
    found: dict[int, str] = {}
    for start in range(0, len(order), _SENTENCES):
        batch = order[start : start + _SENTENCES]
        source = stack([[*rows[row], task.corpus["eos"]] for row in batch], task.corpus["pad"])
        ids = greedy(model, source, task.corpus)
        found |= {row: " ".join(map(str, each)) for row, each in zip(batch, ids, strict=True)}
    return iter(found[row] for row in range(len(rows)))


@torch.no_grad()
def greedy(model: PlainTransformer, source: Tensor, corpus: dict[str, Any]) -> list[list[int]]:
    """Decode source (B, S) greedily, up to the end of the sentence or 1.5 S + 10 units."""
    memory, padding = model.encode(source), source == corpus["pad"]
    written = torch.full((len(source), 1), corpus["bos"])
    ended = torch.zeros(len(source), dtype=torch.bool)
    for _ in range(int(1.5 * source.size(1)) + 10):
        best = model.project(model.decode(written, memory, padding)[:, -1]).argmax(-1)
        ended |= best == corpus["eos"]
        if bool(ended.all()):
            break
        written = torch.cat([written, best[:, None]], 1)
    return [cut(row, corpus["eos"]) for row in written[:, 1:].tolist()]


def cut(ids: list[int], end: int) -> list[int]:
    """Return the ids before the first `end`."""
    return ids[: ids.index(end)] if end in ids else ids
