"""Unions of encoders and decoders, discriminated by `kind`. To add a family, add its configs to these unions."""

from typing import Annotated

from pydantic import Field

from dragoman.models.bytenet import ByteNetDecoderConfig, ByteNetEncoderConfig
from dragoman.models.convolutional import ConvolutionalDecoderConfig, ConvolutionalEncoderConfig
from dragoman.models.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig
from dragoman.models.simple import MeanEncoderConfig, SumEncoderConfig
from dragoman.models.transformer import TransformerDecoderConfig, TransformerEncoderConfig

EncoderConfig = Annotated[
    TransformerEncoderConfig
    | RecurrentEncoderConfig
    | ConvolutionalEncoderConfig
    | ByteNetEncoderConfig
    | MeanEncoderConfig
    | SumEncoderConfig,
    Field(discriminator="kind"),
]
DecoderConfig = Annotated[
    TransformerDecoderConfig | RecurrentDecoderConfig | ConvolutionalDecoderConfig | ByteNetDecoderConfig,
    Field(discriminator="kind"),
]
