"""Preallocated caches give the same bits, are written in place, and take no more memory than requested."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman.models.interface import State
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.attention.cache import Keys, KeyValueCache, extend_cache

SIZE, CAPACITY = 20, 24
KINDS: dict[str, dict[str, Any]] = {
    "soft": {"kind": "soft"},
    "additive": {"kind": "soft", "scorer": {"kind": "additive", "width": 5}, "value_width": 6},
    "window": {"kind": "window", "window": 4},
}
# (tokens read, then rows taken and hypotheses per sentence): greedy with pruning, a beam, samples, some of which end
GREEDY = [(1, None, 1), (3, None, 1), (1, [0, 2], 1), (1, None, 1), (9, None, 1), (1, [1], 1), (1, None, 1)]
BEAM = [
    (1, [0, 0, 1, 1, 2, 2], 2),
    (1, [1, 0, 2, 2, 5, 4], 2),
    (1, [3, 2, 4, 5], 2),
    (2, [0, 1, 3, 3], 2),
    (1, None, 2),
]
SAMPLES = [(1, None, 2), (1, [0, 1, 4, 5], 2), (12, None, 2), (1, [2, 3], 2), (1, None, 2)]


def model(kind: str) -> Seq2Seq:
    torch.manual_seed(3)
    stack = {"kind": "transformer", "layers": 2, "heads": 2, "feedforward": 8, "attention": KINDS[kind]}
    settings = {"preset": None, "width": 8, "dropout": 0.0, "encoder": stack, "decoder": stack}
    return ModelConfig.model_validate({**settings, "positions": {"kind": "rotary"}}).build(SIZE, SIZE).eval()


@torch.no_grad()
def read(built: Seq2Seq, capacity: int | None, script: list[Any]) -> tuple[list[Tensor], list[State]]:
    torch.manual_seed(4)
    source = torch.randint(4, SIZE, (3, 5))
    state = built.decoder.start(built.encode(source, torch.ones_like(source, dtype=torch.bool)), capacity=capacity)
    if script is SAMPLES:
        state = state.reorder(torch.tensor([0, 0, 1, 1, 2, 2]), 2)
    rows, found, states = 6 if script is SAMPLES else 3, [], []
    for length, taken, beam_size in script:
        output, state = built.decoder.step(torch.randint(4, SIZE, (rows, length)), state)
        states.append(state)
        found.append(output.logits())
        if taken is not None:
            state, rows = state.reorder(torch.tensor(taken), beam_size), len(taken)
    return found, states


@pytest.mark.parametrize("script", [GREEDY, BEAM, SAMPLES], ids=["greedy", "beam", "samples"])
@pytest.mark.parametrize("kind", KINDS)
def test_preallocation_changes_no_bit(kind: str, script: list[Any]) -> None:
    built = model(kind)
    expected, _ = read(built, None, script)
    for capacity in (2, 5, CAPACITY):  # also if more is read than announced
        found, _ = read(built, capacity, script)
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_greedy_search_writes_in_place_and_a_beam_copies_the_used_part() -> None:
    _, states = read(model("soft"), CAPACITY, GREEDY)
    first, second = ([cache.keys.data_ptr() for cache in state.cache] for state in states[:2])
    assert first == second
    assert all(cache.keys.size(2) == CAPACITY and cache.length == 4 for cache in states[1].cache)
    assert all(cache.keys.size(2) == CAPACITY and cache.keys.size(0) == 2 for cache in states[3].cache)
    _, states = read(model("soft"), CAPACITY, BEAM)
    assert all(cache.keys.size(2) == cache.length == 6 and cache.keys.is_contiguous() for cache in states[-1].cache)


def test_a_window_needs_no_more_than_two() -> None:
    _, states = read(model("window"), 1000, [(1, None, 1)] * 30)
    # when two windows are full, the last one is copied
    assert all(cache.keys.size(2) in (3, 8) and cache.length == 3 for state in states[3:] for cache in state.cache)
    pointers = [states[place].cache[0].keys.data_ptr() for place in range(30)]
    assert len(set(pointers)) < 15


@torch.no_grad()
def test_a_large_limit_allocates_at_most_twice_the_used_part() -> None:
    cache = None
    for length in range(1, 301):
        cache = extend_cache(cache, Keys(torch.full((1, 1, 1, 2), length), torch.zeros(1, 1, 1, 3)), 10**12)
        assert cache.length == length and cache.keys.size(2) <= max(64, 2 * length)
    assert cache is not None
    assert cache.read().keys[0, 0, :, 1].tolist() == list(range(1, 301))


def test_nothing_is_written_in_place_if_gradients_are_needed() -> None:
    def keys(length: int) -> Keys:
        return Keys(*(torch.randn(2, 3, length, 4, requires_grad=True) for _ in range(2)))

    one, other = keys(2), keys(1)
    cache = extend_cache(extend_cache(None, one, CAPACITY), other, CAPACITY)
    assert cache.spare == 0
    cache.read().keys.square().sum().backward()
    for part in (one, other):
        assert part.keys.grad is not None
        torch.testing.assert_close(part.keys.grad, 2 * part.keys)


def test_unused_positions_are_not_copied() -> None:
    """Positions without a token may contain anything."""
    keys = torch.full((10, 3, 1, 1), torch.nan)
    keys[:4] = torch.arange(4.0).view(4, 1, 1, 1)
    cache = KeyValueCache(keys.permute(1, 2, 0, 3), keys.permute(1, 2, 0, 3), 1, 4)
    for found in (cache.reorder(torch.tensor([2, 0]), 1), cache.reorder(torch.tensor([2, 0, 1]), 3)):
        assert found.read().keys[:, 0, :, 0].tolist() == [[1, 2, 3]] * found.keys.size(0)
        assert found.length == 3
    assert replace(cache, first=4).length == 0
