"""The dilated convolutional encoder and decoder of ByteNet (Kalchbrenner et al. 2016)."""

from contextlib import nullcontext
from typing import Annotated, Literal

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.config import Config
from dragoman.base.errors import ConfigError
from dragoman.models.family import DecoderContext, DecoderFamily, EncoderFamily, SideContext
from dragoman.models.interface import Memory, State, Tree
from dragoman.models.output import ProjectedOutput
from dragoman.nn.attention.recording import mean_over_heads, recording
from dragoman.nn.attention.union import SourceAttentionConfig
from dragoman.nn.convolution import Convolution
from dragoman.nn.dropout import Dropout
from dragoman.nn.mask import Mask
from dragoman.nn.normalisation import LayerNormConfig, NormConfig
from dragoman.nn.residual import Residual, fitted
from dragoman.text.special import PAD

Dilation = Annotated[int, Field(ge=1, le=4096)]


class _Layers(Config):
    """What encoder and decoder have in common."""

    kind: Literal["bytenet"] = "bytenet"
    layers: int = Field(5, ge=1, description="number of residual blocks (paper: 30)")
    kernel: int = Field(3, ge=1, le=1024, description="tokens that a convolution reads at a time (paper: 3)")
    dilations: tuple[Dilation, ...] = Field(
        (1, 2, 4, 8, 16), min_length=1, description="distance between them, layer by layer and then over again"
    )
    inner: int | None = Field(None, ge=1, description="width inside a block; null: half the model width (paper)")
    normalisation: NormConfig = Field(LayerNormConfig(), description="what stands before each activation")


class ByteNetEncoderConfig(_Layers, EncoderFamily):
    """Dilated convolutions, h ← h + W₂ ReLU(LN(conv(ReLU(LN(W₁ ReLU(LN(h))))))) (section 3.6, figure 3).

    The dilation doubles from layer to layer, so the receptive field grows by 2^layers. `encoder: {kind: bytenet}`.
    """

    def build(self, context: SideContext) -> "ByteNetEncoder":
        """Embeddings and blocks."""
        return ByteNetEncoder(self, context)


class ByteNetDecoderConfig(_Layers, DecoderFamily):
    """The same blocks, looking back only, on top of the encoder's states (section 3.1).

    `decoder: {kind: bytenet}`; with attention instead: `{kind: bytenet, stacked: false, cross_attention: {}}`.
    """

    stacked: bool = Field(
        True, description="the source's state at position t is added to target token t; past its end, zero (paper)"
    )
    cross_attention: SourceAttentionConfig | None = Field(
        None,
        description="how tokens attend the source after every block; null: they do not (paper)",
        json_schema_extra={"kind": "soft"},
    )
    heads: int = Field(1, ge=1, description="heads of that attention; must divide the model width")

    def build(self, context: DecoderContext) -> "ByteNetDecoder":
        """Embeddings, blocks and the vocabulary projection. Raises ConfigError where nothing leads to the source."""
        if not self.stacked and self.cross_attention is None:
            raise ConfigError("neither stacked nor cross_attention lets the decoder see the source: set one of them")
        return ByteNetDecoder(self, context)


class Block(nn.Module):
    """d → inner, a dilated convolution, inner → d, each behind a norm and a ReLU, inside a residual connection."""

    def __init__(self, config: _Layers, layer: int, context: SideContext) -> None:
        super().__init__()
        width = context.width
        inner = config.inner or max(1, width // 2)
        dilation = config.dilations[layer % len(config.dilations)]
        self.norms = nn.ModuleList(config.normalisation.build(size) for size in (width, inner, inner))
        self.narrow = nn.Linear(width, inner)
        self.convolution = Convolution(inner, inner, config.kernel, dilation, gain=2.0)  # He et al. 2015: for a ReLU
        self.widen = nn.Linear(inner, width)
        self.dropout = Dropout(context.dropout.residual)

    def read(self, states: Tensor, keep: Tensor) -> Tensor:
        """(B, S, d) → (B, S, d), looking to both sides."""
        return states + self._after(self.convolution.read(self._before(states, keep), keep), keep)

    def extend(self, states: Tensor, past: Tensor | None, keep: Tensor | None) -> tuple[Tensor, Tensor]:
        """(R, T, d) → (R, T, d), looking back; and the past of the next call (R, (kernel − 1)·dilation, inner)."""
        result, past = self.convolution.extend(self._before(states, keep), past)
        return states + self._after(result, keep), past

    def _before(self, states: Tensor, keep: Tensor | None) -> Tensor:
        narrow = self.narrow(functional.relu(self.norms[0](states, keep)))
        return functional.relu(self.norms[1](narrow, keep))

    def _after(self, states: Tensor, keep: Tensor | None) -> Tensor:
        return self.dropout(self.widen(functional.relu(self.norms[2](states, keep))))  # type: ignore[no-any-return]


class ByteNetEncoder(nn.Module):
    """Embeddings and blocks; keeps the `Encoder` promise."""

    timed = (("forward", "encoder"),)

    def __init__(self, config: ByteNetEncoderConfig, context: SideContext) -> None:
        super().__init__()
        self.embedding = context.embedding
        self.layers = nn.ModuleList(Block(config, layer, context) for layer in range(config.layers))
        self.norm = config.normalisation.build(context.width)

    def forward(self, tokens: Tensor, keep: Tensor) -> Memory:
        """tokens (B, S) int64, keep (B, S) bool → states (B, S, d)."""
        states = self.embedding(tokens, keep=keep)
        for layer in self.layers:
            states = layer.read(states, keep)  # type: ignore[operator]
        return Memory(self.norm(states, keep), keep)


class DecoderLayer(nn.Module):
    """A block, and attention over the memory where there is one."""

    def __init__(self, config: ByteNetDecoderConfig, layer: int, context: DecoderContext) -> None:
        super().__init__()
        self.block = Block(config, layer, context)
        self.cross_attention = None
        if config.cross_attention is not None:
            source = config.cross_attention.build(context.attention_sizes(config.heads))
            self.cross_attention = fitted(source, context.width)
            rate = context.dropout.residual
            self.around_cross_attention = Residual(context.width, "pre", config.normalisation, rate)

    def memorise(self, states: Tensor, padding: Mask) -> Tree:
        """What the attention holds of the source (B, S, d), None where there is none."""
        return None if self.cross_attention is None else self.cross_attention.memorise(states, padding)

    def forward(
        self, states: Tensor, past: Tree, memory: Tree, padding: Mask, keep: Tensor | None
    ) -> tuple[Tensor, Tree]:
        """states (R, T, d), the convolution's past inputs, what attention holds → states, past."""
        states, past = self.block.extend(states, past, keep)
        attention = self.cross_attention
        if attention is not None:
            states = self.around_cross_attention(
                states, lambda states: attention.look(states, memory, padding, keep), keep
            )
        return states, past


class ByteNetDecoder(nn.Module):
    """Embeddings, blocks, ReLU(LN(h))W and the vocabulary projection; keeps the `Decoder` promise.

    The cache holds the last (kernel − 1)·dilation inputs of each convolution, however many tokens were read. Without
    attention over the source there is none to give: `Output.attention` is None.
    """

    timed = (("start", "decoder"), ("step", "decoder"))

    def __init__(self, config: ByteNetDecoderConfig, context: DecoderContext) -> None:
        super().__init__()
        self.embedding = context.embedding
        self.stacked, self.attends = config.stacked, config.cross_attention is not None
        self.layers = nn.ModuleList(DecoderLayer(config, layer, context) for layer in range(config.layers))
        self.norm = config.normalisation.build(context.width)
        self.output = nn.Linear(context.width, context.width)
        self.projection = context.projection

    def start(self, memory: Memory | None, attention: bool = False) -> State:
        """Project the memory once for every layer.

        attention: `step` also gives the last layer's attention, averaged over its heads.
        """
        assert memory is not None, "a decoder without a source is still to come"
        padding = Mask.padding(memory.keep)
        held: Tree = {"keep": memory.keep, "layers": [layer.memorise(memory.states, padding) for layer in self.layers]}  # type: ignore[operator]
        if self.stacked:
            held["states"] = memory.states.masked_fill(~memory.keep.unsqueeze(2), 0.0)
        cache: Tree = [None] * len(self.layers)
        limit = self.embedding.positions.limit
        return State(held, cache, attention=attention and self.attends, limit=limit)

    def step(self, tokens: Tensor, state: State) -> tuple[ProjectedOutput, State]:
        """Read tokens (R, T) after `state.position` others."""
        rows, length = tokens.shape
        padding = Mask.padding(state.memory["keep"])
        keep = tokens != PAD if self.training else None
        states = self.embedding(tokens, state.position)
        if self.stacked:
            below = state.memory["states"][:, state.position : state.position + length]
            below = functional.pad(below, (0, 0, 0, length - below.size(1)))
            states = states + below.repeat_interleave(state.beam_size, 0)
        cache: list[Tree] = []
        with recording() if state.attention else nullcontext() as weights:
            for layer, memory, past in zip(self.layers, state.memory["layers"], state.cache, strict=True):
                states, past = layer(states, past, memory, padding, keep)
                cache.append(past)
        attention = None if weights is None else mean_over_heads(weights, layer.cross_attention, rows)  # type: ignore[arg-type]
        hidden = self.output(functional.relu(self.norm(states, keep)))
        return ProjectedOutput(hidden, self.projection, attention), state.after(length, cache)
