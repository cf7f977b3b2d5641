"""`Marking`: what a preparation puts into the texts of pairs beside their words, and how much of it."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from dragoman.base.errors import ConfigError
from dragoman.text.symbols import Inlined
from dragoman.text.tokenizers import TextConfig, Tokenizers


class MarkedPair(NamedTuple):
    """A pair as it is learned from. spans: symbols that stand for a span of both sides; terms: marked in the source."""

    source: Inlined
    target: Inlined
    spans: int = 0
    terms: int = 0


class Marking(Protocol):
    """Puts inline symbols into pairs; can be sent to a process."""

    @property
    def tags(self) -> tuple[str, ...]:
        """The symbols that vocabularies need for it."""
        ...

    @property
    def fingerprint(self) -> str:
        """A digest of all that decides what it does."""
        ...

    def __call__(self, source: str, target: str, line: int) -> MarkedPair:
        """A pair, which stands at that line of its corpus; nothing else decides what becomes of it."""
        ...


def check_vocabulary(text: TextConfig | Tokenizers, symbols: Sequence[str]) -> None:
    """Raises ConfigError where symbols cannot stand among the words of the source or the target, or are not known."""
    if text.reads_vectors if isinstance(text, Tokenizers) else text.vectors is not None:
        raise ConfigError("a source of feature vectors has no words: leave out data.placeholders and data.terminology")
    kinds = (text.source, text.target) if isinstance(text, Tokenizers) else (text.subword.tokenizer,)
    for kind in kinds:
        if not kind.lossless:
            raise ConfigError(
                f"data.placeholders and data.terminology need a vocabulary that keeps every text as it is, and one of "
                f"kind {kind.kind} does not: set text.subword.kind to bpe or unigram"
            )
    if isinstance(text, Tokenizers) and (missing := [symbol for symbol in symbols if symbol not in text.tags]):
        raise ConfigError(
            f"the vocabulary has no symbol {missing[0]}, which data.placeholders or data.terminology needs: train from "
            "the data, or start from the model (train.start), which adds it"
        )
