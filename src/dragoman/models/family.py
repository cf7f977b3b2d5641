"""What a family of encoders or decoders is: a config that builds one."""

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
from dragoman.nn.precision import at_least_single


@dataclass(frozen=True)
class Predictions:
    """Of N tokens: hidden (N, d) and weight (V, d), whose product, plus bias (V,) or nothing, is the logits.

    For a loss that never holds all of them (`training.objectives.fused_cross_entropy`).
    """

    hidden: Tensor
    weight: Tensor
    bias: Tensor | None = None


@dataclass(frozen=True)
class ProjectedOutput:
    """An `Output`: hidden (R, T, d) is what the vocabulary projection reads; attention as promised there."""

    hidden: Tensor
    projection: Projection
    attention: Tensor | None = None

    def at(self, places: Tensor) -> Predictions:
        """What the predictions at `places`, as of `Output.logits`, are made of; differentiable."""
        return Predictions(_at(self.hidden, places), self.projection.weight, self.projection.bias)

    def logits(self, places: Tensor | None = None) -> Tensor:
        """As `Output` promises; differentiable."""
        return at_least_single(self.projection(self.hidden if places is None else _at(self.hidden, places)))

    def last_logits(self) -> Tensor:
        """As `Output` promises; differentiable."""
        return at_least_single(self.projection(self.hidden[:, -1]))

    @staticmethod
    def joined(outputs: Sequence["ProjectedOutput"]) -> "ProjectedOutput":
        """What one decoder gave in step after step, as if in a single one."""
        attention = [output.attention for output in outputs if output.attention is not None]
        return ProjectedOutput(
            torch.cat([output.hidden for output in outputs], 1),
            outputs[0].projection,
            torch.cat(attention, 1) if attention else None,
        )


def _at(values: Tensor, places: Tensor) -> Tensor:
    return values[places] if places.dtype == torch.bool else values.flatten(0, 1).index_select(0, places)


@dataclass(frozen=True)
class SideContext:
    """What is given to whatever is built on one side of a model.

    embedding: of that side's tokens, or of vectors where it reads no text, absolute positions joined. width: d_model,
    of the embeddings, of each layer's input and of an encoder's memory. dropout: its rates, by place. positions: the
    scheme, for what it does inside self-attention.
    """

    embedding: Embedding
    width: int
    dropout: DropoutConfig
    positions: PositionScheme

    def attention_sizes(self, heads: int) -> AttentionSizes:
        """Of an attention of so many heads whose queries, memory and result are all d_model wide."""
        return AttentionSizes(self.width, self.width, self.width, heads, self.dropout.attention)


@dataclass(frozen=True)
class DecoderContext(SideContext):
    """The same for a decoder. projection: reads hidden states of d_model numbers, gives logits."""

    projection: Projection


class ProjectingDecoder(Decoder, Protocol):
    """A decoder that can be trained: its output says what a loss reads that never holds all logits."""

    @property
    def projection(self) -> Projection:
        """From hidden states to logits."""
        ...

    def step(self, tokens: Tensor, state: State) -> tuple[ProjectedOutput, State]:
        """As `Decoder` promises."""
        ...


class Family(Config):
    """default_positions: where the model names no scheme. attends_itself: whether there is self-attention in it.

    compilable: whether it has layers that torch.compile gains from. recurrent: whether all that it knows of what it has
    read is a state whose size does not grow, so that a text of any length can be read.
    """

    default_positions: ClassVar[PositionScheme] = NoPositionsConfig()
    attends_itself: ClassVar[bool] = False
    compilable: ClassVar[bool] = False
    recurrent: ClassVar[bool] = False

    def shallow(self) -> Self:
        """The same with a single layer: all layers are alike, so where it can be built, this can."""
        return self.model_copy(update={"layers": 1}) if "layers" in type(self).model_fields else self


class EncoderFamily(Family):
    """The base of every encoder's config."""

    def build(self, context: SideContext) -> Encoder:
        """An nn.Module that keeps the `Encoder` promise. Raises ConfigError for settings that do not go together."""
        raise NotImplementedError


class DecoderFamily(Family):
    """The base of every decoder's config.

    without_source: the settings that lead to the source, with the values at which they do not, as in language models.
    """

    without_source: ClassVar[Mapping[str, Any]]

    def check_source(self) -> None:
        """Raises ConfigError where nothing leads from the source to this decoder."""
        if not self._leading():
            without = " and ".join(f"{name} {_as_yaml(value)}" for name, value in self.without_source.items())
            others = "it" if len(self.without_source) == 1 else "one of them"
            raise ConfigError(f"with {without} nothing of the source reaches it: set {others} otherwise")

    def check_no_source(self) -> None:
        """Raises ConfigError where something would."""
        if leading := self._leading():
            raise ConfigError(
                f"{' and '.join(leading)} would lead to a source, which a language model does not have: leave it out"
            )

    def _leading(self) -> list[str]:
        return [name for name, value in self.without_source.items() if getattr(self, name) != value]

    def build(self, context: DecoderContext) -> ProjectingDecoder:
        """An nn.Module that keeps the `Decoder` promise. Raises ConfigError for settings that do not go together."""
        raise NotImplementedError


def _as_yaml(value: Any) -> str:
    return "null" if value is None else str(value).lower()
