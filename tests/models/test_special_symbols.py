"""The start symbol of texts, and special symbols that are never predicted."""

import pytest
import torch
from pydantic import ValidationError

from dragoman.models.kinds.decoder_only import DecoderOnly, LanguageModelConfig
from dragoman.nn.embedding import Projection
from dragoman.text.symbols import BOS, EOS, PAD

SIZE = 9


def model(**settings: object) -> DecoderOnly:
    torch.manual_seed(1)
    decoder = {"layers": 1, "heads": 2, "feedforward": 8}
    common = {"preset": None, "width": 8, "decoder": decoder, "dropout": 0.0}
    return LanguageModelConfig.model_validate({**common, **settings}).build(SIZE).eval()


@torch.no_grad()
def test_a_text_can_start_with_the_vector_of_the_end_symbol() -> None:
    ours = model(start_symbol="eos")
    starts, ends = (ours(torch.tensor([[first, 5, 6]])).hidden for first in (BOS, EOS))
    assert torch.equal(starts, ends)
    usual = model()
    assert not torch.allclose(*(usual(torch.tensor([[first, 5, 6]])).hidden for first in (BOS, EOS)))


@pytest.mark.parametrize("biased", [False, True])
def test_excluded_symbols_have_no_probability_and_change_nothing_else(biased: bool) -> None:
    weight, hidden = torch.nn.Parameter(torch.randn(SIZE, 8)), torch.randn(3, 8)
    usual, excluding = Projection(weight, biased), Projection(weight, biased, (PAD, BOS))
    expected, found = usual(hidden), excluding(hidden).softmax(1)
    expected[:, [PAD, BOS]] = -torch.inf
    assert torch.equal(found[:, [PAD, BOS]], torch.zeros(3, 2))
    torch.testing.assert_close(found, expected.softmax(1))
    assert [name for name, _ in excluding.named_parameters()] == (["weight", "bias"] if biased else ["weight"])
    assert excluding.state_dict().keys() == usual.state_dict().keys()


def test_the_end_symbol_cannot_be_excluded() -> None:
    with pytest.raises(ValidationError, match="excluded_tokens"):
        model(excluded_tokens=(EOS,))
