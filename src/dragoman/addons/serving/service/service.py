"""`Service`: translates texts for the routes, independent of their protocols."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from traceback import clear_frames
from typing import Any, TypeVar

from dragoman.addons.serving.config import LimitsConfig, QueueConfig, ServeConfig
from dragoman.addons.serving.documents.processes import DocumentProcesses
from dragoman.addons.serving.errors import Overloaded, RequestError, TimedOut
from dragoman.addons.serving.models.served_language_models import LanguageModels
from dragoman.addons.serving.models.served_models import Directions, Route, Step
from dragoman.addons.serving.models.served_predictors import Predictors
from dragoman.addons.serving.queueing.background import Background
from dragoman.addons.serving.queueing.fair_executor import FairExecutor
from dragoman.addons.serving.service.completion_queue import (
    CompletionJob,
    CompletionListener,
    CompletionQueue,
    OnPieces,
    PreparedPrompts,
)
from dragoman.addons.serving.service.control_defaults import ControlDefaults, Defaults
from dragoman.addons.serving.service.prediction_queue import (
    BatchListener,
    PredictedText,
    PredictionJob,
    PredictionQueue,
)
from dragoman.addons.serving.service.scoring import ScoreJob, Scorer
from dragoman.addons.serving.service.step_translation import StepTranslation, TimeLimit, is_long
from dragoman.addons.serving.service.translation_job import (
    ModelStep,
    OnSentence,
    ResolvedJob,
    TranslatedText,
    TranslationJob,
)
from dragoman.base.errors import ConfigError, DataError
from dragoman.text.languages.detector import Detector

Result = TypeVar("Result")

_EXPENSIVE_SETTINGS = frozenset({"constraints", "glossary"})
"""Settings that are expensive to prepare, regardless of the length of the texts."""

_THREADS = 2
"""Number of threads that prepare texts, and number of threads that prepare documents."""


class Service:
    """Translates texts for many clients concurrently. Requests are rejected until the service is opened."""

    def __init__(
        self,
        limits: LimitsConfig | None = None,
        defaults: ControlDefaults | None = None,
        queue: QueueConfig | None = None,
        listener: BatchListener = lambda model, batch: None,
        background: Background | None = None,
        *,
        on_completion: CompletionListener = lambda *measured: None,
    ) -> None:
        """limits, defaults: None for those of an empty `serve.yaml`. queue: limits predictions and completions.

        listener, on_completion: receive measurements of predictions, and of completions. background: None for a
        separate one.
        """
        self._background = background = background or Background()
        self._limits, self._defaults = limits or LimitsConfig(), defaults or ControlDefaults(ServeConfig())
        self._opened: tuple[Directions, Detector, Predictors, LanguageModels] | None = None
        self._text_threads = FairExecutor(_THREADS, "preparing texts", background)
        self._document_threads = FairExecutor(_THREADS, "preparing documents", background)
        self._prediction_threads = FairExecutor(1, "predicting labels", background)
        self._completion_threads = FairExecutor(1, "continuing texts", background)
        queue = queue or QueueConfig()
        self._completion_queue = CompletionQueue(queue.max_tokens, self._completion_threads.run, on_completion)
        self._prediction_queue = PredictionQueue(
            queue.max_tokens, queue.batch_tokens, self._prediction_threads.run, listener
        )
        self.documents = DocumentProcesses(self._limits)
        """The processes that parse and write files."""
        self._timeouts: set[asyncio.Timeout] = set()
        self._is_aborted = False
        self.is_shutting_down = False

    def open(
        self,
        directions: Directions,
        predictors: Predictors | None = None,
        language_models: LanguageModels | None = None,
    ) -> None:
        """Start to accept requests. predictors, language_models: those of the server, if any."""
        detector = Detector(directions.languages)
        self._opened = directions, detector, predictors or Predictors(), language_models or LanguageModels()

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
        """End the processes of documents, and the threads that prepare texts, once their functions have ended."""
        self.documents.close()
        self._text_threads.close()
        self._document_threads.close()
        self._prediction_threads.close()
        self._completion_threads.close()

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
    def language_models(self) -> LanguageModels:
        """The language models. Raises Overloaded before the service is open."""
        return self._ready[3]

    @property
    def models(self) -> list[Scorer]:
        """All models. Raises Overloaded before the service is open."""
        return [*self.directions.models, *self.predictors.values(), *self.language_models.values()]

    @property
    def detector(self) -> Detector:
        """A detector of the source and target languages. Raises Overloaded before the service is open."""
        return self._ready[1]

    @property
    def _ready(self) -> tuple[Directions, Detector, Predictors, LanguageModels]:
        if self._opened is None:
            raise Overloaded("the models are being loaded", retry_after=5)
        return self._opened

    async def prepare(self, client: str, function: Callable[[], Result], is_document: bool) -> Result:
        """Return the result of an expensive function, which is called in a thread for texts or for documents.

        If the calling coroutine is cancelled, so is the function.
        """
        return await (self._document_threads if is_document else self._text_threads).run(client, function)

    async def prepare_file(self, client: str, function: Callable[[], Result]) -> Result:
        """Return the result of a function like `prepare`. Raises TimedOut after the timeout of a file."""
        async with self._limited(self._limits.file_seconds, "preparation of this file"):
            return await self.prepare(client, function, is_document=True)

    async def resolve(self, job: TranslationJob, route: Route | None = None) -> ResolvedJob:
        """Resolve the settings of a job. route: the steps of its direction, if the caller has them.

        Raises RequestError for a direction that is not served and for inconsistent settings, and Overloaded.
        """
        route = self.directions.route(job.source, job.target) if route is None else route
        steps = []
        for number, step in enumerate(route):
            own = job if number == len(route) - 1 else replace(job, alternatives=0)
            resolve = partial(_resolve, step, own, self._defaults.of(step.model.source, step.target), self._limits.beam)
            if _EXPENSIVE_SETTINGS.isdisjoint(job.settings):
                steps.append(resolve())
            else:
                async with self._limited(self._limits.seconds, "translation"):
                    steps.append(await self.prepare(job.client, resolve, job.is_document))
        return ResolvedJob(job, steps)

    async def translate(self, resolved: ResolvedJob, on_sentence: OnSentence | None = None) -> list[TranslatedText]:
        """Translate each text, in order, with one model after the other. Without steps, texts are returned unchanged.

        on_sentence: called for each sentence when the last model has translated it.

        Cancelling this coroutine, for example after the client has disconnected, withdraws its lines from the queue.

        Raises RequestError if the model rejects the texts, TooLarge for a document with too many characters, TimedOut,
        and Overloaded if the queue is full or the server is shutting down.
        """
        job, steps, limits = resolved.job, resolved.steps, self._limits
        if not steps:
            return [TranslatedText(text, (), ()) for text in job.texts]
        pivots: Sequence[Any] | None = None
        seconds = limits.file_seconds if job.is_document else limits.seconds
        with nullcontext() if is_long(steps[-1], job, job.texts) else self._background.short_request():
            async with self._limited(seconds, "translation") as limit:
                for step in steps[:-1]:
                    plain = replace(job, alternatives=0, align=False)
                    job = replace(job, reserve=None, align=False)  # a text is charged once, not by each model
                    first = StepTranslation(step, plain, limits, self.prepare, pivots)
                    pivots = [translation.text for translation in await first.run(limit)]
                last = StepTranslation(steps[-1], job, limits, self.prepare, pivots)
                return await last.run(limit, on_sentence)

    async def predict(self, job: PredictionJob) -> list[PredictedText | RequestError]:
        """Predict the labels of each text, in order. Cancelling this coroutine ends the computation.

        Raises the errors of `PredictionQueue.predict`, TimedOut, and Overloaded if the server is shutting down.
        """
        async with self._limited(self._limits.seconds, "prediction"):
            return await self._prediction_queue.predict(job)

    async def complete(self, job: CompletionJob, on_pieces: OnPieces) -> PreparedPrompts:
        """Continue prompts. on_pieces: receives the pieces. Cancelling this coroutine ends the computation.

        Raises the errors of `CompletionQueue.complete`, TimedOut, and Overloaded if the server is shutting down.
        """
        async with self._limited(self._limits.completion_seconds, "completion"):
            return await self._completion_queue.complete(job, on_pieces)

    async def score(self, job: ScoreJob) -> list[dict[str, Any]]:
        """Return the score of each text, in order. Cancelling this coroutine gives up the computation.

        Raises the errors of `ScoreJob.score`, TooManyRequests, TimedOut, and Overloaded during shutdown.
        """
        job.reserve(job.count_tokens())
        async with self._limited(self._limits.seconds, "computation of the scores"):
            return await self._prediction_threads.run(job.client, job.score)

    @asynccontextmanager
    async def _limited(self, seconds: float, name: str) -> AsyncIterator[TimeLimit]:
        """Limit the time of a request. name: what takes the time, for the message of TimedOut."""
        timeout = asyncio.timeout(0.0 if self._is_aborted else seconds)
        limit = TimeLimit(timeout, seconds)
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


def _resolve(step: Step, job: TranslationJob, defaults: Defaults, max_beam: int) -> ModelStep:
    """Return a step with the request for every sentence. max_beam: limits the searches of a guard.

    Raises RequestError for inconsistent settings.
    """
    model, settings = step.model, defaults.merged(job.settings)
    try:
        arguments = {"nbest": job.alternatives + 1, "to": model.tag_for(step.target), **settings}
        request = model.translator.request(**arguments)
    except (ConfigError, DataError) as error:
        raise RequestError(str(error)) from None
    if request.guard is not None:
        request = replace(request, guard=replace(request.guard, max_beam=max_beam))
    expected = defaults.expected if "keep" not in job.settings else None
    is_expensive = not _EXPENSIVE_SETTINGS.isdisjoint(settings)
    return ModelStep(
        model.translator, model.batcher, request, expected, is_expensive, model.is_unreliable, model.doubts
    )
