"""Sampling in training depends on seed and step only: runs that sample are resumed bit for bit after kills."""

import signal
from math import isfinite
from pathlib import Path

import pytest
from training_runs import SETTINGS, Server, differences, log_lines, outcome, wait_until_reached, write_corpus

HARD = ["model.decoder.cross_attention.kind=hard", "model.decoder.cross_attention.gradient=reinforce"]
VARIANTS = {
    "hard attention, adaptive": [*HARD, "model.decoder.cross_attention.adaptive=true", "train.accumulate=2"],
    "hard attention, teacher forcing falls": [*HARD, "train.teacher_forcing.kind=linear"],
    "teacher forcing falls as a sigmoid": [
        "train.teacher_forcing.kind=inverse_sigmoid",
        "train.teacher_forcing.speed=10",
        "model.dropout=0.1",
    ],
    "recurrent, hard attention": [
        "model.decoder={kind: recurrent, attention: {kind: hard, gradient: reinforce, discount: 0.5}}",
        "model.encoder={kind: recurrent}",
    ],
}
VARIANTS["hard attention, adaptive, teacher forcing falls as a sigmoid"] = [
    *VARIANTS["hard attention, adaptive"],
    *VARIANTS["teacher forcing falls as a sigmoid"],
]


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_killed_and_resumed_equals_straight(server: Server, tmp_path: Path, variant: str) -> None:
    settings = [each for each in SETTINGS if "recurrent" not in variant or "coder." not in each]
    outcomes = []
    for name in ("straight", "killed"):
        folder = tmp_path / name
        folder.mkdir()
        command = ["train", *write_corpus(folder), *settings, *VARIANTS[variant], "train.max_steps=12"]
        command += ["train.log_every=1", "train.checkpoint_every=3"]
        process = server.start(folder, *command, tick=0.02 if name == "killed" else None)
        if name == "killed":
            wait_until_reached(process, 4)
            process.kill()
            assert process.wait() == -signal.SIGKILL
            process = server.start(folder, *command, "--resume")
        assert process.wait() == 0, process.said
        assert ("Resuming at step" in process.said) == (name == "killed")
        outcomes.append(outcome(folder))
    assert differences(*outcomes) == []
    lines = [line for line in log_lines(tmp_path / "killed") if "loss" in line]
    assert len(lines) == 12
    if "hard" in variant:
        for name in ("reward", "entropy", "baseline_error"):
            assert all(isfinite(line[f"hard_attention_{name}"]) for line in lines)
