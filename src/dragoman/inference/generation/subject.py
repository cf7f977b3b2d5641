"""`TextSequence`: the texts of a language model, with their computation, at which `inspection` looks."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from dragoman.base.errors import DataError
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.length_penalty import NoPenalty
from dragoman.decode.search import SearchConfig, search
from dragoman.inference.subject import Subject, target_subject
from dragoman.models.interface import CausalModel
from dragoman.text.symbols import BOS
from dragoman.text.tokenizer import Tokenizer

MAX_NEW_TOKENS = 64
"""Maximum number of tokens that a language model adds to a prefix."""


@dataclass(frozen=True)
class TextContinuation:
    """A text with its best continuation, as a `Continuation`. finished: False if the length limit was reached."""

    text: str
    ids: tuple[int, ...]
    log_probability: float
    finished: bool = True

    @property
    def score(self) -> float:
        """The log-probability, by which greedy search continues."""
        return self.log_probability


@dataclass(frozen=True)
class TextSequence:
    """A text and its continuation as an `OutputSequence`. The best one is found by greedy search.

    text: the start of the text, which a prefix follows. window: maximum number of tokens of context; None: unlimited.
    forbidden: ids that the model does not generate. The log-probability includes the prefix.
    """

    model: CausalModel
    tokenizer: Tokenizer
    text: str
    window: int | None
    forbidden: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """See `OutputSequence.size`."""
        return self.tokenizer.size

    def encode(self, prefix: str) -> tuple[int, ...]:
        """See `OutputSequence.encode`. The tokens include those of the text."""
        return tuple(self.tokenizer.encode(self.text + prefix))

    def complete(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """See `OutputSequence.complete`. The model reads the text before the prefix."""
        return (*self.tokenizer.encode(self.text), *ids)

    def subject(self, ids: tuple[int, ...]) -> Subject:
        """See `OutputSequence.subject`."""
        return text_subject(self.model, self.tokenizer, self.window, ids)

    def best(self, ids: tuple[int, ...], ended: bool) -> TextContinuation:
        """See `OutputSequence.best`. At most `MAX_NEW_TOKENS` tokens are added. The score is the log-probability."""
        values = self.subject(ids).values()
        if ended:
            total = float(values.sum())
            return TextContinuation(self.tokenizer.decode(ids), ids, total)
        room = MAX_NEW_TOKENS if self.window is None else self.window - len(ids) - 1
        limits = [max(1, min(MAX_NEW_TOKENS, room))]
        config = SearchConfig(beam=1, length_penalty=NoPenalty(), forbid=self.forbidden)
        decoder, device = self.model.decoder, next(self.model.parameters()).device
        with torch.inference_mode():
            ((best,),) = search(decoder, Prompts.after(decoder, [(BOS, *ids)], limits, device), config)
        total = float(values[:-1].sum()) + best.log_probability
        tokens = (*ids, *best.tokens)
        return TextContinuation(self.tokenizer.decode(tokens), tokens, total, best.finished)


def text_subject(model: CausalModel, tokenizer: Tokenizer, window: int | None, ids: Sequence[int]) -> Subject:
    """Return the log-probability of a text by a language model. Raises DataError for too many tokens."""
    if window is not None and len(ids) >= window:
        raise DataError(f"the text has {len(ids)} tokens, but the window holds {window - 1}: shorten it")
    return target_subject(
        model,
        (),
        tuple(ids),
        tokenizer.pieces,
        output="log-probability of the text",
        source=None,
        target=tokenizer.decode(ids),
    )
