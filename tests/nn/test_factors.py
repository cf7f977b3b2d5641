"""Vectors of tokens with factors equal explicit sums, and dropout removes whole factors."""

import torch
from closeness import assert_close

from dragoman.nn.embedding import Embedding
from dragoman.nn.factors import FactoredTokens, WordFactorsConfig
from dragoman.nn.positions.scheme import PositionEmbedding
from dragoman.text.symbols import BOS, EOS

SIZE, BUCKETS, WIDTH = 9, 6, 4
TOKENS = torch.tensor([[[BOS, 0, 0], [5, 1, 6], [EOS, 0, 0]], [[BOS, 0, 0], [7, 2, 2], [4, 3, 0]]])


def table(dropout: float = 0.0) -> FactoredTokens:
    torch.manual_seed(1)
    return FactoredTokens(SIZE, WIDTH, WordFactorsConfig(buckets=BUCKETS, dropout=dropout))


def test_vectors_are_sums() -> None:
    built = table().eval()
    factors = built.factors.weight
    assert not factors[0].any()
    for row, vectors in zip(TOKENS.tolist(), built(TOKENS), strict=True):
        for (token, *numbers), vector in zip(row, vectors, strict=True):
            expected = built.weight[token].clone()
            for number in numbers:
                expected += factors[number] if number else 0
            assert_close(vector, expected, terms=3)
    assert_close(built(TOKENS[..., 0]), torch.nn.functional.embedding(TOKENS[..., 0], built.weight))


def test_no_factor_has_no_gradient() -> None:
    built = table().train()
    built(TOKENS).sum().backward()
    counts = torch.bincount(TOKENS[..., 1:].flatten(), minlength=BUCKETS + 1)
    counts[0] = 0
    assert built.factors.weight.grad is not None
    assert_close(built.factors.weight.grad, counts.unsqueeze(1).expand(-1, WIDTH).float())


def test_dropout_removes_whole_factors() -> None:
    built = table(dropout=0.5).train()
    tokens = torch.tensor([[[5, 1]]]).expand(2000, 1, 2)
    own, factor = built.weight[5].detach(), built.factors.weight[1].detach()
    found = ((built(tokens).detach() - own) / factor).squeeze(1)
    assert_close(found, found[:, :1].expand(-1, WIDTH))  # one decision for all components
    kept = (found[:, 0] > 1).float()
    assert_close(found[:, 0], 2 * kept)
    assert abs(float(kept.mean()) - 0.5) < 0.05  # 4.5 standard deviations


def test_segments_depend_on_tokens_alone() -> None:
    segments = torch.nn.Embedding(2, WIDTH)
    embedding = Embedding(table(), PositionEmbedding(), 0.0, segments=segments).eval()
    pair = torch.tensor([[[BOS, 0], [5, EOS], [EOS, 0], [6, 1], [EOS, 0]]])
    without = Embedding(table(), PositionEmbedding(), 0.0).eval()
    added = embedding(pair) - without(pair)
    assert_close(added[0], segments.weight[torch.tensor([0, 0, 0, 1, 1])])
