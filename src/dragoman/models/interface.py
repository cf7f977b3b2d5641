"""The two promises that every model family keeps.

Any encoder hands a `Memory` to any decoder; a decoder is a pure step function over a `State`. One search, one training
loop and one inspector serve every model that keeps them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

Tree = Any
"""Nested dicts, lists and tuples whose leaves are tensors (or None)."""


def tree_map(function: Callable[[Tensor], Tensor], tree: Tree) -> Tree:
    """The same tree with `function` applied to every tensor in it."""
    if isinstance(tree, Tensor):
        return function(tree)
    if isinstance(tree, dict):
        return {key: tree_map(function, value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(tree_map(function, value) for value in tree)
    return tree


@dataclass(frozen=True)
class Memory:
    """What any encoder gives to any decoder: states (B, S, d) and keep (B, S) bool, True where a decoder may attend.

    final: (B, d), an encoder's own summary of the whole text, such as the last state of a recurrence; None where it
    has none.
    """

    states: Tensor
    keep: Tensor
    final: Tensor | None = None

    @property
    def summary(self) -> Tensor:
        """(B, d): the encoder's own summary, or else the mean of the states."""
        if self.final is not None:
            return self.final
        keep = self.keep.unsqueeze(2).to(self.states.dtype)
        return (self.states * keep).sum(1) / keep.sum(1).clamp_min(1)


@dataclass(frozen=True)
class State:
    """Where a decoder stands, as a value: passed in and out of `step`, and not used again once passed in.

    memory: a tree of tensors with one row a sentence (B rows). cache: a tree of tensors with one row a hypothesis
    (R = B · width rows; rows of a sentence are neighbours). position: tokens read so far. attention: whether `step`
    shall give its attention too. limit: tokens that this decoder can read at most, None for any number.
    """

    memory: Tree
    cache: Tree
    position: int = 0
    width: int = 1
    attention: bool = False
    limit: int | None = None

    def after(self, tokens: int, cache: Tree) -> "State":
        """The state once so many more tokens are read."""
        return replace(self, cache=cache, position=self.position + tokens)

    def reorder(self, rows: Tensor, width: int) -> "State":
        """Take hypotheses `rows` (R',) int64 of the old state, `width` of them a sentence.

        Expansion to a beam, reordering within it and pruning of finished sentences are all this one row-take. Each run
        of `width` rows must come from one sentence.
        """
        sentences = torch.div(rows[::width], self.width, rounding_mode="floor")

        def take(tensor: Tensor) -> Tensor:
            same = len(sentences) == len(tensor) and torch.equal(
                sentences, torch.arange(len(tensor), device=rows.device)
            )
            return tensor if same else tensor.index_select(0, sentences)

        return replace(
            self,
            memory=tree_map(take, self.memory),
            cache=tree_map(lambda tensor: tensor.index_select(0, rows), self.cache),
            width=width,
        )


@dataclass(frozen=True)
class Output:
    """What a step gives for each of its tokens.

    hidden: (R, T, d), what the vocabulary projection reads; project: maps (…, d) to logits (…, V).
    attention: where the state asks for it and the decoder attends the source, (R, T, S) without gradient: how much the
    prediction after each token looked at each source position, a distribution over those that the memory keeps; else
    None.
    """

    hidden: Tensor
    project: Callable[[Tensor], Tensor]
    attention: Tensor | None = None

    @property
    def logits(self) -> Tensor:
        """(R, T, V) unnormalised log-probabilities of the next token after each of the T read."""
        return self.project(self.hidden)


class Encoder(Protocol):
    """Reads the source."""

    def __call__(self, tokens: Tensor, keep: Tensor) -> Memory:
        """tokens: (B, S) int64; keep: (B, S) bool, False at padding."""
        ...


class Decoder(Protocol):
    """Writes the target, one or many tokens a step; T tokens at once equal T steps of one token."""

    def start(self, memory: Memory, attention: bool = False) -> State:
        """The state before any token, one hypothesis a sentence. attention: ask for `Output.attention`."""
        ...

    def step(self, tokens: Tensor, state: State) -> tuple[Output, State]:
        """Read tokens (R, T) int64 after those that `state` has seen. Teacher forcing is T = the whole target."""
        ...
