"""A denoising run that is killed and resumed ends like an uninterrupted run, bit for bit."""

from pathlib import Path

import pytest
from sampled_texts import write_words
from training_runs import QUICK_RUN, Server, check_resumed_run, outcome

SETTINGS = [
    "task.kind=denoising",
    "data.train.text=train.txt",
    "data.valid.text=valid.txt",
    "data.batch.tokens=256",
    "data.block=32",
    "model.decoder={kind: transformer, layers: 1, heads: 2, feedforward: 32}",
    "train.max_steps=60",
    *QUICK_RUN,
]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["span_corruption", "infilling"])
def test_a_killed_and_resumed_run_ends_bit_identical(server: Server, tmp_path: Path, kind: str) -> None:
    whole, _ = check_resumed_run(server, tmp_path, write_words, [*SETTINGS, f"data.noise.kind={kind}"])
    assert outcome(whole)["log"][-1]["valid_perplexity"] < 20
