"""Estimates of memory for long texts: not refused where time and memory grow linearly, refused where they do not."""

from typing import Any

import pytest
import torch

from dragoman.models.build import ModelConfig, Seq2Seq, build_model
from dragoman.models.footprint import LONG_TRIAL, evaluate, measure, refined

FREE = 2**33


def model(attention: dict[str, Any]) -> Seq2Seq:
    torch.manual_seed(1)
    stack = {"layers": 1, "heads": 2, "feedforward": 16, "attention": attention}
    config = {"preset": None, "width": 8, "encoder": stack, "decoder": {**stack, "cross_attention": {"kind": "linear"}}}
    return build_model(ModelConfig.model_validate(config), 10, 10)


def test_a_window_wider_than_the_short_trial_grows_linearly_in_the_long_one() -> None:
    built = model({"kind": "window", "window": 256})
    short = measure(built, 128, training=False)
    assert short.measured == 128
    assert evaluate(short.encoding, 65536) > FREE  # up to a window's length all pairs are compared
    long = refined(short, built, 65536, training=False, free=FREE)
    assert long.measured == LONG_TRIAL
    assert evaluate(long.encoding, 65536) == pytest.approx(32 * evaluate(long.encoding, 2048), rel=0.05)
    assert evaluate(long.cache, 65536) == pytest.approx(evaluate(long.cache, 2048), rel=0.01)
    assert refined(long, built, 65536, training=False, free=FREE) is long


def test_additive_scores_of_all_pairs_stay_quadratic() -> None:
    built = model({"scorer": {"kind": "additive"}})
    short = measure(built, 128, training=False)
    long = refined(short, built, 1024, training=False, free=FREE)
    assert long.measured == 1024
    assert evaluate(long.encoding, 65536) > 500 * evaluate(long.encoding, 2048)


def test_no_trial_is_made_that_would_not_fit() -> None:
    built = model({"scorer": {"kind": "additive"}})
    short = measure(built, 128, training=False)
    assert refined(short, built, 65536, training=False, free=2**20) is short


@pytest.mark.parametrize("kind", ["window", "linear"])
def test_training_keeps_as_much_a_token_of_long_texts_as_of_short_ones(kind: str) -> None:
    footprint = measure(model({"kind": kind}), LONG_TRIAL, training=True)
    assert evaluate(footprint.training, 65536) / 65536 == pytest.approx(
        evaluate(footprint.training, 2048) / 2048, rel=0.05
    )
