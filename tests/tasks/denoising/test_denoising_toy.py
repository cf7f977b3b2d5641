"""A model learns to restore sentences whose words determine each other."""

from pathlib import Path

import pytest
from sampled_texts import write_sentences

from dragoman import train


@pytest.mark.slow
def test_corrupted_sentences_are_restored(tmp_path: Path) -> None:
    write_sentences(tmp_path / "train.txt", 1000, 1)
    write_sentences(tmp_path / "valid.txt", 50, 2)
    stack = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 64, "norm": "pre"}
    recipe = {
        "task": {"kind": "denoising"},
        "data": {
            "train": {"text": str(tmp_path / "train.txt")},
            "valid": {"text": str(tmp_path / "valid.txt")},
            "noise": {"kind": "infilling"},
            "batch": {"tokens": 512},
        },
        "text": {"subword": {"kind": "word"}},
        "model": {"preset": None, "width": 48, "encoder": stack, "decoder": stack, "dropout": 0.0},
        "train": {
            "max_steps": 120,
            "average": {"count": 0},
            "optimiser": {"kind": "muon"},
            "schedule": {"kind": "cosine", "peak": 0.02},
            "device": "cpu",
            "precision": "float32",
            "threads": 1,
        },
        "out": str(tmp_path / "run"),
    }
    perplexity = train(recipe, quiet=True).validation["perplexity"].value
    assert perplexity < 1.9  # 30% of the tokens are hidden; without the source, it is above 3
