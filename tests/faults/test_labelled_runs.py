"""A run with labelled examples that is killed and resumed ends like an uninterrupted run, bit for bit."""

from pathlib import Path

import numpy as np
from training_runs import RUN, Server, differences, outcome, wait_until_reached

SETTINGS = [
    "task.kind=tagging",
    "data.train=train.conll",
    "data.valid=valid.conll",
    "data.batch.tokens=200",
    "model.preset=tiny",
    "model.width=16",
    "model.encoder={kind: transformer, layers: 1, heads: 2, feedforward: 32}",
    "text.subword.size=300",
    "train.threads=1",
    "train.device=cpu",
    "train.precision=float32",
    "train.max_steps=60",
    "train.checkpoint_every=7",
    "train.validate_every=15",
    "train.log_every=5",
    "train.average.count=3",
    "train.schedule={kind: cosine, peak: 0.02}",
    f"out={RUN}",
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
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    write_sentences(whole)
    write_sentences(killed)
    process = server.start(whole, "train", *SETTINGS)
    assert process.wait() == 0, process.said
    process = server.start(killed, "train", *SETTINGS)
    wait_until_reached(process, 20)
    process.kill()
    process.wait()
    process = server.start(killed, "train", *SETTINGS, "--resume")
    assert process.wait() == 0, process.said
    assert "Resuming at step" in process.said and "labels/s" in process.said
    assert differences(outcome(whole), outcome(killed)) == []
    assert outcome(whole)["log"][-1]["valid_conlleval_f1"] > 90
    card = (whole / RUN / "README.md").read_text()
    assert card.startswith("# Prediction model")
