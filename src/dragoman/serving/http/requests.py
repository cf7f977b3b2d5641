"""Requests: their bodies read within limits and checked, and what the OpenAPI document says of them."""

import asyncio
import json
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from dragoman.serving.config import LimitsConfig
from dragoman.serving.detection.detector import Detector
from dragoman.serving.errors import Refusal, TooLarge

MULTIPART = "multipart/form-data"
JSON, FORM, LINES = "application/json", "application/x-www-form-urlencoded", "application/x-ndjson"


class Error(BaseModel):
    """What is wrong, and what to do."""

    error: str


ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": Error, "description": "what was sent makes no sense"},
    401: {"model": Error, "description": "a key is needed"},
    403: {"model": Error, "description": "the key is none; or what is asked for is off here"},
    408: {"model": Error, "description": "the body did not come in time"},
    413: {"model": Error, "description": "the body is too large"},
    429: {"model": Error, "description": "too many requests, or too much text, in a minute: see Retry-After"},
    500: {"model": Error, "description": "a fault of the server"},
    503: {"model": Error, "description": "too much to do, or not done in time: see Retry-After"},
}


def described(model: type[BaseModel], form: bool = True, streams: bool = False) -> dict[str, Any]:
    """Arguments of a route: its fields, as JSON and perhaps as a form, and its answers, perhaps lines of JSON."""
    content = {kind: {"schema": model.model_json_schema()} for kind in ((JSON, FORM) if form else (JSON,))}
    lines: dict[int | str, dict[str, Any]] = (
        {200: {"content": {LINES: {"schema": {"type": "string"}}}}} if streams else {}
    )
    return {"openapi_extra": {"requestBody": {"required": True, "content": content}}, "responses": ERRORS | lines}


M = TypeVar("M", bound=BaseModel)


class TooSlow(Refusal):
    """A body that does not come."""

    status = 408


async def read_body(request: Request, limits: LimitsConfig, most: int) -> bytes:
    """most: bytes. Raises TooLarge as soon as there are more, TooSlow where it takes too long."""
    too_large = TooLarge(f"a request has at most {most:,} bytes")
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > most:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise too_large
    except TimeoutError:
        raise TooSlow(f"the request was not complete after {limits.body_seconds:g} seconds") from None
    except ClientDisconnect:
        raise Refusal("the request was not complete") from None
    return bytes(body)


async def read_fields(request: Request, limits: LimitsConfig, model: type[M]) -> M:
    """The body's fields, checked; those of the address where there is no body. Raises Refusal for what is wrong."""
    body = await read_body(request, limits, limits.body_bytes)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or (not kind and body.lstrip().startswith(b"{")):
        given = _of_json(body)
    elif kind in ("", "application/x-www-form-urlencoded"):
        given = _of_form(body, request, model)
    else:
        raise Refusal("send JSON or a form (application/json, application/x-www-form-urlencoded)")
    return checked(given, model)


def checked(given: Any, model: type[M]) -> M:
    """Raises Refusal for fields that are missing or make no sense."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise Refusal(_first_problem(error)) from None


def _of_json(body: bytes) -> Any:
    try:
        given = json.loads(body.decode("utf-8"), parse_constant=_no_number)
    except UnicodeDecodeError:
        raise Refusal("the request is no UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise Refusal(f"the request is no JSON: {error}") from None
    if not isinstance(given, dict):
        raise Refusal("the request is no JSON object")
    return _without_surrogates(given)


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _of_form(body: bytes, request: Request, model: type[BaseModel]) -> dict[str, Any]:
    try:
        text = body.decode("utf-8")
        pairs = parse_qsl(text or request.url.query, keep_blank_values=True, errors="strict", max_num_fields=1000)
    except UnicodeDecodeError:
        raise Refusal("the request is no UTF-8") from None
    except ValueError as error:
        raise Refusal(f"the request is no form: {error}") from None
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name in given and name in ("q",):
            given[name] = [*given[name], value] if isinstance(given[name], list) else [given[name], value]
        else:
            given[name] = value
    return given


def _without_surrogates(value: Any) -> Any:
    """JSON may have half a character, such as \\ud800, which is none of Unicode's: U+FFFD stands for it."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_surrogates(each) for each in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(each) for key, each in value.items()}
    return value


def _first_problem(error: ValidationError) -> str:
    """What is wrong with the first field, without what it holds."""
    first = error.errors(include_input=False, include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"Invalid request: missing {name} parameter"
    return f"Invalid request: {name or 'the request'}: {first['msg']}"


AUTO = "auto"
"""In the place of a source language that is to be detected."""


class Detected(BaseModel):
    """confidence: from 0 to 100; 0 where it can't be told."""

    confidence: float
    language: str


def check_texts(texts: Sequence[str], limits: LimitsConfig, field: str = "q") -> None:
    """Raises Refusal where there are too many, or too long ones."""
    if len(texts) > limits.texts:
        raise Refusal(f"Invalid request: {field}: {len(texts)} texts, but a list has at most {limits.texts}")
    if (size := sum(map(len, texts))) > limits.characters:
        raise Refusal(f"Invalid request: {field}: {size:,} characters, but a request has at most {limits.characters:,}")


def best_of(detector: Detector, text: str, sources: Sequence[str]) -> Detected:
    """The likeliest language of a text; where it can't be told the first that is served, with confidence 0."""
    found = detector.detect(text)
    if not found:
        return Detected(confidence=0, language=sources[0])
    language, confidence = found[0]
    return Detected(confidence=confidence, language=language)


T = TypeVar("T")


class Gone(Refusal):
    """Nobody waits for the answer any more."""

    status = 499


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What the work gives; cancelled as soon as its client has gone, whose request was read to its end."""
    doing, watching = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((doing, watching), return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return doing.result()
        raise Gone("the client has gone")
    finally:
        doing.cancel()
        watching.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
