"""The dilated convolutional encoder and decoder of ByteNet (Kalchbrenner et al. 2016).

As in the paper, residual blocks with ReLU have width d outside and d/2 inside, dilations 1, 2, 4, 8, 16 are repeated,
convolutions in the decoder are causal, and the decoder is stacked on the encoder. Differences from the paper:
- The source is not padded, and the decoder receives zeros beyond its end, as in the first version of the paper. In the
  second version, the source is padded to a·S + b tokens before it is encoded (a = 1.2 from English to German), and the
  decoder receives no source states beyond that length ("dynamic unfolding").
- There are no multiplicative units, which the paper uses in its character-level language model.
- Tokens need not be characters.
- The default number of blocks is 5, compared with 30 in the paper.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.settings.config import Config
from dragoman.models.families.family import DecoderContext, DecoderFamily, EncoderFamily, ProjectedOutput, SideContext
from dragoman.models.families.layered import LayeredDecoder, ProjectedSource, Step
from dragoman.models.interface import Memory, State, TensorTree
from dragoman.nn.attention.union import SourceAttentionConfig
from dragoman.nn.convolution import Convolution
from dragoman.nn.dropout import Dropout
from dragoman.nn.mask import CausalSpan
from dragoman.nn.normalisation import LayerNormConfig, NormConfig
from dragoman.nn.residual import Residual, require_output_width

Dilation = Annotated[int, Field(ge=1, le=4096)]


class _Layers(Config):
    """Settings that the encoder and the decoder share."""

    kind: Literal["bytenet"] = "bytenet"
    layers: int = Field(5, ge=1, description="Number of residual blocks (paper: 30).")
    kernel: int = Field(3, ge=1, le=1024, description="Kernel size of the convolutions, in tokens (paper: 3).")
    dilations: tuple[Dilation, ...] = Field(
        (1, 2, 4, 8, 16),
        min_length=1,
        description="Dilations of the layers, in order. They are repeated if there are more layers.",
    )
    inner: int | None = Field(None, ge=1, description="Width inside a block; null: half the model width (paper).")
    normalisation: NormConfig = Field(LayerNormConfig(), description="Normalisation before each activation.")


class ByteNetEncoderConfig(_Layers, EncoderFamily):
    """Dilated convolutions, h ← h + W₂ ReLU(LN(conv(ReLU(LN(W₁ ReLU(LN(h))))))) (section 3.6, figure 3).

    The dilation doubles from layer to layer, so the receptive field grows exponentially with the number of layers.

    YAML: `encoder: {kind: bytenet}`
    """

    def build(self, context: SideContext) -> "ByteNetEncoder":
        """Build the embeddings and blocks."""
        return ByteNetEncoder(self, context)


class ByteNetDecoderConfig(_Layers, DecoderFamily):
    """The blocks of the encoder with causal convolutions, stacked on the encoder states (section 3.1).

    YAML: `decoder: {kind: bytenet}`, or with attention instead of stacking
    `decoder: {kind: bytenet, stacked: false, cross_attention: {}}`
    """

    without_source: ClassVar[Mapping[str, Any]] = {"stacked": False, "cross_attention": None}

    stacked: bool = Field(
        True,
        description="Add the source state at position t to target token t, or zeros after the end of the source. In "
        "the second version of the paper, the source is first lengthened by a fifth.",
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


class Block(nn.Module):
    """A residual block: projection d → inner, dilated convolution, projection inner → d.

    Each of them is preceded by a norm and a ReLU.
    """

    def __init__(self, config: _Layers, layer: int, context: SideContext) -> None:
        super().__init__()
        width = context.width
        inner = config.inner or max(1, width // 2)
        dilation = config.dilations[layer % len(config.dilations)]
        self.norms = nn.ModuleList(config.normalisation.build(size) for size in (width, inner, inner))
        self.narrow = nn.Linear(width, inner)
        self.convolution = Convolution(inner, inner, config.kernel, dilation, gain=2.0)  # for ReLU (He et al. 2015)
        self.widen = nn.Linear(inner, width)
        self.dropout = Dropout(context.dropout.residual)

    def encode(self, states: Tensor, mask: Tensor) -> Tensor:
        """Apply the block with context on both sides: states (B, S, d) → (B, S, d)."""
        return states + self._expand(self.convolution.centred(self._reduce(states, mask), mask), mask)

    def decode(
        self, states: Tensor, past: Tensor | None, mask: Tensor | None, real: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Apply the block with context on the left: states (R, T, d) → (R, T, d), and `past` for the next call.

        past: (R, (kernel − 1)·dilation, inner). real: the mask of `Convolution.causal`.
        """
        result, past = self.convolution.causal(self._reduce(states, mask), past, real)
        return states + self._expand(result, mask), past

    def _reduce(self, states: Tensor, mask: Tensor | None) -> Tensor:
        narrow = self.narrow(functional.relu(self.norms[0](states, mask)))
        return functional.relu(self.norms[1](narrow, mask))

    def _expand(self, states: Tensor, mask: Tensor | None) -> Tensor:
        return self.dropout(self.widen(functional.relu(self.norms[2](states, mask))))  # type: ignore[no-any-return]


class ByteNetEncoder(nn.Module):
    """Embeddings and blocks. Implements `Encoder`."""

    timed = (("forward", "encoder"),)

    def __init__(self, config: ByteNetEncoderConfig, context: SideContext) -> None:
        super().__init__()
        self.embedding = context.embedding
        self.layers = nn.ModuleList(Block(config, layer, context) for layer in range(config.layers))
        self.norm = config.normalisation.build(context.width)

    def forward(self, tokens: Tensor, mask: Tensor) -> Memory:
        """Encode tokens (B, S) int64 with mask (B, S) bool into states (B, S, d)."""
        states = self.embedding(tokens, mask=mask)
        for layer in self.layers:
            states = layer.encode(states, mask)  # type: ignore[operator]
        return Memory(self.norm(states, mask), mask)


class DecoderLayer(nn.Module):
    """A block, followed by attention to the source if it is configured."""

    def __init__(self, config: ByteNetDecoderConfig, layer: int, context: DecoderContext) -> None:
        super().__init__()
        self.block = Block(config, layer, context)
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

    states: (B, S, d), zero at padding; None if no states are added.
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
        return StackedSource(source.mask, source.layers, memory.states.masked_fill(~memory.mask.unsqueeze(2), 0.0))

    def step(self, tokens: Tensor, state: State) -> tuple[ProjectedOutput, State]:
        """See `Decoder.step`."""
        step = self.read(tokens, state)
        states = step.embedded
        if state.memory.states is not None:
            states = states + state.memory.aligned_states(step.causal, len(tokens))
        states, attention, after = self.run_layers(states, state, step)
        hidden = self.output(functional.relu(self.norm(states, step.mask)))
        return ProjectedOutput(hidden, self.projection, attention), after
