"""`Service`: translates texts for the routes, independent of their protocols."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

from dragoman.base.errors import ConfigError, DataError
from dragoman.documents.formats.format import Format, ParsedDocument, parse_pivot
from dragoman.documents.languages import Languages
from dragoman.documents.pipeline import DocumentPipeline, SegmentedDocument
from dragoman.documents.sentences import Sentence
from dragoman.serving.access.quota import Reservation
from dragoman.serving.batcher import Batcher
from dragoman.serving.detection.detector import Detector
from dragoman.serving.errors import Overloaded, RequestError
from dragoman.serving.queue import Hypotheses, Ticket
from dragoman.serving.served_models import Directions, Step
from dragoman.translation.alignment import Alignment
from dragoman.translation.files.lines import one_line
from dragoman.translation.request import Request
from dragoman.translation.result import Translation

OnSentence = Callable[[int, int, str], None]
"""Called in any thread with the index of a text, the index of a sentence in it, and the sentence's translation."""

_THREAD_CHARACTERS, _THREAD_SENTENCES = 2000, 50
"""Texts with more characters are segmented in a separate thread. Longer documents are written in a separate thread."""


@dataclass(frozen=True)
class TranslationJob:
    """The texts of a request, and how to translate them.

    texts: texts in one language and format, or the bytes of Word documents. alternatives: the number of additional
    translations of each text. settings: as in `Translator.request`. align: whether to align the words of each sentence.
    reserve: called with the number of source tokens before the texts are queued; raises RequestError if the number
    exceeds the client's quota. The reservation is cancelled if the queue is full. seconds: the timeout; None for the
    timeout of the service.
    """

    texts: Sequence[Any]
    source: str
    target: str
    format: Format[Any]
    alternatives: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    align: bool = False
    reserve: Callable[[int], Reservation] | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class TranslatedSentence:
    """A sentence with its translations.

    hypotheses: (text, score, log-probability), best first. finished: whether the best hypothesis ended before the
    length limit. alignment: the word links of the best hypothesis; None if they were not requested.
    """

    source: str
    hypotheses: Sequence[tuple[str, float, float]]
    finished: bool
    alignment: Alignment | None = None


@dataclass(frozen=True)
class TranslatedText:
    """A translated text.

    text: the best translation; alternatives: other translations; sentences: the input of the last model, in order.
    """

    text: Any
    alternatives: Sequence[Any]
    sentences: Sequence[TranslatedSentence]


class Service:
    """Translates texts for many clients concurrently. Requests are rejected until the service is opened."""

    def __init__(self, seconds: float) -> None:
        """seconds: the timeout of a request."""
        self._seconds = seconds
        self._opened: tuple[Directions, Detector] | None = None
        self.is_shutting_down = False

    def open(self, directions: Directions) -> None:
        """Start to accept requests."""
        self._opened = directions, Detector(directions.languages)

    def check_ready(self) -> None:
        """Raise Overloaded if the models are not loaded yet or the service is shutting down."""
        if self.is_shutting_down:
            raise Overloaded("the server is shutting down", retry_after=5)
        _ = self._ready

    @property
    def directions(self) -> Directions:
        """The served directions. Raises Overloaded before the service is open."""
        return self._ready[0]

    @property
    def detector(self) -> Detector:
        """A detector of the source and target languages. Raises Overloaded before the service is open."""
        return self._ready[1]

    @property
    def _ready(self) -> tuple[Directions, Detector]:
        if self._opened is None:
            raise Overloaded("the models are being loaded", retry_after=5)
        return self._opened

    def check(self, job: TranslationJob) -> None:
        """Raise RequestError for a direction that is not served and for inconsistent settings."""
        for step in self.directions.route(job.source, job.target)[-1:]:
            _request(step, job)

    async def translate(self, job: TranslationJob, on_sentence: OnSentence | None = None) -> list[TranslatedText]:
        """Translate each text, in order. Texts in the target language are returned unchanged.

        on_sentence: called for each sentence when the last model has translated it.

        Cancelling this coroutine, for example after the client has disconnected, withdraws its lines from the queue.

        Raises RequestError for a direction that is not served and for inconsistent settings, and Overloaded if the
        queue is full or the request times out.
        """
        route = self.directions.route(job.source, job.target)
        if not route:
            return [TranslatedText(text, (), ()) for text in job.texts]
        try:
            async with asyncio.timeout(seconds := job.seconds or self._seconds):
                pivots: list[Any] | None = None
                for step in route[:-1]:
                    plain = replace(job, alternatives=0, align=False)
                    job = replace(job, reserve=None)  # a text is charged once, regardless of the number of steps
                    pivots = [translation.text for translation in await self._run(step, plain, pivots)]
                last = replace(job, align=job.align and len(route) == 1)
                return await self._run(route[-1], last, pivots, on_sentence)
        except TimeoutError:
            raise Overloaded(f"the translation took longer than {seconds:g} seconds", retry_after=1) from None

    async def _run(
        self,
        step: Step,
        job: TranslationJob,
        pivots: Sequence[Any] | None = None,
        on_sentence: OnSentence | None = None,
    ) -> list[TranslatedText]:
        """Translate the texts of a job with one model, or `pivots`, their translations by another model."""
        translator = step.model.translator
        pipeline = DocumentPipeline(translator, _request(step, job), job.source)
        languages = Languages(job.source, job.target)

        def parse(index: int) -> ParsedDocument[Any]:
            if pivots is None:
                return job.format.parse(job.texts[index], languages)
            return parse_pivot(job.format, job.texts[index], pivots[index], languages)

        def segment() -> tuple[list[SegmentedDocument[Any]], list[Sentence], list[int]]:
            try:
                documents = [pipeline.segment(parse(index)) for index in range(len(job.texts))]
            except (ConfigError, DataError) as error:
                raise RequestError(str(error)) from None
            sentences = [sentence for document in documents for sentence in document.sentences]
            ids = (
                translator.tokenizers.source.encode_batch([sentence.text for sentence in sentences])
                if sentences
                else []
            )
            return documents, sentences, [len(sentence_ids) + 1 for sentence_ids in ids]

        is_long = sum(map(len, pivots or job.texts)) > _THREAD_CHARACTERS
        documents, sentences, costs = await asyncio.to_thread(segment) if is_long else segment()
        indices = [(text, index) for text, document in enumerate(documents) for index in range(len(document.sentences))]

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
    """Decode each sentence through the model's queue, and return its hypotheses. Raises RequestError and Overloaded."""
    reservation = None if reserve is None else reserve(sum(costs))
    rejection = ""
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
            raise RequestError(str(error)) from None
        except ConfigError as error:
            rejection = str(error)
        finally:
            ticket.done.cancel()
    raise RequestError(rejection)


async def _assemble(
    pipeline: DocumentPipeline, document: SegmentedDocument[Any], results: Sequence[Hypotheses], job: TranslationJob
) -> TranslatedText:
    """Write the translations of a document. Hypothesis k of the document consists of hypothesis k of each sentence."""
    count = min(job.alternatives + 1, max(map(len, results), default=1))
    ranked = [[_text(hypotheses[min(rank, len(hypotheses) - 1)]) for hypotheses in results] for rank in range(count)]
    alignments = [await _align(pipeline, document, texts, job.align and rank == 0) for rank, texts in enumerate(ranked)]

    def write() -> list[Any]:
        return [document.write(*arguments) for arguments in zip(ranked, alignments, strict=True)]

    written = write() if len(results) < _THREAD_SENTENCES else await asyncio.to_thread(write)
    sentences = [
        TranslatedSentence(
            sentence.text,
            [(_text(one), one.score, one.log_probability) for one in hypotheses[: job.alternatives + 1]],
            hypotheses[0].finished,
            alignment if job.align else None,
        )
        for sentence, hypotheses, alignment in zip(document.sentences, results, alignments[0], strict=True)
    ]
    return TranslatedText(written[0], list(dict.fromkeys(written[1:])), sentences)


async def _align(
    pipeline: DocumentPipeline, document: SegmentedDocument[Any], texts: Sequence[str], all_sentences: bool
) -> list[Alignment]:
    """Return the alignments of a document's sentences. All are empty if the model cannot align words."""
    if all_sentences or document.indices_to_align(texts):
        with suppress(ConfigError):
            return await asyncio.to_thread(partial(pipeline.align, document, texts, all_sentences))
    return [()] * len(texts)


def _request(step: Step, job: TranslationJob) -> Request:
    """Return the request for every sentence. Raises RequestError for inconsistent settings."""
    try:
        settings = {"nbest": job.alternatives + 1, **job.settings}
        return step.model.translator.request(to=step.model.tag_for(step.target), **settings)
    except (ConfigError, DataError) as error:
        raise RequestError(str(error)) from None


def _text(translation: Translation) -> str:
    return one_line(translation.text)
