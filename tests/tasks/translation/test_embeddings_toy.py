"""The purpose of word vectors: words without training examples are translated like their neighbours."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman.cli.main import main
from dragoman.inference.translation.translator import Translator

CLASSES = ["Tier", "Farbe", "Ort", "Zahl"]
SETTINGS = [
    "text.subword.kind=word",
    "text.subword.min_frequency=1",
    "text.shared=false",
    "model.tie_embeddings=false",
    "model.preset=null",
    "model.width=16",
    "model.dropout=0",
    *(f"model.{side}.{name}" for side in ("encoder", "decoder") for name in ("layers=1", "heads=2", "feedforward=32")),
    "data.batch.tokens=400",
    "data.cleaning.enabled=false",
    "train.average.count=0",
    "train.precision=float32",
    "train.device=cpu",
    "train.threads=1",
    "train.max_steps=100",
    "train.validate_every=100",
    "train.checkpoint_every=100",
    "train.schedule.kind=inverse_sqrt",
    "train.schedule.warmup=40",
    "train.schedule.peak=0.01",
]


def write(folder: Path) -> dict[str, str]:
    """Write a task: "name X" gives X's class, "say X" gives "ja". A fifth of the words occurs only in the second form.

    Returns the classes of these words. A word's vector is its class's plus noise of the same length.
    """
    draw, noise = random.Random(1), np.random.default_rng(1)
    words = ["".join(draw.choices("bdfgklmnprst", k=6)) for _ in range(200)]
    centres = noise.normal(size=(4, 16))
    classes = {word: place % 4 for place, word in enumerate(words)}
    vectors = {word: centres[kind] + noise.normal(size=16) for word, kind in classes.items()}
    (folder / "words.vec").write_text(
        "".join(f"{word} {' '.join(f'{value:.4f}' for value in vector)}\n" for word, vector in vectors.items())
    )
    never, named = words[:40], words[40:]
    pairs = [(f"say {word}", "ja") for word in words] + [(f"name {word}", CLASSES[classes[word]]) for word in named]
    draw.shuffle(pairs)
    for part, chosen in (("train", pairs), ("valid", pairs[:20])):
        (folder / f"{part}.a").write_text("".join(f"{source}\n" for source, _ in chosen))
        (folder / f"{part}.b").write_text("".join(f"{target}\n" for _, target in chosen))
    return {word: CLASSES[classes[word]] for word in never}


@pytest.mark.slow
def test_words_without_examples_are_translated_as_their_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    never = write(tmp_path)
    files = ["--source", "train.a", "--target", "train.b", "--valid-source", "valid.a", "--valid-target", "valid.b"]
    right = {}
    try:
        for name, vectors in (
            ("random", []),
            ("frozen", ["model.embeddings.source=words.vec", "model.embeddings.frozen=true"]),
            ("learning", ["model.embeddings.source=words.vec"]),
        ):
            assert main(["train", *SETTINGS, *files, "--out", name, *vectors]) == 0
            found = Translator.load(name, "cpu").translate([f"name {word}" for word in never], beam=1)
            right[name] = sum(map(str.__eq__, found, never.values())) / len(never)
    finally:
        torch.set_num_threads(threads)
    assert right["random"] < 0.5  # chance level: a quarter
    assert right["frozen"] > 0.8
    assert right["random"] + 0.2 < right["learning"], (
        right
    )  # training moves the words that it sees away from the others
