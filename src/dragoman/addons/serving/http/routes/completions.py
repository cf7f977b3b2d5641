"""The route `/v1/completions`, which continues texts in the form of OpenAI's API, and `/v1/models`."""

import asyncio
import json
import secrets
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from dragoman.addons.serving.config import LimitsConfig, ServeConfig
from dragoman.addons.serving.errors import ClientDisconnected, InternalError, NotFound, RequestError
from dragoman.addons.serving.http.completion_choices import Choice, CompletionChoice, joined
from dragoman.addons.serving.http.gate import Caller, Gate, KeyFields
from dragoman.addons.serving.http.openai_form import OpenAIModel, openai_error, openai_errors
from dragoman.addons.serving.http.requests import ERRORS, check_texts, describe_route, while_connected
from dragoman.addons.serving.service.completion_queue import CompletionJob, PreparedPrompts
from dragoman.addons.serving.service.service import Service
from dragoman.inference.generation.writer import Piece

EVENTS = "text/event-stream"

_MOST_LOGPROBS = 5
_MOST_STOPS = 4
"""Limits of OpenAI's API."""


class StreamOptions(BaseModel):
    """Options of a stream. include_usage: end it with a part that has the numbers of tokens."""

    model_config = ConfigDict(extra="forbid")

    include_usage: bool = False


class CompletionFields(KeyFields):
    """Prompts to continue. Unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")

    model: str | None = Field(None, description="Name of the model; null: the only language model of the server.")
    prompt: str | list[str] | list[int] | list[list[int]] = Field(
        "", description="A prompt, or a list: texts, or token ids of the model's vocabulary. Empty: a new text."
    )
    max_tokens: int = Field(16, ge=0, description="Maximum number of tokens of a completion, with the end symbol.")
    temperature: float = Field(
        1, ge=0, le=1e5, allow_inf_nan=False, description="Divisor of the logits. 0: the most probable token (greedy)."
    )
    top_p: float = Field(1, gt=0, le=1, description="Sample from the smallest set of tokens with this probability.")
    top_k: int | None = Field(None, ge=1, le=10**9, description="Sample from the k most probable tokens; null: all.")
    n: int = Field(1, ge=1, description="Number of completions per prompt.")
    best_of: int | None = Field(
        None,
        ge=1,
        description="Number of completions of which the n with the highest mean log-probability are returned.",
    )
    stop: str | list[str] | None = Field(None, description="Up to 4 strings before which a text ends.")
    logprobs: Annotated[int, Field(ge=0, le=_MOST_LOGPROBS)] | None = Field(
        None, description="Return the log-probability of each token, and those of this number of most probable tokens."
    )
    echo: bool = Field(False, description="Return the prompt before its continuation, with its log-probabilities.")
    seed: int | None = Field(None, ge=0, lt=2**63, description="Random seed; null: a random one.")
    stream: bool = Field(False, description="Return the text in parts, as server-sent events.")
    stream_options: StreamOptions | None = Field(None, description="Options of a stream.")
    suffix: Annotated[str, Field(max_length=0)] | None = Field(None, description="Not supported: must be empty.")
    frequency_penalty: float = Field(0, ge=0, le=0, description="Not supported: must be 0.")
    presence_penalty: float = Field(0, ge=0, le=0, description="Not supported: must be 0.")
    logit_bias: Annotated[dict[str, float], Field(max_length=0)] | None = Field(
        None, description="Not supported: must be empty."
    )
    user: str | None = Field(None, description="Ignored.")


class Usage(BaseModel):
    """Numbers of tokens. completion_tokens: those that were generated, with end symbols and stop strings."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Completion(BaseModel):
    """Completions, ordered by prompt; of a stream, a part of one of them. created: seconds since 1970."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage | None = None


class ModelsV1(BaseModel):
    """The models of the server, in OpenAI's form in `data`, and with their properties in `models`.

    The properties are `name`, `kind` (translation, prediction or language_model), and `source` and `targets`, or `task`
    and `labels`, or `window`; a prediction model with several tasks has `tasks` instead, which contains `task` and
    `labels` by name.
    """

    object: Literal["list"] = "list"
    data: list[OpenAIModel]
    models: list[dict[str, Any]]


def routes(service: Service, gate: Gate, config: ServeConfig) -> APIRouter:
    """Return the routes POST /v1/completions, GET /v1/models and GET /v1/models/…"""
    router, limits, loaded = APIRouter(prefix="/v1", tags=["OpenAI"]), config.limits, int(time.time())
    description = describe_route(CompletionFields, form=False)
    description["responses"] = {
        **openai_errors(ERRORS, [404]),
        200: {"content": {EVENTS: {"schema": {"type": "string"}}}},
    }

    @router.post("/completions", response_model=Completion, **description)
    async def complete(request: Request) -> Response:
        """Continue prompts with a language model, as OpenAI's API does."""
        fields, caller = await gate.enter(request, CompletionFields, translates=True)
        prompts = _prompts(fields)
        _check(fields, prompts, limits)
        reply = Reply(service, fields, prompts, caller)
        if not fields.stream:
            async with while_connected(request):
                answer = await reply.whole()
            return Response(answer.model_dump_json(), media_type="application/json")
        async with while_connected(request):
            await reply.start()
        return StreamingResponse(reply.events(request), media_type=EVENTS, headers={"X-Accel-Buffering": "no"})

    @router.get("/models", responses=openai_errors(ERRORS))
    async def models(request: Request) -> ModelsV1:
        """Return the models of the server."""
        await gate.enter(request, KeyFields)
        translators = [
            {"name": each.name, "kind": "translation", "source": each.source, "targets": list(each.targets)}
            for each in service.directions.models
        ]
        predictors = [each.as_json() for each in service.predictors.values()]
        writers = [each.as_json() for each in service.language_models.values()]
        data = [OpenAIModel(id=each.name, created=loaded) for each in service.models]
        return ModelsV1(data=data, models=[*translators, *predictors, *writers])

    @router.get("/models/{name:path}", responses=openai_errors(ERRORS, [404]))
    async def model(request: Request, name: str) -> OpenAIModel:
        """Return a model of the server."""
        await gate.enter(request, KeyFields)
        if name not in [each.name for each in service.models]:
            raise NotFound("there is no model of this name", "model")
        return OpenAIModel(id=name, created=loaded)

    return router


def _prompts(fields: CompletionFields) -> list[str | list[int]]:
    prompt = fields.prompt
    if isinstance(prompt, str) or (prompt and isinstance(prompt[0], int)):
        return [prompt]
    return list(prompt)  # type: ignore[arg-type]


def _check(fields: CompletionFields, prompts: Sequence[str | list[int]], limits: LimitsConfig) -> None:
    """Raise RequestError for fields that exceed a limit or contradict one another."""
    check_texts([each for each in prompts if isinstance(each, str)], limits, "prompt", len(prompts))
    ids = sum(len(each) for each in prompts if not isinstance(each, str))
    stops = [fields.stop] if isinstance(fields.stop, str) else fields.stop or []
    best_of = fields.best_of or fields.n
    for name, value, maximum in (
        ("prompt", ids, limits.characters),
        ("max_tokens", fields.max_tokens, limits.completion_tokens),
        ("n", fields.n, best_of),
        ("best_of" if fields.best_of else "n", best_of * len(prompts), limits.completions),
        ("stop", len(stops), _MOST_STOPS),
        ("stop", max(map(len, stops), default=0), limits.form_characters),
    ):
        if value > maximum:
            raise RequestError(f"Invalid request: {name}: {value:,}, but at most {maximum:,}", name)
    if not prompts:
        raise RequestError("Invalid request: prompt: the list is empty", "prompt")
    if "" in stops:
        raise RequestError("Invalid request: stop: a stop string is empty", "stop")
    if fields.stream and best_of > fields.n:
        raise RequestError("Invalid request: best_of: must equal n for a stream", "best_of")


class Reply:
    """The answer to one request: as a whole, or in parts."""

    def __init__(
        self, service: Service, fields: CompletionFields, prompts: Sequence[str | list[int]], caller: Caller
    ) -> None:
        """Raises NotFound or RequestError if the model cannot be chosen."""
        self._service, self._fields, model = service, fields, service.language_models.choose(fields.model)
        settings = {
            "temperature": fields.temperature,
            "top_p": fields.top_p,
            "top_k": fields.top_k,
            "stop": [fields.stop] if isinstance(fields.stop, str) else fields.stop or [],
            "seed": secrets.randbelow(2**31) if fields.seed is None else fields.seed,
            "samples": fields.best_of or fields.n,
            "max_tokens": fields.max_tokens,
        }
        scores_prompts = fields.echo and fields.logprobs is not None
        self._job = CompletionJob(
            model, prompts, settings, caller.reserve, caller.name, fields.logprobs or 0, scores_prompts
        )
        id, created = f"cmpl-{secrets.token_hex(12)}", int(time.time())
        self._completion = partial(Completion, id=id, created=created, model=model.name)
        self._choices: list[CompletionChoice] = []
        self._parts: asyncio.Queue[Choice | None] = asyncio.Queue()
        self._work: asyncio.Task[PreparedPrompts] | None = None

    async def whole(self) -> Completion:
        """Return all completions. Raises the errors of `Service.complete`."""
        prepared = await self._service.complete(self._job, self._on_pieces)
        parts: defaultdict[int, list[Choice]] = defaultdict(list)
        while not self._parts.empty():
            part = self._parts.get_nowait()
            if part is not None:
                parts[part.index].append(part)
        found = [joined(parts[index]) for index in sorted(parts)]
        samples, n = prepared.request.samples, self._fields.n
        if samples > n:
            ranked = sorted(found, key=lambda each: -self._choices[each.index].mean_log_probability)
            groups = [[each for each in ranked if each.index // samples == row] for row in range(len(prepared.ids))]
            chosen = [each for group in groups for each in group[:n]]
            found = [each.model_copy(update={"index": index}) for index, each in enumerate(chosen)]
        return self._completion(choices=found, usage=_usage(prepared))

    async def start(self) -> None:
        """Start to generate, and return once the first text exists. Raises the errors of `Service.complete`."""
        self._work = asyncio.ensure_future(self._service.complete(self._job, self._on_pieces))
        self._work.add_done_callback(lambda _: self._parts.put_nowait(None))
        try:
            first = await self._parts.get()
        except BaseException:
            self._work.cancel()
            raise
        if first is None:
            self._work.result()  # raises its error
        self._first = first

    async def events(self, request: Request) -> AsyncIterator[str]:
        """Yield the parts as server-sent events. An error after the start is one of them."""
        assert self._work is not None
        options = self._fields.stream_options or StreamOptions()
        part = self._first
        try:
            while part is not None:
                if part.text or part.finish_reason is not None or (part.logprobs and part.logprobs.tokens):
                    yield _event(self._completion(choices=[part]))
                part = await self._parts.get()
            try:
                prepared = self._work.result()
            except Exception as error:
                known = error if isinstance(error, RequestError) else InternalError(error)
                request.state.failure = known.reason
                request.state.error_id = getattr(known, "id", None)
                yield _event(openai_error(known.message, known.status, known.field))
                return
            if options.include_usage:
                yield _event(self._completion(choices=[], usage=_usage(prepared)))
            yield "data: [DONE]\n\n"
        finally:
            if not self._work.done():
                request.state.failure = ClientDisconnected.reason
            self._work.cancel()

    def _on_pieces(self, prepared: PreparedPrompts, pieces: Sequence[Piece]) -> None:
        samples = prepared.request.samples
        if not self._choices:
            tokenizer, top = prepared.model.tokenizer, self._fields.logprobs
            self._choices = [
                CompletionChoice(row, tokenizer, top, is_new=not prepared.ids[row // samples])
                for row in range(len(prepared.ids) * samples)
            ]
            for row, choice in enumerate(self._choices):
                scores = prepared.scores[row // samples] if prepared.scores else ()
                if self._fields.echo:
                    self._parts.put_nowait(choice.prompt(prepared.texts[row // samples], scores))
                if not prepared.max_tokens:
                    self._parts.put_nowait(choice.part(Piece(row, "", finish="length")))
        for piece in pieces:
            self._parts.put_nowait(self._choices[piece.row].part(piece))


def _usage(prepared: PreparedPrompts) -> Usage:
    read, written = prepared.prompt_tokens, prepared.generated
    return Usage(prompt_tokens=read, completion_tokens=written, total_tokens=read + written)


def _event(value: Completion | dict[str, Any]) -> str:
    """Return a server-sent event. JSON escapes line feeds, so that it is one line."""
    text = value.model_dump_json() if isinstance(value, Completion) else json.dumps(value)
    return f"data: {text}\n\n"
