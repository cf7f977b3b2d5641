"""Families of encoders and decoders: configs that build them, and the outputs of the decoders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import torch
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.models.interface import Decoder, Encoder, State
from dragoman.nn.attention.interface import AttentionSizes
from dragoman.nn.dropout import DropoutConfig
from dragoman.nn.embedding import Embedding, Projection
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.positions.union import NoPositionsConfig
from dragoman.nn.precision import to_at_least_float32


@dataclass(frozen=True)
class Predictions:
    """Predictions of N tokens, whose logits are hidden (N, d) · weightᵀ, weight (V, d), plus bias (V,) if there is one.

    Used by a loss that never holds all logits in memory (`training.objectives.fused_cross_entropy`).
    """

    hidden: Tensor
    weight: Tensor
    bias: Tensor | None = None


@dataclass(frozen=True)
class ProjectedOutput:
    """An `Output` whose logits are a projection of hidden (R, T, d)."""

    hidden: Tensor
    projection: Projection
    attention: Tensor | None = None

    def at(self, positions: Tensor) -> Predictions:
        """The predictions at `positions` (see `Output.logits`), differentiable."""
        return Predictions(_at(self.hidden, positions), self.projection.weight, self.projection.bias)

    def logits(self, positions: Tensor | None = None) -> Tensor:
        """See `Output`; differentiable."""
        return to_at_least_float32(self.projection(self.hidden if positions is None else _at(self.hidden, positions)))

    def last_logits(self) -> Tensor:
        """See `Output`; differentiable."""
        return to_at_least_float32(self.projection(self.hidden[:, -1]))

    @staticmethod
    def joined(outputs: Sequence["ProjectedOutput"]) -> "ProjectedOutput":
        """Concatenate the outputs of one decoder's consecutive steps."""
        attention = [output.attention for output in outputs if output.attention is not None]
        return ProjectedOutput(
            torch.cat([output.hidden for output in outputs], 1),
            outputs[0].projection,
            torch.cat(attention, 1) if attention else None,
        )


def _at(values: Tensor, positions: Tensor) -> Tensor:
    return values[positions] if positions.dtype == torch.bool else values.flatten(0, 1).index_select(0, positions)


@dataclass(frozen=True)
class SideContext:
    """The inputs that a family needs to build an encoder or a decoder.

    embedding: embeds the tokens or vectors of that side and adds absolute positions. width: d_model, the width of
    embeddings, of each layer's input and of an encoder's memory. dropout: its rates. positions: the position scheme,
    which may act inside self-attention.
    """

    embedding: Embedding
    width: int
    dropout: DropoutConfig
    positions: PositionScheme

    def attention_sizes(self, heads: int) -> AttentionSizes:
        """The sizes of an attention with `heads` heads whose queries, memory and result are d_model wide."""
        return AttentionSizes(self.width, self.width, self.width, heads, self.dropout.attention)


@dataclass(frozen=True)
class DecoderContext(SideContext):
    """The inputs that a family needs to build a decoder. projection: maps hidden states of width d_model to logits."""

    projection: Projection


class ProjectingDecoder(Decoder, Protocol):
    """A decoder that can be trained with a loss that never holds all logits in memory."""

    @property
    def projection(self) -> Projection:
        """The map from hidden states to logits."""
        ...

    def step(self, tokens: Tensor, state: State) -> tuple[ProjectedOutput, State]:
        """See `Decoder.step`."""
        ...


class Family(Config):
    """The base class of configs of encoders and decoders.

    default_positions: the position scheme if the model's settings name none. has_self_attention: whether it has
    self-attention. compilable: whether it has layers that torch.compile speeds up. recurrent: whether its state has a
    constant size, so that texts of any length can be read.
    """

    default_positions: ClassVar[PositionScheme] = NoPositionsConfig()
    has_self_attention: ClassVar[bool] = False
    compilable: ClassVar[bool] = False
    recurrent: ClassVar[bool] = False

    def shallow(self) -> Self:
        """Return the config with a single layer. All layers are alike, so if one can be built, all can."""
        return self.model_copy(update={"layers": 1}) if "layers" in type(self).model_fields else self


class EncoderFamily(Family):
    """The base class of encoder configs."""

    def build(self, context: SideContext) -> Encoder:
        """Build an nn.Module that implements `Encoder`. Raises ConfigError for incompatible settings."""
        raise NotImplementedError


class DecoderFamily(Family):
    """The base class of decoder configs.

    without_source: the settings that connect the decoder to the source, each with the value that disconnects it, as
    in language models.
    """

    without_source: ClassVar[Mapping[str, Any]]

    def check_source(self) -> None:
        """Raises ConfigError if nothing connects this decoder to the source."""
        if not self._source_settings():
            without = " and ".join(f"{name} {_as_yaml(value)}" for name, value in self.without_source.items())
            others = "it" if len(self.without_source) == 1 else "one of them"
            raise ConfigError(f"with {without} nothing connects it to the source: change {others}")

    def check_no_source(self) -> None:
        """Raises ConfigError if a setting connects this decoder to a source."""
        if leading := self._source_settings():
            raise ConfigError(
                f"{' and '.join(leading)} would connect to a source, which a language model does not have: remove it"
            )

    def _source_settings(self) -> list[str]:
        return [name for name, value in self.without_source.items() if getattr(self, name) != value]

    def build(self, context: DecoderContext) -> ProjectingDecoder:
        """Build an nn.Module that implements `ProjectingDecoder`. Raises ConfigError for incompatible settings."""
        raise NotImplementedError


def _as_yaml(value: Any) -> str:
    return "null" if value is None else str(value).lower()
