"""`ablate_heads`: what a model predicts without some of its attention heads."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.inference.abilities import SupportsInspect
from dragoman.inference.subject import NO_SETTINGS, SubjectSettings
from dragoman.inspection.heads import Head, check_heads, heads_off


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
    loaded: SupportsInspect, text: Any, heads: Iterable[Head | str], settings: SubjectSettings = NO_SETTINGS
) -> Ablation:
    """Return the output of a model for a text with all heads, and without some (Michel et al. 2019, section 3).

    The output is that of `SupportsInspect.subject`; its target is predicted with all heads unless it is given. Raises
    the errors of `subject` and `check_heads`.

    >>> from dragoman import Translator, ablate_heads
    >>> ablation = ablate_heads(Translator.load("runs/ende"), "The dog sleeps.", ["decoder.cross_attention:1:2"])
    >>> ablation.before.shape == ablation.after.shape == (len(ablation.terms),)
    True
    """
    subject = loaded.subject(text, settings)
    chosen = check_heads(subject.model, heads)
    before, predicted_before = subject.values(), subject.own()
    with heads_off(subject.model, chosen):
        after, predicted_after = subject.values(), subject.own()
    return Ablation(chosen, subject.output, subject.terms, before, after, predicted_before, predicted_after)
