"""A run with masked tokens that is killed and resumed ends like an uninterrupted run, bit for bit."""

from pathlib import Path

import pytest
from sampled_texts import write_words
from training_runs import QUICK_RUN, Server, check_resumed_run, outcome

SETTINGS = [
    "task.kind=masked_language_model",
    "data.train.text=train.txt",
    "data.valid.text=valid.txt",
    "data.batch.tokens=256",
    "data.block=32",
    "train.max_steps=60",
    *QUICK_RUN,
]


@pytest.mark.slow
@pytest.mark.parametrize("pack", ["data.pack=true", "train.replaced_tokens=50"])
def test_a_killed_and_resumed_run_ends_bit_identical(server: Server, tmp_path: Path, pack: str) -> None:
    whole, _ = check_resumed_run(server, tmp_path, write_words, [*SETTINGS, pack])
    log = outcome(whole)["log"]
    assert log[-1]["valid_accuracy"] > 15 if "pack" in pack else log[-1]["valid_detection_accuracy"] > 80
