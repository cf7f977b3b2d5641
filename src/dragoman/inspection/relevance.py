"""`token_relevance`: how much each token that a model reads contributes to each token that it predicts."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError
from dragoman.figures.heat_maps import HeatMap, HeatMaps
from dragoman.inference.abilities import SupportsInspect
from dragoman.inference.subject import NO_SETTINGS, SubjectSettings
from dragoman.inspection.next_tokens import sequence_of
from dragoman.models.attention_weights import START
from dragoman.models.kinds.ensemble import Ensemble
from dragoman.models.relevance import gradients_times_inputs


@dataclass(frozen=True)
class TokenRelevance:
    """Gradient × input of the log-probability of each predicted token (Denil et al. 2014).

    The relevance of a token is Σ_d v_d · ∂log p/∂v_d for its vector v, the derivative of log p if the vector is scaled;
    a positive value raises the probability. terms: the T + 1 predicted tokens and the end symbol. read: the decoder's
    inputs. source: the S + 1 source tokens with the end symbol; empty for a language model. of_read: (T + 1, T + 1), 0
    for tokens that follow. of_source: (T + 1, S + 1).
    """

    terms: tuple[str, ...]
    read: tuple[str, ...]
    source: tuple[str, ...]
    of_read: NDArray[np.float64]
    of_source: NDArray[np.float64]

    @property
    def of_all(self) -> NDArray[np.float64]:
        """The relevance (T + 1, S + 1 + T + 1) of the source tokens, followed by that of the decoder's inputs."""
        return np.concatenate((self.of_source, self.of_read), 1)

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON types."""
        return {
            "terms": list(self.terms),
            "read": list(self.read),
            "source": list(self.source),
            "of_read": self.of_read.tolist(),
            "of_source": self.of_source.tolist(),
        }

    def figure(self) -> HeatMaps:
        """Return the relevance as a heat map, with a row per predicted token."""
        return HeatMaps(
            title="Gradient × input",
            caption="The relevance of each token that was read (column) for the log-probability of each predicted "
            "token (row). Blue tokens raise it, orange tokens lower it.",
            slide="deck 000, attention and alignment",
            limits="A gradient describes small changes. In a pre-norm Transformer, which normalises its inputs, "
            "scaling a vector hardly changes the output, and the values may be close to 0.",
            rows=self.terms,
            columns=(*self.source, *self.read),
            grid=((HeatMap("", self.of_all),),),
            unit="relevance",
        )


def token_relevance(loaded: SupportsInspect, text: str, settings: SubjectSettings = NO_SETTINGS) -> TokenRelevance:
    """Return the relevance of each token for each predicted token of the output of `subject`.

    The time is that of one backward pass per predicted token. Raises the errors of `subject`, and ConfigError for a
    model without a decoder.

    >>> from dragoman import Translator, token_relevance
    >>> relevance = token_relevance(Translator.load("runs/ende"), "The dog sleeps.")
    >>> relevance.of_source.shape == (len(relevance.terms), len(relevance.source))
    True
    """
    subject = loaded.subject(text, settings)
    if subject.words is not None:
        raise ConfigError("the relevance of words for a label is part of its inspection: use `dragoman inspect`")
    sequence_of(loaded, text, settings)  # raises an error for a model without a decoder
    if isinstance(subject.model, Ensemble):
        raise ConfigError("the models of an ensemble have vectors of their own for each token: inspect one of them")
    _, calls = gradients_times_inputs(subject.model, subject.arguments, subject.select)
    read = (START, *subject.terms[:-1])
    of_source = calls[0][:, 0] if subject.tokens else np.zeros((len(subject.terms), 0))
    return TokenRelevance(subject.terms, read, subject.tokens, calls[-1][:, 0], of_source)
