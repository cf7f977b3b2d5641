"""The estimates of n-gram models agree with their definitions in exact fractions."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch
from ngram_reference import Reference

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import parse_settings
from dragoman.models.kinds.ngram import LN10, NgramModel, NgramTable
from dragoman.statistical.ngrams.counts import count_ngrams
from dragoman.statistical.ngrams.kneser_ney import KneserNeyConfig, ModifiedKneserNeyConfig
from dragoman.statistical.ngrams.query import NgramQuery
from dragoman.statistical.ngrams.relative_frequency import AddKConfig, MaximumLikelihoodConfig
from dragoman.statistical.ngrams.smoothing import SmoothingConfig
from dragoman.text.symbols import BOS, EOS

A, B, C, D = 4, 5, 6, 7
SIZE = 9  # the entry 8 does not occur
SENTENCES = [[A, B, A, C], [A, B, D], [B, A, B, A, B, C], [], [A, B, A, C], [D]]
TEXTS = [[BOS, *sentence, EOS] for sentence in SENTENCES]
TOKENS = np.array([token for text in TEXTS for token in text])
METHODS: tuple[SmoothingConfig, ...] = (
    ModifiedKneserNeyConfig(),
    KneserNeyConfig(),
    AddKConfig(k=0.3),
    MaximumLikelihoodConfig(),
)


def contexts(longest: int) -> list[tuple[int, ...]]:
    return [each for length in range(longest + 1) for each in product((BOS, A, B, C, 8), repeat=length)]


def stored(tables: list[NgramTable], order: int, index: int) -> tuple[int, ...]:
    if order == 1:
        return (index,)
    key = int(tables[order - 1].keys[index])
    return (*stored(tables, order - 1, key // SIZE), key % SIZE)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("prune", [(), (0, 1), (0, 0, 1)])
def test_all_stored_values_equal_exact_fractions(order: int, prune: tuple[int, ...]) -> None:
    tables = ModifiedKneserNeyConfig(prune=prune).estimate(count_ngrams(TOKENS, order, SIZE))
    reference = Reference(TEXTS, order, SIZE, prune)
    sizes = []
    for number, table in enumerate(tables, start=1):
        sizes.append(len(table.keys))
        for index, value in enumerate(table.log10_probabilities.tolist()):
            ngram = stored(tables, number, index)
            assert reference.keeps(ngram)
            expected = reference.probability(ngram[:-1], ngram[-1])
            assert 10**value == pytest.approx(float(expected), rel=1e-12, abs=1e-90)
    assert sizes[1:] == [sum(map(reference.keeps, counts)) for counts in _inside(reference)]


def _inside(reference: Reference) -> list[list[tuple[int, ...]]]:
    return [[ngram for ngram in counts if BOS not in ngram[1:]] for counts in reference.counts[1:]]


def test_discounts_are_those_of_chen_and_goodman() -> None:
    counts = np.array([1] * 10 + [2] * 4 + [3] * 2 + [4] + [9])
    ratio = Fraction(10, 18)
    expected = (1 - 2 * ratio * Fraction(4, 10), 2 - 3 * ratio * Fraction(2, 4), 3 - 4 * ratio * Fraction(1, 2))
    assert ModifiedKneserNeyConfig().discounts(counts) == pytest.approx([float(each) for each in expected], rel=1e-12)
    assert KneserNeyConfig().discounts(counts) == pytest.approx([float(ratio)] * 3, rel=1e-12)
    assert ModifiedKneserNeyConfig().discounts(np.array([1, 1, 2])) is None


def test_small_text_uses_fallback_discounts_with_one_warning(capsys: pytest.CaptureFixture[str]) -> None:
    ModifiedKneserNeyConfig().estimate(count_ngrams(TOKENS, 3, SIZE))
    assert capsys.readouterr().err.count("do not determine the Kneser–Ney discounts") == 1


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.kind)
@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_probabilities_sum_to_one_in_every_context(method: SmoothingConfig, order: int) -> None:
    model = NgramModel.of(method.estimate(count_ngrams(TOKENS, order, SIZE)))
    for context in contexts(3):
        tokens = torch.tensor([[BOS, *context]])
        rows = model.distributions(model.contexts(tokens, None)[:, -1])
        assert float((10 ** rows.double()).sum()) == pytest.approx(1, abs=1e-6)


def test_add_k_and_maximum_likelihood_are_relative_frequencies() -> None:
    counts = count_ngrams(TOKENS, 3, SIZE)
    add_k, likelihood = (NgramModel.of(each.estimate(counts)) for each in METHODS[2:])

    def probability(model: NgramModel, *ngram: int) -> float:
        *context, token = ngram
        return float(10 ** model.score(model.contexts(torch.tensor([context]), None)[:, -1], torch.tensor([token])))

    size = SIZE - 2
    assert probability(add_k, B, A, C) == pytest.approx((2 + 0.3) / (4 + 0.3 * size), rel=1e-6)
    assert probability(add_k, B, A, D) == pytest.approx(0.3 / (4 + 0.3 * size), rel=1e-6)
    assert probability(add_k, BOS, A) == pytest.approx((3 + 0.3) / (6 + 0.3 * size), rel=1e-6)
    assert probability(add_k, C, C, A) == pytest.approx(1 / size, rel=1e-6)
    assert probability(likelihood, B, A, C) == pytest.approx(2 / 4, rel=1e-6)
    assert probability(likelihood, B, A, D) == pytest.approx(0, abs=1e-90)
    assert probability(likelihood, C, A, B) == pytest.approx(5 / 7, rel=1e-6)  # the context C A does not occur


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_a_step_of_many_tokens_equals_single_steps_and_the_c_library(order: int) -> None:
    model = NgramModel.of(METHODS[0].estimate(count_ngrams(TOKENS, order, SIZE)))
    tokens = torch.tensor([[BOS, A, B, A, 8, B, C], [BOS, D, D, A, B, A, B]])
    output, _ = model.step(tokens, model.start(None))
    state, parts = model.start(None), []
    for part in torch.split(tokens, [2, 1, 3, 1], 1):
        single, state = model.step(part, state)
        parts.append(single.logits())
    assert torch.equal(output.logits(), torch.cat(parts, 1))
    positions = torch.arange(tokens.numel())
    labels = torch.tensor([A, B, A, 8, B, C, EOS, D, D, A, B, A, B, EOS])
    scores = output.label_log_probabilities(positions, labels)
    assert torch.equal(scores, output.logits().flatten(0, 1).gather(1, labels.unsqueeze(1)).squeeze(1))
    query = NgramQuery(model)
    for row, (text, following) in enumerate(zip(tokens.tolist(), labels.view(2, -1).tolist(), strict=True)):
        scored = query.score_texts([[*text, following[-1]]])[0]
        assert scored == pytest.approx(scores.view(2, -1)[row].tolist(), abs=1e-6)


def test_contexts_of_the_c_library_are_minimal() -> None:
    tables = METHODS[0].estimate(count_ngrams(TOKENS, 4, SIZE))
    query = NgramQuery(NgramModel.of(tables))
    after_rare, after_unseen = query.score(query.start, 8)[1], query.score(query.empty, 8)[1]
    assert bytes(after_rare) == bytes(after_unseen) == bytes(query.empty)
    score, state = query.score(query.score(query.start, A)[1], B)
    assert state.length == 3
    assert score < 0
    assert query.score(query.start, 10**6)[0] == query.score(query.start, 3)[0]  # outside the vocabulary: unknown
    assert query.score(query.empty, 8)[0] == pytest.approx(float(tables[0].log10_probabilities[8]) * LN10, abs=1e-6)


def test_invalid_pruning_is_rejected() -> None:
    for prune, message in (([1], "unigrams are never dropped"), ([0, 2, 1], "must not decrease")):
        with pytest.raises(ConfigError, match=message):
            parse_settings({"prune": prune}, ModifiedKneserNeyConfig, "smoothing")
