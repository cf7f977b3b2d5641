"""Claims of docs/lecture/decks.md about the lecture decks' formulas: their errors, and the correct values."""

import numpy as np
import pytest
import torch

from dragoman.addons.lecture.example_trees import EXAMPLE_TREES
from dragoman.addons.lecture.position_criteria import Probe, Setting, first_rise
from dragoman.decode.rules.length_penalty import MeanLogProbability
from dragoman.nn.attention.scorers import DotConfig, ScaledDotConfig
from dragoman.nn.attention.weights import normalise
from dragoman.nn.mask import Mask
from dragoman.nn.normalisation import LayerNormConfig
from dragoman.nn.positions.sinusoidal import SinusoidalConfig, sinusoids


def test_exponents_of_deck_000_lose_the_distance() -> None:
    """Deck 000 divides by 10000^(2δ/d) for component δ itself, so sine and cosine of a pair have two frequencies."""
    component, position = np.arange(64), np.arange(2000)[:, None]
    angles = position / 10000.0 ** (2 * component / 64)
    theirs = np.where(component % 2 == 0, np.sin(angles), np.cos(angles))
    ours = sinusoids(2000, 64).double().numpy()
    for matrix, even in ((theirs, False), (ours, True)):
        neighbours = (matrix[1:] * matrix[:-1]).sum(1)
        steps = np.linalg.norm(np.diff(matrix, axis=0), axis=1)
        assert (np.ptp(neighbours) < 1e-4) == (np.ptp(steps) < 1e-4) == even
        if matrix is theirs:
            assert (round(neighbours.min()), round(neighbours.max())) == (27, 37)
    # the last cosine turns once in 2π · 10000^(2 · 63/64) positions, in the paper once in 2π · 10000^(62/64)
    assert theirs[99, 63] > 1 - 1e-10 > ours[99, 63]


@pytest.mark.parametrize(("base", "distance"), [(10000.0, 44), (100000.0, 25)])
def test_the_base_of_deck_001_rises_again_earlier(base: float, distance: int) -> None:
    assert first_rise(Probe(SinusoidalConfig(base=base), Setting(512, 8, 100)).pairs(100)[0]) == distance


@pytest.mark.parametrize("width", [16, 64, 256])
def test_dot_products_have_the_variance_of_their_width(width: int) -> None:
    """Deck 001: q·k of independent components with mean 0 and variance 1 has mean 0 and variance d_k."""
    queries, keys = torch.randn(2, 1, 1, 400, width, generator=torch.Generator().manual_seed(1))
    for config, variance in ((DotConfig(), width), (ScaledDotConfig(), 1)):
        scorer = config.build(1, width, width)
        scores = scorer(queries, scorer.prepare(keys))
        assert abs(float(scores.mean())) < 0.05 * variance**0.5
        assert float(scores.var()) == pytest.approx(variance, rel=0.1)


def test_layer_norms_of_the_decks() -> None:
    """000 says "unit mean", 003 takes the unbiased deviation with ε outside the root, 004 has no ε."""
    width = 8
    states = torch.randn(5, width, generator=torch.Generator().manual_seed(2), dtype=torch.float64) * 3 + 1
    ours = LayerNormConfig().build(width).double()(states)
    centred = states - states.mean(-1, keepdim=True)
    torch.testing.assert_close(ours.mean(-1), torch.zeros(5, dtype=torch.float64))
    torch.testing.assert_close(ours.square().mean(-1).sqrt(), torch.ones(5, dtype=torch.float64), rtol=1e-5, atol=0)
    deck_003 = centred / (states.std(-1, keepdim=True) + 1e-6)
    torch.testing.assert_close(deck_003 * (width / (width - 1)) ** 0.5, ours, rtol=1e-5, atol=0)
    deck_004 = centred / centred.square().mean(-1, keepdim=True).sqrt()
    torch.testing.assert_close(deck_004, ours, rtol=1e-5, atol=0)
    alike = torch.full((1, width), 3.0)
    assert bool(((alike - 3) / (alike - 3).square().mean(-1, keepdim=True).sqrt()).isnan().all())
    assert not LayerNormConfig().build(width)(alike).any()


def test_deviations_without_a_square_are_zero() -> None:
    """Deck 002: σ² = (1/d) Σ (x_s − x̄), which is 0 for every x, so that its LN divides by 0."""
    states = torch.randn(100, 16, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    assert float((states - states.mean(-1, keepdim=True)).mean(-1).abs().max()) < 1e-15


def test_raw_scores_divided_by_their_sum() -> None:
    """Deck 002's norm_i of plain dot products: weights below 0 or above 1, or a division by 0."""
    scores = torch.tensor([[3.0, -1.0], [2.0, -2.0]])
    theirs = scores / scores.sum(-1, keepdim=True)
    assert torch.equal(theirs[0], torch.tensor([1.5, -0.5]))
    assert bool(theirs[1].isinf().all())
    ours = normalise(scores, None, "sum")
    assert bool((ours > 0).all())
    torch.testing.assert_close(ours.sum(-1), torch.ones(2))


def test_minus_a_billion_is_not_minus_infinity() -> None:
    """Deck 000 masks with −inf in words and −1e9 in code: without any key NaN, or equal weights on masked keys."""
    scores, nothing = torch.tensor([[[[1.0, 2.0, 3.0]]]]), torch.zeros(1, 1, 1, 3, dtype=torch.bool)
    assert bool(scores.masked_fill(~nothing, float("-inf")).softmax(-1).isnan().all())
    torch.testing.assert_close(scores.masked_fill(~nothing, -1e9).softmax(-1), torch.full((1, 1, 1, 3), 1 / 3))
    assert not normalise(scores, Mask(nothing)).any()
    with pytest.raises(RuntimeError, match="overflow"):
        scores.half().masked_fill(~nothing, -1e9)
    some = torch.tensor([[[[True, False, True]]]])
    plain = scores.masked_fill(~some, -1e9).softmax(-1)
    torch.testing.assert_close(normalise(scores, Mask(some)), plain)


def test_the_search_tree_of_deck_004() -> None:
    """Greedy search takes "yes" first, two hypotheses find "ok ok </s>" with p = 0.4 · 0.7 · 1.0."""
    tree = EXAMPLE_TREES["deck-004"].tree
    (greedy,), (best,) = (tree.search(beam=beam, length_penalty={"kind": "none"}) for beam in (1, 2))
    assert tree.words(greedy.tokens) == ("yes", "yes")
    assert np.exp(greedy.log_probability) == pytest.approx(0.5 * 0.4)
    assert tree.words(best.tokens) == ("ok", "ok") and np.exp(best.log_probability) == pytest.approx(0.4 * 0.7)


def test_the_score_of_deck_004_prefers_the_improbable() -> None:
    """Its normalised score is minus a log-probability, while its algorithm keeps the states with the larger score."""
    lengths, sums = np.array([3, 3, 6]), np.log([0.28, 0.2, 0.15])
    theirs = -sums / lengths
    ours = sums / [MeanLogProbability().divisor(length) for length in lengths]
    assert theirs.argmax() == 1 and ours.argmax() == 2 == theirs.argmin()
    assert -sums[2] != theirs[2]  # the left side, −log P(y|x), has no 1/T
