"""Every encoder and decoder by its `kind`; a new one is a file in this folder and a line here."""

from typing import Annotated

from pydantic import Field

from dragoman.models.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig
from dragoman.models.transformer import TransformerDecoderConfig, TransformerEncoderConfig

EncoderConfig = Annotated[TransformerEncoderConfig | RecurrentEncoderConfig, Field(discriminator="kind")]
DecoderConfig = Annotated[TransformerDecoderConfig | RecurrentDecoderConfig, Field(discriminator="kind")]
