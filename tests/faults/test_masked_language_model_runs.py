"""A run with masked tokens that is killed and resumed ends like an uninterrupted run, bit for bit."""

from pathlib import Path

import numpy as np
import pytest
from training_runs import RUN, Server, differences, outcome, wait_until_reached

SETTINGS = [
    "task.kind=masked_language_model",
    "data.train.text=train.txt",
    "data.valid.text=valid.txt",
    "data.batch.tokens=256",
    "data.block=32",
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


def write_texts(folder: Path) -> None:
    folder.mkdir()
    draw = np.random.default_rng(1)
    for name, count in (("train", 120), ("valid", 20)):
        lines = [" ".join(draw.choice(["Anna", "Bob", "sees", "the", "dog"], 8)) for _ in range(count)]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("pack", ["data.pack=true", pytest.param("train.replaced_tokens=50", marks=pytest.mark.slow)])
def test_a_killed_and_resumed_run_ends_bit_identical(server: Server, tmp_path: Path, pack: str) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    write_texts(whole)
    write_texts(killed)
    process = server.start(whole, "train", *SETTINGS, pack)
    assert process.wait() == 0, process.said
    process = server.start(killed, "train", *SETTINGS, pack)
    wait_until_reached(process, 20)
    process.kill()
    process.wait()
    process = server.start(killed, "train", *SETTINGS, pack, "--resume")
    assert process.wait() == 0, process.said
    assert "Resuming at step" in process.said
    assert differences(outcome(whole), outcome(killed)) == []
    log = outcome(whole)["log"]
    assert log[-1]["valid_accuracy"] > 15 if "pack" in pack else log[-1]["valid_detection_accuracy"] > 80
