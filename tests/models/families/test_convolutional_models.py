"""Invariants of encoders and decoders for convolutional, simple and mixed models."""

from functools import cache
from typing import Any

import pytest
import torch
from closeness import assert_close
from decoder_inputs import encoded, started, targets
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_search import brute_force, plain_search
from random_parameters import perturb
from searching import searched
from torch import Tensor

from dragoman.data.batches.batch import pad
from dragoman.decode.forced import force
from dragoman.decode.search import SearchConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.auxiliary import collecting
from dragoman.nn.normalisation import BatchNorm
from dragoman.text.symbols import BOS, EOS

SIZE = 20
CLOSE = {"rtol": 1e-4, "atol": 1e-4}
CONVOLUTIONAL = {"kind": "convolutional", "layers": 2}
BYTENET = {"kind": "bytenet", "layers": 3, "dilations": [1, 2], "inner": 5}
TRANSFORMER = {"kind": "transformer", "layers": 2, "heads": 2, "feedforward": 12}
EXPERTS = {
    **TRANSFORMER,
    "experts": {"count": 3, "active": 2},
    "normalisation": {"kind": "rms"},
    "activation": "swiglu",
}
BATCH = {**TRANSFORMER, "normalisation": {"kind": "batch"}, "norm": "pre"}
ADDITIVE = {"cross_attention": {"scorer": {"kind": "additive"}}, "heads": 2}

PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "convolutional": (CONVOLUTIONAL, CONVOLUTIONAL),
    "even kernels, additive": ({**CONVOLUTIONAL, "kernel": 4}, {**CONVOLUTIONAL, "kernel": 2, **ADDITIVE}),
    "kernel 1, no projections": (
        {**CONVOLUTIONAL, "kernel": 1},
        {**CONVOLUTIONAL, "kernel": 1, "cross_attention": {"scorer": {"kind": "dot"}, "projections": False}},
    ),
    "bytenet": (BYTENET, BYTENET),
    "bytenet unfolds": (
        {**BYTENET, "block": "multiplicative", "unfolding": {"factor": 1.4, "margin": 1}},
        {**BYTENET, "block": "multiplicative"},
    ),
    "bytenet attends": (BYTENET, {**BYTENET, "stacked": False, **ADDITIVE}),
    "bytenet does both": (
        {**BYTENET, "normalisation": {"kind": "batch"}},
        {**BYTENET, "normalisation": {"kind": "batch"}, "cross_attention": {}},
    ),
    "experts": (EXPERTS, EXPERTS),
    "one expert": (
        {**EXPERTS, "experts": {"count": 3, "active": 1}},
        {**EXPERTS, "experts": {"count": 3, "active": 1}},
    ),
    "batch norm": (BATCH, BATCH),
    "mean": ({"kind": "mean"}, TRANSFORMER),
    "sum": ({"kind": "sum"}, CONVOLUTIONAL),
    "mean, bytenet": ({"kind": "mean"}, BYTENET),
    "transformer, bytenet": (TRANSFORMER, BYTENET),
    "bytenet, transformer": (BYTENET, TRANSFORMER),
}


@cache
def model(name: str, size: int = SIZE, width: int = 8) -> Seq2Seq:
    torch.manual_seed(6)
    encoder, decoder = PAIRS[name]
    config = ModelConfig.model_validate({"preset": None, "width": width, "encoder": encoder, "decoder": decoder})
    built = perturb(config.build(size, size).eval())
    with torch.no_grad():
        if any(isinstance(part, BatchNorm) for part in built.modules()):
            tokens, keep = pad([list(range(4, size)), [4, 5, 6]])
            built.train()
            for _ in range(40):  # running statistics as after training
                built(tokens, keep, tokens)
    return built.eval()


NAMES = pytest.mark.parametrize("name", PAIRS)
TOKENS = st.integers(4, SIZE - 1)
SENTENCES = st.lists(st.lists(TOKENS, min_size=1, max_size=6), min_size=1, max_size=4)


@NAMES
@settings(max_examples=6, deadline=None)
@given(sources=SENTENCES, split=st.lists(st.integers(1, 4), min_size=1, max_size=5))
@torch.no_grad()
def test_any_split_of_the_steps_equals_the_whole(name: str, sources: list[list[int]], split: list[int]) -> None:
    built, tokens = model(name), targets(len(sources), sum(split), SIZE)
    whole, after = built.decoder.step(tokens, started(built, sources))
    for lengths in (split, [1] * sum(split)):
        state, parts = started(built, sources), []
        for part in tokens.split(lengths, 1):
            output, state = built.decoder.step(part, state)
            parts.append(output.logits())
        assert_close(torch.cat(parts, 1), whole.logits())
        assert state.position == after.position == sum(split)


@NAMES
@settings(max_examples=5, deadline=None)
@given(sources=SENTENCES, extra=st.integers(0, 9), data=st.data())
@torch.no_grad()
def test_padding_order_and_beams_change_nothing(
    name: str, sources: list[list[int]], extra: int, data: st.DataObject
) -> None:
    """Shuffled, padded, expanded to two hypotheses per sentence and swapped: each row equals the row read alone."""
    built = model(name)
    order = data.draw(st.permutations(range(len(sources))))
    rows = torch.arange(len(sources)).repeat_interleave(2)
    tokens = targets(2 * len(sources), 6, SIZE)
    state = started(built, [sources[row] for row in order], extra)
    _, state = built.decoder.step(torch.full((len(sources), 1), BOS), state)
    first, state = built.decoder.step(tokens[:, :2], state.reorder(rows, 2))
    swap = torch.arange(len(rows)).view(-1, 2).flip(1).flatten()
    second, _ = built.decoder.step(tokens[swap, 2:], state.reorder(swap, 2))
    for row, owner in enumerate(rows.tolist()):
        alone = torch.cat((torch.tensor([BOS]), tokens[row]))[None]
        expected = built.decoder.step(alone, started(built, [sources[order[owner]]]))[0].logits()[0]
        assert_close(first.logits()[row], expected[1:3])
        assert_close(second.logits()[swap[row]], expected[3:])


@NAMES
@torch.no_grad()
def test_later_tokens_change_only_later_logits_and_the_source_matters(name: str) -> None:
    built, tokens = model(name), targets(2, 7, SIZE)
    state = started(built, [[5, 6, 7], [8, 9, 10, 4]])
    whole = built.decoder.step(tokens, state)[0].logits()
    for place in range(7):
        changed = tokens.clone()
        changed[:, place] = 4 + (tokens[:, place] - 3) % (SIZE - 4)
        found = built.decoder.step(changed, started(built, [[5, 6, 7], [8, 9, 10, 4]]))[0].logits()
        assert_close(found[:, :place], whole[:, :place])
        assert not torch.allclose(found[:, place], whole[:, place], **CLOSE)
    other = built.decoder.step(tokens, started(built, [[5, 11, 7], [8, 9, 12, 4]]))[0].logits()
    assert not torch.allclose(other, whole, **CLOSE)


@NAMES
@torch.no_grad()
def test_search_equals_a_plain_search_and_rescores(name: str) -> None:
    built, sources = model(name), [[5, 9, 4, EOS], [7, EOS], [12, 4, 19, 11, 6, 5, EOS]]
    config = SearchConfig(beam=3, nbest=3, length_factor=0, length_margin=5)
    prefixes = [[7, 7], [], [4]]
    found = searched(built.decoder, encoded(built, sources, extra=2), config, prefixes)
    for source, hypotheses, prefix in zip(sources, found, prefixes, strict=True):
        memory = encoded(built, [source])
        wanted = plain_search(built.decoder, memory, config, prefix)
        assert [(each.tokens, each.finished) for each in hypotheses] == [
            (each.tokens, each.finished) for each in wanted
        ]
        for each in hypotheses:
            tail = (EOS,) if each.finished else ()
            inputs, _ = pad([(BOS, *each.tokens, *tail)[:-1]])
            labels, keep = pad([(*each.tokens, *tail)])
            total = float(force(built.decoder, memory, inputs, labels, keep).sum())
            assert each.log_probability == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("name", ["convolutional", "bytenet", "experts", "batch norm", "mean", "sum"])
@torch.no_grad()
def test_an_exhaustive_beam_equals_brute_force(name: str) -> None:
    built = model(name, 7)
    memory = encoded(built, [[4, 5, EOS]])
    config = SearchConfig(beam=300, nbest=20, length_factor=0, length_margin=4)
    found = searched(built.decoder, memory, config)[0]
    wanted = brute_force(built.decoder, memory, config, 7)[:20]
    assert [each.tokens for each in found] == [each.tokens for each in wanted]
    assert [each.score for each in found] == pytest.approx([each.score for each in wanted], abs=1e-4)


@NAMES
def test_gradients_equal_differences(name: str) -> None:
    """In training, in double precision, with padding on both sides, in random directions through all parameters."""
    given = {"preset": None, "width": 4, "encoder": PAIRS[name][0], "decoder": PAIRS[name][1], "dropout": 0.0}
    twin = ModelConfig.model_validate(given).build(9, 9).double()
    twin.load_state_dict(model(name, 9, 4).state_dict())
    source, keep = pad([[5, 6, 2], [7, 2]])
    inputs, target_mask = pad([[1, 6], [1]])
    parameters = list(twin.parameters())

    def loss() -> Tensor:
        with collecting() as auxiliary:
            logits = twin(source, keep, inputs).logits()[target_mask]
        return logits.log_softmax(-1)[:, 5].sum() + auxiliary.penalty(3)[0]

    gradients = torch.autograd.grad(loss(), parameters)
    assert gradients[0].any()
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        directions = [torch.randn(each.shape, dtype=each.dtype, generator=generator) for each in parameters]
        values = []
        for sign in (1, -2):
            with torch.no_grad():
                for parameter, direction in zip(parameters, directions, strict=True):
                    parameter += sign * 1e-6 * direction
                values.append(loss())
        with torch.no_grad():
            for parameter, direction in zip(parameters, directions, strict=True):
                parameter += 1e-6 * direction
        expected = sum((gradient * each).sum() for gradient, each in zip(gradients, directions, strict=True))
        # the error is that of the step, not of rounding
        torch.testing.assert_close((values[0] - values[1]) / 2e-6, expected, rtol=1e-4, atol=1e-6)
