"""Every encoder and decoder by its `kind`; a new one is a file in this folder and a line here."""

from dragoman.models.transformer import TransformerDecoderConfig, TransformerEncoderConfig

EncoderConfig = TransformerEncoderConfig
DecoderConfig = TransformerDecoderConfig
