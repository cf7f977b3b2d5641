"""`Service`: translates texts for the routes, whatever their protocol."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

from dragoman.base.errors import ConfigError, DataError
from dragoman.documents.formats.format import Format
from dragoman.documents.pipeline import DocumentPipeline, SegmentedDocument
from dragoman.documents.sentences import Sentence
from dragoman.serving.access.quota import Reservation
from dragoman.serving.batcher import Batcher
from dragoman.serving.detection.detector import Detector
from dragoman.serving.errors import Overloaded, Refusal
from dragoman.serving.queue import Hypotheses, Ticket
from dragoman.serving.served_models import Directions, Step
from dragoman.translation.alignment import Alignment
from dragoman.translation.files.lines import one_line
from dragoman.translation.request import Request
from dragoman.translation.result import Translation

OnSentence = Callable[[int, int, str], None]
"""Called, in any thread, with the index of a text, the index of a sentence in it, and the sentence's translation."""

_MANY_CHARACTERS, _MANY_SENTENCES = 2000, 50
"""Longer texts are segmented in a separate thread, and documents of more sentences are written in one."""


@dataclass(frozen=True)
class TranslationJob:
    """A request of a client.

    texts: in one language and one format; bytes for Word documents. alternatives: the number of further translations of
    each text. settings: as in `Translator.request`. aligned: whether to align the words of each sentence. reserve:
    called with the number of source tokens of all texts before they are queued, raises Refusal if the client's quota is
    exceeded; its reservation is cancelled if the queue is full. seconds: the timeout, instead of the service's.
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
    """hypotheses: (text, score, log-probability), best first; alignment: of the best one, or None if not requested."""

    source: str
    hypotheses: Sequence[tuple[str, float, float]]
    finished: bool
    alignment: Alignment | None = None


@dataclass(frozen=True)
class TranslatedText:
    """text: the translation; alternatives: other translations; sentences: those of the last model, in order."""

    text: Any
    alternatives: Sequence[Any]
    sentences: Sequence[TranslatedSentence]


class Service:
    """Translates for many clients concurrently. It refuses requests until it is opened and while it shuts down."""

    def __init__(self, seconds: float) -> None:
        """seconds: the timeout of a request."""
        self._seconds = seconds
        self._opened: tuple[Directions, Detector] | None = None
        self.is_ending = False

    def open(self, directions: Directions) -> None:
        """Start to translate."""
        self._opened = directions, Detector(directions.sources)

    def check_ready(self) -> None:
        """Raises Overloaded unless the service translates."""
        if self.is_ending:
            raise Overloaded("the server is shutting down", retry_after=5)
        _ = self._ready

    @property
    def directions(self) -> Directions:
        """The served directions. Raises Overloaded before the service is open."""
        return self._ready[0]

    @property
    def detector(self) -> Detector:
        """A detector of the source languages. Raises Overloaded before the service is open."""
        return self._ready[1]

    @property
    def _ready(self) -> tuple[Directions, Detector]:
        if self._opened is None:
            raise Overloaded("the models are being loaded", retry_after=5)
        return self._opened

    def check(self, job: TranslationJob) -> None:
        """Raises Refusal for a direction that is not served and for inconsistent settings."""
        _request(self.directions.route(job.source, job.target)[-1], job)

    async def translate(self, job: TranslationJob, on_sentence: OnSentence | None = None) -> list[TranslatedText]:
        """Translate each text, in order. on_sentence: called for each sentence when the last model has translated it.

        A client that disconnects cancels this, which withdraws its lines from the queue.

        Raises Refusal for a direction that is not served and for inconsistent settings, Overloaded if the queue is full
        or the request times out.
        """
        route = self.directions.route(job.source, job.target)
        try:
            async with asyncio.timeout(seconds := job.seconds or self._seconds):
                texts = list(job.texts)
                for step in route[:-1]:
                    plain = replace(job, texts=texts, alternatives=0, aligned=False)
                    job = replace(job, reserve=None)  # a text counts once, whatever the number of steps
                    texts = [each.text for each in await self._run(step, plain)]
                last = replace(job, texts=texts, aligned=job.aligned and len(route) == 1)
                return await self._run(route[-1], last, on_sentence)
        except TimeoutError:
            raise Overloaded(f"not done within {seconds:g} seconds", retry_after=1) from None

    async def _run(
        self, step: Step, job: TranslationJob, on_sentence: OnSentence | None = None
    ) -> list[TranslatedText]:
        """Translate the texts of a job with one model."""
        translator = step.model.translator
        pipeline = DocumentPipeline(translator, _request(step, job), job.source)

        def segment() -> tuple[list[SegmentedDocument[Any]], list[Sentence], list[int]]:
            try:
                documents = [pipeline.segment(job.format.parse(text)) for text in job.texts]
            except (ConfigError, DataError) as error:
                raise Refusal(str(error)) from None
            sentences = [sentence for document in documents for sentence in document.sentences]
            ids = translator.tokenizers.source.encode_batch([each.text for each in sentences]) if sentences else []
            return documents, sentences, [len(each) + 1 for each in ids]

        is_long = sum(map(len, job.texts)) > _MANY_CHARACTERS
        documents, sentences, costs = await asyncio.to_thread(segment) if is_long else segment()
        indices = [(text, index) for text, each in enumerate(documents) for index in range(len(each.sentences))]

        def on_result(line: int, hypotheses: Hypotheses) -> None:
            if on_sentence is not None:
                on_sentence(*indices[line], _text(hypotheses[0]))

        results = iter(await _decode(step.model.batcher, pipeline, sentences, costs, job.reserve, on_result))
        return [
            await _assemble(pipeline, document, list(islice(results, len(document.sentences))), job)
            for document in documents
        ]


async def _decode(
    batcher: Batcher,
    pipeline: DocumentPipeline,
    sentences: Sequence[Sentence],
    costs: Sequence[int],
    reserve: Callable[[int], Reservation] | None,
    on_result: Callable[[int, Hypotheses], None],
) -> list[Hypotheses]:
    """Decode each sentence through the model's queue, and return its hypotheses. Raises Refusal and Overloaded."""
    reservation = None if reserve is None else reserve(sum(costs))
    refusal = ""
    for lines in pipeline.attempts(sentences):
        ticket = Ticket(lines, costs, on_result)
        try:
            batcher.submit(ticket)
        except Overloaded:
            if reservation is not None:
                reservation.cancel()
            raise
        try:
            return await asyncio.wrap_future(ticket.done)
        except DataError as error:
            raise Refusal(str(error)) from None
        except ConfigError as error:
            refusal = str(error)
        finally:
            ticket.done.cancel()
    raise Refusal(refusal)


async def _assemble(
    pipeline: DocumentPipeline, document: SegmentedDocument[Any], results: Sequence[Hypotheses], job: TranslationJob
) -> TranslatedText:
    """Write the translations of a document. Hypothesis k of the document consists of hypothesis k of each sentence."""
    count = min(job.alternatives + 1, max(map(len, results), default=1))
    ranked = [[_text(each[min(rank, len(each) - 1)]) for each in results] for rank in range(count)]
    alignments = [
        await _align(pipeline, document, texts, job.aligned and rank == 0) for rank, texts in enumerate(ranked)
    ]

    def write() -> list[Any]:
        return [document.write(*each) for each in zip(ranked, alignments, strict=True)]

    written = write() if len(results) < _MANY_SENTENCES else await asyncio.to_thread(write)
    sentences = [
        TranslatedSentence(
            sentence.text,
            [(_text(one), one.score, one.log_probability) for one in hypotheses[: job.alternatives + 1]],
            hypotheses[0].finished,
            alignment if job.aligned else None,
        )
        for sentence, hypotheses, alignment in zip(document.sentences, results, alignments[0], strict=True)
    ]
    return TranslatedText(written[0], list(dict.fromkeys(written[1:])), sentences)


async def _align(
    pipeline: DocumentPipeline, document: SegmentedDocument[Any], texts: Sequence[str], all_sentences: bool
) -> list[Alignment]:
    """The alignments of a document's sentences, all empty if the model cannot align words."""
    if all_sentences or document.needing_alignment(texts):
        with suppress(ConfigError):
            return await asyncio.to_thread(partial(pipeline.align, document, texts, all_sentences))
    return [()] * len(texts)


def _request(step: Step, job: TranslationJob) -> Request:
    """The request for each sentence. Raises Refusal for inconsistent settings."""
    try:
        settings = {"nbest": job.alternatives + 1, **job.settings}
        return step.model.translator.request(to=step.model.tag_for(step.target), **settings)
    except (ConfigError, DataError) as error:
        raise Refusal(str(error)) from None


def _text(translation: Translation) -> str:
    return one_line(translation.text)
