"""A recurrent encoder, and a recurrent decoder with or without attention to the source."""

from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config, kinds, union_members
from dragoman.models.families.family import DecoderContext, DecoderFamily, EncoderFamily, ProjectedOutput, SideContext
from dragoman.models.interface import Memory, State, TensorTree
from dragoman.nn.attention.interface import AttentionSizes
from dragoman.nn.attention.recording import mean_over_heads, recording
from dragoman.nn.attention.scorers import AdditiveConfig
from dragoman.nn.attention.soft import SoftAttentionConfig
from dragoman.nn.attention.union import SourceAttentionConfig
from dragoman.nn.dropout import Dropout
from dragoman.nn.mask import Mask
from dragoman.nn.recurrent.cell import States
from dragoman.nn.recurrent.cells import CELLS, CellKind
from dragoman.nn.recurrent.connections import ConnectionsConfig, PlainConfig
from dragoman.nn.recurrent.experts import BuildExperts, LayerExpertsConfig
from dragoman.nn.recurrent.stack import Directions, Reader
from dragoman.nn.recurrent.wiring import Attend, BahdanauConfig, BridgeKind, InitialStates, WiringConfig, WiringSizes
from dragoman.text.symbols import PAD


class _Layers(Config):
    """Settings shared by the encoder and the decoder."""

    kind: Literal["recurrent"] = "recurrent"
    cell: CellKind = Field("gru", description="Recurrent unit: rnn (vanilla, tanh), gru or lstm.")
    layers: int = Field(1, ge=1, description="Number of layers.")
    hidden: int | None = Field(
        None, ge=1, description="Width H of the hidden state, per direction; null: the model width d."
    )
    connections: ConnectionsConfig = Field(
        PlainConfig(), description="Connections between layers: plain, residual or fast-forward."
    )

    experts: LayerExpertsConfig | None = Field(
        None,
        description="Mixtures of experts between layers: several feed-forward networks, a few of which process each "
        "token. null: none.",
    )

    @model_validator(mode="after")
    def _check_layers(self) -> Self:
        self.connections.check(self.layers)
        if self.experts is not None:
            self.experts.check_layers(self.layers)
        return self

    def experts_builder(self, context: SideContext) -> BuildExperts | None:
        """Return the function that builds the experts between layers, or None. Raises ConfigError."""
        if self.experts is None:
            return None
        self.experts.check()
        dropout = context.dropout
        return partial(self.experts.build_after, residual=dropout.residual, feedforward=dropout.feedforward)


class RecurrentEncoderConfig(_Layers, EncoderFamily):
    """A recurrent encoder, h_i = f(x_i, h_{i−1}) (deck 002).

    It is bidirectional by default (Bahdanau et al. 2015, section 3.2).
    """

    bidirectional: Directions = Field(
        True,
        description="Add a second recurrence from right to left, and concatenate the states of both directions. true: "
        "in each layer. first: in the first layer only (Wu et al. 2016). interleaved: two stacks whose layers "
        "alternate between the directions and begin with opposite directions (Zhou et al. 2016).",
    )

    def build(self, context: SideContext) -> "RecurrentEncoder":
        """Build the embeddings and layers."""
        return RecurrentEncoder(self, context)


class RecurrentEncoder(nn.Module):
    """Embeddings and recurrent layers. Implements `Encoder`. Padding must follow the text.

    If the width of the states differs from d, as with two directions of width d, a linear layer projects them to
    width d.
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
            bidirectional=config.bidirectional,
            dropout=context.dropout.residual,
            connections=config.connections,
            experts=config.experts_builder(context),
        )
        is_model_width = self.reader.output_width == width
        self.output = nn.Identity() if is_model_width else nn.Linear(self.reader.output_width, width)

    def forward(self, tokens: Tensor, mask: Tensor) -> Memory:
        """Encode tokens (B, S) int64 with mask (B, S) bool as states (B, S, d) and final states (B, d)."""
        states, final = self.reader(self.embedding(tokens, mask=mask), mask)
        return Memory(self.output(states), mask, self.output(final))


class RecurrentDecoderConfig(_Layers, DecoderFamily):
    """A recurrent decoder that attends to the source at every step, h'_t = f(h'_{t−1}, y_{t−1}, c_t) (deck 002).

    By default, attention follows Bahdanau et al. 2015: an additive scorer without projections.
    """

    recurrent: ClassVar[bool] = True
    without_source: ClassVar[Mapping[str, Any]] = {"bridge": "none", "attention": None}

    wiring: WiringConfig = Field(
        BahdanauConfig(), description="Order of attention and recurrence, and the inputs of the prediction."
    )
    bridge: BridgeKind = Field(
        "initial",
        description="Use of the encoder summary, which is the last encoder state, or the mean of all states if there "
        "is no last state. initial: it is the initial decoder state. concatenate: it is concatenated with every input. "
        "both: both uses. none: it is not used.",
    )
    attention: SourceAttentionConfig | None = Field(
        SoftAttentionConfig(projections=False, scorer=AdditiveConfig()),
        description="Attention to the source at each step; null: none.",
    )
    heads: int = Field(1, ge=1, description="Number of attention heads h.")

    @model_validator(mode="before")
    @classmethod
    def _apply_attention_defaults(cls, values: Any) -> Any:
        attention = values.get("attention") if isinstance(values, dict) else None
        if not isinstance(attention, dict):
            return values
        defaults = {"projections": False, "scorer": {"kind": "additive"}}
        kind = attention.get("kind", "soft")
        fields = {
            name
            for group in union_members(SourceAttentionConfig)
            if kind in kinds(group)
            for name in group.model_fields
        }
        supported = {name: value for name, value in defaults.items() if name in fields}
        return {**values, "attention": {**supported, **attention}}

    def build(self, context: DecoderContext) -> "RecurrentDecoder":
        """Build the embeddings, layers, attention and vocabulary projection."""
        if self.experts is not None and self.wiring.processes_tokens_singly(self.attention is not None):
            raise ConfigError(
                f"experts process all tokens of a batch at once, but with wiring {self.wiring.kind} the layers process "
                "one token at a time: set wiring: {kind: gnmt}, or luong without input feeding"
            )
        return RecurrentDecoder(self, context)


class RecurrentDecoder(nn.Module):
    """Embeddings, recurrent layers, attention and the vocabulary projection. Implements `Decoder`.

    The cache of a hypothesis consists of the states of each layer and the wiring's feedback, so its size is constant.
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
        self.concatenates_summary = config.bridge in ("concatenate", "both")
        context_width = 0 if self.cross_attention is None else self.cross_attention.output_width
        summary_width = width if self.concatenates_summary else 0
        self.wiring = config.wiring.build(
            WiringSizes(
                width,
                hidden,
                context_width,
                summary_width,
                cell,
                config.layers,
                dropout.residual,
                config.connections,
                config.experts_builder(context),
            )
        )
        self.dropout = Dropout(dropout.residual)

    def start(
        self,
        memory: Memory | None,
        attention: bool = False,
        left_padding: Tensor | None = None,
        capacity: int | None = None,
    ) -> State:
        """Compute the initial states from the source's summary, and project the source for attention.

        The cache does not grow, so `capacity` has no effect. Without a source, the initial states, the summary and
        the context vector are zero.
        """
        max_length = self.embedding.positions.limit
        if memory is None:
            return State(None, None, max_length=max_length, left_padding=left_padding)
        source = memory.states
        padding = Mask.padding(memory.mask)
        states = self._zeros(len(source)) if self.bridge is None else self.bridge(memory.summary)
        with recording() if attention else nullcontext():  # some mechanisms keep additional tensors to record weights
            projected = None if self.cross_attention is None else self.cross_attention.project_memory(source, padding)
        constant = self.wiring.summarise(memory.summary) if self.concatenates_summary else None
        return State(
            {"mask": memory.mask, "attention": projected, "constant": constant},
            {"states": states, "feed": self.wiring.initial_feed(states[0][0])},
            attention=attention and self.cross_attention is not None,
            max_length=max_length,
            left_padding=left_padding,
        )

    def step(self, tokens: Tensor, state: State) -> tuple[ProjectedOutput, State]:
        """Process tokens (R, T), the first of which is at `state.position`."""
        rows, length = tokens.shape
        constant = None if state.memory is None else state.memory["constant"]
        if constant is not None and len(constant) != rows:
            constant = constant.repeat_interleave(state.beam_size, 0)
        mask = tokens != PAD if self.training else None
        embedded = self.embedding(tokens, state.position, mask, left_padding=state.left_padding).transpose(0, 1)
        past = state.cache
        if past is None:
            states = self._zeros(rows)
            past = {"states": states, "feed": self.wiring.initial_feed(states[0][0])}
        outputs = []
        with recording() if state.attention else nullcontext() as weights:
            for start, end in pairwise(_split_points(state, length)):
                attend = self._source_attention(tokens[:, start:end], state)
                before = past
                hidden, states, feed = self.wiring(
                    embedded[start:end],
                    constant,
                    attend,
                    past["states"],
                    past["feed"],
                    mask=None if mask is None else mask[:, start:end].t(),
                )
                outputs.append(hidden)
                past = {"states": states, "feed": feed}
                if state.left_padding is not None:
                    past = _keep_padded_rows(past, before, state.left_padding < state.position + end)
        attention = None if weights is None else mean_over_heads(weights, self.cross_attention, rows)  # type: ignore[arg-type]
        hidden = outputs[0] if len(outputs) == 1 else torch.cat(outputs)
        return ProjectedOutput(self.dropout(hidden.transpose(0, 1)), self.projection, attention), state.after(
            length, past
        )

    def _zeros(self, rows: int) -> list[States]:
        layers, components, hidden = self.states
        zeros = self.projection.weight.new_zeros(rows, hidden)
        return [(zeros,) * components for _ in range(layers)]

    def _source_attention(self, tokens: Tensor, state: State) -> Attend | None:
        """Return the function that computes the wiring's attention to the source, or None without attention."""
        attention = self.cross_attention
        if attention is None:
            return None
        if state.memory is None:
            return lambda queries, first: queries.new_zeros(*queries.shape[:2], attention.output_width)
        memory: TensorTree = state.memory["attention"]
        padding = Mask.padding(state.memory["mask"])
        mask = tokens != PAD if self.training else None

        def attend(queries: Tensor, first: int) -> Tensor:
            query_mask = None if mask is None else mask[:, first : first + queries.size(1)]
            return attention.cross_attend(queries, memory, padding, query_mask)

        return attend


def _split_points(state: State, length: int) -> list[int]:
    """Return the boundaries of the parts of a step: 0, the end of each row's padding, and `length`."""
    if state.left_padding is None:
        return [0, length]
    ends = {end - state.position for end in state.left_padding.tolist()}
    return sorted({0, length, *(end for end in ends if 0 < end < length)})


def _keep_padded_rows(after: TensorTree, before: TensorTree, is_past_padding: Tensor) -> TensorTree:
    """Return the cache `after` a part of a step, except that padded rows keep the cache from `before`.

    is_past_padding: (R,) bool, True for rows whose padding has ended.
    """
    if after is None:
        return None
    if isinstance(after, Tensor):
        return torch.where(is_past_padding[:, None], after, before)
    if isinstance(after, dict):
        return {name: _keep_padded_rows(after[name], before[name], is_past_padding) for name in after}
    pairs = zip(after, before, strict=True)
    return type(after)(_keep_padded_rows(new, old, is_past_padding) for new, old in pairs)
