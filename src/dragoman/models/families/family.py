"""Base classes of encoder and decoder families, and the outputs of decoders."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import torch
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.base.packing import Packing
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
    """Predictions of N tokens in factored form: the logits are hidden · weightᵀ + bias.

    hidden: (N, d). weight: (V, d). bias: (V,), or None. Used by a loss that does not hold all logits in memory
    (`training.objectives.fused_cross_entropy`).
    """

    hidden: Tensor
    weight: Tensor
    bias: Tensor | None = None


@dataclass(frozen=True)
class ProjectedOutput:
    """An `Output` whose logits are a projection of hidden states (R, T, d), or of packed states (1, N, d)."""

    hidden: Tensor
    projection: Projection
    attention: Tensor | None = None
    packing: Packing | None = None

    def at(self, positions: Tensor | Packing) -> Predictions:
        """Return the predictions at `positions` (see `Output.logits`), differentiable.

        The packing of a batch stands for all its tokens, also if the states are padded.
        """
        return Predictions(self._select(positions), self.projection.weight, self.projection.bias)

    def logits(self, positions: Tensor | None = None) -> Tensor:
        """See `Output`; differentiable."""
        return to_at_least_float32(self.projection(self._padded if positions is None else self._select(positions)))

    def last_logits(self) -> Tensor:
        """See `Output`; differentiable."""
        return to_at_least_float32(self.projection(self._padded[:, -1]))

    @property
    def _padded(self) -> Tensor:
        return self.hidden if self.packing is None else self.packing.unpack(self.hidden)

    def _select(self, positions: Tensor | Packing) -> Tensor:
        """Return the states (N, d) at `positions`; see `at`."""
        if isinstance(positions, Packing):
            if self.packing is not None:
                return self.hidden[0, : positions.count]
            positions = positions.padded[: positions.count]
        if self.packing is None:
            return at_positions(self.hidden, positions)
        return self.hidden[0].index_select(0, self.packing.rows(positions))

    @staticmethod
    def joined(outputs: Sequence["ProjectedOutput"]) -> "ProjectedOutput":
        """Return the concatenated outputs of consecutive steps of a decoder."""
        attention = [output.attention for output in outputs if output.attention is not None]
        return ProjectedOutput(
            torch.cat([output.hidden for output in outputs], 1),
            outputs[0].projection,
            torch.cat(attention, 1) if attention else None,
        )


def at_positions(values: Tensor, positions: Tensor) -> Tensor:
    """Return the rows (N, d) of values (R, T, d) at `positions` (see `Output.logits`)."""
    return values[positions] if positions.dtype == torch.bool else values.flatten(0, 1).index_select(0, positions)


@dataclass(frozen=True)
class SideContext:
    """The shared parts and settings from which a family builds an encoder or a decoder.

    embedding: embeds the tokens or vectors of the side and adds absolute positions. width: d_model, the width of
    embeddings, layer inputs and memories. dropout: dropout rates. positions: the position scheme, which may act inside
    self-attention.
    """

    embedding: Embedding
    width: int
    dropout: DropoutConfig
    positions: PositionScheme

    def attention_sizes(self, heads: int) -> AttentionSizes:
        """Return the sizes of an attention with `heads` heads whose queries, memory and result have width d_model."""
        return AttentionSizes(self.width, self.width, self.width, heads, self.dropout.attention)


@dataclass(frozen=True)
class DecoderContext(SideContext):
    """As `SideContext`, for a decoder. projection: maps hidden states of width d_model to logits."""

    projection: Projection


class ProjectingDecoder(Decoder, Protocol):
    """A decoder that can be trained with a loss that does not hold all logits in memory."""

    @property
    def projection(self) -> Projection:
        """The map from hidden states to logits."""
        ...

    def step(self, tokens: Tensor, state: State) -> tuple[ProjectedOutput, State]:
        """See `Decoder.step`."""
        ...


class Family(Config):
    """The base class of the configs of encoders and decoders.

    default_positions: the position scheme used if the settings of the model do not specify one. has_self_attention:
    whether layers use self-attention. compilable: whether torch.compile speeds up some layers. has_equal_layers:
    whether all layers after the first cost the same. recurrent: whether the state has a constant size, so that texts of
    any length can be processed.
    """

    default_positions: ClassVar[PositionScheme] = NoPositionsConfig()
    has_self_attention: ClassVar[bool] = False
    compilable: ClassVar[bool] = False
    has_equal_layers: ClassVar[bool] = False
    recurrent: ClassVar[bool] = False

    @property
    def packs(self) -> bool:
        """Whether the states of sentences can be packed; see `Packing`. If so, calls have an argument `packing`."""
        return False

    def with_one_layer(self) -> Self:
        """Return the config with a single layer.

        All layers have the same settings, so compatibility checks need to build only one.
        """
        return self.model_copy(update={"layers": 1}) if "layers" in type(self).model_fields else self


class EncoderFamily(Family):
    """The base class of encoder configs.

    packs_documents: whether a row may contain several documents that do not attend to each other. If so, the encoder
    has a third argument `packed`. sentence_language: the language whose rules divide texts into sentences, each of
    which ends with EOS in the input; None if texts are not divided.
    """

    @property
    def packs_documents(self) -> bool:
        return False

    @property
    def sentence_language(self) -> str | None:
        return None

    def build(self, context: SideContext) -> Encoder:
        """Build an nn.Module that implements `Encoder`. Raises ConfigError for incompatible settings."""
        raise NotImplementedError


class DecoderFamily(Family):
    """The base class of decoder configs.

    without_source: the settings that connect the decoder to the source, each with the value that disconnects it. These
    values are used in language models.
    """

    without_source: ClassVar[Mapping[str, Any]]

    def check_source(self) -> None:
        """Raise ConfigError if no setting connects this decoder to the source."""
        if not self._source_settings():
            values = " and ".join(f"{name}={_as_yaml(value)}" for name, value in self.without_source.items())
            change = "this setting" if len(self.without_source) == 1 else "one of these settings"
            raise ConfigError(f"with {values}, the decoder is not connected to the source: change {change}")

    def check_no_source(self) -> None:
        """Raise ConfigError if a setting connects this decoder to a source."""
        if settings := self._source_settings():
            remove = "this setting" if len(settings) == 1 else "these settings"
            raise ConfigError(
                f"{' and '.join(settings)} would connect the decoder to a source, but a language model has no source: "
                f"remove {remove}"
            )

    def _source_settings(self) -> list[str]:
        return [name for name, value in self.without_source.items() if getattr(self, name) != value]

    def build(self, context: DecoderContext) -> ProjectingDecoder:
        """Build an nn.Module that implements `ProjectingDecoder`. Raises ConfigError for incompatible settings."""
        raise NotImplementedError


def _as_yaml(value: Any) -> str:
    return "null" if value is None else str(value).lower()


@contextmanager
def prefix_errors(side: str) -> Iterator[None]:
    """Prefix the messages of ConfigErrors raised within this context with the name of the side."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{side}: {error}") from None


def resolve_scheme(chosen: PositionScheme | None, family: Family, side: str) -> PositionScheme:
    """Return the chosen position scheme; None: the default of the family.

    Raises ConfigError if the family does not support the scheme.
    """
    if chosen is None:
        return family.default_positions
    if chosen.inside_attention and not family.has_self_attention:
        raise ConfigError(
            f"positions of kind {chosen.kind} act inside self-attention, which a {family.kind} {side} does not have: "  # type: ignore[attr-defined]
            "choose another kind"
        )
    return chosen


def check_decodable(scheme: PositionScheme, setting: str) -> None:
    """Raise ConfigError for a scheme that needs the length of the text, which is unknown during decoding."""
    if scheme.needs_length:
        raise ConfigError(
            f"positions of kind {scheme.kind} need the length of the whole text, which is unknown in a decoder: "  # type: ignore[attr-defined]
            f"choose another kind for {setting}"
        )
