"""Unions of encoders and decoders, discriminated by `kind`. To add a family, add its configs to these unions."""

from typing import Annotated

from pydantic import Field

from dragoman.models.families.bytenet import ByteNetDecoderConfig, ByteNetEncoderConfig
from dragoman.models.families.convolutional import ConvolutionalDecoderConfig, ConvolutionalEncoderConfig
from dragoman.models.families.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig
from dragoman.models.families.simple import MeanEncoderConfig, SumEncoderConfig
from dragoman.models.families.transformer import TransformerDecoderConfig, TransformerEncoderConfig

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
