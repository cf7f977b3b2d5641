"""Invariants of encoders and decoders for attention with a bounded state, alone and mixed."""

from functools import cache
from random import Random
from typing import Any

import pytest
import torch
from closeness import assert_close
from decoder_inputs import started, targets
from hypothesis import given, settings
from hypothesis import strategies as st
from random_parameters import perturb

from dragoman.data.batches.batch import pad
from dragoman.models.interface import tree_map
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.attention.window import WindowAttention

SIZE = 20
CLOSE = {"rtol": 1e-4, "atol": 1e-4}
SOFT, LINEAR = {"kind": "soft"}, {"kind": "linear"}
MODELS: dict[str, dict[str, Any]] = {
    "windows": {"encoder": {"kind": "window", "window": 2}, "decoder": {"kind": "window", "window": 3}, "cross": SOFT},
    "windows, additive": {
        "encoder": {"kind": "window", "window": 1, "scorer": {"kind": "additive"}},
        "decoder": {"kind": "window", "window": 2, "scorer": {"kind": "additive"}},
        "cross": SOFT,
    },
    "linear": {"encoder": LINEAR, "decoder": LINEAR, "cross": LINEAR},
    "window, then linear": {"encoder": {"kind": "window", "window": 3}, "decoder": LINEAR, "cross": SOFT},
    "linear, then window": {"encoder": LINEAR, "decoder": {"kind": "window", "window": 2}, "cross": LINEAR},
    "linear, rotary": {"encoder": LINEAR, "decoder": LINEAR, "cross": SOFT, "positions": {"kind": "rotary"}},
    "windows, relative": {
        "encoder": {"kind": "window", "window": 3},
        "decoder": {"kind": "window", "window": 4},
        "cross": SOFT,
        "positions": {"kind": "relative"},
    },
    "windows, alibi": {
        "encoder": {"kind": "window", "window": 3, "normaliser": "sum"},
        "decoder": {"kind": "window", "window": 4},
        "cross": LINEAR,
        "positions": {"kind": "alibi"},
    },
    "ssru": {"encoder": SOFT, "decoder": {"kind": "ssru"}, "cross": SOFT, "target_positions": {"kind": "none"}},
    "average": {"encoder": SOFT, "decoder": {"kind": "average", "inner": 5}, "cross": LINEAR},
    "windows, rotary, linear": {
        "encoder": {"kind": "window", "window": 4},
        "decoder": {"kind": "window", "window": 2},
        "cross": LINEAR,
        "positions": {"kind": "rotary"},
    },
}


@cache
def model(name: str) -> Seq2Seq:
    """Blocks are smaller than the sentences, so that sentences span several."""
    torch.manual_seed(6)
    stack = {"layers": 2, "heads": 2, "feedforward": 12}
    settings = MODELS[name]
    encoder = {**stack, "attention": settings["encoder"]}
    decoder = {**stack, "attention": settings["decoder"], "cross_attention": settings["cross"]}
    positions = {name: settings.get(name) for name in ("positions", "target_positions")}
    config = ModelConfig.model_validate(
        {"preset": None, "width": 8, "encoder": encoder, "decoder": decoder, **positions}
    )
    built = perturb(config.build(SIZE, SIZE).eval())
    for module in built.modules():
        if isinstance(module, WindowAttention):
            module.block = 2
    return built


@pytest.fixture(autouse=True, scope="module")
def _small_chunks() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dragoman.nn.attention.linear._CHUNK", 2)
        yield


NAMES = pytest.mark.parametrize("name", MODELS)
TOKENS = st.integers(4, SIZE - 1)
SENTENCES = st.lists(st.lists(TOKENS, min_size=1, max_size=9), min_size=1, max_size=4)


@NAMES
@settings(max_examples=8, deadline=None)
@given(sources=SENTENCES, split=st.lists(st.integers(1, 6), min_size=1, max_size=5))
@torch.no_grad()
def test_any_split_of_the_steps_equals_the_whole(name: str, sources: list[list[int]], split: list[int]) -> None:
    built = model(name)
    tokens = targets(len(sources), sum(split), SIZE)
    whole, _ = built.decoder.step(tokens, started(built, sources))
    for lengths in (split, [1] * sum(split)):
        state, parts = started(built, sources), []
        for part in tokens.split(lengths, 1):
            output, state = built.decoder.step(part, state)
            parts.append(output.logits())
        assert_close(torch.cat(parts, 1), whole.logits())


@NAMES
@settings(max_examples=4, deadline=None)
@given(sources=SENTENCES, data=st.data())
@torch.no_grad()
def test_reordered_hypotheses_continue_as_if_read_alone(
    name: str, sources: list[list[int]], data: st.DataObject
) -> None:
    built = model(name)
    state, read, owners = (
        started(built, sources),
        torch.zeros(len(sources), 0, dtype=torch.int64),
        [*range(len(sources))],
    )
    width = 1
    for _ in range(3):
        step = torch.tensor(data.draw(st.lists(TOKENS, min_size=len(owners), max_size=len(owners))))[:, None]
        output, state = built.decoder.step(step, state)
        read = torch.cat([read, step], 1)
        for row, owner in enumerate(owners):
            alone, _ = built.decoder.step(read[row : row + 1], started(built, [sources[owner]]))
            assert_close(output.logits()[row, -1], alone.logits()[0, -1])
        kept = sorted(data.draw(st.sets(st.integers(0, len(owners) // width - 1), min_size=1)))
        wider = data.draw(st.integers(1, 3))
        chosen = [each * width + data.draw(st.integers(0, width - 1)) for each in kept for _ in range(wider)]
        rows = torch.tensor(chosen)
        state, read, owners, width = state.reorder(rows, wider), read[rows], [owners[row] for row in chosen], wider


@NAMES
@settings(max_examples=6, deadline=None)
@given(sources=SENTENCES, extra=st.integers(0, 5), random=st.randoms(use_true_random=False))
@torch.no_grad()
def test_padding_and_the_batchs_order_change_nothing(
    name: str, sources: list[list[int]], extra: int, random: Random
) -> None:
    built = model(name)
    tokens = targets(len(sources), 5, SIZE)
    order = random.sample(range(len(sources)), len(sources))
    found = built.decoder.step(tokens[order], started(built, [sources[row] for row in order], extra))[0].logits()
    for place, row in enumerate(order):
        alone = built.decoder.step(tokens[row : row + 1], started(built, [sources[row]]))[0].logits()[0]
        assert_close(found[place], alone)


@NAMES
@settings(max_examples=5, deadline=None)
@given(sources=SENTENCES, place=st.integers(1, 6))
@torch.no_grad()
def test_later_tokens_do_not_change_earlier_ones(name: str, sources: list[list[int]], place: int) -> None:
    built = model(name)
    tokens = targets(len(sources), 8, SIZE)
    changed = tokens.clone()
    changed[:, place] = 4 + (tokens[:, place] - 3) % (SIZE - 4)
    one = built.decoder.step(tokens, started(built, sources))[0].logits()
    two = built.decoder.step(changed, started(built, sources))[0].logits()
    assert_close(one[:, :place], two[:, :place])
    assert not torch.allclose(one[:, place], two[:, place], **CLOSE)


@NAMES
@torch.no_grad()
def test_the_cache_is_as_large_after_many_tokens_as_after_few(name: str) -> None:
    built = model(name)
    sizes = []
    for length in (8, 30):
        _, state = built.decoder.step(targets(1, length, SIZE), started(built, [[5, 6, 7]]))
        sizes.append([])
        tree_map(lambda tensor: sizes[-1].append(tensor.shape) or tensor, state.cache)
    assert sizes[0] == sizes[1]


@NAMES
@torch.no_grad()
def test_returning_attention_changes_nothing_else(name: str) -> None:
    built, tokens = model(name), targets(2, 9, SIZE)
    sources = [[5, 6, 7, 8, 9], [10, 11]]
    plain, _ = built.decoder.step(tokens, started(built, sources))
    read, keep = pad(sources)
    state = built.decoder.start(built.encode(read, keep), attention=True)
    shown = []
    for part in tokens.split([1, 5, 3], 1):
        output, state = built.decoder.step(part, state)
        shown.append(output)
    assert_close(torch.cat([each.logits() for each in shown], 1), plain.logits())
    weights = torch.cat([each.attention for each in shown], 1)  # type: ignore[misc]
    assert weights.shape == (2, 9, 5)
    assert_close(weights.sum(2), torch.ones(2, 9))
    assert not weights[1, :, 2:].any()


@NAMES
def test_every_parameter_learns(name: str) -> None:
    built = model(name)
    read, keep = pad([[5, 6, 7, 8, 9, 10, 11], [10, 11]])
    built(read, keep, targets(2, 9, SIZE)).logits().square().sum().backward()
    silent = [
        each for each, parameter in built.named_parameters() if parameter.grad is None or not parameter.grad.any()
    ]
    built.zero_grad()
    assert not [each for each in silent if not each.endswith("key.bias")]  # softmax is not affected by a key's bias
