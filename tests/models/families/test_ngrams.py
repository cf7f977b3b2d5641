"""Features of hashed n-grams against scikit-learn's TF-IDF, and properties of the encoder."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from torch import Tensor

from dragoman.models.families.ngrams import NgramEncoder, NgramVectors, default_buckets

TEXTS = [[1, 5, 6, 5, 6, 2], [1, 7, 2], [1, 5, 6, 7, 8, 8, 8, 2]]


def padded(texts: list[list[int]], extra: int = 0) -> tuple[Tensor, Tensor]:
    size = max(map(len, texts)) + extra
    tokens = torch.tensor([[*each, *[0] * (size - len(each))] for each in texts])
    return tokens, torch.tensor([[True] * len(each) + [False] * (size - len(each)) for each in texts])


def features(encoder: NgramVectors, texts: list[list[int]]) -> Tensor:
    """Return the weight of each bucket in each text (N, buckets)."""
    found, counts = encoder.occurrences(*padded(texts))
    weights = encoder.weights(found, counts)
    return torch.zeros(len(texts), encoder.buckets + 1).scatter_add_(1, found, weights)[:, :-1]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_weights_are_those_of_scikit_learn(order: int) -> None:
    encoder = NgramVectors(order, 2**20, 2)
    plain = {"analyzer": "word", "token_pattern": r"\S+", "sublinear_tf": True, "ngram_range": (1, order)}
    texts = [" ".join(map(str, each)) for each in TEXTS]
    counted = TfidfVectorizer(**plain).fit(texts)
    found, _ = encoder.occurrences(*padded(TEXTS))
    frequency = torch.stack([torch.bincount(row[row < encoder.buckets].unique(), minlength=2**20) for row in found])
    encoder.idf.copy_(((1 + len(TEXTS)) / (1 + frequency.sum(0))).log() + 1)
    expected = counted.transform(texts)
    ours = features(encoder, TEXTS)
    assert (ours > 0).sum().item() == expected.nnz
    np.testing.assert_allclose((ours @ ours.T).numpy(), (expected @ expected.T).toarray(), atol=1e-5)


@given(
    st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=12), min_size=1, max_size=5),
    st.integers(0, 4),
    st.integers(1, 4),
)
def test_padding_and_other_texts_change_nothing(texts: list[list[int]], extra: int, order: int) -> None:
    torch.manual_seed(1)
    encoder = NgramEncoder(order, 97, 3)
    torch.nn.init.normal_(encoder.tokens.vectors.weight)
    together = encoder(*padded(texts, extra)).summary
    alone = torch.cat([encoder(*padded([each])).summary for each in texts])
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-6)


def test_the_parts_of_the_tokens_are_the_weighted_vectors() -> None:
    torch.manual_seed(1)
    encoder = NgramEncoder(3, 2**18, 4)
    torch.nn.init.normal_(encoder.tokens.vectors.weight)
    expected = features(encoder.tokens, TEXTS) @ encoder.tokens.vectors.weight
    torch.testing.assert_close(encoder(*padded(TEXTS)).summary, expected, rtol=1e-4, atol=1e-5)
    alone = NgramEncoder(1, 2**18, 4)  # without longer n-grams, each token has its own vector
    torch.nn.init.normal_(alone.tokens.vectors.weight)
    parts = alone.tokens(*padded([[5, 6, 7, 5]]))[0]
    torch.testing.assert_close(parts[0], parts[3])
    assert not torch.allclose(parts[0], parts[1])


def test_a_text_has_a_norm_of_one_and_an_empty_one_of_zero() -> None:
    encoder = NgramEncoder(3, 2**18, 2)
    torch.testing.assert_close(features(encoder.tokens, TEXTS).norm(dim=1), torch.ones(3))
    torch.nn.init.normal_(encoder.tokens.vectors.weight)
    tokens, mask = padded([[1, 2]])
    assert encoder(tokens, torch.zeros_like(mask)).summary.abs().sum() == 0


def test_ngrams_differ_by_order_and_position() -> None:
    encoder = NgramVectors(2, 2**18, 2)
    one, other = features(encoder, [[5, 6, 7]])[0], features(encoder, [[7, 6, 5]])[0]
    assert (one > 0).sum() == (other > 0).sum() == 5
    assert ((one > 0) & (other > 0)).sum() == 3  # the unigrams


def test_more_classes_have_fewer_buckets() -> None:
    assert default_buckets(2) == default_buckets(64) == 2**18
    assert default_buckets(65) == 2**17
    assert default_buckets(1000) * 1000 <= 2**24
