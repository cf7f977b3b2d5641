"""`decoder_lens`: what a decoder would predict after each of its layers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dragoman.base.errors import ConfigError
from dragoman.figures.heat_maps import HeatMap, HeatMaps
from dragoman.figures.lens import LayerLens, layer_lens
from dragoman.inference.abilities import SupportsInspect
from dragoman.inference.subject import NO_SETTINGS, Subject, SubjectSettings
from dragoman.inspection.next_tokens import NextTokens, most_probable, sequence_of
from dragoman.models.families.family import ProjectedOutput
from dragoman.models.families.layered import LayeredDecoder, recording_layers

DEFAULT_COUNT = 5
"""Number of tokens that are listed by default."""


@dataclass(frozen=True)
class LayerPrediction:
    """What the decoder would predict after a layer.

    layer: its number, from 1; 0 for the input of the first layer, which are the embeddings. positions: the most
    probable tokens at each position of the output and at its end.
    """

    layer: int
    positions: tuple[NextTokens, ...]

    @property
    def name(self) -> str:
        """The name of the layer."""
        return f"layer {self.layer}" if self.layer else "embeddings"


@dataclass(frozen=True)
class DecoderLens:
    """The predictions after each layer. The last layer is that of the model. target: the analysed output."""

    target: str
    layers: tuple[LayerPrediction, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON types."""
        layers = [
            {"layer": each.layer, "positions": [position.as_json() for position in each.positions]}
            for each in self.layers
        ]
        return {"target": self.target, "layers": layers}

    def predictions(self) -> LayerLens:
        """Return the most probable token after each layer, with its probability."""
        best = [[(each.tokens[0], each.probabilities[0]) for each in layer.positions] for layer in self.layers]
        return layer_lens(
            [layer.name for layer in self.layers],
            [position.actual or "" for position in self.layers[0].positions],
            [[token for token, _ in row] for row in best],
            np.array([[probability for _, probability in row] for row in best], np.float64),
        )

    def figure(self) -> HeatMaps:
        """Return the probabilities of the tokens of the output after each layer, the last layer at the top."""
        layers = self.layers[::-1]
        values = [[position.actual_probability or 0.0 for position in layer.positions] for layer in layers]
        return HeatMaps(
            title="Probability of the output after each layer",
            caption="Each column is a token of the output, and each row the probability that the decoder would give it "
            "if it ended after this layer.",
            slide="deck 001, residual connections",
            limits="Only the last layer was trained to be projected to the vocabulary.",
            rows=tuple(layer.name for layer in layers),
            columns=tuple(position.actual or "" for position in layers[0].positions),
            grid=((HeatMap("", np.array(values)),),),
            unit="probability",
            full_scale=True,
        )


def decoder_lens(
    loaded: SupportsInspect, text: str, settings: SubjectSettings = NO_SETTINGS, count: int = DEFAULT_COUNT
) -> DecoderLens:
    """Return what a decoder would predict after each layer: the final norm and projection of the states of the layer.

    Source: nostalgebraist 2020, "interpreting GPT: the logit lens". The output is that of `SupportsInspect.subject`.
    count: number of tokens per position. Raises the errors of `subject`, and ConfigError for a model without a decoder,
    and for a decoder whose layers do not pass on states of the same kind: a recurrent decoder, an ensemble or an n-gram
    model.

    >>> from dragoman import Translator, decoder_lens
    >>> lens = decoder_lens(Translator.load("runs/ende"), "The dog sleeps.", count=1)
    >>> [layer.layer for layer in lens.layers]  # 0: the embeddings
    [0, 1]
    """
    sequence_of(loaded, text, settings)  # raises an error for a model without a decoder
    return subject_lens(loaded.subject(text, settings), count)


def subject_lens(subject: Subject, count: int = DEFAULT_COUNT) -> DecoderLens:
    """Return what a decoder would predict after each layer for the output of a model.

    Raises ConfigError for a decoder that `decoder_lens` rejects.
    """
    decoder = subject.decoding.module if subject.decoding else None
    if not isinstance(decoder, LayeredDecoder):
        raise ConfigError(
            "this decoder has no prediction after each layer, because no layer passes the state that is "
            "projected on to the next: use a Transformer, a convolutional decoder or ByteNet"
        )
    with torch.inference_mode(), recording_layers() as steps:
        subject.compute()
        states = steps[-1]  # an encoder that reads like a decoder comes first
        outputs = [ProjectedOutput(decoder.output_states(each), decoder.projection) for each in states]
        logits = [each.logits()[0] for each in outputs]
    layers = [LayerPrediction(number, tuple(most_probable(each, subject, count))) for number, each in enumerate(logits)]
    return DecoderLens(subject.target, tuple(layers))
