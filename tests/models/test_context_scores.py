"""Scores from the factors of neighbouring words: their features, worked out by hand, and their sums."""

from typing import Any

import pytest
import torch
from closeness import assert_close
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.models.heads.context import ContextConfig, ContextScores, templates
from dragoman.models.interface import Memory
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.text.tokenizers import VocabularySizes
from dragoman.text.word_factors import count_factors, factor_numbers, word_factors

BUCKETS = 1 << 20
WORDS = tuple("The old dog saw a cat in Rome .".split())


def tokens_of(words: tuple[str, ...], columns: tuple[str, ...] = ()) -> torch.Tensor:
    """Tokens (1, S, 1 + K) with the special symbols."""
    nothing = (0,) * count_factors(int(bool(columns)))
    own = [factor_numbers(word, (columns[place],) if columns else ()) for place, word in enumerate(words)]
    return torch.tensor([[(1, *nothing), *[(9, *each) for each in own], (2, *nothing)]])


def names(words: tuple[str, ...], place: int, columns: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
    """The features of a word in plain text, by the description of `templates`, in another order."""

    def at(distance: int, factor: int) -> str:
        where = place + distance
        if not 0 <= where < len(words):
            return "outside"
        return (*word_factors(words[where]), *([columns[where]] if columns else []))[factor]

    found: list[tuple[Any, ...]] = []
    for factor in range(count_factors(int(bool(columns)))):
        found += [("one", factor, distance, at(distance, factor)) for distance in (-1, 0, 1)]
    for kind, factor in (("lower", 1), ("short", 11), *((("column", 12),) if columns else ())):
        found += [("one", factor, distance, at(distance, factor)) for distance in (-2, 2)]
        reach = 2 if kind == "column" else 1
        for size in (2, 3):
            for first in range(-reach, reach - size + 2):
                found.append((kind, first, *(at(first + step, factor) for step in range(size))))
    found.append(("around", at(-1, 1), at(1, 1)))
    return found


@pytest.mark.parametrize("columns", [(), tuple("DT JJ NN VBD DT NN IN NNP .".split())])
def test_features_are_equal_where_their_descriptions_are(columns: tuple[str, ...]) -> None:
    """Two words share as many features as their descriptions, for all pairs of words of two sentences."""
    sentences = [(WORDS, columns), (WORDS[2:6] + WORDS[:2], columns[2:6] + columns[:2])]
    scores = ContextScores(3, int(bool(columns)), ContextConfig(buckets=BUCKETS))
    described, hashed = [], []
    for words, own in sentences:
        features = scores.features(tokens_of(words, own)[..., 1:])
        assert features.shape == (1, len(words) + 2, len(templates(int(bool(columns)))))
        described += [set(names(words, place, own)) for place in range(len(words))]
        hashed += [set(row.tolist()) for row in features[0, 1:-1]]
    assert [len(each) for each in described] == [len(each) for each in hashed]
    for one, other in ((a, b) for a in range(len(hashed)) for b in range(a)):
        assert len(hashed[one] & hashed[other]) == len(described[one] & described[other])


def test_scores_are_sums_of_weights() -> None:
    scores = ContextScores(4, 0, ContextConfig(buckets=50)).eval()
    tokens = tokens_of(WORDS)
    assert not scores(tokens).any()
    torch.nn.init.normal_(scores.weights.weight, generator=torch.Generator().manual_seed(1))
    features = scores.features(tokens[..., 1:])
    expected = torch.zeros(1, len(WORDS) + 2, 4)
    for place in range(len(WORDS) + 2):
        for bucket in features[0, place].tolist():
            expected[0, place] += scores.weights.weight[bucket].detach()
    assert_close(scores(tokens), expected, size=8)
    assert not scores(tokens[..., 0]).any()


@settings(max_examples=20)
@given(changed=st.integers(0, len(WORDS) - 1))
def test_a_word_matters_within_a_distance_of_two(changed: int) -> None:
    scores = ContextScores(2, 0, ContextConfig(buckets=BUCKETS))
    other = (*WORDS[:changed], "XYZ", *WORDS[changed + 1 :])
    before, after = (scores.features(tokens_of(words)[0:1, :, 1:])[0, 1:-1] for words in (WORDS, other))
    differ = (before != after).any(1).nonzero().flatten().tolist()
    assert differ == [place for place in range(len(WORDS)) if abs(place - changed) <= 2]


@pytest.mark.parametrize("transitions", ["none", "learned"])
def test_a_head_adds_them(transitions: str) -> None:
    head = {"kind": "tagging", "labels": ["A", "B"], "transitions": transitions, "features": 0, "context": {}}
    model = EncoderOnlyConfig.model_validate({"preset": "words", "width": 8, "head": head}).build_for(
        VocabularySizes(20, 20)
    )
    model.eval()
    context = next(module for module in model.modules() if isinstance(module, ContextScores))
    torch.nn.init.normal_(context.weights.weight)
    tokens, mask = tokens_of(WORDS), torch.ones(1, len(WORDS) + 2, dtype=torch.bool)
    memory: Memory = model.encode(tokens, mask)
    both, alone = model(tokens, mask), model.head(memory)
    if transitions == "learned":
        both, alone = both.emissions, alone.emissions
    assert_close(both - alone, context(tokens), size=8)


def test_context_needs_factors() -> None:
    head = {"kind": "tagging", "context": {}}
    with pytest.raises(ValueError, match=r"set model.preset=words, or model.factors=\{\}"):
        EncoderOnlyConfig.model_validate({"preset": "rnn", "head": head})
