"""Small Transformers learn to copy, to reverse and to sort, through the whole of a training run."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from dragoman.train.config import RunConfig
from dragoman.train.loop import run
from dragoman.translator import Translator

LETTERS = "abcdefgh"
TASKS: dict[str, Callable[[str], str]] = {
    "copy": lambda word: word,
    "reverse": lambda word: word[::-1],
    "sort": lambda word: "".join(sorted(word)),
}


def words(count: int, seed: int, without: set[str]) -> list[str]:
    """Distinct words of three to six letters that are not among `without`."""
    draw = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        word = "".join(draw.choices(LETTERS, k=draw.randint(3, 6)))
        if word not in without:
            found[word] = None
    return list(found)


def write_part(folder: Path, part: str, chosen: list[str], task: Callable[[str], str]) -> dict[str, str]:
    sides = {"source": chosen, "target": [task(word) for word in chosen]}
    for side, lines in sides.items():
        (folder / f"{part}.{side}").write_text("".join(" ".join(line) + "\n" for line in lines), encoding="utf-8")
    return {side: str(folder / f"{part}.{side}") for side in sides}


@pytest.mark.parametrize(("task", "norm"), [("copy", "post"), ("reverse", "pre"), ("reverse", "post"), ("sort", "pre")])
def test_learns(tmp_path: Path, task: str, norm: str) -> None:
    threads = torch.get_num_threads()
    train = words(3000, 1, set())
    held_out = words(200, 2, set(train))
    stack = {"layers": 1, "heads": 4, "feedforward": 128, "norm": norm}
    config = RunConfig.model_validate(
        {
            "data": {
                "train": write_part(tmp_path, "train", train, TASKS[task]),
                "valid": write_part(tmp_path, "valid", held_out, TASKS[task]),
                "cleaning": {"copied_words": None},
                "batch": {"tokens": 700},
            },
            "text": {"subword": {"size": 276}},
            "model": {"preset": None, "width": 64, "encoder": stack, "decoder": stack, "dropout": 0.0},
            "train": {
                "max_steps": 450,
                "validate_every": 450,
                "checkpoint_every": 450,
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
    assert right >= 0.95 * len(held_out), f"{right} of {len(held_out)} words right; {found[:3]}"
