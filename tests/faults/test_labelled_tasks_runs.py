"""A run with several labelled tasks that is killed and resumed ends like an uninterrupted run, bit for bit."""

from pathlib import Path

import numpy as np
import pytest
from training_runs import RUN, Server, differences, outcome, wait_until_reached

SETTINGS = [
    "task.kind=labelled_tasks",
    "tasks.animals={kind: classification, data: {train: animals.tsv, valid: animals.tsv, batch: {tokens: 100}}}",
    "tasks.length={kind: regression, weight: 0.5, data: {train: length.tsv, valid: length.tsv, batch: {tokens: 60}}}",
    "mixing={kind: proportional, temperature: 2}",
    "model.preset=tiny",
    "model.width=16",
    "model.encoder={kind: transformer, layers: 1, heads: 2, feedforward: 32}",
    "text.subword.size=300",
    "train.threads=1",
    "train.device=cpu",
    "train.precision=float32",
    "train.max_steps=40",
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
    texts = [" ".join(draw.choice(["Anna", "Bob", "sees", "the", "dog", "a", "cat"], 6)) for _ in range(80)]
    (folder / "animals.tsv").write_text("".join(f"{text}\t{'dog' in text}\n" for text in texts))
    (folder / "length.tsv").write_text("".join(f"{text}\t{len(text)}\n" for text in texts[:30]))


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_killed_and_resumed_mixture_ends_bit_identical(server: Server, tmp_path: Path, ranks: int) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    write_texts(whole)
    write_texts(killed)
    arguments = ["train", *SETTINGS]
    assert [process.wait() for process in server.start_ranks(ranks, whole, *arguments)] == [0] * ranks
    processes = server.start_ranks(ranks, killed, *arguments)
    wait_until_reached(processes[0], 20)
    for process in processes:
        process.kill()
        process.wait()
    resumed = server.start_ranks(ranks, killed, *arguments, "--resume")
    assert [process.wait() for process in resumed] == [0] * ranks
    assert "Resuming at step" in resumed[0].said
    assert differences(outcome(whole), outcome(killed)) == []
    last = outcome(whole)["log"][-1]
    assert {"valid_mean", "valid_animals", "valid_length", "valid_length_spearman"} <= last.keys()
    assert last["valid_animals"] > 80
