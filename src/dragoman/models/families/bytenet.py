"""The dilated convolutional encoder and decoder of ByteNet (Kalchbrenner et al. 2016).

As in the paper, residual blocks have width d outside and d/2 inside, dilations 1, 2, 4, 8, 16 are repeated,
convolutions in the decoder are causal, and the decoder is stacked on the encoder. The encoder can lengthen the source
to the expected length of the target ("dynamic unfolding", section 3.2). Differences from the paper:
- By default, the source is not lengthened, as in the first version of the paper: `unfolding: null`.
- Tokens need not be characters.
- The default number of blocks is 5, compared with 30 in the paper.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.settings.config import Config
from dragoman.models.families.bytenet_blocks import BlockSettings
from dragoman.models.families.family import DecoderContext, DecoderFamily, EncoderFamily, ProjectedOutput, SideContext
from dragoman.models.families.layered import LayeredDecoder, ProjectedSource, Step
from dragoman.models.interface import Memory, State, TensorTree
from dragoman.nn.attention.union import SourceAttentionConfig
from dragoman.nn.mask import CausalSpan
from dragoman.nn.residual import Residual, require_output_width


class UnfoldingConfig(Config):
    """Lengthen a source of S tokens to ⌈factor · S⌉ + margin positions (section 3.2: |t̂| = a|s| + b).

    The additional positions are zero vectors before the first layer. The encoder computes states at these positions,
    which a stacked decoder adds to its tokens. Beyond these positions, the decoder continues with zeros.
    """

    factor: float = Field(
        1.2, ge=1, le=10, allow_inf_nan=False, description="Factor a (no unit; paper: 1.2 from English to German)."
    )
    margin: int = Field(0, ge=0, le=1000, description="Additional positions b (paper: 0).")

    def lengthen(self, mask: Tensor) -> Tensor:
        """Return the mask of the lengthened sources (B, U) bool, for the mask of the sources (B, S) bool."""
        # The subtraction prevents the rounding error of a product such as 1.1 · 10 from adding a position.
        longest = math.ceil(self.factor * mask.size(1) - 1e-9) + self.margin
        lengths = (self.factor * mask.sum(1).double() - 1e-9).ceil() + self.margin
        return torch.arange(longest, device=mask.device) < lengths[:, None]


class ByteNetEncoderConfig(BlockSettings, EncoderFamily):
    """Dilated convolutions, h ← h + W₂ ReLU(LN(conv(ReLU(LN(W₁ ReLU(LN(h))))))) (section 3.6, figure 3).

    The dilation doubles from layer to layer, so the receptive field grows exponentially with the number of layers.

    YAML: `encoder: {kind: bytenet}`, or as in the second version of the paper `encoder: {kind: bytenet, unfolding: {}}`
    """

    unfolding: UnfoldingConfig | None = Field(
        None, description="Lengthen the source to the expected length of the target; null: no."
    )

    def build(self, context: SideContext) -> "ByteNetEncoder":
        """Build the embeddings and blocks."""
        return ByteNetEncoder(self, context)


class ByteNetDecoderConfig(BlockSettings, DecoderFamily):
    """The blocks of the encoder with causal convolutions, stacked on the encoder states (section 3.1).

    YAML: `decoder: {kind: bytenet}`, or with attention instead of stacking
    `decoder: {kind: bytenet, stacked: false, cross_attention: {}}`
    """

    without_source: ClassVar[Mapping[str, Any]] = {"stacked": False, "cross_attention": None}

    stacked: bool = Field(
        True,
        description="Add the source state at position t to target token t, or zeros after the end of the source, which "
        "the encoder can lengthen (`unfolding`).",
    )
    cross_attention: SourceAttentionConfig | None = Field(
        None,
        description="Attention to the source after each block; null: none (paper).",
        json_schema_extra={"kind": "soft"},
    )
    heads: int = Field(1, ge=1, description="Number of cross-attention heads; must divide the model width.")

    def build(self, context: DecoderContext) -> "ByteNetDecoder":
        """Build the embeddings, blocks and vocabulary projection."""
        return ByteNetDecoder(self, context)


@dataclass(frozen=True)
class UnfoldedMemory(Memory):
    """A memory with the states of the lengthened source (B, U, d), zero at padding. `states` are its first S states."""

    unfolded: Tensor | None = None


class ByteNetEncoder(nn.Module):
    """Embeddings and blocks. Implements `Encoder`."""

    timed = (("forward", "encoder"),)

    def __init__(self, config: ByteNetEncoderConfig, context: SideContext) -> None:
        super().__init__()
        self.embedding, self.unfolding = context.embedding, config.unfolding
        self.layers = nn.ModuleList(config.build_block(layer, context) for layer in range(config.layers))
        self.norm = config.normalisation.build(context.width)

    def forward(self, tokens: Tensor, mask: Tensor) -> Memory:
        """Encode tokens (B, S) int64 with mask (B, S) bool into states (B, S, d)."""
        states = self.embedding(tokens, mask=mask)
        if self.unfolding is None:
            return Memory(self._run_layers(states, mask), mask)
        lengthened = self.unfolding.lengthen(mask)
        length, longer = mask.size(1), lengthened.size(1)
        states = functional.pad(states.masked_fill(~mask.unsqueeze(2), 0.0), (0, 0, 0, longer - length))
        states = self._run_layers(states, lengthened)
        unfolded = states.masked_fill(~lengthened.unsqueeze(2), 0.0)
        return UnfoldedMemory(states[:, :length], mask, unfolded=unfolded)

    def _run_layers(self, states: Tensor, mask: Tensor) -> Tensor:
        for layer in self.layers:
            states = layer.encode(states, mask)  # type: ignore[operator]
        return self.norm(states, mask)  # type: ignore[no-any-return]


class DecoderLayer(nn.Module):
    """A block, followed by attention to the source if it is configured."""

    def __init__(self, config: ByteNetDecoderConfig, layer: int, context: DecoderContext) -> None:
        super().__init__()
        self.block = config.build_block(layer, context)
        self.cross_attention = None
        if config.cross_attention is not None:
            source = config.cross_attention.build(context.attention_sizes(config.heads))
            self.cross_attention = require_output_width(source, context.width)
            rate = context.dropout.residual
            self.around_cross_attention = Residual(context.width, "pre", config.normalisation, rate)

    def forward(
        self, states: Tensor, past: Tensor | None, memory: TensorTree | None, step: Step
    ) -> tuple[Tensor, Tensor]:
        """Return the new states (R, T, d) and `past` for the next call.

        past: the past inputs of the convolution. memory: the projected memory, or None.
        """
        mask = step.mask
        states, past = self.block.decode(states, past, mask, step.causal.token_mask(step.causal.new))

        def attend(states: Tensor) -> Tensor:
            assert self.cross_attention is not None and step.padding is not None
            return self.cross_attention.cross_attend(states, memory, step.padding, mask)

        if memory is not None:
            states = self.around_cross_attention(states, attend, mask)
        return states, past


@dataclass(frozen=True)
class StackedSource(ProjectedSource):
    """The projected source and the source states that are added to the target tokens.

    states: (B, U, d), zero at padding, where U ≥ S is the length to which the encoder lengthened the source; None if no
    states are added.
    """

    states: Tensor | None = None

    def aligned_states(self, causal: CausalSpan, rows: int) -> Tensor:
        """Return the source states to add to the tokens of a step: (rows, T, d), zero beyond the end of the source."""
        assert self.states is not None
        sentences, length = self.states.shape[:2]
        if causal.left_padding is None:
            aligned = self.states[:, causal.start : causal.start + causal.new]
            aligned = functional.pad(aligned, (0, 0, 0, causal.new - aligned.size(1)))
            return aligned.repeat_interleave(rows // sentences, 0)
        positions = (
            torch.arange(causal.start, causal.start + causal.new, device=causal.device) - causal.left_padding[:, None]
        )
        row = torch.arange(rows, device=causal.device) // (rows // sentences)
        aligned = self.states[row[:, None], positions.clamp(0, length - 1)]
        return aligned.masked_fill(((positions < 0) | (positions >= length)).unsqueeze(2), 0.0)


class ByteNetDecoder(LayeredDecoder):
    """Embeddings, blocks, an output layer ReLU(LN(h))W, and the vocabulary projection. Implements `Decoder`.

    The cache consists of the last (kernel − 1)·dilation inputs of each convolution, so its size is constant. Without
    attention to the source, `Output.attention` is None.
    """

    timed = (("start", "decoder"), ("step", "decoder"))

    def __init__(self, config: ByteNetDecoderConfig, context: DecoderContext) -> None:
        super().__init__()
        self.embedding = context.embedding
        self.stacked = config.stacked
        self.layers = nn.ModuleList(DecoderLayer(config, layer, context) for layer in range(config.layers))
        self.norm = config.normalisation.build(context.width)
        self.output = nn.Linear(context.width, context.width)
        self.projection = context.projection

    def project_source(self, memory: Memory | None) -> StackedSource:
        """Project the memory for all layers, and include its states if they are added to the target tokens."""
        source = super().project_source(memory)
        if memory is None or not self.stacked:
            return StackedSource(source.mask, source.layers)
        if isinstance(memory, UnfoldedMemory):
            return StackedSource(source.mask, source.layers, memory.unfolded)
        return StackedSource(source.mask, source.layers, memory.states.masked_fill(~memory.mask.unsqueeze(2), 0.0))

    def step(self, tokens: Tensor, state: State) -> tuple[ProjectedOutput, State]:
        """See `Decoder.step`."""
        step = self.read(tokens, state)
        states = step.embedded
        if state.memory.states is not None:
            states = states + state.memory.aligned_states(step.causal, len(tokens))
        states, attention, after = self.run_layers(states, state, step)
        return ProjectedOutput(self.output_states(states, step.mask), self.projection, attention), after

    def output_states(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """See `LayeredDecoder.output_states`."""
        return self.output(functional.relu(self.norm(states, mask)))  # type: ignore[no-any-return]
