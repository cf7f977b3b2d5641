"""What a client asks of the service, and what it gets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman.documents.formats.format import Format
from dragoman.serving.access.quota import Reservation
from dragoman.translation.alignment import Alignment


@dataclass(frozen=True)
class Asked:
    """texts: of one language and one format; of Word documents the bytes.

    alternatives: how many further translations of each text.
    settings: as `Translator.request` takes them. aligned: whether words are to be aligned, sentence by sentence.
    reserve: is asked for the source tokens of all texts before they wait for a model, and raises where there are none;
    what it gives is given back where the queue is full.
    seconds: after which it is given up, where these are others than the service's.
    """

    texts: Sequence[Any]
    source: str
    target: str
    format: Format[Any]
    alternatives: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    aligned: bool = False
    reserve: Callable[[int], Reservation] | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class TranslatedSentence:
    """hypotheses: the best first, with their scores and log-probabilities; alignment: of the best, where asked for."""

    source: str
    hypotheses: Sequence[tuple[str, float, float]]
    finished: bool
    alignment: Alignment | None = None


@dataclass(frozen=True)
class TranslatedText:
    """text: the whole; alternatives: others of it; sentences: those of the last model, in order."""

    text: Any
    alternatives: Sequence[Any]
    sentences: Sequence[TranslatedSentence]
