"""Trees of tensors: the contents of a state, refusals, and the reordering of states inside a state."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from dragoman.models.interface import Memory, State, source_mask, tree_map


class Named(NamedTuple):
    one: Tensor
    other: Tensor | None


@dataclass(frozen=True)
class Held:
    rows: list[Tensor]
    filled: int


def test_every_tensor_of_a_tree_is_mapped_and_constants_of_dataclasses_stay() -> None:
    def ones() -> Tensor:
        return torch.ones(2)

    tree = {"memory": Memory(ones(), ones()), "list": [None, (ones(),)], "named": Named(ones(), None)}
    mapped = tree_map(torch.neg, {**tree, "held": Held([ones()], 3), "state": State(ones(), ones(), position=4)})
    assert isinstance(mapped["named"], Named) and isinstance(mapped["memory"], Memory)
    assert mapped["held"].filled == 3 and mapped["state"].position == 4
    assert mapped["list"][0] is None and mapped["named"].other is None and mapped["memory"].final is None
    tensors = (
        *(mapped["memory"].states, mapped["memory"].mask, mapped["list"][1][0], mapped["named"].one),
        *(mapped["held"].rows[0], mapped["state"].memory, mapped["state"].cache),
    )
    assert all(tensor.tolist() == [-1, -1] for tensor in tensors)


@pytest.mark.parametrize("leaf", [3, True, 0.5, "text", torch.float32, {1, 2}, Memory])
def test_a_leaf_with_unknown_rows_is_refused(leaf: Any) -> None:
    for tree in ([leaf], {"leaf": (leaf,)}, Named(torch.ones(1), leaf)):
        with pytest.raises(TypeError, match="rows"):
            tree_map(torch.neg, tree)
    with pytest.raises(TypeError, match="rows"):
        State(None, [leaf]).reorder(torch.tensor([0]), 1)


def test_a_state_in_a_cache_keeps_sentences_and_hypotheses_apart() -> None:
    inner = State(memory=torch.tensor([10, 20]), cache=torch.tensor([1, 2, 3, 4]), beam_size=2)
    outer = State(memory=None, cache=[inner, torch.tensor([5, 6, 7, 8])], beam_size=2)
    found = outer.reorder(torch.tensor([3, 3, 2]), 3)
    assert found.cache[1].tolist() == [8, 8, 7] and found.beam_size == 3
    inside = found.cache[0]
    assert (inside.memory.tolist(), inside.cache.tolist(), inside.beam_size) == ([20], [4, 4, 3], 3)


def test_a_tree_of_memories_has_their_source() -> None:
    keep = torch.tensor([[True, False]])
    memory = Memory(torch.zeros(1, 2, 3), keep)
    assert source_mask({"first": [None, (memory,)], "second": Memory(torch.zeros(1, 5, 3), keep)}) is keep
    with pytest.raises(TypeError, match="does not contain a Memory"):
        source_mask(None)
