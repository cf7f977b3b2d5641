"""A convolutional encoder and decoder based on ConvS2S (Gehring et al. 2017).

As in the paper, convolutions are gated, each decoder layer attends to the source, and each sum is multiplied by √½.
Differences from the paper:
- Attention projects queries, keys, values and results, and uses scaled dot products, as in the other families. The
  score d·z of the paper, without matrices and scale, is `cross_attention: {scorer: {kind: dot}, projections: false}`.
- Keys and values are the same memory, (z + e)·√½. The paper uses keys z and values z + e.
- The weighted mean of m states that attention computes is not multiplied by m·√(1/m).
- There is no weight normalisation, and the gradient of the encoder is not divided by the number of attention layers.
- Initial gains differ from the paper.
- All layers have the width of the embeddings. In the paper, later layers are wider and connected by linear maps.
- Positions are sinusoidal by default. Those of the paper are learned: `positions: {kind: learned}`.
"""

from collections.abc import Mapping
from math import sqrt
from typing import Any, ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.settings.config import Config
from dragoman.models.families.family import DecoderContext, DecoderFamily, EncoderFamily, ProjectedOutput, SideContext
from dragoman.models.families.layered import LayeredDecoder, Step
from dragoman.models.interface import Memory, State, TensorTree
from dragoman.nn.attention.soft import SoftAttentionConfig
from dragoman.nn.attention.union import SourceAttentionConfig
from dragoman.nn.convolution import Convolution
from dragoman.nn.dropout import Dropout
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.positions.sinusoidal import SinusoidalConfig
from dragoman.nn.residual import require_output_width

# Factor that preserves the variance in sums of two terms of equal variance (Gehring et al. 2017, section 3.5).
_HALF = sqrt(0.5)

# Variance of the input of a gated linear unit if the input of the layer has variance 1. The value 4 of the paper is
# derived for inputs of small variance, but these embeddings have a variance above 1, which opens the gates wider. With
# 4, the norm of the first gradient was 5e9 for 15 layers of width 256. With 2.5, the norms were 2.4, 1.3 and 1.0 for 4,
# 15 and 30 layers.
_GAIN = 2.5


class _Layers(Config):
    """Settings that the encoder and the decoder share."""

    kind: Literal["convolutional"] = "convolutional"
    layers: int = Field(4, ge=1, description="Number of convolutional layers (paper: 15).")
    kernel: int = Field(3, ge=1, le=1024, description="Kernel size of the convolutions, in tokens (paper: 3).")

    def build_convolution(self, context: SideContext) -> Convolution:
        """Build the convolution of one layer. Half of its output channels are gates."""
        width, gain = context.width, _GAIN * (1 - context.dropout.residual)
        return Convolution(width, 2 * width, self.kernel, gain=gain)


class ConvolutionalEncoderConfig(_Layers, EncoderFamily):
    """Gated convolutions over positions, h ← (GLU(conv(h)) + h)·√½ (Gehring et al. 2017, section 3.2).

    The memory is (z + e)·√½, where z is the output of the last layer and e are the embeddings. In the paper, z is the
    key and z + e the value. YAML: `encoder: {kind: convolutional, layers: 4, kernel: 3}`
    """

    default_positions: ClassVar[PositionScheme] = SinusoidalConfig()

    def build(self, context: SideContext) -> "ConvolutionalEncoder":
        """Build the embeddings and layers."""
        return ConvolutionalEncoder(self, context)


class ConvolutionalDecoderConfig(_Layers, DecoderFamily):
    """Gated causal convolutions with attention to the source in each layer.

    The query is (Wg + b + e)·√½, where g = GLU(conv(h)) and e is the embedding (Gehring et al. 2017, section 3.3). The
    layer then computes h ← ((g + attention)·√½ + h)·√½.

    YAML: `decoder: {kind: convolutional, layers: 4, kernel: 3}`
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
        """Apply the layer to states (B, S, d) → (B, S, d)."""
        return (functional.glu(self.convolution.centred(self.dropout(states), mask)) + states) * _HALF


class ConvolutionalEncoder(nn.Module):
    """Embeddings and gated convolutions. Implements `Encoder`."""

    timed = (("forward", "encoder"),)

    def __init__(self, config: ConvolutionalEncoderConfig, context: SideContext) -> None:
        super().__init__()
        self.embedding = context.embedding
        self.layers = nn.ModuleList(EncoderLayer(config, context) for _ in range(config.layers))

    def forward(self, tokens: Tensor, mask: Tensor) -> Memory:
        """Encode tokens (B, S) int64 with mask (B, S) bool into states (B, S, d)."""
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
        """Return the new states (R, T, d) and `past` for the next call.

        past: past inputs of the convolution (R, kernel − 1, d). memory: the projected memory with B rows, or None.
        """
        result, past = self.convolution.causal(self.dropout(states), past, step.causal.token_mask(step.causal.new))
        result = functional.glu(result)
        if memory is not None:
            assert self.cross_attention is not None and step.padding is not None
            query = (self.query(result) + step.embedded) * _HALF
            result = (result + self.cross_attention.cross_attend(query, memory, step.padding, step.mask)) * _HALF
        return (result + states) * _HALF, past


class ConvolutionalDecoder(LayeredDecoder):
    """Embeddings, gated convolutions and the vocabulary projection. Implements `Decoder`.

    The cache consists of the last kernel − 1 inputs of each layer, so its size is constant.
    """

    timed = (("start", "decoder"), ("step", "decoder"))

    def __init__(self, config: ConvolutionalDecoderConfig, context: DecoderContext) -> None:
        super().__init__()
        self.embedding = context.embedding
        self.layers = nn.ModuleList(DecoderLayer(config, context) for _ in range(config.layers))
        self.dropout = Dropout(context.dropout.residual)
        self.projection = context.projection

    def step(self, tokens: Tensor, state: State) -> tuple[ProjectedOutput, State]:
        """See `Decoder.step`."""
        step = self.read(tokens, state)
        states, attention, after = self.run_layers(step.embedded, state, step)
        return ProjectedOutput(self.output_states(states), self.projection, attention), after

    def output_states(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """See `LayeredDecoder.output_states`."""
        return self.dropout(states)  # type: ignore[no-any-return]
