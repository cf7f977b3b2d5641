"""A body learns to detect replaced tokens in sentences whose words determine each other."""

from pathlib import Path

import pytest
from sampled_texts import write_sentences

from dragoman import train


@pytest.mark.slow
def test_replaced_tokens_are_detected(tmp_path: Path) -> None:
    write_sentences(tmp_path / "train.txt", 2000, 1)
    write_sentences(tmp_path / "valid.txt", 100, 2)
    recipe = {
        "task": {"kind": "masked_language_model"},
        "data": {
            "train": {"text": str(tmp_path / "train.txt")},
            "valid": {"text": str(tmp_path / "valid.txt")},
            "batch": {"tokens": 1024},
        },
        "text": {"subword": {"kind": "bpe", "size": 300}},
        "model": {
            "preset": "tiny",
            "width": 64,
            "encoder": {"kind": "transformer", "layers": 2, "heads": 2, "feedforward": 128, "norm": "pre"},
        },
        "train": {
            "replaced_tokens": 50,
            "max_steps": 150,
            "average": {"count": 0},
            "schedule": {"kind": "cosine", "peak": 0.003},
            "device": "cpu",
            "precision": "float32",
            "threads": 1,
        },
        "out": str(tmp_path / "run"),
    }
    result = train(recipe, quiet=True).validation
    assert result["detection_f1"].value > 65
    assert result["perplexity"].value < 30
