"""Small models of every block learn to copy, to reverse or to sort, in complete training runs."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from toy_runs import train_toy

from dragoman.inference.translation.translator import Translator

LETTERS = "abcdefgh"
TASKS: dict[str, Callable[[str], str]] = {
    "copy": lambda word: word,
    "reverse": lambda word: word[::-1],
    "sort": lambda word: "".join(sorted(word)),
}

TRANSFORMER = {"kind": "transformer", "layers": 1, "heads": 4, "feedforward": 128}
CONVOLUTIONAL = {"kind": "convolutional", "layers": 2}
BYTENET = {"kind": "bytenet", "layers": 4, "dilations": [1, 2, 4, 8]}
EXPERTS = {**TRANSFORMER, "feedforward": 64, "experts": {"count": 4}}

MODELS: dict[str, tuple[str, dict[str, Any], dict[str, Any], int]] = {
    "post-norm": ("copy", *2 * ({**TRANSFORMER, "norm": "post"},), 160),
    "pre-norm": ("reverse", *2 * ({**TRANSFORMER, "norm": "pre"},), 230),
    "post-norm that reverses": ("reverse", *2 * ({**TRANSFORMER, "norm": "post"},), 230),
    "pre-norm that sorts": ("sort", *2 * ({**TRANSFORMER, "norm": "pre"},), 170),
    "convolutional": ("reverse", CONVOLUTIONAL, CONVOLUTIONAL, 100),
    "bytenet": ("copy", BYTENET, BYTENET, 100),
    "bytenet that attends": ("reverse", BYTENET, {**BYTENET, "stacked": False, "cross_attention": {}}, 110),
    "experts": ("reverse", EXPERTS, EXPERTS, 230),
    "rms and swiglu": (
        "reverse",
        *2 * ({**TRANSFORMER, "normalisation": {"kind": "rms"}, "activation": "swiglu"},),
        180,
    ),
    "batch norm": ("copy", *2 * ({**TRANSFORMER, "normalisation": {"kind": "batch"}, "norm": "pre"},), 170),
    "mean": ("sort", {"kind": "mean"}, TRANSFORMER, 220),
    "sum": ("sort", {"kind": "sum"}, TRANSFORMER, 200),
}
"""Task, encoder, decoder, updates."""


def words(count: int, seed: int, without: set[str]) -> list[str]:
    """Distinct words of two to four letters that are not among `without`."""
    draw = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        word = "".join(draw.choices(LETTERS, k=draw.randint(2, 4)))
        if word not in without:
            found[word] = None
    return list(found)


def write_part(folder: Path, part: str, chosen: list[str], task: Callable[[str], str]) -> dict[str, str]:
    sides = {"source": chosen, "target": [task(word) for word in chosen]}
    for side, lines in sides.items():
        (folder / f"{part}.{side}").write_text("".join(" ".join(line) + "\n" for line in lines), encoding="utf-8")
    return {side: str(folder / f"{part}.{side}") for side in sides}


@pytest.mark.slow  # test_every_variant_learns has smaller tasks for all of them
@pytest.mark.parametrize("name", MODELS)
def test_learns(tmp_path: Path, name: str) -> None:
    task, encoder, decoder, steps = MODELS[name]
    train = words(3000, 1, set())
    held_out = words(200, 2, set(train))
    folder = train_toy(
        tmp_path / "run",
        {
            "train": write_part(tmp_path, "train", train, TASKS[task]),
            "valid": write_part(tmp_path, "valid", held_out, TASKS[task]),
            "cleaning": {"copied_words": None},
            "batch": {"tokens": 700},
        },
        {"subword": {"size": 276}},
        {"encoder": encoder, "decoder": decoder},
        steps,
        schedule={"kind": "linear", "peak": 6e-3, "warmup": 30},
    )
    found = Translator.load(folder).translate([" ".join(word) for word in held_out], beam=1)
    right = sum(out == " ".join(TASKS[task](word)) for out, word in zip(found, held_out, strict=True))
    assert right >= 0.95 * len(held_out), f"{right} of {len(held_out)} words right; {found[:3]}"
