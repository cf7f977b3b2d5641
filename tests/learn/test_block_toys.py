"""Small models of every block and of the convolutional and simple families learn a toy, through a whole run."""

from pathlib import Path
from typing import Any

import pytest
import torch
from test_toys import TASKS, words, write_part

from dragoman.train.config import RunConfig
from dragoman.train.loop import run
from dragoman.translator import Translator

TRANSFORMER = {"kind": "transformer", "layers": 1, "heads": 4, "feedforward": 128}
CONVOLUTIONAL = {"kind": "convolutional", "layers": 2}
BYTENET = {"kind": "bytenet", "layers": 4, "dilations": [1, 2, 4, 8]}
EXPERTS = {**TRANSFORMER, "feedforward": 64, "experts": {"count": 4}}

MODELS: dict[str, tuple[str, dict[str, Any], dict[str, Any], int]] = {
    "convolutional": ("reverse", CONVOLUTIONAL, CONVOLUTIONAL, 250),
    "bytenet": ("copy", BYTENET, BYTENET, 250),
    "bytenet that attends": ("reverse", BYTENET, {**BYTENET, "stacked": False, "cross_attention": {}}, 250),
    "experts": ("reverse", EXPERTS, EXPERTS, 450),
    "rms and swiglu": (
        "reverse",
        *2 * ({**TRANSFORMER, "normalisation": {"kind": "rms"}, "activation": "swiglu"},),
        350,
    ),
    "batch norm": ("copy", *2 * ({**TRANSFORMER, "normalisation": {"kind": "batch"}, "norm": "pre"},), 450),
    "mean": ("sort", {"kind": "mean"}, TRANSFORMER, 350),
    "sum": ("sort", {"kind": "sum"}, TRANSFORMER, 300),
}


@pytest.mark.parametrize("name", MODELS)
def test_learns(tmp_path: Path, name: str) -> None:
    task, encoder, decoder, steps = MODELS[name]
    threads = torch.get_num_threads()
    train = words(3000, 1, set())
    held_out = words(200, 2, set(train))
    config = RunConfig.model_validate(
        {
            "data": {
                "train": write_part(tmp_path, "train", train, TASKS[task]),
                "valid": write_part(tmp_path, "valid", held_out, TASKS[task]),
                "cleaning": {"copied_words": None},
                "batch": {"tokens": 700},
            },
            "text": {"subword": {"size": 276}},
            "model": {"preset": None, "width": 64, "encoder": encoder, "decoder": decoder, "dropout": 0.0},
            "train": {
                "max_steps": steps,
                "validate_every": steps,
                "checkpoint_every": steps,
                "average": {"count": 0},
                "precision": "float32",
                "device": "cpu",
                "threads": 1,
                "schedule": {"kind": "linear", "peak": 4e-3, "warmup": 60},
            },
            "out": str(tmp_path / "run"),
        }
    )
    try:
        result = run(config)
        found = Translator.load(result.folder).translate([" ".join(word) for word in held_out], beam=1)
    finally:
        torch.set_num_threads(threads)
    right = sum(out == " ".join(TASKS[task](word)) for out, word in zip(found, held_out, strict=True))
    print("RIGHT", name, right)
    assert right >= 0.95 * len(held_out), f"{right} of {len(held_out)} words right; {found[:3]}"
