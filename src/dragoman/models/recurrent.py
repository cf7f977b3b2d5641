"""Recurrent encoder, and recurrent decoder with or without attention to the source."""

from collections.abc import Mapping
from contextlib import nullcontext
from itertools import pairwise
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from dragoman.base.settings.config import Config, kinds, union_members
from dragoman.models.family import DecoderContext, DecoderFamily, EncoderFamily, ProjectedOutput, SideContext
from dragoman.models.interface import Memory, State, TensorTree
from dragoman.nn.attention.interface import AttentionSizes
from dragoman.nn.attention.recording import mean_over_heads, recording
from dragoman.nn.attention.soft import SoftAttentionConfig
from dragoman.nn.attention.union import SourceAttentionConfig
from dragoman.nn.dropout import Dropout
from dragoman.nn.mask import Mask
from dragoman.nn.recurrent.cell import States
from dragoman.nn.recurrent.cells import CELLS, CellKind
from dragoman.nn.recurrent.stack import Reader
from dragoman.nn.recurrent.wiring import Attend, BahdanauConfig, BridgeKind, InitialStates, WiringConfig, WiringSizes
from dragoman.nn.scorers import AdditiveConfig
from dragoman.text.symbols import PAD


class _Layers(Config):
    """Settings that the encoder and the decoder share."""

    kind: Literal["recurrent"] = "recurrent"
    cell: CellKind = Field("gru", description="Recurrent unit: rnn (vanilla, tanh), gru or lstm.")
    layers: int = Field(1, ge=1, description="Number of layers.")
    hidden: int | None = Field(
        None, ge=1, description="Width H of the hidden state, per direction; null: the model width d."
    )


class RecurrentEncoderConfig(_Layers, EncoderFamily):
    """h_i = f(x_i, h_{i−1}) (deck 002), by default in both directions (Bahdanau et al. 2015, section 3.2)."""

    bidirectional: bool = Field(
        True, description="Add a second recurrence that reads from right to left; the two states are concatenated."
    )

    def build(self, context: SideContext) -> "RecurrentEncoder":
        """Build the embeddings and layers."""
        return RecurrentEncoder(self, context)


class RecurrentEncoder(nn.Module):
    """Embeddings and recurrent layers. Implements `Encoder`. Padding must follow the text.

    If the states are not d wide, as with two directions of width d, a linear layer projects them to width d.
    """

    timed = (("forward", "encoder"),)

    def __init__(self, config: RecurrentEncoderConfig, context: SideContext) -> None:
        super().__init__()
        self.embedding, width = context.embedding, context.width
        self.reader = Reader(
            CELLS[config.cell],
            width,
            config.hidden or width,
            config.layers,
            config.bidirectional,
            context.dropout.residual,
        )
        same = self.reader.output_width == width
        self.output = nn.Identity() if same else nn.Linear(self.reader.output_width, width)

    def forward(self, tokens: Tensor, mask: Tensor) -> Memory:
        """tokens (B, S) int64, mask (B, S) bool → states (B, S, d) and final states (B, d)."""
        states, final = self.reader(self.embedding(tokens, mask=mask), mask)
        return Memory(self.output(states), mask, self.output(final))


class RecurrentDecoderConfig(_Layers, DecoderFamily):
    """h'_t = f(h'_{t−1}, y_{t−1}, c_t) (deck 002): a recurrent decoder that attends to the source at every step.

    Defaults of `attention` are those of Bahdanau et al. 2015: no projections and the additive scorer.
    """

    recurrent: ClassVar[bool] = True
    without_source: ClassVar[Mapping[str, Any]] = {"bridge": "none", "attention": None}

    wiring: WiringConfig = Field(
        BahdanauConfig(), description="Order of attention and recurrence, and the inputs of the prediction."
    )
    bridge: BridgeKind = Field(
        "initial",
        description="Use of the encoder's summary (its last state, or otherwise the mean of its states): for the "
        "initial state, concatenated to every input, both, or not at all.",
    )
    attention: SourceAttentionConfig | None = Field(
        SoftAttentionConfig(projections=False, scorer=AdditiveConfig()),
        description="Attention to the source in each step; null: none.",
    )
    heads: int = Field(1, ge=1, description="Number of attention heads h.")

    @model_validator(mode="before")
    @classmethod
    def _attend_without_projections(cls, values: Any) -> Any:
        given = values.get("attention") if isinstance(values, dict) else None
        if not isinstance(given, dict):
            return values
        defaults = {"projections": False, "scorer": {"kind": "additive"}}
        kind = given.get("kind", "soft")
        fields = {
            name
            for group in union_members(SourceAttentionConfig)
            if kind in kinds(group)
            for name in group.model_fields
        }
        return {**values, "attention": {**{name: value for name, value in defaults.items() if name in fields}, **given}}

    def build(self, context: DecoderContext) -> "RecurrentDecoder":
        """Build the embeddings, layers, attention and vocabulary projection."""
        return RecurrentDecoder(self, context)


class RecurrentDecoder(nn.Module):
    """Embeddings, recurrent layers, attention and the vocabulary projection. Implements `Decoder`.

    The cache of a hypothesis holds the states of each layer and the wiring's feedback, so its size is constant.
    """

    timed = (("start", "decoder"), ("step", "decoder"))

    def __init__(self, config: RecurrentDecoderConfig, context: DecoderContext) -> None:
        super().__init__()
        self.embedding, self.projection = context.embedding, context.projection
        width, dropout = context.width, context.dropout
        cell, hidden = CELLS[config.cell], config.hidden or width
        self.states = config.layers, cell.components, hidden
        query = config.wiring.query_width(width, hidden)
        self.cross_attention = (
            None
            if config.attention is None
            else config.attention.build(AttentionSizes(query, width, width, config.heads, dropout.attention))
        )
        self.bridge = (
            InitialStates(width, hidden, config.layers, cell.components)
            if config.bridge in ("initial", "both")
            else None
        )
        self.concatenates = config.bridge in ("concatenate", "both")
        attended = 0 if self.cross_attention is None else self.cross_attention.output_width
        summary = width if self.concatenates else 0
        self.wiring = config.wiring.build(
            WiringSizes(width, hidden, attended, summary, cell, config.layers, dropout.residual)
        )
        self.dropout = Dropout(dropout.residual)

    def start(
        self,
        memory: Memory | None,
        attention: bool = False,
        left_padding: Tensor | None = None,
        capacity: int | None = None,
    ) -> State:
        """Compute the initial states from the source's summary, and project the source for attention once.

        The cache does not grow, so capacity has no effect. Without a source, the initial states, the summary and
        the context are zeros.
        """
        max_length = self.embedding.positions.limit
        if memory is None:
            return State(None, None, max_length=max_length, left_padding=left_padding)
        source = memory.states
        padding = Mask.padding(memory.mask)
        states = self._zeros(len(source)) if self.bridge is None else self.bridge(memory.summary)
        with recording() if attention else nullcontext():  # recording weights keeps more of the memory
            projected = None if self.cross_attention is None else self.cross_attention.project_memory(source, padding)
        constant = self.wiring.summarise(memory.summary) if self.concatenates else None
        return State(
            {"mask": memory.mask, "attention": projected, "constant": constant},
            {"states": states, "feed": self.wiring.initial_feed(states[0][0])},
            attention=attention and self.cross_attention is not None,
            max_length=max_length,
            left_padding=left_padding,
        )

    def step(self, tokens: Tensor, state: State) -> tuple[ProjectedOutput, State]:
        """Read tokens (R, T); the first is at `state.position`."""
        rows, length = tokens.shape
        constant = None if state.memory is None else state.memory["constant"]
        if constant is not None and len(constant) != rows:
            constant = constant.repeat_interleave(state.beam_size, 0)
        embedded = self.embedding(tokens, state.position, left_padding=state.left_padding).transpose(0, 1)
        past = state.cache
        if past is None:
            states = self._zeros(rows)
            past = {"states": states, "feed": self.wiring.initial_feed(states[0][0])}
        parts = []
        with recording() if state.attention else nullcontext() as weights:
            for first, last in pairwise(_split_points(state, length)):
                attend = self._attention(tokens[:, first:last], state)
                before = past
                hidden, states, feed = self.wiring(embedded[first:last], constant, attend, past["states"], past["feed"])
                parts.append(hidden)
                past = {"states": states, "feed": feed}
                if state.left_padding is not None:
                    past = _keep_padded_rows(past, before, state.left_padding < state.position + last)
        attention = None if weights is None else mean_over_heads(weights, self.cross_attention, rows)  # type: ignore[arg-type]
        hidden = parts[0] if len(parts) == 1 else torch.cat(parts)
        return ProjectedOutput(self.dropout(hidden.transpose(0, 1)), self.projection, attention), state.after(
            length, past
        )

    def _zeros(self, rows: int) -> list[States]:
        layers, components, hidden = self.states
        zeros = self.projection.weight.new_zeros(rows, hidden)
        return [(zeros,) * components for _ in range(layers)]

    def _attention(self, tokens: Tensor, state: State) -> Attend | None:
        """Return the function with which the wiring attends to the source; None without attention."""
        attention = self.cross_attention
        if attention is None:
            return None
        if state.memory is None:
            return lambda queries, first: queries.new_zeros(*queries.shape[:2], attention.output_width)
        memory: TensorTree = state.memory["attention"]
        padding = Mask.padding(state.memory["mask"])
        mask = tokens != PAD if self.training else None

        def attend(queries: Tensor, first: int) -> Tensor:
            kept = None if mask is None else mask[:, first : first + queries.size(1)]
            return attention.cross_attend(queries, memory, padding, kept)

        return attend


def _split_points(state: State, length: int) -> list[int]:
    """Return the positions, 0 and `length` included, at which a step is split: where the padding of a row ends."""
    if state.left_padding is None:
        return [0, length]
    ends = {end - state.position for end in state.left_padding.tolist()}
    return sorted({0, length, *(end for end in ends if 0 < end < length)})


def _keep_padded_rows(after: TensorTree, before: TensorTree, begun: Tensor) -> TensorTree:
    """Return the cache `after` a part of a step; rows that are still in their padding keep the cache from `before`.

    begun: (R,) bool, True for rows whose text has begun.
    """
    if after is None:
        return None
    if isinstance(after, Tensor):
        return torch.where(begun[:, None], after, before)
    if isinstance(after, dict):
        return {name: _keep_padded_rows(after[name], before[name], begun) for name in after}
    return type(after)(_keep_padded_rows(one, other, begun) for one, other in zip(after, before, strict=True))
