"""`CompletionQueue`: continues the prompts of many clients, which take turns."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from dragoman.addons.serving.access.quota import Reservation
from dragoman.addons.serving.errors import QueueFull, RequestError, TooManyRequests
from dragoman.addons.serving.models.served_language_models import ServedLanguageModel
from dragoman.addons.serving.service.prediction_queue import Run
from dragoman.base.errors import ConfigError, DataError
from dragoman.inference.abilities import SupportsPieces
from dragoman.inference.generation.writer import GenerationRequest, Piece, Prompt, ScoredToken

_SLICE_SECONDS = 0.05
"""Time for which the completions of a client are computed before it is another client's turn."""


@dataclass(frozen=True)
class CompletionJob:
    """Prompts to continue.

    prompts: texts, or token ids. settings: arguments of `LanguageModel.request`, with `max_tokens` ≥ 0. best: number of
    most probable tokens per position. scores_prompts: whether the tokens of the prompts are scored too. reserve:
    reserves tokens of the client's quota; raises TooManyRequests. client: its name.
    """

    model: ServedLanguageModel
    prompts: Sequence[Prompt]
    settings: Mapping[str, Any]
    reserve: Callable[[int], Reservation]
    client: str
    best: int = 0
    scores_prompts: bool = False


@dataclass
class PreparedPrompts:
    """The prompts of a job as token ids, with their texts, and the settings of their continuations.

    model: the model, which a reload does not change during the request. scores: the scored tokens of each prompt, if
    they are requested.
    """

    model: SupportsPieces
    ids: Sequence[Sequence[int]]
    texts: Sequence[str]
    request: GenerationRequest
    max_tokens: int
    scores: list[list[ScoredToken]] = field(default_factory=list)
    generated: int = 0
    """Number of tokens that have been generated."""

    @property
    def prompt_tokens(self) -> int:
        """Number of tokens of all prompts."""
        return sum(map(len, self.ids))

    @property
    def most_tokens(self) -> int:
        """The largest number of tokens that the job can process."""
        return self.prompt_tokens + len(self.ids) * self.request.samples * self.max_tokens


class CompletionListener(Protocol):
    """Receives measurements. model: the name of the model."""

    def __call__(self, model: str, completions: int, prompt_tokens: int, generated_tokens: int, seconds: float) -> None:
        """Record a request."""
        ...


class OnPieces(Protocol):
    """Receives the prepared prompts, and then each time the pieces that were generated."""

    def __call__(self, prepared: PreparedPrompts, pieces: Sequence[Piece]) -> None:
        """Process pieces, in the thread of the event loop."""
        ...


class CompletionQueue:
    """Admits jobs until the queue holds the maximum number of tokens, and computes their completions in turn.

    The completions of a request form one batch. After each slice of time, the other requests have their turn, so that a
    long text does not delay short ones much.
    """

    def __init__(self, max_tokens: int, run: Run, listener: CompletionListener) -> None:
        """run: calls functions in a single thread, in turn with those of other clients."""
        self._max_tokens, self._run, self._listener = max_tokens, run, listener
        self.tokens = 0
        """Largest number of tokens that the current jobs can process."""

    async def complete(self, job: CompletionJob, on_pieces: OnPieces) -> PreparedPrompts:
        """Continue the prompts of a job, and return them. on_pieces: called first without pieces, then with each slice.

        The whole number of tokens is reserved first, and what was not generated is returned at the end. Raises
        RequestError for invalid prompts and settings, TooManyRequests and QueueFull. If the calling coroutine is
        cancelled, so is the computation.
        """
        prepared: PreparedPrompts = await self._run(job.client, partial(_prepare, job))
        reservation = job.reserve(prepared.most_tokens)
        if self.tokens and self.tokens + prepared.most_tokens > self._max_tokens:
            reservation.cancel()
            raise QueueFull("the queue is full: try again later", retry_after=1)
        self.tokens += prepared.most_tokens
        seconds = 0.0
        try:
            if job.scores_prompts:
                await self._run(job.client, partial(_score, prepared, job.best))
            on_pieces(prepared, ())
            stream = prepared.model.pieces(prepared.ids, prepared.request, best=job.best) if prepared.max_tokens else ()
            iterator, ended = iter(stream), False
            while not ended:
                started = time.perf_counter()
                pieces, ended = await self._run(job.client, partial(_slice, iterator))
                seconds += time.perf_counter() - started
                prepared.generated += sum(piece.token is not None for piece in pieces)
                on_pieces(prepared, pieces)
        finally:
            self.tokens -= prepared.most_tokens
            reservation.cancel()
            with suppress(TooManyRequests):  # a cancelled reservation leaves enough for a smaller one
                job.reserve(prepared.prompt_tokens + prepared.generated)
            count = len(prepared.ids) * prepared.request.samples
            self._listener(job.model.name, count, prepared.prompt_tokens, prepared.generated, seconds)
        return prepared


def _prepare(job: CompletionJob) -> PreparedPrompts:
    """Encode the prompts. Raises RequestError for a setting that is invalid and a token that is not in the vocabulary.

    `max_tokens` of 0 is allowed, for prompts that are only scored.
    """
    model, tokens = job.model.model, job.settings["max_tokens"]
    try:
        request = model.request(**{**job.settings, "max_tokens": max(1, tokens)})
        ids = [model.tokenizer.encode(each) if isinstance(each, str) else list(each) for each in job.prompts]
    except (ConfigError, DataError) as error:
        raise RequestError(f"Invalid request: {error}") from None
    size = model.tokenizer.size
    for each in ids:
        if unknown := [token for token in each if not 0 <= token < size]:
            message = f"there is no token {unknown[0]}: the vocabulary has {size} tokens, numbered from 0"
            raise RequestError(f"Invalid request: prompt: {message}", "prompt")
        if job.scores_prompts and model.window is not None and len(each) > model.window:
            raise RequestError(
                f"Invalid request: prompt: {len(each)} tokens, but the model scores at most {model.window}", "prompt"
            )
    texts = [
        prompt if isinstance(prompt, str) else model.tokenizer.decode(each)
        for prompt, each in zip(job.prompts, ids, strict=True)
    ]
    return PreparedPrompts(model, ids, texts, request, min(tokens, request.max_tokens))


def _score(prepared: PreparedPrompts, best: int) -> None:
    prepared.scores = [prepared.model.token_scores(each, best=best) for each in prepared.ids]


def _slice(iterator: Iterator[Piece]) -> tuple[list[Piece], bool]:
    """Return the pieces of one slice of time, and whether they are the last ones."""
    pieces, end = [], time.perf_counter() + _SLICE_SECONDS
    for piece in iterator:
        pieces.append(piece)
        if time.perf_counter() > end:
            return pieces, False
    return pieces, True
