"""`Service`: translates texts for the routes, independent of their protocols."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from traceback import clear_frames
from typing import Any, TypeVar

from dragoman.addons.documents.formats.format import ParsedDocument, parse_pivot
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.passage import iterate_passages
from dragoman.addons.documents.pipeline import DocumentPipeline, SegmentedDocument
from dragoman.addons.documents.sentences import Sentence
from dragoman.addons.serving.config import LimitsConfig, QueueConfig, ServeConfig
from dragoman.addons.serving.errors import Overloaded, RequestError, TimedOut, TooLarge
from dragoman.addons.serving.models.served_models import Directions, Step
from dragoman.addons.serving.models.served_predictors import Predictors
from dragoman.addons.serving.queueing.background import Background
from dragoman.addons.serving.queueing.fair_executor import FairExecutor
from dragoman.addons.serving.queueing.line_queue import Hypotheses
from dragoman.addons.serving.service.control_defaults import ControlDefaults, Defaults
from dragoman.addons.serving.service.prediction_queue import (
    BatchListener,
    PredictedText,
    PredictionJob,
    PredictionQueue,
)
from dragoman.addons.serving.service.sentence_decoder import SentenceDecoder, hypothesis_text
from dragoman.addons.serving.service.translation_job import (
    OnSentence,
    TranslatedSentence,
    TranslatedText,
    TranslationJob,
)
from dragoman.base.cancellation import until_cancelled
from dragoman.base.errors import ConfigError, DataError
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.translator import Translator
from dragoman.statistical.alignment.links import Alignment
from dragoman.text.languages.detector import Detector

Result = TypeVar("Result")

_THREAD_CHARACTERS = 2000
"""Texts with more characters are prepared in a separate thread."""

_EXPENSIVE_SETTINGS = frozenset({"constraints", "glossary"})
"""Settings that are expensive to prepare, regardless of the length of the texts."""

_THREADS = 2
"""Number of threads that prepare texts, and number of threads that prepare documents."""

_CHARACTERS = 1_000_000
"""Number of characters of text in a document above which its timeout is proportional to the number."""

_REPAIR_SHARE = 0.4
"""Share of the timeout of a request in which sentences that lack expected spans are decoded again."""

_TOKENISED_SENTENCES = 1000
"""Number of sentences that are tokenised together."""


class _TimeLimit:
    """The timeout of a request. seconds: the time from its start."""

    def __init__(self, timeout: asyncio.Timeout, seconds: float) -> None:
        self._timeout, self._start, self.seconds = timeout, asyncio.get_running_loop().time(), seconds

    def extend(self, factor: float) -> None:
        """Multiply the time, unless the request has been aborted."""
        deadline = self._timeout.when()
        if deadline is not None and deadline > asyncio.get_running_loop().time():
            self.seconds *= factor
            self._timeout.reschedule(self._start + self.seconds)


class Service:
    """Translates texts for many clients concurrently. Requests are rejected until the service is opened."""

    def __init__(
        self,
        limits: LimitsConfig | None = None,
        defaults: ControlDefaults | None = None,
        queue: QueueConfig | None = None,
        listener: BatchListener = lambda model, batch: None,
        background: Background | None = None,
    ) -> None:
        """limits, defaults: None for those of an empty `serve.yaml`. queue: limits the waiting predictions.

        listener: receives measurements of predictions. background: None for a separate one.
        """
        self._background = background = background or Background()
        self._limits, self._defaults = limits or LimitsConfig(), defaults or ControlDefaults(ServeConfig())
        self._opened: tuple[Directions, Detector, Predictors] | None = None
        self._text_threads = FairExecutor(_THREADS, "preparing texts", background)
        self._document_threads = FairExecutor(_THREADS, "preparing documents", background)
        self._prediction_threads = FairExecutor(1, "predicting labels", background)
        queue = queue or QueueConfig()
        self._prediction_queue = PredictionQueue(
            queue.most_tokens, queue.batch_tokens, self._prediction_threads.run, listener
        )
        self._timeouts: set[asyncio.Timeout] = set()
        self._is_aborted = False
        self.is_shutting_down = False

    def open(self, directions: Directions, predictors: Predictors | None = None) -> None:
        """Start to accept requests. predictors: the prediction models, if any."""
        self._opened = directions, Detector(directions.languages), predictors or Predictors()

    def check_ready(self) -> None:
        """Raise Overloaded if the service cannot translate further texts in time.

        This is the case while the models are being loaded, during shutdown, if a queue is full, and if a model has not
        translated any line for longer than the timeout of a request although lines are waiting.
        """
        if self.is_shutting_down:
            raise Overloaded("the server is shutting down", retry_after=5)
        for model in self.directions.models:
            batcher = model.batcher
            if not batcher.is_alive or batcher.queue.stalled_seconds > self._limits.seconds:
                raise Overloaded(f"{model.name} has stopped translating", retry_after=5)
            if batcher.queue.is_full:
                raise Overloaded("the queue is full: try again later", retry_after=1)

    def abort(self) -> None:
        """Let all unfinished and further translations raise Overloaded. Must be called in the event loop's thread."""
        self._is_aborted = self.is_shutting_down = True
        now = asyncio.get_running_loop().time()
        for timeout in self._timeouts:
            if not timeout.expired():
                timeout.reschedule(now)

    def close(self) -> None:
        """End the threads that prepare texts, once their functions have ended."""
        self._text_threads.close()
        self._document_threads.close()
        self._prediction_threads.close()

    @property
    def is_open(self) -> bool:
        """Whether the models are loaded."""
        return self._opened is not None

    @property
    def directions(self) -> Directions:
        """The served directions. Raises Overloaded before the service is open."""
        return self._ready[0]

    @property
    def predictors(self) -> Predictors:
        """The prediction models. Raises Overloaded before the service is open."""
        return self._ready[2]

    @property
    def detector(self) -> Detector:
        """A detector of the source and target languages. Raises Overloaded before the service is open."""
        return self._ready[1]

    @property
    def _ready(self) -> tuple[Directions, Detector, Predictors]:
        if self._opened is None:
            raise Overloaded("the models are being loaded", retry_after=5)
        return self._opened

    async def check(self, job: TranslationJob) -> None:
        """Raise RequestError for a direction that is not served and for inconsistent settings."""
        for step in self.directions.route(job.source, job.target)[-1:]:
            defaults = self._defaults.of(step.model.source, step.target)
            await self.prepare(job.client, partial(_request, step, job, defaults, self._limits.beam), job.is_document)

    async def prepare(self, client: str, function: Callable[[], Result], is_document: bool) -> Result:
        """Return the result of an expensive function, which is called in a thread for texts or for documents.

        If the calling coroutine is cancelled, so is the function.
        """
        return await (self._document_threads if is_document else self._text_threads).run(client, function)

    async def translate(self, job: TranslationJob, on_sentence: OnSentence | None = None) -> list[TranslatedText]:
        """Translate each text, in order. Texts in the target language are returned unchanged.

        on_sentence: called for each sentence when the last model has translated it.

        Cancelling this coroutine, for example after the client has disconnected, withdraws its lines from the queue.

        Raises RequestError for a direction that is not served and for inconsistent settings, TooLarge for a document
        with too many characters, TimedOut, and Overloaded if the queue is full or the server is shutting down.
        """
        route = self.directions.route(job.source, job.target)
        if not route:
            return [TranslatedText(text, (), ()) for text in job.texts]
        seconds = self._limits.file_seconds if job.is_document else self._limits.seconds
        is_long = self._is_long(route[-1], job, job.texts)
        with nullcontext() if is_long else self._background.short_request():
            async with self._limited(seconds, "translation") as limit:
                return await self._run_steps(route, job, limit, on_sentence)

    async def _run_steps(
        self, route: Sequence[Step], job: TranslationJob, limit: _TimeLimit, on_sentence: OnSentence | None
    ) -> list[TranslatedText]:
        """Translate the texts with one model after the other."""
        pivots: list[Any] | None = None
        for step in route[:-1]:
            plain = replace(job, alternatives=0, align=False)
            job = replace(job, reserve=None)  # a text is charged once, regardless of the number of steps
            pivots = [translation.text for translation in await self._run(step, plain, limit, pivots)]
        last = replace(job, align=job.align and len(route) == 1)
        return await self._run(route[-1], last, limit, pivots, on_sentence)

    async def predict(self, job: PredictionJob) -> list[PredictedText | RequestError]:
        """Predict the labels of each text, in order. Cancelling this coroutine ends the computation.

        Raises the errors of `PredictionQueue.predict`, TimedOut, and Overloaded if the server is shutting down.
        """
        async with self._limited(self._limits.seconds, "prediction"):
            return await self._prediction_queue.predict(job)

    @asynccontextmanager
    async def _limited(self, seconds: float, name: str) -> AsyncIterator[_TimeLimit]:
        """Limit the time of a request. name: what takes the time, for the message of TimedOut."""
        timeout = asyncio.timeout(0.0 if self._is_aborted else seconds)
        limit = _TimeLimit(timeout, seconds)
        self._timeouts.add(timeout)
        try:
            async with timeout:
                try:
                    yield limit
                except BaseException as error:
                    # the frames would keep a document in memory until the next garbage collection
                    clear_frames(error.__traceback__)
                    raise
        except TimeoutError:
            if self._is_aborted:
                raise Overloaded("the server is shutting down: send the request again", retry_after=5) from None
            raise TimedOut(f"the {name} took longer than {limit.seconds:g} seconds", retry_after=1) from None
        finally:
            self._timeouts.discard(timeout)

    def _is_long(self, step: Step, job: TranslationJob, texts: Sequence[Any]) -> bool:
        """Return whether the preparation of texts takes so long that it needs a thread of its own."""
        settings = self._defaults.of(step.model.source, step.target).merged(job.settings)
        is_expensive = not _EXPENSIVE_SETTINGS.isdisjoint(settings)
        return job.is_document or is_expensive or sum(map(len, texts)) > _THREAD_CHARACTERS

    async def _run(
        self,
        step: Step,
        job: TranslationJob,
        limit: _TimeLimit,
        pivots: Sequence[Any] | None = None,
        on_sentence: OnSentence | None = None,
    ) -> list[TranslatedText]:
        """Translate the texts of a job with one model, or `pivots`, their translations by another model.

        limit: is extended for a long document.
        """
        translator, defaults = step.model.translator, self._defaults.of(step.model.source, step.target)
        languages = Languages(job.source, job.target)

        def parse(index: int) -> ParsedDocument[Any]:
            if pivots is None:
                return job.format.parse(job.texts[index], languages)
            return parse_pivot(job.format, job.texts[index], pivots[index], languages)

        def segment() -> tuple[DocumentPipeline, list[SegmentedDocument[Any]], list[Sentence], list[int]]:
            expected = defaults.expected if "keep" not in job.settings else None
            request = _request(step, job, defaults, self._limits.beam)
            longest = self._limits.sentence_tokens
            pipeline = DocumentPipeline(translator, request, job.source, expected=expected, max_tokens=longest)
            documents = []
            try:
                for index in until_cancelled(range(len(job.texts))):
                    parsed = parse(index)
                    if job.is_document:
                        _check_characters(parsed, self._limits.file_characters)
                    documents.append(pipeline.segment(parsed))
            except (ConfigError, DataError) as error:
                raise RequestError(str(error)) from None
            sentences = [sentence for document in documents for sentence in document.sentences]
            return pipeline, documents, sentences, _count_tokens(translator, sentences)

        is_long = self._is_long(step, job, pivots or job.texts)

        async def prepare(function: Callable[[], Result]) -> Result:
            return await self.prepare(job.client, function, job.is_document) if is_long else function()

        pipeline, documents, sentences, costs = await prepare(segment)
        if job.is_document and pivots is None:
            limit.extend(max(1.0, sum(len(sentence.text) for sentence in sentences) / _CHARACTERS))
        indices = [(text, index) for text, document in enumerate(documents) for index in range(len(document.sentences))]

        def on_result(line: int, hypotheses: Hypotheses) -> None:
            if on_sentence is not None:
                on_sentence(*indices[line], hypothesis_text(hypotheses[0]))

        seconds = _REPAIR_SHARE * limit.seconds
        decoder = SentenceDecoder(step.model.batcher, pipeline, sentences, costs, job, prepare, seconds)
        found = iter(await decoder.decode(on_result))
        results = [list(islice(found, len(document.sentences))) for document in documents]

        def assemble() -> list[TranslatedText]:
            return [_assemble(pipeline, *each, job) for each in until_cancelled(zip(documents, results, strict=True))]

        if is_long or job.align or any(_has_markup(document) for document in documents):
            return await self.prepare(job.client, assemble, job.is_document)
        return assemble()


def _check_characters(parsed: ParsedDocument[Any], maximum: int) -> None:
    """Raise TooLarge for a document with too many characters of text."""
    characters = 0
    for passage in iterate_passages(parsed.parts):
        characters += len(passage.texts)
        if characters > maximum:
            raise TooLarge(
                f"a file may contain at most {maximum:,} characters of text (limits.file_characters): divide it into "
                "several files"
            )


def _count_tokens(translator: Translator, sentences: Sequence[Sentence]) -> list[int]:
    """Return the number of source tokens of each sentence, including the end of the sentence."""
    tokenizer, counts = translator.tokenizers.source, list[int]()
    for start in until_cancelled(range(0, len(sentences), _TOKENISED_SENTENCES)):
        texts = [sentence.text for sentence in sentences[start : start + _TOKENISED_SENTENCES]]
        counts += [len(ids) + 1 for ids in tokenizer.encode_batch(texts)]
    return counts


def _has_markup(document: SegmentedDocument[Any]) -> bool:
    """Return whether the words of a document may have to be aligned, which takes time."""
    return any(sentence.marks or sentence.code for sentence in document.sentences)


def _assemble(
    pipeline: DocumentPipeline, document: SegmentedDocument[Any], results: Sequence[Hypotheses], job: TranslationJob
) -> TranslatedText:
    """Write the translations of a document. Hypothesis k of the document consists of hypothesis k of each sentence."""
    count = min(job.alternatives + 1, max(map(len, results), default=1))
    ranked = [[hypothesis_text(each[min(rank, len(each) - 1)]) for each in results] for rank in range(count)]
    alignments = [_align(pipeline, document, texts, job.align and rank == 0) for rank, texts in enumerate(ranked)]
    written = [document.write(*arguments) for arguments in zip(ranked, alignments, strict=True)]
    sentences = [
        TranslatedSentence(
            sentence.text,
            [(hypothesis_text(one), one.score, one.log_probability) for one in hypotheses[: job.alternatives + 1]],
            hypotheses[0].finished,
            alignment if job.align else None,
        )
        for sentence, hypotheses, alignment in zip(document.sentences, results, alignments[0], strict=True)
    ]
    return TranslatedText(written[0], list(dict.fromkeys(written[1:])), sentences)


def _align(
    pipeline: DocumentPipeline, document: SegmentedDocument[Any], texts: Sequence[str], all_sentences: bool
) -> list[Alignment]:
    """Return the alignments of a document's sentences. All are empty if the model cannot align words."""
    if all_sentences or document.indices_to_align(texts):
        with suppress(ConfigError):
            return pipeline.align(document, texts, all_sentences)
    return [()] * len(texts)


def _request(step: Step, job: TranslationJob, defaults: Defaults, max_beam: int) -> Request:
    """Return the request for every sentence. max_beam: limits the searches of a guard.

    Raises RequestError for inconsistent settings.
    """
    try:
        settings = {"nbest": job.alternatives + 1, **defaults.merged(job.settings)}
        request = step.model.translator.request(to=step.model.tag_for(step.target), **settings)
    except (ConfigError, DataError) as error:
        raise RequestError(str(error)) from None
    return request if request.guard is None else replace(request, guard=replace(request.guard, max_beam=max_beam))
