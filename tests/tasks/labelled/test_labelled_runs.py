"""A run with labelled examples that is killed and resumed ends like an uninterrupted run, bit for bit."""

from pathlib import Path

import numpy as np
from training_runs import QUICK_RUN, RUN, Server, check_resumed_run, outcome

SETTINGS = [
    "task.kind=tagging",
    "data.train=train.conll",
    "data.valid=valid.conll",
    "data.batch.tokens=200",
    "train.max_steps=60",
    *QUICK_RUN,
]
TAGS = {"Anna": "B-PER", "Bob": "B-PER", "Smith": "I-PER", "Rome": "B-LOC"}


def write_sentences(folder: Path) -> None:
    folder.mkdir()
    draw = np.random.default_rng(1)
    for name, count in (("train", 150), ("valid", 20)):
        sentences = [draw.choice(["Anna Smith", "Bob", "Rome", "sees", "loves", "the", "dog"], 5) for _ in range(count)]
        words = [" ".join(sentence).split() for sentence in sentences]
        lines = ["\n".join(f"{word} {TAGS.get(word, 'O')}" for word in sentence) for sentence in words]
        (folder / f"{name}.conll").write_text("\n\n".join(lines) + "\n")


def test_a_killed_and_resumed_tagger_ends_bit_identical(server: Server, tmp_path: Path) -> None:
    whole, said = check_resumed_run(server, tmp_path, write_sentences, SETTINGS)
    assert "labels/s" in said
    assert outcome(whole)["log"][-1]["valid_conlleval_f1"] > 90
    card = (whole / RUN / "README.md").read_text()
    assert "\n# Prediction model" in card
