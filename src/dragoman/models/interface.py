"""The protocols that all models implement.

An encoder returns a `Memory`, and a decoder is a pure step function over a `State`, so all encoders and decoders can be
combined. Search, training and inspection work with all models that implement these protocols.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol, Self, TypeGuard

import torch
from torch import Tensor, nn

from dragoman.base.packing import Packing

Side = Literal["source", "target"]


@dataclass(frozen=True)
class LengthLimit:
    """The length limit of one side of a model.

    positions: number of positions, None if unlimited. setting: name of the setting that determines the limit.
    """

    side: Side
    positions: int | None
    setting: str

    @property
    def tokens(self) -> int | None:
        """Maximum number of tokens of a text. One position is reserved for the end of a source or start of a target."""
        return None if self.positions is None else self.positions - 1

    def exceeded(self, length: int) -> bool:
        """Return whether a text of `length` tokens is too long."""
        return self.tokens is not None and length > self.tokens

    def describe(self, length: int) -> str:
        """Return the first part of an error message about a text of `length` tokens. Callers append a suggestion."""
        special = "end" if self.side == "source" else "start"
        return (
            f"{length} {self.side} tokens, but the model has {self.positions} positions, one of them for the {special} "
            f"of the sentence ({self.setting})"
        )


class LengthLimits(NamedTuple):
    """The length limits of both sides of a model, source first."""

    source: LengthLimit
    target: LengthLimit


def first_exceeded(limits: Sequence[LengthLimit], *lengths: int) -> tuple[LengthLimit, int] | None:
    """Return the first limit that is exceeded, with the length that exceeds it, or None if no limit is exceeded."""
    return next(
        ((limit, length) for limit, length in zip(limits, lengths, strict=True) if limit.exceeded(length)), None
    )


TensorTree = Any
"""Tensors, or None, in nested dicts, lists, tuples, NamedTuples and dataclasses.

Numbers, bools and strings are allowed only as fields of a dataclass, where their values apply to all rows.
"""


class SupportsReorder(Protocol):
    """A part of a cache with its own method for selecting rows, such as a nested `State`."""

    def reorder(self, rows: Tensor, beam_size: int) -> "SupportsReorder":
        """See `State.reorder`."""
        ...


def tree_map(
    function: Callable[[Tensor], Tensor],
    tree: TensorTree,
    reorder: Callable[[SupportsReorder], SupportsReorder] | None = None,
) -> TensorTree:
    """Apply `function` to all tensors of a tree.

    reorder: function applied to parts that have a `reorder` method; None: these parts are traversed like any dataclass.
    Raises TypeError for an invalid leaf.
    """
    if isinstance(tree, Tensor):
        return function(tree)
    if tree is None:
        return None
    if reorder is not None and hasattr(tree, "reorder"):
        return reorder(tree)
    if isinstance(tree, dict):
        return {key: tree_map(function, value, reorder) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(tree_map(function, value, reorder) for value in tree))
    if isinstance(tree, list | tuple):
        return type(tree)(tree_map(function, value, reorder) for value in tree)
    if is_dataclass(tree) and not isinstance(tree, type):
        parts = {each.name: getattr(tree, each.name) for each in fields(tree)}
        changed = {
            name: tree_map(function, part, reorder)
            for name, part in parts.items()
            if not isinstance(part, bool | int | float | str)
        }
        return replace(tree, **changed)
    raise TypeError(
        f"a tree of tensors contains {tree!r:.80} of type {type(tree).__name__}, which has no rows to select: "
        "make it a tensor with one row per hypothesis or, if it is the same for all of them, a field of a dataclass"
    )


def tensors(tree: TensorTree) -> Iterator[Tensor]:
    """Yield all tensors of a tree."""
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

    final: (B, d), a summary of the whole text computed by the encoder, such as the last state of a recurrence; None if
    the encoder does not compute a summary. packing: the packing of the states (1, N, d), or None if they are padded. An
    encoder of several texts, or of several views of a text, may return any tree of memories. Only decoders access its
    contents; other code calls `source_mask`.
    """

    states: Tensor
    mask: Tensor
    final: Tensor | None = None
    packing: Packing | None = None

    @property
    def summary(self) -> Tensor:
        """The summary (B, d) of the text: `final` if it is not None, otherwise the mean of the states."""
        if self.final is not None:
            return self.final
        mask = self.mask.unsqueeze(2).to(self.states.dtype)
        return (self.states * mask).sum(1) / mask.sum(1).clamp_min(1)


def source_mask(memory: TensorTree) -> Tensor:
    """Return the mask (B, S) of a memory, or of the first memory in a tree, True at source tokens.

    Raises TypeError if the tree does not contain a memory.
    """
    for first in memories(memory):
        return first.mask
    raise TypeError(f"{type(memory).__name__} does not contain a Memory")


def memories(tree: TensorTree) -> Iterator[Memory]:
    """Yield all memories of a tree."""
    if isinstance(tree, Memory):
        yield tree
        return
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list | tuple) else ():
        yield from memories(part)


@dataclass(frozen=True)
class State:
    """The state of a decoder, which `step` accepts and returns. Do not reuse a state after passing it to `step`.

    memory: the source in the form in which the decoder stores it, a tree of tensors with one row per sentence (B rows);
    without a source, it contains no tensors. cache: a tree of tensors with one row per hypothesis (R = B · beam_size
    rows; the rows of a sentence are adjacent). Parts with a `reorder` method, such as a nested `State`, select their
    rows with it. position: number of tokens processed. beam_size: number of hypotheses per sentence. attention: whether
    `step` also returns attention weights. max_length: maximum number of tokens that the decoder supports, None if
    unlimited. left_padding: (R,) int64, number of padding tokens before the first token of each row; None for no
    padding. capacity: maximum number of tokens to process, for which caches are allocated and then updated in place;
    None if unknown, in which case caches grow.
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
        """Return the state after `tokens` more tokens."""
        return replace(self, cache=cache, position=self.position + tokens)

    def with_capacity(self, capacity: int | None) -> "State":
        """Return the state with another capacity, for decoders whose cache contains states of other decoders."""
        return self if capacity == self.capacity else replace(self, capacity=capacity)

    def reorder(self, rows: Tensor, beam_size: int) -> "State":
        """Return the state of the hypotheses with indices `rows` (R',) int64, `beam_size` per sentence.

        This method expands the state to a beam, reorders a beam and removes finished sentences. Each group of
        `beam_size` rows must belong to one sentence.
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
        """Return the memory of `sentences` (B',) int64, unchanged if they are all sentences in order."""
        first = next(tensors(self.memory), None)
        if first is None:
            return self.memory
        same = len(first) == len(sentences)
        if same and torch.equal(sentences, torch.arange(len(first), device=sentences.device)):
            return self.memory
        return tree_map(lambda tensor: tensor.index_select(0, sentences), self.memory)


class Output(Protocol):
    """The predictions of the next token after each of the (R, T) tokens of a step, computed on demand."""

    @property
    def attention(self) -> Tensor | None:
        """Attention weights over the source (R, T, S), without gradient: a distribution over unmasked positions.

        Row t corresponds to the prediction after token t. None if attention was not requested in `Decoder.start` or the
        decoder has no attention to the source.
        """
        ...

    def logits(self, positions: Tensor | None = None) -> Tensor:
        """Return unnormalised log-probabilities (N, V), float32 or wider, of the tokens that follow `positions`.

        positions: (R, T) bool with N True values, or (N,) int64 indices into the flattened tokens; None: all tokens, in
        which case the shape is (R, T, V).
        """
        ...

    def last_logits(self) -> Tensor:
        """Return the logits (R, V) after the last token of each row. The caller may modify the tensor in place."""
        ...


class LabelOutput(Output, Protocol):
    """An `Output` that computes the log-probabilities of single tokens faster than whole distributions."""

    def label_log_probabilities(self, positions: Tensor, labels: Tensor) -> Tensor:
        """Return the natural log-probabilities (N,) float32 of labels (N,) int64.

        positions: (N,) int64 indices into the flattened tokens; each label follows the token at its position.
        """
        ...


def scores_labels(output: Output) -> TypeGuard[LabelOutput]:
    """Return whether an output implements `LabelOutput`."""
    return hasattr(output, "label_log_probabilities")


class Trial(NamedTuple):
    """Arguments for calling a whole model on an artificial text, for example to measure its memory.

    source: the encoder's inputs; empty for a language model. inputs: (1, T) int64, the decoder's inputs; None for a
    model without a decoder.
    """

    source: tuple[Tensor, ...]
    inputs: Tensor | None = None

    @property
    def arguments(self) -> tuple[Tensor, ...]:
        """All arguments, in the order of the model's parameters."""
        return self.source if self.inputs is None else (*self.source, self.inputs)


class Model(Protocol):
    """A whole model of any kind, an nn.Module."""

    training: bool

    @property
    def limits(self) -> Iterable[LengthLimit]:
        """The length limits of the model's texts."""
        ...

    def trial(self, length: int) -> Trial:
        """Return arguments for a text of `length` tokens on each side, on the device of the model."""
        ...

    def __call__(self, *arguments: Any) -> Any:
        """Run the model with the arguments of a `Trial` or a batch. Returns a tree of tensors or an `Output`."""
        ...

    def eval(self) -> Self: ...

    def train(self, mode: bool = True) -> Self: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def named_modules(self) -> Iterator[tuple[str, nn.Module]]: ...


class DecoderModel(Model, Protocol):
    """A model with a decoder. Its arguments are the source, if there is one, and the inputs of the decoder."""

    @property
    def decoder(self) -> "Decoder": ...

    def encode_source(self, source: tuple[Tensor, ...]) -> TensorTree | None:
        """Return the memory of the source for `Decoder.start`, or None for a model without a source."""
        ...

    def __call__(self, *arguments: Tensor) -> Output:
        """Predict the token after each decoder input by teacher forcing. The inputs are the last argument."""
        ...


class CausalModel(DecoderModel, Protocol):
    """A model that predicts texts without a source, such as a language model.

    unbounded: whether texts of any length can be processed without a window, because the state has a constant size.
    """

    unbounded: bool


def has_decoder(model: Model) -> TypeGuard[DecoderModel]:
    """Return whether a model implements `DecoderModel`."""
    return hasattr(model, "decoder")


class SourceModel(DecoderModel, Protocol):
    """A model that predicts a target given a source."""

    @property
    def limits(self) -> LengthLimits:
        """The length limits of sources and targets."""
        ...

    def encode(self, tokens: Tensor, mask: Tensor) -> Memory:
        """Encode the source. The arguments are those of `Encoder`, or vectors (B, S, n) float32 instead of tokens."""
        ...


class Encoder(Protocol):
    """A module that encodes the source."""

    def __call__(self, tokens: Tensor, mask: Tensor) -> Memory:
        """Encode tokens (B, S) int64 with mask (B, S) bool, False at padding."""
        ...


class Decoder(Protocol):
    """A module that predicts the target, one or more tokens per step.

    A step of T tokens is equivalent to T steps of one token.
    """

    def start(
        self,
        memory: Memory | None,
        attention: bool = False,
        left_padding: Tensor | None = None,
        capacity: int | None = None,
    ) -> State:
        """Return the state before the first token, with one hypothesis per sentence.

        memory: the encoded source; None without a source, as in a language model, in which case the first tokens
        determine the number of rows. attention: whether `Output.attention` is computed. capacity: as in `State`, for
        token-by-token decoding. left_padding: as in `State`, for texts of unequal length that are padded on the left.
        Padding is not attended to. Positions, recurrences and convolutions start at the first token of each row.
        Outputs at padding are undefined.
        """
        ...

    def step(self, tokens: Tensor, state: State) -> tuple[Output, State]:
        """Process tokens (R, T) int64, which follow those processed so far; returns predictions and the new state.

        With teacher forcing, the whole target is processed in one step.
        """
        ...
