"""`next_tokens` and `continue_prefix`: the tokens after a prefix of an output, and the best output with this prefix."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.figures.bars import Bars
from dragoman.inference.abilities import SupportsInspect, SupportsSequence, missing_members
from dragoman.inference.subject import NO_SETTINGS, Continuation, OutputSequence, Subject, SubjectSettings, check_prefix
from dragoman.models.attention_weights import END, START
from dragoman.text.symbols import EOS

DEFAULT_COUNT = 10
"""Number of tokens that are listed by default."""


@dataclass(frozen=True)
class NextTokens:
    """The probabilities of the tokens that may follow a prefix.

    prefix: the tokens of the prefix. ids, tokens, probabilities: the k most probable tokens, most probable first; the
    end symbol is `</s>`. rest: the probability of all other tokens together. entropy: of the whole distribution, in
    nats. actual: the token that follows in the analysed output, or the end symbol; None if only a prefix is known.
    actual_probability: its probability.
    """

    prefix: tuple[str, ...]
    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    probabilities: NDArray[np.float64]
    rest: float
    entropy: float
    actual: str | None = None
    actual_probability: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON types."""
        return {
            "prefix": list(self.prefix),
            "ids": list(self.ids),
            "tokens": list(self.tokens),
            "probabilities": self.probabilities.tolist(),
            "rest": self.rest,
            "entropy": self.entropy,
            "actual": self.actual,
            "actual_probability": self.actual_probability,
        }

    def figure(self) -> Bars:
        """Return the probabilities as bars. The token that follows is emphasised, if it is among them."""
        return Bars(
            title=f"Next token after {' '.join(self.prefix) or START}",
            caption="The most probable tokens after the prefix, and the probability of all others together.",
            slide="deck 004, decoding",
            labels=self.tokens,
            values=tuple(self.probabilities.tolist()),
            rest=self.rest,
            marked=tuple(number for number, token in enumerate(self.tokens) if token == self.actual),
        )


def next_tokens(
    loaded: SupportsInspect,
    text: str,
    prefix: str | Sequence[int] = "",
    settings: SubjectSettings = NO_SETTINGS,
    count: int = DEFAULT_COUNT,
) -> NextTokens:
    """Return the most probable tokens after a prefix of the translation or of a text.

    text: the source; for a language model, the beginning of the text, which `prefix` follows. prefix: a text, or token
    ids without special symbols; for a parser that generates trees, symbols such as `(S (NP DT`, or their ids. count:
    number of tokens to list. Raises the errors of `subject`; ConfigError for a
    model without a decoder, a count below 1 and an invalid id; and DataError for a prefix that is too long.

    >>> from dragoman import Translator, next_tokens
    >>> found = next_tokens(Translator.load("runs/ende"), "The dog sleeps.", "Der", count=3)
    >>> found.tokens, found.probabilities.round(2)
    (('...', '...', '...'), array([...]))
    """
    sequence = sequence_of(loaded, text, settings)
    ids, ended = _prefix_ids(sequence, prefix)
    if ended:
        raise ConfigError("the prefix ends with the end symbol, which no token follows: remove the end symbol")
    _check_no_target(settings)
    found = subject_next_tokens(sequence.subject(ids), count)[-1]
    return replace(found, actual=None, actual_probability=None)


def next_tokens_at_each_position(
    loaded: SupportsInspect, text: str, settings: SubjectSettings = NO_SETTINGS, count: int = DEFAULT_COUNT
) -> tuple[NextTokens, ...]:
    """Return the most probable tokens at each position of an output and at its end, given the tokens before it.

    The output is the translation (by default the model's own), or the text itself for a language model. The errors are
    those of `next_tokens`.
    """
    sequence_of(loaded, text, settings)  # raises an error for a model without a decoder
    return subject_next_tokens(loaded.subject(text, settings), count)


def subject_next_tokens(subject: Subject, count: int = DEFAULT_COUNT) -> tuple[NextTokens, ...]:
    """Return the most probable tokens at each position of the output of a model with a decoder, and at its end.

    Raises ConfigError for a count below 1.
    """
    assert subject.decoding is not None, "the model has a decoder"
    with torch.inference_mode():
        logits = subject.decoding.logits(subject.model(*subject.arguments))  # (T + 1, V)
    return tuple(most_probable(logits, subject, count))


def continue_prefix(
    loaded: SupportsInspect, text: str, prefix: str | Sequence[int] = "", settings: SubjectSettings = NO_SETTINGS
) -> Continuation:
    """Return the best output that begins with a prefix, such as a translation in which one word was changed.

    A translation is found by the search of the model's settings, and a tree by that of the parser. A language model
    continues by greedy search, with at most `MAX_NEW_TOKENS` tokens; the log-probability includes the prefix. text,
    prefix: as in `next_tokens`; a sequence of ids may end with the end symbol, and the output is then the prefix.
    Raises the errors of `next_tokens`, and ConfigError for an end symbol if the model's search settings have a coverage
    penalty or a language model, and for a prefix that no tree of the sentence has.

    >>> from dragoman import Translator, continue_prefix
    >>> continue_prefix(Translator.load("runs/ende"), "The dog sleeps.", "Der").text
    'Der ...'
    """
    sequence = sequence_of(loaded, text, settings)
    ids, ended = _prefix_ids(sequence, prefix)
    _check_no_target(settings)
    return sequence.best(ids, ended)


def sequence_of(loaded: SupportsInspect, text: str, settings: SubjectSettings) -> OutputSequence:
    """Return the output of a model for a text as a sequence of tokens.

    Raises ConfigError for a model that does not generate its output token by token.
    """
    if missing_members(loaded, SupportsSequence):
        raise ConfigError(
            f"{loaded.kind.noun} does not generate its output token by token, so no token follows a prefix: use a "
            "translation model, a language model or a parser that generates trees"
        )
    sequence: OutputSequence = loaded.sequence(text, settings)  # type: ignore[attr-defined]
    return sequence


def _prefix_ids(sequence: OutputSequence, prefix: str | Sequence[int]) -> tuple[tuple[int, ...], bool]:
    """Return the ids that the decoder reads, and whether the end symbol follows.

    Raises ConfigError for an invalid id.
    """
    if isinstance(prefix, str):
        return sequence.encode(prefix), False
    ended = bool(prefix) and prefix[-1] == EOS
    ids = tuple(prefix[: len(prefix) - ended])
    check_prefix(ids, sequence.size)
    return sequence.complete(ids), ended


def _check_no_target(settings: SubjectSettings) -> None:
    if settings.target is not None:
        raise ConfigError("a prefix takes the place of the target: leave out either")


def most_probable(logits: Tensor, subject: Subject, count: int) -> list[NextTokens]:
    """Return the most probable tokens for logits (T + 1, V) at all positions of the target of a subject.

    Raises ConfigError for a count below 1.
    """
    assert subject.decoding is not None, "the model has a decoder"
    pieces = subject.decoding.pieces
    if count < 1:
        raise ConfigError(f"the number of tokens to list must be at least 1, not {count}")
    probabilities = logits.double().softmax(-1)
    best, ids = probabilities.topk(min(count, probabilities.size(1)))
    rests = probabilities.scatter(1, ids, 0.0).sum(1).tolist()
    entropies = torch.special.entr(probabilities).sum(1).tolist()
    return [
        NextTokens(
            subject.terms[:position],
            tuple(listed),
            tuple(END if each == EOS else pieces((each,))[0] for each in listed),
            best[position].cpu().numpy(),
            rests[position],
            entropies[position],
            subject.terms[position],
            float(probabilities[position, actual]),
        )
        for position, (listed, actual) in enumerate(zip(ids.tolist(), (*subject.target_ids, EOS), strict=True))
    ]
