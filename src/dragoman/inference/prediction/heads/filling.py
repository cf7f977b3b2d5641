"""Filling masked positions: the most probable tokens for each `<mask>` of a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.data.batches.masking import MASK
from dragoman.data.labelled.examples import LabelledText
from dragoman.inference.prediction.heads.classification import softmax
from dragoman.inference.prediction.heads.inputs import ModelInput, join_texts
from dragoman.text.symbols import SPECIAL_SYMBOLS, InlineText, symbol
from dragoman.text.tokenizer import Tokenizer

MASK_SYMBOL = symbol(MASK)
"""The mark in a text at which tokens are predicted, `<mask>`."""


@dataclass(frozen=True)
class Fill:
    """A token for a masked position. text: the text of the token, with the space before a word. token: its id."""

    text: str
    probability: float
    token: int


@dataclass(frozen=True)
class FillPrediction:
    """The predicted tokens of a text.

    fills: the most probable tokens of each masked position, best first. text: the text with the best token at every
    position. Each position is predicted independently of the others.
    """

    fills: tuple[tuple[Fill, ...], ...]
    text: str

    def as_json(self) -> dict[str, Any]:
        """Return the prediction as JSON types."""
        fills = [[{"text": each.text, "probability": each.probability} for each in place] for place in self.fills]
        return {"fills": fills, "text": self.text}


class MaskFiller:
    """Converts texts with `<mask>` to inputs of a masked language model, and its outputs to tokens."""

    def __init__(self, tokenizer: Tokenizer, limit: int | None, count: int) -> None:
        """limit: maximum number of tokens of an input; longer texts are cut. count: number of tokens per position."""
        self._tokenizer, self._limit, self._count = tokenizer, limit, count
        (self._mask,) = tokenizer.tag_ids([MASK])
        self._surfaces = range(len(SPECIAL_SYMBOLS), tokenizer.size - len(tokenizer.tags))

    def encode(self, examples: Sequence[LabelledText]) -> list[list[ModelInput]]:
        """Return the input of each text, whose places are its masks."""
        texts = [self._mark(text) for example in examples for text in example.texts]
        encoded = iter(self._tokenizer.encode_inlined(texts))
        inputs = [join_texts([next(encoded) for _ in example.texts], self._limit) for example in examples]
        return [
            [ModelInput(each.ids, tuple(np.flatnonzero(np.array(each.ids) == self._mask).tolist()), cut=each.cut)]
            for each in inputs
        ]

    def _mark(self, text: str) -> InlineText:
        """Return the text with symbols in place of `<mask>`. A space that belongs to the masked token is removed."""
        parts = text.split(MASK_SYMBOL)
        if self._tokenizer.added_space == "first":
            parts = [part.removesuffix(" ") for part in parts[:-1]] + parts[-1:]
        elif self._tokenizer.added_space == "last":
            parts = parts[:1] + [part.removeprefix(" ") for part in parts[1:]]
        return InlineText(tuple(parts), (MASK,) * (len(parts) - 1))

    def target(self, example: LabelledText, inputs: Sequence[ModelInput], known: bool = True) -> list[Any]:
        """Raise TypeError: texts with masks have no labels."""
        raise TypeError("texts with masks have no labels")

    def predict(
        self, example: LabelledText, inputs: Sequence[ModelInput], outputs: Sequence[NDArray[np.float32]]
    ) -> FillPrediction:
        """Return the tokens for each place. outputs: logits (places, V)."""
        (each,), (logits,) = inputs, outputs
        filled, fills = list(each.ids), []
        for place, probabilities in zip(each.places, softmax(logits) if len(logits) else (), strict=True):
            of_text = probabilities[self._surfaces.start : self._surfaces.stop]
            best = np.argsort(-of_text, kind="stable")[: self._count] + self._surfaces.start
            fills.append(tuple(Fill(self._text(each), float(probabilities[each]), each) for each in best.tolist()))
            filled[place] = int(best[0])
        return FillPrediction(tuple(fills), self._tokenizer.decode(filled))

    def _text(self, number: int) -> str:
        return self._tokenizer.surface(number).decode("utf-8", "replace")
