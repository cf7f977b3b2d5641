"""All encoders and decoders by `kind`. To add one, add a file to this folder and a line here."""

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
