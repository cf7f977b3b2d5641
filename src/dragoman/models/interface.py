"""The protocols that every model implements.

Any encoder passes a `Memory` to any decoder; a decoder is a pure step function over a `State`. One search, one training
loop and one inspector work with every model that implements them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol, Self, TypeGuard

import torch
from torch import Tensor, nn

Side = Literal["source", "target"]


@dataclass(frozen=True)
class LengthLimit:
    """The length limit of one side.

    positions: number of positions of its scheme, None if unlimited. setting: the setting that determines it.
    """

    side: Side
    positions: int | None
    setting: str

    @property
    def tokens(self) -> int | None:
        """Maximum number of tokens of a text: one position is for the end of a source or the beginning of a target."""
        return None if self.positions is None else self.positions - 1

    def exceeded(self, length: int) -> bool:
        """Whether a text of `length` tokens is too long."""
        return self.tokens is not None and length > self.tokens

    def describe(self, length: int) -> str:
        """Return the first part of an error message about a text of `length` tokens; callers append a remedy."""
        special = "end" if self.side == "source" else "beginning"
        return (
            f"{length} {self.side} tokens, but the model has {self.positions} positions, one of them for the {special} "
            f"of the sentence ({self.setting})"
        )


class LengthLimits(NamedTuple):
    """The length limits of both sides of a model, source first."""

    source: LengthLimit
    target: LengthLimit


def first_exceeded(limits: Sequence[LengthLimit], *lengths: int) -> tuple[LengthLimit, int] | None:
    """Return the first limit that a pair of texts exceeds, with the excessive length; None if there is none."""
    return next(
        ((limit, length) for limit, length in zip(limits, lengths, strict=True) if limit.exceeded(length)), None
    )


TensorTree = Any
"""Tensors, or None, in nested dicts, lists, tuples, NamedTuples and dataclasses.

Numbers, bools and strings have no rows. They are allowed only as fields of a dataclass, where they are constants for
all rows.
"""


class Reordered(Protocol):
    """A part of a cache that selects its own rows, such as a nested `State`."""

    def reorder(self, rows: Tensor, beam_size: int) -> "Reordered":
        """See `State.reorder`."""
        ...


def tree_map(
    function: Callable[[Tensor], Tensor], tree: TensorTree, reordered: Callable[[Reordered], Reordered] | None = None
) -> TensorTree:
    """Apply `function` to every tensor of a tree.

    reordered: applied to parts that have a method `reorder`; None: they are traversed like any dataclass. Raises
    TypeError for an invalid leaf.
    """
    if isinstance(tree, Tensor):
        return function(tree)
    if tree is None:
        return None
    if reordered is not None and hasattr(tree, "reorder"):
        return reordered(tree)
    if isinstance(tree, dict):
        return {key: tree_map(function, value, reordered) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(tree_map(function, value, reordered) for value in tree))
    if isinstance(tree, list | tuple):
        return type(tree)(tree_map(function, value, reordered) for value in tree)
    if is_dataclass(tree) and not isinstance(tree, type):
        parts = {each.name: getattr(tree, each.name) for each in fields(tree)}
        changed = {
            name: tree_map(function, part, reordered)
            for name, part in parts.items()
            if not isinstance(part, bool | int | float | str)
        }
        return replace(tree, **changed)
    raise TypeError(
        f"a tree of tensors contains {tree!r:.80} of type {type(tree).__name__}, which has no rows to select: "
        "make it a tensor with one row per hypothesis or, if it is the same for all of them, a field of a dataclass"
    )


def tensors(tree: TensorTree) -> Iterator[Tensor]:
    """Every tensor in a tree."""
    if isinstance(tree, Tensor):
        yield tree
        return
    if isinstance(tree, dict):
        tree = list(tree.values())
    elif is_dataclass(tree):
        tree = [getattr(tree, each.name) for each in fields(tree)]
    for part in tree if isinstance(tree, list | tuple) else ():
        yield from tensors(part)


@dataclass(frozen=True)
class Memory:
    """The output of an encoder: states (B, S, d) and mask (B, S) bool, True where a decoder may attend.

    final: (B, d), an encoder's own summary of the whole text, such as the last state of a recurrence; None if there is
    no such summary. An encoder of several texts, or of several views of one text, may return any tree of memories; only
    decoders access its content, other code calls `source_mask`.
    """

    states: Tensor
    mask: Tensor
    final: Tensor | None = None

    @property
    def summary(self) -> Tensor:
        """(B, d): the encoder's own summary if there is one, otherwise the mean of the states."""
        if self.final is not None:
            return self.final
        mask = self.mask.unsqueeze(2).to(self.states.dtype)
        return (self.states * mask).sum(1) / mask.sum(1).clamp_min(1)


def source_mask(memory: TensorTree) -> Tensor:
    """Return the mask (B, S) of a memory, or of the first memory in a tree; True at source tokens.

    Raises TypeError if there is no memory in the tree.
    """
    for found in memories(memory):
        return found.mask
    raise TypeError(f"{type(memory).__name__} holds no Memory")


def memories(tree: TensorTree) -> Iterator[Memory]:
    """Every Memory in a tree."""
    if isinstance(tree, Memory):
        yield tree
        return
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list | tuple) else ():
        yield from memories(part)


@dataclass(frozen=True)
class State:
    """The state of a decoder, a value that `step` takes and returns. Do not use it again after passing it in.

    memory: the source as the decoder stores it, a tree of tensors with one row per sentence (B rows); it has no tensors
    if there is no source. cache: a tree of tensors with one row per hypothesis (R = B · beam_size rows; the rows of a
    sentence are adjacent); parts with a method `reorder`, such as a nested `State`, select their own rows. position:
    number of tokens read. beam_size: hypotheses per sentence. attention: whether `step` also returns attention weights.
    max_length: maximum number of tokens that this decoder can read, None if unlimited. left_padding: (R,) int64, number
    of padding tokens before the first token of each row; None for no padding. capacity: maximum number of tokens that
    will be read, for which caches are allocated and then written in place; None: unknown, caches grow.
    """

    memory: TensorTree
    cache: TensorTree
    position: int = 0
    beam_size: int = 1
    attention: bool = False
    max_length: int | None = None
    left_padding: Tensor | None = None
    capacity: int | None = None

    def after(self, tokens: int, cache: TensorTree) -> "State":
        """The state after reading `tokens` more tokens."""
        return replace(self, cache=cache, position=self.position + tokens)

    def reorder(self, rows: Tensor, beam_size: int) -> "State":
        """Select hypotheses `rows` (R',) int64 of the old state, `beam_size` per sentence.

        Expanding to a beam, reordering within it and removing finished sentences are all done by such a selection.
        Each group of `beam_size` rows must come from one sentence.
        """
        return replace(
            self,
            memory=self._memory_of(torch.div(rows[::beam_size], self.beam_size, rounding_mode="floor")),
            cache=tree_map(
                lambda tensor: tensor.index_select(0, rows), self.cache, lambda part: part.reorder(rows, beam_size)
            ),
            beam_size=beam_size,
            left_padding=None if self.left_padding is None else self.left_padding.index_select(0, rows),
        )

    def _memory_of(self, sentences: Tensor) -> TensorTree:
        """The memory of `sentences` (B',) int64; unchanged if they are all sentences in order."""
        first = next(tensors(self.memory), None)
        if first is None:
            return self.memory
        same = len(first) == len(sentences)
        if same and torch.equal(sentences, torch.arange(len(first), device=sentences.device)):
            return self.memory
        return tree_map(lambda tensor: tensor.index_select(0, sentences), self.memory)


class Output(Protocol):
    """The predictions of the next token after each of the (R, T) tokens of a step; computed on demand."""

    @property
    def attention(self) -> Tensor | None:
        """Attention weights over the source (R, T, S), without gradient: a distribution over unmasked positions.

        Row t belongs to the prediction after token t. None if the state does not request attention or the decoder has
        no attention to the source.
        """
        ...

    def logits(self, positions: Tensor | None = None) -> Tensor:
        """Return unnormalised log-probabilities (N, V), float32 or wider, of the tokens that follow `positions`.

        positions: (R, T) bool with N True values, or (N,) int64 indices of tokens counted row by row; None: all tokens,
        as (R, T, V).
        """
        ...

    def last_logits(self) -> Tensor:
        """Return the logits (R, V) after the last token of each row, a new tensor that a search may modify in place."""
        ...


class Trial(NamedTuple):
    """Arguments for calling a whole model on an artificial text, for example to measure its memory.

    source: the encoder's inputs; empty for a language model. inputs: (1, T) int64, the decoder's inputs; None for a
    model without a decoder.
    """

    source: tuple[Tensor, ...]
    inputs: Tensor | None = None

    @property
    def arguments(self) -> tuple[Tensor, ...]:
        """All arguments, in the order in which the model takes them."""
        return self.source if self.inputs is None else (*self.source, self.inputs)


class Model(Protocol):
    """A whole model of any kind, an nn.Module."""

    training: bool

    @property
    def limits(self) -> Iterable[LengthLimit]:
        """The length limits of the model's texts."""
        ...

    def trial(self, length: int) -> Trial:
        """Arguments for a text of `length` tokens on each side, on the device of the model's parameters."""
        ...

    def __call__(self, *arguments: Any) -> Any:
        """Run the model on the arguments of a `Trial` or a batch; returns a tree of tensors, or an `Output`."""
        ...

    def eval(self) -> Self: ...

    def train(self, mode: bool = True) -> Self: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def named_modules(self) -> Iterator[tuple[str, nn.Module]]: ...


class DecoderModel(Model, Protocol):
    """A model with a decoder. Its arguments are the source, if it has one, and the inputs of the decoder."""

    @property
    def decoder(self) -> "Decoder": ...

    def remember(self, source: tuple[Tensor, ...]) -> TensorTree | None:
        """Encode the source into the memory that the decoder starts from; returns None without a source."""
        ...

    def __call__(self, *arguments: Tensor) -> Output:
        """Teacher forcing: predict the next token after each of the decoder's inputs, which are the last argument."""
        ...


class CausalModel(DecoderModel, Protocol):
    """A model that predicts texts without a source, such as a language model.

    unbounded: whether it reads texts of any length without a window, by carrying its state along.
    """

    unbounded: bool


def has_decoder(model: Model) -> TypeGuard[DecoderModel]:
    """Whether a model implements `DecoderModel`."""
    return hasattr(model, "decoder")


class SourceModel(DecoderModel, Protocol):
    """A model that predicts a target given a source."""

    @property
    def limits(self) -> LengthLimits:
        """The length limits of sources and targets."""
        ...

    def encode(self, tokens: Tensor, mask: Tensor) -> Memory:
        """Encode the source; arguments as in `Encoder`, or vectors (B, S, n) float32 instead of tokens."""
        ...


class Encoder(Protocol):
    """Encodes the source."""

    def __call__(self, tokens: Tensor, mask: Tensor) -> Memory:
        """Encode tokens (B, S) int64 with mask (B, S) bool, False at padding."""
        ...


class Decoder(Protocol):
    """Predicts the target, one or more tokens per step. A step of T tokens equals T steps of one token."""

    def start(
        self,
        memory: Memory | None,
        attention: bool = False,
        left_padding: Tensor | None = None,
        capacity: int | None = None,
    ) -> State:
        """Return the state before the first token, with one hypothesis per sentence.

        memory: the encoded source; None without a source, as in a language model, where the first tokens determine the
        number of rows.
        attention: request `Output.attention`. capacity: as in `State`, for reading token by token. left_padding: as in
        `State`, for texts of unequal length that are padded on the left. Padding is not attended to, the positions of a
        row count from its first token, and recurrences and convolutions start there. Outputs at padding are undefined.
        """
        ...

    def step(self, tokens: Tensor, state: State) -> tuple[Output, State]:
        """Read tokens (R, T) int64, which follow those read so far. Teacher forcing reads the target in one step."""
        ...
