"""Every attention mechanism by its `kind`; a new one is a file in this folder and a line here."""

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
"""What looks back in a decoder; an encoder, which sees both sides, has fewer kinds."""
SourceAttentionConfig = Annotated[
    SoftAttentionConfig | HardAttentionConfig | LinearAttentionConfig, Field(discriminator="kind")
]
