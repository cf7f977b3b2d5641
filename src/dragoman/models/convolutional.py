"""A convolutional encoder and decoder after ConvS2S (Gehring et al. 2017).

As in the paper: gated convolutions, attention in every decoder layer, a factor √½ after every sum. Differences:
- Attention projects queries, keys, values and its result, and scores by scaled dot products, as in the other families.
  The paper's d·z without matrices or scale is `cross_attention: {scorer: {kind: dot}, projections: false}`.
- Keys and values are the same memory, (z + e)·√½; the paper has keys z and values z + e.
- The attention's weighted mean of m states is not multiplied by m·√(1/m).
- There is no weight normalisation and no scaling of the encoder's gradient by the number of attention layers, and the
  initial gains differ.
- All layers are as wide as the embeddings; in the paper width grows, with linear maps in between.
- Positions are sinusoidal by default; the paper's are learned: `positions: {kind: learned}`.
"""

from collections.abc import Mapping
from math import sqrt
from typing import Any, ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.settings.config import Config
from dragoman.models.family import DecoderContext, DecoderFamily, EncoderFamily, ProjectedOutput, SideContext
from dragoman.models.interface import Memory, State, TensorTree
from dragoman.models.layered import LayeredDecoder, Step
from dragoman.nn.attention.soft import SoftAttentionConfig
from dragoman.nn.attention.union import SourceAttentionConfig
from dragoman.nn.convolution import Convolution
from dragoman.nn.dropout import Dropout
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.positions.sinusoidal import SinusoidalConfig
from dragoman.nn.residual import require_output_width

# Keeps the variance of a sum of two terms of equal variance (Gehring et al. 2017, section 3.5).
_HALF = sqrt(0.5)

# Variance of the input of a gated linear unit if the layer's input has variance 1. The paper's 4 is for inputs of
# small variance. Embeddings here have a variance above 1, which opens the gates wider: with 4, the first gradient of 15
# layers of width 256 had a norm of 5e9; with 2.5 the norms for 4, 15 and 30 layers were 2.4, 1.3 and 1.0.
_GAIN = 2.5


class _Layers(Config):
    """Settings that the encoder and the decoder share."""

    kind: Literal["convolutional"] = "convolutional"
    layers: int = Field(4, ge=1, description="Number of convolutional layers (paper: 15).")
    kernel: int = Field(3, ge=1, le=1024, description="Kernel size of the convolutions, in tokens (paper: 3).")

    def build_convolution(self, context: SideContext) -> Convolution:
        """Build the convolution of one layer; half of its output channels are gates."""
        width, gain = context.width, _GAIN * (1 - context.dropout.residual)
        return Convolution(width, 2 * width, self.kernel, gain=gain)


class ConvolutionalEncoderConfig(_Layers, EncoderFamily):
    """Gated convolutions over positions, h ← (GLU(conv(h)) + h)·√½ (Gehring et al. 2017, section 3.2).

    The memory is (z + e)·√½ of the last layer z and the embeddings e; in the paper z is the key and z + e the value.
    `encoder: {kind: convolutional, layers: 4, kernel: 3}`.
    """

    default_positions: ClassVar[PositionScheme] = SinusoidalConfig()

    def build(self, context: SideContext) -> "ConvolutionalEncoder":
        """Build the embeddings and layers."""
        return ConvolutionalEncoder(self, context)


class ConvolutionalDecoderConfig(_Layers, DecoderFamily):
    """Gated causal convolutions with attention to the source in every layer.

    The query is (Wg + b + e)·√½, where g = GLU(conv(h)) and e is the embedding (Gehring et al. 2017, section 3.3);
    then h ← ((g + attention)·√½ + h)·√½. `decoder: {kind: convolutional, layers: 4, kernel: 3}`.
    """

    default_positions: ClassVar[PositionScheme] = SinusoidalConfig()
    without_source: ClassVar[Mapping[str, Any]] = {"cross_attention": None}

    heads: int = Field(1, ge=1, description="Number of attention heads h; must divide the model width (paper: 1).")
    cross_attention: SourceAttentionConfig | None = Field(
        SoftAttentionConfig(), description="Attention to the source; null: none, in a language model."
    )

    def build(self, context: DecoderContext) -> "ConvolutionalDecoder":
        """Build the embeddings, layers and vocabulary projection."""
        return ConvolutionalDecoder(self, context)


class EncoderLayer(nn.Module):
    """One gated convolution inside a residual connection."""

    def __init__(self, config: ConvolutionalEncoderConfig, context: SideContext) -> None:
        super().__init__()
        self.convolution = config.build_convolution(context)
        self.dropout = Dropout(context.dropout.residual)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """(B, S, d) → (B, S, d)."""
        return (functional.glu(self.convolution.centred(self.dropout(states), mask)) + states) * _HALF


class ConvolutionalEncoder(nn.Module):
    """Embeddings and gated convolutions. Implements `Encoder`."""

    timed = (("forward", "encoder"),)

    def __init__(self, config: ConvolutionalEncoderConfig, context: SideContext) -> None:
        super().__init__()
        self.embedding = context.embedding
        self.layers = nn.ModuleList(EncoderLayer(config, context) for _ in range(config.layers))

    def forward(self, tokens: Tensor, mask: Tensor) -> Memory:
        """tokens (B, S) int64, mask (B, S) bool → states (B, S, d)."""
        states = embedded = self.embedding(tokens, mask=mask)
        for layer in self.layers:
            states = layer(states, mask)
        return Memory((states + embedded) * _HALF, mask)


class DecoderLayer(nn.Module):
    """One gated convolution and attention to the source inside a residual connection.

    Without attention to the source, or without a source, it computes h ← (g + h)·√½, as in the encoder.
    """

    def __init__(self, config: ConvolutionalDecoderConfig, context: DecoderContext) -> None:
        super().__init__()
        self.convolution = config.build_convolution(context)
        self.cross_attention = None
        if config.cross_attention is not None:
            self.query = nn.Linear(context.width, context.width)
            source = config.cross_attention.build(context.attention_sizes(config.heads))
            self.cross_attention = require_output_width(source, context.width)
        self.dropout = Dropout(context.dropout.residual)

    def forward(
        self, states: Tensor, past: Tensor | None, memory: TensorTree | None, step: Step
    ) -> tuple[Tensor, Tensor]:
        """states (R, T, d), past inputs (R, kernel − 1, d), the projected memory of B rows → states, past."""
        result, past = self.convolution.causal(self.dropout(states), past, step.causal.token_mask(step.causal.new))
        result = functional.glu(result)
        if memory is not None:
            assert self.cross_attention is not None and step.padding is not None
            query = (self.query(result) + step.embedded) * _HALF
            result = (result + self.cross_attention.cross_attend(query, memory, step.padding, step.mask)) * _HALF
        return (result + states) * _HALF, past


class ConvolutionalDecoder(LayeredDecoder):
    """Embeddings, gated convolutions and the vocabulary projection. Implements `Decoder`.

    The cache holds the last kernel − 1 inputs of each layer, so its size is constant.
    """

    timed = (("start", "decoder"), ("step", "decoder"))

    def __init__(self, config: ConvolutionalDecoderConfig, context: DecoderContext) -> None:
        super().__init__()
        self.embedding = context.embedding
        self.layers = nn.ModuleList(DecoderLayer(config, context) for _ in range(config.layers))
        self.dropout = Dropout(context.dropout.residual)
        self.projection = context.projection

    def step(self, tokens: Tensor, state: State) -> tuple[ProjectedOutput, State]:
        """Read tokens (R, T); the first is at `state.position`."""
        step = self.read(tokens, state)
        states, attention, after = self.through_layers(step.embedded, state, step)
        return ProjectedOutput(self.dropout(states), self.projection, attention), after
