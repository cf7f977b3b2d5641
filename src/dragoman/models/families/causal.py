"""An encoder without a view of what follows: the decoder of a language model, used to represent a text."""

from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from dragoman.base.settings.config import kinds, union_members
from dragoman.models.families.family import DecoderContext, DecoderFamily, EncoderFamily, SideContext, check_decodable
from dragoman.models.families.transformer import TransformerDecoderConfig
from dragoman.models.families.union import DecoderConfig
from dragoman.models.interface import Memory
from dragoman.nn.embedding import Projection
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.positions.sinusoidal import SinusoidalConfig

_FAMILIES: dict[str, type[DecoderFamily]] = {
    kind: family for family in union_members(DecoderConfig) for kind in kinds(family)
}


class CausalEncoderConfig(EncoderFamily):
    """A decoder without a source, whose state after the last token represents the text (Radford et al. 2018).

    The parts of a language model fit its parts, so `train.start` can copy them.
    """

    default_positions: ClassVar[PositionScheme] = SinusoidalConfig()
    has_self_attention: ClassVar[bool] = True

    kind: Literal["causal"] = "causal"
    decoder: DecoderConfig = Field(
        TransformerDecoderConfig(cross_attention=None), description="Decoder, without attention to a source."
    )

    @model_validator(mode="before")
    @classmethod
    def _disconnect_source(cls, values: Any) -> Any:
        """Disable attention to a source by default. `build` raises an error if it is enabled explicitly."""
        decoder = values.get("decoder") if isinstance(values, dict) else None
        if not isinstance(decoder, dict):
            return values
        family = _FAMILIES.get(decoder.get("kind", "transformer"))
        return {**values, "decoder": {**(family.without_source if family else {}), **decoder}}

    def with_one_layer(self) -> Self:
        """See `Family.with_one_layer`."""
        return self.model_copy(update={"decoder": self.decoder.with_one_layer()})

    def build(self, context: SideContext) -> "CausalEncoder":
        """Build the decoder. Raises ConfigError if it attends to a source or cannot use the positions."""
        self.decoder.check_no_source()
        check_decodable(context.positions, "positions")
        return CausalEncoder(self, context)


class CausalEncoder(nn.Module):
    """Implements `Encoder` with a decoder. Padding must follow the text."""

    timed = (("forward", "encoder"),)
    parts_at_top_level = True

    def __init__(self, config: CausalEncoderConfig, context: SideContext) -> None:
        super().__init__()
        table = context.embedding.tokens
        assert isinstance(table, nn.Embedding), "a decoder embeds tokens"
        unused = Projection(table.weight)
        self.decoder = config.decoder.build(
            DecoderContext(context.embedding, context.width, context.dropout, context.positions, unused)
        )

    def forward(self, tokens: Tensor, mask: Tensor) -> Memory:
        """Encode tokens (B, S) int64 with mask (B, S) bool as states (B, S, d) and the last token's state (B, d)."""
        output, _ = self.decoder.step(tokens, self.decoder.start(None))
        last = mask.sum(1).clamp_min(1) - 1
        return Memory(output.hidden, mask, output.hidden[torch.arange(len(last), device=last.device), last])
