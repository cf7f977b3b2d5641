"""`SentenceDecoder`: decodes the sentences of a job through a model's queue, and again those with faults."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from dragoman.addons.documents.pipeline import DocumentPipeline
from dragoman.addons.documents.sentences import Sentence
from dragoman.addons.serving.errors import QueueFull, RequestError
from dragoman.addons.serving.queueing.batcher import Batcher
from dragoman.addons.serving.queueing.line_queue import Hypotheses, Ticket
from dragoman.addons.serving.service.translation_job import TranslationJob
from dragoman.base.cancellation import until_cancelled
from dragoman.base.errors import ConfigError, DataError
from dragoman.data.corpora.inputs import one_line
from dragoman.inference.translation.request import TextRequest
from dragoman.inference.translation.result import Translation
from dragoman.inference.translation.rounds.retry import choose_without_retry
from dragoman.text.words import count_words

Result = TypeVar("Result")

_PART_LINES, _PART_TOKENS, _PARTS = 64, 2048, 3
"""Maximum numbers of lines and tokens of a part of a document, and of parts in the queue at the same time."""

_RETRY_SECONDS = 0.1
"""Time to wait before a further part of a document is submitted again to a full queue."""

OnResult = Callable[[int, Hypotheses], None]
"""Called in any thread with the index of a sentence and its final hypotheses."""


class Prepare(Protocol):
    """Calls a function, in a separate thread if the job is long, and returns its result."""

    def __call__(self, function: Callable[[], Result]) -> Coroutine[Any, Any, Result]: ...


@dataclass(frozen=True)
class SentenceBatch:
    """The sentences of the texts of a job.

    costs: the number of tokens of each sentence. indices: the index of the text of each sentence, and its index in the
    text.
    """

    pipeline: DocumentPipeline
    sentences: Sequence[Sentence]
    costs: Sequence[int]
    indices: Sequence[tuple[int, int]]


class SentenceDecoder:
    """Decodes the sentences of a job.

    A sentence is first decoded with as few requirements as possible, because plain lines share a batch. It is decoded
    again if its hypotheses lack expected spans, or if its guard finds faults in all of them. If these searches take too
    long, the parts between the expected spans are translated as plain lines and joined.
    """

    def __init__(
        self, batcher: Batcher, batch: SentenceBatch, job: TranslationJob, prepare: Prepare, repair_seconds: float
    ) -> None:
        """repair_seconds: the timeout for decoding sentences again."""
        self._pipeline, self._sentences, self._costs = batch.pipeline, batch.sentences, batch.costs
        self._batcher, self._job = batcher, job
        self._prepare, self._repair_seconds = prepare, repair_seconds
        self._guarded: dict[int, TextRequest] = {}
        """The lines whose guard inspects the result of a search without it, by index."""

    async def decode(self, on_result: OnResult | None = None) -> list[Hypotheses]:
        """Return the hypotheses of each sentence, as the first of the pipeline's attempts that the model supports.

        on_result: receives hypotheses without faults as soon as they are ready. They are inspected in the thread that
        delivers them, the event loop or that of the model, so give it only for a stream: `repair` inspects all
        hypotheses in a thread for long work.

        Cancelling this coroutine withdraws the lines from the queue. Raises RequestError and Overloaded.
        """
        reservation = None if self._job.reserve is None else self._job.reserve(sum(self._costs))
        attempts, rejection = self._pipeline.attempts(self._sentences), ""

        def next_lines() -> list[TextRequest] | None:
            lines = next(attempts, None)
            return None if lines is None else [self._reduce(*each) for each in enumerate(until_cancelled(lines))]

        def on_first_result(index: int, hypotheses: Hypotheses) -> None:
            if on_result is not None and (found := self._accept(index, hypotheses)):
                on_result(index, found)

        receive = None if on_result is None else on_first_result
        while True:
            lines = await self._prepare(next_lines)
            if lines is None:
                raise RequestError(rejection)
            try:
                return await self._submit(lines, self._costs, receive)
            except QueueFull:
                if reservation is not None:
                    reservation.cancel()
                raise
            except DataError as error:
                raise RequestError(str(error)) from None
            except ConfigError as error:
                rejection = str(error)

    async def repair(self, results: list[Hypotheses], on_result: OnResult | None = None) -> None:
        """Remove hypotheses with faults from the results, and decode the sentences again that have no others."""
        repairs = await self._prepare(lambda: self._find_repairs(results))
        if not repairs:
            return
        indices, repaired = list(repairs), dict[int, Hypotheses]()

        def on_repaired(line: int, hypotheses: Hypotheses) -> None:
            repaired[indices[line]] = hypotheses
            if on_result is not None:
                on_result(indices[line], hypotheses)

        try:
            async with asyncio.timeout(self._repair_seconds):
                await self._submit(list(repairs.values()), [self._costs[index] for index in indices], on_repaired)
            missing = {}
        except (ConfigError, DataError):  # the engine does not support constraints
            missing = {index: results[index] for index in indices if index not in repaired}
        except (TimeoutError, QueueFull):
            late = {index: line for index, line in repairs.items() if index not in repaired}
            missing = await self._assemble(late, results)
        if on_result is not None:
            for index, hypotheses in missing.items():
                on_result(index, hypotheses)
        for index, hypotheses in (repaired | missing).items():
            results[index] = hypotheses

    def close(self) -> None:
        """Release the sentences: tickets refer to the decoder until the next garbage collection, which is rare."""
        self._sentences, self._costs = (), ()
        self._guarded.clear()

    def _find_repairs(self, results: list[Hypotheses]) -> dict[int, TextRequest]:
        """Remove hypotheses with faults from the results. Return the lines to decode again, by index."""
        faulty = dict[int, TextRequest]()
        for index, hypotheses in enumerate(until_cancelled(list(results))):
            accepted = self._accept(index, hypotheses)
            if not accepted and index in self._guarded:
                faulty[index] = self._guarded[index]
            results[index] = accepted or hypotheses
        return faulty | self._pipeline.repairs(self._sentences, [hypothesis_text(each[0]) for each in results])

    async def _assemble(self, lines: dict[int, TextRequest], results: Sequence[Hypotheses]) -> dict[int, Hypotheses]:
        """Return a translation of each line whose parts between the expected spans are translated as plain lines.

        results: the hypotheses of all sentences. They are returned for lines that contain all expected spans.
        """

        def divide() -> dict[int, list[tuple[str, bool]]]:
            return {
                index: self._pipeline.divide(self._sentences[index])
                for index in until_cancelled(lines)
                if not self._pipeline.accepts(self._sentences[index], hypothesis_text(results[index][0]))
            }

        divided = await self._prepare(divide)
        plain, positions = list[TextRequest](), list[tuple[int, int]]()
        for index, parts in divided.items():
            request = replace(lines[index][1], control=None, guard=None)
            for number, (text, is_kept) in enumerate(parts):
                if not is_kept and any(map(str.isalnum, text)):
                    plain.append((text.strip(), request))
                    positions.append((index, number))
        costs = [count_words(text) + 1 for text, _ in plain]
        found = await self._submit(plain, costs)
        for (index, number), (text, _), hypotheses in zip(positions, plain, found, strict=True):
            whole, _ = divided[index][number]
            divided[index][number] = whole.replace(text, hypothesis_text(hypotheses[0]), 1), False
        assembled = {index: "".join(text for text, _ in parts) for index, parts in divided.items()}
        return {
            index: [replace(results[index][0], text=assembled[index], patched=True)]
            if index in assembled
            else results[index]
            for index in lines
        }

    def _accept(self, index: int, hypotheses: Hypotheses) -> Hypotheses:
        """Return the hypotheses without faults; an empty list if the sentence must be decoded again."""
        text, (_, request) = self._sentences[index], self._guarded.get(index, ("", None))
        if request is not None and request.guard is not None:
            hypotheses = choose_without_retry(request.guard, text.text, hypotheses) or []
        return [each for each in hypotheses if self._pipeline.accepts(text, hypothesis_text(each))]

    async def _submit(
        self, lines: Sequence[TextRequest], costs: Sequence[int], on_result: OnResult | None = None
    ) -> list[Hypotheses]:
        """Return the hypotheses of lines. costs: the number of tokens of each line.

        Raises QueueFull, and the errors of the translation.
        """
        if self._job.is_document:
            return await self._submit_in_parts(lines, costs, on_result)
        ticket = Ticket(lines, costs, on_result, self._job.client or None)
        self._batcher.submit(ticket)
        return await _completed(ticket)

    async def _submit_in_parts(
        self, lines: Sequence[TextRequest], costs: Sequence[int], on_result: OnResult | None
    ) -> list[Hypotheses]:
        """Return the hypotheses of lines, of which only a few parts are in the queue at the same time.

        A document of any size therefore leaves space for other requests. It waits for space if a part of it is
        translated.
        """

        async def submit(begin: int, end: int) -> list[Hypotheses]:
            def on_line(line: int, hypotheses: Hypotheses) -> None:
                if on_result is not None:
                    on_result(begin + line, hypotheses)

            while True:
                ticket = Ticket(lines[begin:end], costs[begin:end], on_line, self._job.client or None)
                try:
                    self._batcher.submit(ticket)
                    return await _completed(ticket)
                except QueueFull:
                    if not begin:
                        raise
                    await asyncio.sleep(_RETRY_SECONDS)

        pending: deque[asyncio.Task[list[Hypotheses]]] = deque()
        results: list[Hypotheses] = []
        try:
            for part in _parts(costs):
                pending.append(asyncio.create_task(submit(*part)))
                if len(pending) == _PARTS:
                    results += await pending.popleft()
            while pending:
                results += await pending.popleft()
        finally:
            for task in pending:
                task.add_done_callback(lambda task: task.cancelled() or task.exception())
                task.cancel()
        return results

    def _reduce(self, index: int, line: TextRequest) -> TextRequest:
        """Return a line without requirements that do not apply to its text, and without its guard if it has none."""
        text, request = line
        if request.control is not None and not request.control.requirements(text):
            request = replace(request, control=None)
        self._guarded.pop(index, None)
        if request.control is None and request.guard is not None:
            self._guarded[index] = text, request
            request = replace(request, guard=None)
        return text, request


def hypothesis_text(translation: Translation) -> str:
    """Return the text of a translation, on one line."""
    return one_line(translation.text)


async def _completed(ticket: Ticket) -> list[Hypotheses]:
    """Return the hypotheses of a ticket. Cancelling this coroutine withdraws its lines from the queue."""
    try:
        results = await asyncio.wrap_future(ticket.done)
        found = list(results)
        results.clear()  # the callbacks of futures keep them, and this list, until the next garbage collection
        return found
    finally:
        ticket.done.cancel()


def _parts(costs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the (begin, end) indices of consecutive parts of at least one line."""
    begin, tokens = 0, 0
    for index, cost in enumerate(costs):
        if index > begin and (index - begin == _PART_LINES or tokens + cost > _PART_TOKENS):
            yield begin, index
            begin, tokens = index, 0
        tokens += cost
    if costs:
        yield begin, len(costs)
