"""Every attention mechanism by its `kind`; a new one is a file in this folder and a line here."""

from dragoman.nn.attention.soft import SoftAttentionConfig

SelfAttentionConfig = SoftAttentionConfig
SourceAttentionConfig = SoftAttentionConfig
