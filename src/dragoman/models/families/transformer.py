"""The Transformer's encoder and decoder (Vaswani et al. 2017)."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn

from dragoman.base.packing import Packing
from dragoman.base.settings.config import Config
from dragoman.models.families.family import DecoderContext, DecoderFamily, EncoderFamily, ProjectedOutput, SideContext
from dragoman.models.families.layered import LayeredDecoder, Step
from dragoman.models.interface import Memory, State, TensorTree
from dragoman.nn.attention.interface import Attention
from dragoman.nn.attention.soft import SoftAttentionConfig
from dragoman.nn.attention.union import CausalAttentionConfig, SelfAttentionConfig, SourceAttentionConfig
from dragoman.nn.embedding import document_starts
from dragoman.nn.feedforward import Activation, FeedForward
from dragoman.nn.mask import Mask
from dragoman.nn.mixture import ExpertsConfig, Mixture
from dragoman.nn.normalisation import LayerNormConfig, NormConfig
from dragoman.nn.positions.scheme import PositionScheme, share_relative_positions
from dragoman.nn.positions.sinusoidal import SinusoidalConfig
from dragoman.nn.precision import cast_for_matmul
from dragoman.nn.residual import NormOrder, Residual, final_norm, require_output_width


class _Layers(Config):
    """Settings shared by the encoder and the decoder."""

    kind: Literal["transformer"] = "transformer"
    layers: int = Field(6, ge=1, description="Number of layers N (paper: 6).")
    heads: int = Field(8, ge=1, description="Number of attention heads h; must divide the model width (paper: 8).")
    attention: CausalAttentionConfig = Field(SoftAttentionConfig(), description="Self-attention mechanism.")
    feedforward: int = Field(2048, ge=1, description="Inner width of the feed-forward network d_ff (paper: 2048).")
    activation: Activation = Field(
        "relu",
        description="Feed-forward activation: relu (paper), gelu, gelu_tanh (approximated by tanh), swish, or with a "
        "gate swiglu, geglu or geglu_tanh.",
    )
    feedforward_bias: bool = Field(True, description="Add learned biases in the feed-forward network.")
    float32_output: bool = Field(
        False,
        description="In float16 runs, compute the output of the feed-forward network in float32, because it exceeds "
        "the range of float16, as in T5.",
    )
    experts: ExpertsConfig | None = Field(
        None,
        description="Mixture of experts: several feed-forward networks, a few of which process each token. null: one "
        "feed-forward network.",
    )
    norm: NormOrder = Field("post", description="Position of the normalisation: post (paper) or pre.")
    normalisation: NormConfig = Field(LayerNormConfig(), description="Kind of normalisation.")
    residual: bool = Field(True, description="Residual connections; false removes them, for ablations.")

    def build_residual(self, context: SideContext) -> Residual:
        """Build the residual connection, norm and dropout around one sublayer."""
        return Residual(context.width, self.norm, self.normalisation, context.dropout.residual, self.residual)

    def build_feedforward(self, context: SideContext) -> FeedForward | Mixture:
        """Build the feed-forward network of one layer, or its experts."""

        def network() -> FeedForward:
            return FeedForward(
                context.width,
                self.feedforward,
                self.activation,
                context.dropout.feedforward,
                bias=self.feedforward_bias,
                float32_output=self.float32_output,
            )

        return network() if self.experts is None else self.experts.build(context.width, network)

    def build_self_attention(self, context: SideContext) -> Attention:
        """Build the self-attention of one layer."""
        built = self.attention.build(context.attention_sizes(self.heads), context.positions)
        return require_output_width(built, context.width)


class TransformerEncoderConfig(_Layers, EncoderFamily):
    """A stack of Transformer encoder layers."""

    default_positions: ClassVar[PositionScheme] = SinusoidalConfig()
    has_self_attention: ClassVar[bool] = True
    compilable: ClassVar[bool] = True
    has_equal_layers: ClassVar[bool] = True

    attention: SelfAttentionConfig = Field(SoftAttentionConfig(), description="Self-attention mechanism.")

    @property
    def packs(self) -> bool:
        """See `Family`: with attention that unpacks its arguments."""
        return self.attention.packs

    @property
    def packs_documents(self) -> bool:
        """See `EncoderFamily`: with attention that compares all pairs of tokens."""
        return self.attention.masks_pairs

    def build(self, context: SideContext) -> "TransformerEncoder":
        """Build the embeddings and layers."""
        return TransformerEncoder(self, context)


class TransformerDecoderConfig(_Layers, DecoderFamily):
    """A stack of Transformer decoder layers."""

    default_positions: ClassVar[PositionScheme] = SinusoidalConfig()
    has_self_attention: ClassVar[bool] = True
    compilable: ClassVar[bool] = True
    has_equal_layers: ClassVar[bool] = True
    without_source: ClassVar[Mapping[str, Any]] = {"cross_attention": None}

    cross_attention: SourceAttentionConfig | None = Field(
        SoftAttentionConfig(), description="Attention to the source; null: none, as in a language model."
    )

    scale_output: bool = Field(
        False, description="Multiply the states by 1/√d before the projection to the vocabulary, as in T5."
    )

    @property
    def packs(self) -> bool:
        """See `Family`: with attention that unpacks its arguments."""
        return self.attention.packs and (self.cross_attention is None or self.cross_attention.packs)

    def build(self, context: DecoderContext) -> "TransformerDecoder":
        """Build the embeddings, layers and vocabulary projection."""
        return TransformerDecoder(self, context)


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward network, each inside a residual connection."""

    compilable = True

    def __init__(self, config: TransformerEncoderConfig, context: SideContext) -> None:
        super().__init__()
        self.self_attention = config.build_self_attention(context)
        self.feedforward = config.build_feedforward(context)
        self.around_attention = config.build_residual(context)
        self.around_feedforward = config.build_residual(context)

    def forward(self, states: Tensor, padding: Mask, mask: Tensor) -> Tensor:
        """(B, S, d) → (B, S, d)."""
        states = self.around_attention(states, lambda states: self.self_attention.self_attend(states, padding), mask)
        return self.around_feedforward(states, lambda states: self.feedforward(states, mask), mask)  # type: ignore[no-any-return]


class TransformerEncoder(nn.Module):
    """Embeddings and N encoder layers. Implements `Encoder`."""

    timed = (("forward", "encoder"),)

    def __init__(self, config: TransformerEncoderConfig, context: SideContext) -> None:
        super().__init__()
        self.embedding = context.embedding
        self.layers = nn.ModuleList(EncoderLayer(config, context) for _ in range(config.layers))
        share_relative_positions(self.layers)
        self.norm = final_norm(context.width, config.norm, config.normalisation)

    def forward(self, tokens: Tensor, mask: Tensor, packed: bool = False, packing: Packing | None = None) -> Memory:
        """Encode tokens (B, S) int64 with mask (B, S) bool as states (B, S, d).

        packed: whether a row may contain several documents, each of which starts with BOS. No token attends to another
        document. packing: packs the states, which are then (1, N, d); None: they are padded.
        """
        padding = (
            Mask.documents(document_starts(tokens), mask)
            if packed
            else Mask.padding(mask, queries=packing, keys=packing)
        )
        states, real = self.embedding(tokens, mask=mask, packed=packed), mask
        if packing is not None:
            states, real = packing.pack(states), packing.tokens
        for layer in self.layers:
            states = layer(states, padding, real)
        return Memory(self.norm(states, real), mask, packing=packing)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the source, and a feed-forward network, each inside a residual connection.

    Attention to the source is omitted in a language model and in a step without a source.
    """

    def __init__(self, config: TransformerDecoderConfig, context: DecoderContext) -> None:
        super().__init__()
        self.self_attention = config.build_self_attention(context)
        self.compilable = self.self_attention.compilable
        self.cross_attention = None
        if config.cross_attention is not None:
            cross_attention = config.cross_attention.build(context.attention_sizes(config.heads))
            self.cross_attention = require_output_width(cross_attention, context.width)
        self.feedforward = config.build_feedforward(context)
        self.around_self_attention = config.build_residual(context)
        if config.cross_attention is not None:
            self.around_cross_attention = config.build_residual(context)
        self.around_feedforward = config.build_residual(context)

    def forward(
        self, states: Tensor, cache: TensorTree, memory: TensorTree | None, step: Step
    ) -> tuple[Tensor, TensorTree]:
        """Return the new states (R, T, d) and the new self-attention cache.

        states: (R, T, d). cache: the self-attention cache with R rows. memory: the projected source with B rows.
        """
        new_caches: list[TensorTree] = []

        def attend_self(states: Tensor) -> Tensor:
            states, new_cache = self.self_attention.causal_self_attend(states, cache, step.causal, step.query_mask)
            new_caches.append(new_cache)
            return states

        def attend_source(states: Tensor) -> Tensor:
            assert self.cross_attention is not None and step.padding is not None
            return self.cross_attention.cross_attend(states, memory, step.padding, step.query_mask)

        mask = step.mask
        states = self.around_self_attention(states, attend_self, mask)
        if memory is not None:
            states = self.around_cross_attention(states, attend_source, mask)
        return self.around_feedforward(states, lambda states: self.feedforward(states, mask), mask), new_caches[0]


class TransformerDecoder(LayeredDecoder):
    """Embeddings, N decoder layers and the vocabulary projection. Implements `Decoder`."""

    timed = (("start", "decoder"), ("step", "decoder"))

    def __init__(self, config: TransformerDecoderConfig, context: DecoderContext) -> None:
        super().__init__()
        self.embedding = context.embedding
        self.layers = nn.ModuleList(DecoderLayer(config, context) for _ in range(config.layers))
        share_relative_positions(self.layers)
        self.output_scale = context.width**-0.5 if config.scale_output else 1.0
        self.norm = final_norm(context.width, config.norm, config.normalisation)
        self.projection = context.projection

    def source_states(self, memory: Memory) -> Tensor:
        """Return the memory's states in the precision of matrix products."""
        return cast_for_matmul(memory.states)

    def step(self, tokens: Tensor, state: State, packing: Packing | None = None) -> tuple[ProjectedOutput, State]:
        """Process tokens (R, T), the first of which is at `state.position`.

        packing: packs the states of the tokens, which must be the first ones; None: they are padded.
        """
        step = self.read(tokens, state, packing)
        states, attention, after = self.run_layers(step.embedded, state, step)
        return ProjectedOutput(self.output_states(states, step.mask), self.projection, attention, packing), after

    def output_states(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """See `LayeredDecoder.output_states`."""
        states = self.norm(states, mask)
        return states if self.output_scale == 1.0 else states * self.output_scale
