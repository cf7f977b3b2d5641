"""Unions of attention mechanisms, discriminated by `kind`. To add a mechanism, add it to a union in this file."""

from typing import Annotated

from pydantic import Field

from dragoman.nn.attention.average import AverageAttentionConfig
from dragoman.nn.attention.hard import HardAttentionConfig
from dragoman.nn.attention.linear import LinearAttentionConfig
from dragoman.nn.attention.soft import SoftAttentionConfig
from dragoman.nn.attention.ssru import SSRUConfig
from dragoman.nn.attention.window import WindowAttentionConfig

SelfAttentionConfig = Annotated[
    SoftAttentionConfig | WindowAttentionConfig | LinearAttentionConfig, Field(discriminator="kind")
]
CausalAttentionConfig = Annotated[
    SoftAttentionConfig | WindowAttentionConfig | LinearAttentionConfig | AverageAttentionConfig | SSRUConfig,
    Field(discriminator="kind"),
]
"""Self-attention in decoders. Encoders attend in both directions, which fewer kinds support."""
SourceAttentionConfig = Annotated[
    SoftAttentionConfig | HardAttentionConfig | LinearAttentionConfig, Field(discriminator="kind")
]
