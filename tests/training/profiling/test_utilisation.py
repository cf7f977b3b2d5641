"""Model FLOPs utilisation: FLOPs against explicit formulas, and the log."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.tasks.corpora.job import flops_per_target_token
from dragoman.text.tokenizers import VocabularySizes
from dragoman.training.profiling import utilisation
from dragoman.training.profiling.utilisation import Utilisation, measure_rate
from dragoman.training.progress.horizon import Horizon
from dragoman.training.progress.progress import PendingSums
from dragoman.training.progress.report import LOG_FILE, Reporter, RunStatus
from dragoman.training.updates.update import StepResult

WIDTH, INNER, SIZE, LAYERS = 16, 40, 50, 2


def transformer() -> ModelConfig:
    stack = {"layers": LAYERS, "heads": 2, "feedforward": INNER}
    return ModelConfig.model_validate({"preset": None, "width": WIDTH, "encoder": stack, "decoder": stack})


def by_hand(source: int, target: int) -> float:
    """Return the FLOPs, twice the multiply-adds, of one pair of `source` and `target` tokens in the forward pass."""
    attention = 4 * WIDTH * WIDTH
    encoder = source * (attention + 2 * WIDTH * INNER) + 2 * source * source * WIDTH
    own = target * attention + 2 * target * target * WIDTH
    cross = (2 * target + 2 * source) * WIDTH * WIDTH + 2 * target * source * WIDTH
    decoder = own + cross + target * 2 * WIDTH * INNER
    return 2 * (LAYERS * (encoder + decoder) + target * WIDTH * SIZE)


@pytest.mark.parametrize("length", [4, 9])
def test_flops_are_those_of_the_formula_forward_and_backward(length: int) -> None:
    lengths = np.full((30, 2), length - 1, np.int32)  # plus one end symbol each
    found = flops_per_target_token(transformer(), VocabularySizes(SIZE, SIZE), lengths)
    # a product's backward pass is two products of its size
    assert found == pytest.approx(3 * by_hand(length, length) / length, rel=1e-6)


def test_two_passes_and_longer_sources_cost_more() -> None:
    lengths = np.full((30, 2), 8, np.int32)
    once = flops_per_target_token(transformer(), VocabularySizes(SIZE, SIZE), lengths)
    assert flops_per_target_token(transformer(), VocabularySizes(SIZE, SIZE), lengths, passes=2) == 2 * once
    longer = lengths * np.array([2, 1], np.int32)
    whole = 3 * by_hand(17, 9) / 9
    assert flops_per_target_token(transformer(), VocabularySizes(SIZE, SIZE), longer) == pytest.approx(whole, rel=0.1)


def test_lengths_beyond_the_positions_are_counted_up_to_the_limit() -> None:
    settings = {"preset": None, "width": WIDTH, "positions": {"kind": "learned", "limit": 8}}
    config = ModelConfig.model_validate(settings)
    assert flops_per_target_token(config, VocabularySizes(SIZE, SIZE), np.full((30, 2), 30, np.int32)) > 0


def test_the_fraction_counts_all_devices() -> None:
    assert Utilisation(2e6, 1e9).fraction(100) == pytest.approx(0.2)
    assert Utilisation(2e6, 1e9, devices=4).fraction(100) == pytest.approx(0.05)
    assert "1 GFLOP/s" in Utilisation(2e6, 1e9).describe()


@pytest.mark.real_reports
def test_the_rate_is_that_of_the_fastest_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """(1024 × 1024)², 2 · 1024³ operations, with a clock that runs fast in every other product."""
    now, durations = [0.0], itertools.cycle([0.03, 0.005])

    def product(*factors: torch.Tensor, out: torch.Tensor) -> None:
        assert all(factor.shape == (1024, 1024) for factor in factors)
        now[0] += next(durations)

    monkeypatch.setattr(torch, "mm", product)
    monkeypatch.setattr(utilisation.time, "perf_counter", lambda: now[0])
    assert measure_rate(torch.device("cpu"), torch.float32) == pytest.approx(2 * 1024**3 / 0.005)


def test_log_lines_report_the_utilisation_of_their_own_speed(tmp_path: Path) -> None:
    with Reporter(tmp_path, 1, 0, unlogged=PendingSums(), utilisation=Utilisation(1e6, 1e9)) as report:
        report.step(StepResult(4.0, 4.0, 1.0, 10), RunStatus(1, 1, 0.1, 1.0, 10, Horizon(0, 0.0, 3)))
    line = json.loads((tmp_path / LOG_FILE).read_text())
    assert line["utilisation"] == pytest.approx(line["target_tokens_per_second"] * 1e-3)
