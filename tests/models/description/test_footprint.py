"""Estimates of memory equal the counts of torch's profiler, also for texts much longer than the trial ones."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.models.description.footprint import (
    LONG_TRIAL,
    SHORT_TRIAL,
    evaluate_polynomial,
    measure_footprint,
    refine_footprint,
)
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq

FREE = 2**33
TRANSFORMER = {"kind": "transformer", "heads": 2, "feedforward": 16}
ENCODERS: dict[str, dict[str, Any]] = {
    "additive": {**TRANSFORMER, "attention": {"scorer": {"kind": "additive"}}},
    "sum": {**TRANSFORMER, "attention": {"scorer": {"kind": "general"}, "normaliser": "sum"}},
    "window": {**TRANSFORMER, "attention": {"kind": "window", "window": 16}},
    "linear": {**TRANSFORMER, "attention": {"kind": "linear"}},
    "recurrent": {"kind": "recurrent"},
    "convolutional": {"kind": "convolutional"},
    "bytenet": {"kind": "bytenet"},
    "mean": {"kind": "mean"},
}


def model(encoder: dict[str, Any]) -> Seq2Seq:
    torch.manual_seed(1)
    kinds = {"attention": {"kind": "linear"}, "cross_attention": {"kind": "linear"}}
    decoder = {**TRANSFORMER, "layers": 1, **kinds}
    encoder = {"layers": 1, **encoder} if encoder["kind"] != "mean" else encoder
    return ModelConfig.model_validate({"preset": None, "width": 8, "encoder": encoder, "decoder": decoder}).build(
        10, 10
    )


def profiled(run: Callable[[], object], folder: Path) -> int:
    """Return the peak of torch's allocator during `run`, relative to its start, in bytes."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        run()
    profile.export_chrome_trace(str(folder / "trace.json"))
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    changes = [(each["ts"], each["args"]["Bytes"]) for each in events if each.get("name") == "[memory]"]
    held = most = 0
    for _, change in sorted(changes, key=lambda each: each[0]):
        held += change
        most = max(most, held)
    return most


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("length", [100, 200])
def test_estimates_are_what_the_profiler_counts(kind: str, length: int, tmp_path: Path) -> None:
    built = model(ENCODERS[kind])
    tokens = torch.randint(4, 10, (1, length))
    keep, results = torch.ones_like(tokens, dtype=torch.bool), []
    short = measure_footprint(built, SHORT_TRIAL, training=True)
    footprint = refine_footprint(short, built, length, training=True, free=FREE)
    assert (footprint is short) == (length <= SHORT_TRIAL)
    with torch.no_grad():
        built.eval()
        reading = profiled(lambda: built.encode(tokens, keep), tmp_path)
    training = profiled(lambda: results.append(built.train()(tokens, keep, tokens).hidden), tmp_path)
    assert 1 < evaluate_polynomial(footprint.encoding, length) / reading < 2
    assert 1 < evaluate_polynomial(footprint.training, length) / training < 2


def test_a_window_wider_than_the_short_trial_is_not_extrapolated_quadratically() -> None:
    built = model({**TRANSFORMER, "attention": {"kind": "window", "window": 256}})
    short = measure_footprint(built, 128, training=False)
    assert short.measured_length == 128
    assert evaluate_polynomial(short.encoding, 65536) > FREE  # up to a window's length all pairs are compared
    long = refine_footprint(short, built, 65536, training=False, free=FREE)
    assert long.measured_length == LONG_TRIAL
    assert evaluate_polynomial(long.encoding, 65536) < 100 * evaluate_polynomial(
        long.encoding, 2048
    )  # 1024 times if quadratic
    assert evaluate_polynomial(long.cache, 65536) == pytest.approx(evaluate_polynomial(long.cache, 2048), rel=0.01)
    assert refine_footprint(long, built, 65536, training=False, free=FREE) is long


def test_additive_scores_of_all_pairs_stay_quadratic() -> None:
    built = model({**TRANSFORMER, "attention": {"scorer": {"kind": "additive"}}})
    short = measure_footprint(built, 128, training=False)
    long = refine_footprint(short, built, 1000, training=False, free=FREE)
    assert long.measured_length == 1024
    assert evaluate_polynomial(long.encoding, 65536) > 500 * evaluate_polynomial(long.encoding, 2048)


def test_trials_that_would_not_fit_are_not_run() -> None:
    built = model({**TRANSFORMER, "attention": {"scorer": {"kind": "additive"}}})
    short = measure_footprint(built, 128, training=False)
    assert refine_footprint(short, built, 65536, training=False, free=2**18) is short


@pytest.mark.parametrize("kind", ["window", "linear"])
def test_memory_per_token_is_equal_for_long_and_short_texts(kind: str) -> None:
    footprint = measure_footprint(model({**TRANSFORMER, "attention": {"kind": kind}}), LONG_TRIAL, training=True)
    assert evaluate_polynomial(footprint.training, 65536) / 65536 == pytest.approx(
        evaluate_polynomial(footprint.training, 2048) / 2048, rel=0.05
    )
