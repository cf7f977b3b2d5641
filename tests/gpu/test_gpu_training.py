"""Runs on a GPU: deterministic, resumed bit for bit, with attention kernels that need no plan per shape."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from dragoman.base.machine.device import choose_device
from dragoman.tasks.train import train

LINES = 400


def settings(folder: Path, out: str, steps: int) -> dict[str, Any]:
    chance = random.Random(1)
    words = [f"w{number}" for number in range(40)]
    lines = [" ".join(chance.choices(words, k=chance.randint(1, 12))) for _ in range(LINES)]
    for name, some in (("train", lines), ("valid", lines[:40])):
        (folder / f"{name}.src").write_text("\n".join(some) + "\n")
        (folder / f"{name}.tgt").write_text("\n".join(" ".join(reversed(line.split())) for line in some) + "\n")
    sides = {"layers": 1, "heads": 2, "feedforward": 64}
    return {
        "data": {
            name: {"source": str(folder / f"{name}.src"), "target": str(folder / f"{name}.tgt")}
            for name in ("train", "valid")
        }
        | {"batch": {"tokens": 512}},
        "text": {"subword": {"kind": "word", "min_frequency": 1}},
        "model": {"preset": None, "width": 64, "encoder": sides, "decoder": sides, "dropout": 0.1},
        "train": {
            "device": "cuda",
            "max_steps": steps,
            "validate_every": 6,
            "checkpoint_every": 6,
            "average": {"count": 0},
            "dropout_epochs": 0,
            "schedule": {"kind": "constant", "peak": 1e-3, "warmup": 2},
        },
        "out": str(folder / out),
    }


def test_a_resumed_run_ends_with_the_same_parameters(tmp_path: Path) -> None:
    whole = train(settings(tmp_path, "whole", 12)).folder
    again = train(settings(tmp_path, "again", 12)).folder
    train(settings(tmp_path, "cut", 6))
    cut = train(settings(tmp_path, "cut", 12), resume=True).folder
    expected = (whole / "training" / "step-00000012" / "model.safetensors").read_bytes()
    assert (again / "training" / "step-00000012" / "model.safetensors").read_bytes() == expected
    assert (cut / "training" / "step-00000012" / "model.safetensors").read_bytes() == expected


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_updates_repeated_as_graphs_end_with_the_parameters_of_other_updates(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of a Transformer have packed batches."""
    folders = {}
    for name, graphs in (("graphs", True), ("without", False)):
        chosen = settings(tmp_path, name, 24)
        if kind == "recurrent":
            chosen["model"] = {"preset": "rnn", "width": 64, "dropout": 0.1}
        chosen["train"] |= {"cuda_graphs": graphs, "precision": "float32"}
        folders[name] = train(chosen).folder
    assert "without CUDA graphs" not in capsys.readouterr().err
    states = [load_file(folder / "training" / "step-00000024" / "model.safetensors") for folder in folders.values()]
    for name, tensor in states[0].items():
        torch.testing.assert_close(tensor, states[1][name], rtol=1e-3, atol=1e-4)


def test_attention_does_not_plan_for_every_shape() -> None:
    """With the kernels that remain enabled, a new shape is not much slower than a known one."""
    device = choose_device("cuda")
    seconds = []
    for length in (33, 34, 35, 36, 36, 36):
        states = torch.randn(50, 8, length, 64, device=device, dtype=torch.bfloat16, requires_grad=True)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        torch.nn.functional.scaled_dot_product_attention(states, states, states, is_causal=True).sum().backward()
        end.record()
        end.synchronize()
        seconds.append(begin.elapsed_time(end) / 1e3)
    assert max(seconds[1:4]) < 0.05
