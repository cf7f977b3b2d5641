"""`ablate_heads`: what a model predicts without some of its attention heads."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.inference.generation.language_model import LanguageModel
from dragoman.inference.prediction.predictor import Text
from dragoman.inference.translation.translator import Translator
from dragoman.inspection.heads import Head, check_heads, heads_off
from dragoman.inspection.subject import (
    Analysed,
    SubjectSettings,
    best_translation,
    subject_of,
)


@dataclass(frozen=True)
class Ablation:
    """The effect of switching heads off.

    heads: the heads that were off. output: describes the output. terms: labels of the N terms that sum to the output,
    such as the tokens of the translation and the end symbol. before, after: the terms (N,) with all heads, and without.
    predicted_before, predicted_after: the model's own translation or predicted label with all heads, and without; None
    for a language model.
    """

    heads: tuple[Head, ...]
    output: str
    terms: tuple[str, ...]
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    predicted_before: str | None
    predicted_after: str | None

    @property
    def change(self) -> float:
        """The change of the output, such as Δ log p. It is exactly 0 if no head is off."""
        return float(self.after.sum() - self.before.sum())

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON types."""
        return {
            "heads_off": list(map(str, self.heads)),
            "output": self.output,
            "terms": list(self.terms),
            "before": self.before.tolist(),
            "after": self.after.tolist(),
            "change": self.change,
            "predicted_before": self.predicted_before,
            "predicted_after": self.predicted_after,
        }


def ablate_heads(
    loaded: Analysed, text: Text, heads: Iterable[Head | str], settings: SubjectSettings | None = None
) -> Ablation:
    """Return the output of a model for a text with all heads, and without some (Michel et al. 2019, section 3).

    The output is that of `subject_of`; its target is predicted with all heads unless it is given. Raises the errors of
    `subject_of` and `check_heads`.

    >>> from dragoman import Translator, ablate_heads
    >>> ablation = ablate_heads(Translator.load("runs/ende"), "The dog sleeps.", ["decoder.cross_attention:1:2"])
    >>> ablation.before.shape == ablation.after.shape == (len(ablation.terms),)
    True
    """
    subject = subject_of(loaded, text, settings)
    chosen = check_heads(subject.model, heads)
    predict = partial(_predict, loaded, text, settings or SubjectSettings())
    before, predicted_before = subject.values(), predict()
    with heads_off(subject.model, chosen):
        after, predicted_after = subject.values(), predict()
    return Ablation(chosen, subject.output, subject.terms, before, after, predicted_before, predicted_after)


def _predict(loaded: Analysed, text: Text, settings: SubjectSettings) -> str | None:
    """Return the model's own translation or label; None for a language model."""
    if isinstance(loaded, Translator):
        assert isinstance(text, str), "the subject has been checked"
        return best_translation(loaded, text, loaded.request(to=settings.to, tags=settings.tags)).text
    if isinstance(loaded, LanguageModel):
        return None
    return subject_of(loaded, text, settings).target
