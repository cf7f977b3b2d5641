"""A run with several labelled tasks that is killed and resumed ends like an uninterrupted run, bit for bit."""

from pathlib import Path

import numpy as np
import pytest
from training_runs import QUICK_RUN, Server, check_resumed_run, outcome

SETTINGS = [
    "task.kind=multi_task",
    "tasks.animals={kind: classification, data: {train: animals.tsv, valid: animals.tsv, batch: {tokens: 100}}}",
    "tasks.length={kind: regression, weight: 0.5, data: {train: length.tsv, valid: length.tsv, batch: {tokens: 60}}}",
    "mixing={kind: proportional, temperature: 2}",
    "train.max_steps=40",
    *QUICK_RUN,
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
    whole, _ = check_resumed_run(server, tmp_path, write_texts, SETTINGS, ranks)
    last = outcome(whole)["log"][-1]
    assert {"valid_mean", "valid_animals", "valid_length", "valid_length_spearman"} <= last.keys()
    assert last["valid_animals"] > 80
