"""The Transformer's encoder and decoder (Vaswani et al. 2017)."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.config import Config
from dragoman.models.interface import Memory, Output, State, Tree
from dragoman.nn.attention import MultiHeadAttention, recording
from dragoman.nn.embedding import Embedding, Projection
from dragoman.nn.feedforward import Activation, FeedForward
from dragoman.nn.mask import Mask
from dragoman.nn.residual import NormOrder, Residual, final_norm


class DropoutConfig(Config):
    """Rates of dropout, by place. A bare number in YAML sets `embedding` and `residual`."""

    embedding: float = Field(0.1, ge=0, lt=1, description="rate on the sum of token and position (share)")
    residual: float = Field(0.1, ge=0, lt=1, description="rate on every sublayer's result (share)")
    attention: float = Field(0.0, ge=0, lt=1, description="rate on attention weights after the softmax (share)")
    feedforward: float = Field(0.0, ge=0, lt=1, description="rate after the feed-forward activation (share)")


class TransformerConfig(Config):
    """A stack of Transformer layers, for an encoder or a decoder."""

    kind: Literal["transformer"] = "transformer"
    layers: int = Field(6, ge=1, description="number of layers N (paper: 6)")
    heads: int = Field(8, ge=1, description="attention heads h; must divide the model width (paper: 8)")
    feedforward: int = Field(2048, ge=1, description="inner width of the feed-forward network d_ff (paper: 2048)")
    activation: Activation = Field("relu", description="feed-forward activation, relu (paper) or gelu")
    norm: NormOrder = Field("post", description="where LayerNorm stands: post (paper) or pre")


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward network, each inside a residual connection."""

    def __init__(self, config: TransformerConfig, width: int, dropout: DropoutConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(width, config.heads, dropout.attention)
        self.feedforward = FeedForward(width, config.feedforward, config.activation, dropout.feedforward)
        self.around_attention = Residual(width, config.norm, dropout.residual)
        self.around_feedforward = Residual(width, config.norm, dropout.residual)

    def forward(self, states: Tensor, mask: Mask) -> Tensor:
        """(B, S, d) → (B, S, d)."""

        def attend(states: Tensor) -> Tensor:
            return self.self_attention(states, *self.self_attention.keys_and_values(states), mask)  # type: ignore[no-any-return]

        states = self.around_attention(states, attend)
        return self.around_feedforward(states, self.feedforward)  # type: ignore[no-any-return]


class TransformerEncoder(nn.Module):
    """Embeddings and N encoder layers; keeps the `Encoder` promise."""

    def __init__(self, config: TransformerConfig, embedding: Embedding, width: int, dropout: DropoutConfig) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = nn.ModuleList(EncoderLayer(config, width, dropout) for _ in range(config.layers))
        self.norm = final_norm(width, config.norm)

    def forward(self, tokens: Tensor, keep: Tensor) -> Memory:
        """tokens (B, S) int64, keep (B, S) bool → states (B, S, d)."""
        mask = Mask.padding(keep)
        states = self.embedding(tokens)
        for layer in self.layers:
            states = layer(states, mask)
        return Memory(self.norm(states), keep)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the memory, and a feed-forward network, each inside a residual."""

    def __init__(self, config: TransformerConfig, width: int, dropout: DropoutConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(width, config.heads, dropout.attention)
        self.cross_attention = MultiHeadAttention(width, config.heads, dropout.attention)
        self.feedforward = FeedForward(width, config.feedforward, config.activation, dropout.feedforward)
        self.around_self_attention = Residual(width, config.norm, dropout.residual)
        self.around_cross_attention = Residual(width, config.norm, dropout.residual)
        self.around_feedforward = Residual(width, config.norm, dropout.residual)

    def forward(
        self,
        states: Tensor,
        cache: tuple[Tensor, Tensor] | None,
        memory: tuple[Tensor, Tensor],
        causal: Mask | None,
        padding: Mask,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """states (R, T, d), cached keys and values (R, h, t, d/h), the memory's (B, h, S, d/h) → states, cache."""
        seen: list[tuple[Tensor, Tensor]] = []

        def attend_self(states: Tensor) -> Tensor:
            keys, values = self.self_attention.keys_and_values(states)
            if cache is not None:
                keys, values = torch.cat((cache[0], keys), 2), torch.cat((cache[1], values), 2)
            seen.append((keys, values))
            return self.self_attention(states, keys, values, causal)  # type: ignore[no-any-return]

        states = self.around_self_attention(states, attend_self)
        states = self.around_cross_attention(states, lambda states: self.cross_attention(states, *memory, padding))
        return self.around_feedforward(states, self.feedforward), seen[0]


class TransformerDecoder(nn.Module):
    """Embeddings, N decoder layers and the vocabulary projection; keeps the `Decoder` promise."""

    def __init__(
        self,
        config: TransformerConfig,
        embedding: Embedding,
        projection: Projection,
        width: int,
        dropout: DropoutConfig,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = nn.ModuleList(DecoderLayer(config, width, dropout) for _ in range(config.layers))
        self.norm = final_norm(width, config.norm)
        self.projection = projection

    def start(self, memory: Memory, attention: bool = False) -> State:
        """Project the memory once to every layer's keys and values.

        attention: `step` also gives the last layer's cross-attention, averaged over its heads.
        """
        layers = [layer.cross_attention.keys_and_values(memory.states) for layer in self.layers]  # type: ignore[union-attr,operator]
        cache: Tree = [None] * len(self.layers)
        return State(memory={"keep": memory.keep, "layers": layers}, cache=cache, attention=attention)

    def step(self, tokens: Tensor, state: State) -> tuple[Output, State]:
        """Read tokens (R, T) after `state.position` others."""
        length = tokens.size(1)
        causal = Mask.causal(length, state.position + length, tokens.device)
        padding = Mask.padding(state.memory["keep"])
        states = self.embedding(tokens, state.position)
        cache: list[Tree] = []
        attention = None
        for layer, memory, seen in zip(self.layers, state.memory["layers"], state.cache, strict=True):
            if state.attention and len(cache) == len(self.layers) - 1:
                with recording() as weights:
                    states, seen = layer(states, seen, memory, causal, padding)
                folded = weights[layer.cross_attention][0]  # type: ignore[index]  # (B, heads, K·T, S)
                attention = folded.mean(1).view(*tokens.shape, -1)
            else:
                states, seen = layer(states, seen, memory, causal, padding)
            cache.append(seen)
        output = Output(self.norm(states), self.projection, attention=attention)
        return output, State(state.memory, cache, state.position + length, state.width, state.attention)
