"""`TranslationJob`: the texts of a request, as sent and resolved; `TranslatedText`: the translation of one of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dragoman.addons.documents.expected_spans import ExpectedSpans
from dragoman.addons.documents.formats.format import Format
from dragoman.addons.serving.access.quota import Reservation
from dragoman.addons.serving.queueing.batcher import Batcher
from dragoman.inference.abilities import SupportsLines
from dragoman.inference.translation.doubts import DoubtFinder, Doubts
from dragoman.inference.translation.request import Request
from dragoman.statistical.alignment.links import Alignment

OnSentence = Callable[[int, int, str], None]
"""Called in any thread with the index of a text, the index of a sentence in it, and the sentence's translation."""


@dataclass(frozen=True)
class TranslationJob:
    """The texts of a request, and how to translate them.

    texts: texts in one language and format, or the bytes of Word documents. alternatives: the number of additional
    translations of each text. settings: as in `Translator.request`. align: whether to align the words of each sentence.
    reserve: called with the number of source tokens before the texts are queued; raises RequestError if the number
    exceeds the client's quota. The reservation is cancelled if the queue is full. client: the name of the client;
    clients take turns. is_document: whether the texts are files, which have separate limits and threads. doubts:
    whether to look for doubts about each sentence.
    """

    texts: Sequence[Any]
    source: str
    target: str
    format: Format[Any]
    alternatives: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    align: bool = False
    reserve: Callable[[int], Reservation] | None = None
    client: str = ""
    is_document: bool = False
    doubts: bool = False


@dataclass(frozen=True)
class ModelStep:
    """The translation of a job by one model.

    request: the request for every sentence. expected: spans that translations should contain. is_expensive: whether
    the request takes long to prepare for each text, regardless of its length. is_unreliable, doubts: as in
    `ServedModel`.
    """

    translator: SupportsLines
    batcher: Batcher
    request: Request
    expected: ExpectedSpans | None = None
    is_expensive: bool = False
    is_unreliable: bool = False
    doubts: DoubtFinder | None = None


@dataclass(frozen=True)
class ResolvedJob:
    """A job whose settings are resolved. steps: one, two through a pivot language, or none for the same language."""

    job: TranslationJob
    steps: Sequence[ModelStep]

    def only(self, index: int) -> "ResolvedJob":
        """Return the job for a single one of its texts."""
        return replace(self, job=replace(self.job, texts=[self.job.texts[index]]))


@dataclass(frozen=True)
class TranslatedSentence:
    """A sentence with its translations.

    hypotheses: (text, score, log-probability), best first. finished: whether the best hypothesis ended before the
    length limit. alignment: the word links of the best hypothesis, and doubts about it; None if they were not
    requested.
    """

    source: str
    hypotheses: Sequence[tuple[str, float, float]]
    finished: bool
    alignment: Alignment | None = None
    doubts: Doubts | None = None


@dataclass(frozen=True)
class TranslatedText:
    """A translated text.

    text: the best translation; alternatives: other translations; sentences: the input of the last model, in order.
    """

    text: Any
    alternatives: Sequence[Any]
    sentences: Sequence[TranslatedSentence]
