"""Requests: reading bodies within limits, validating fields, and describing them in the OpenAPI document."""

import asyncio
import json
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from dragoman.serving.config import LimitsConfig
from dragoman.serving.detection.detector import Detector
from dragoman.serving.errors import ClientDisconnected, Refusal, TooLarge, TooSlow

MULTIPART = "multipart/form-data"
JSON, FORM, JSON_LINES = "application/json", "application/x-www-form-urlencoded", "application/x-ndjson"

AUTO = "auto"
"""The source language to send if it should be detected."""

Fields = TypeVar("Fields", bound=BaseModel)
Result = TypeVar("Result")


class Error(BaseModel):
    """An error: what is wrong, and what to do."""

    error: str


ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": Error, "description": "the request is invalid"},
    401: {"model": Error, "description": "a key is required"},
    403: {"model": Error, "description": "the key is not valid, or the server does not offer this"},
    408: {"model": Error, "description": "the body did not arrive in time"},
    413: {"model": Error, "description": "the body is too large"},
    429: {"model": Error, "description": "too many requests, or too much text, per minute: see Retry-After"},
    500: {"model": Error, "description": "an internal error"},
    503: {"model": Error, "description": "the server is overloaded, or the request timed out: see Retry-After"},
}
"""The responses of every route, for the OpenAPI document."""


class Detected(BaseModel):
    """A detected language. confidence: from 0 to 100; 0 if it is unknown."""

    confidence: float
    language: str


def openapi(fields: type[BaseModel], form: bool = True, streams: bool = False) -> dict[str, Any]:
    """Return the arguments that describe a route that reads its own body.

    form: whether it accepts a form as well as JSON; streams: whether it may answer with lines of JSON.
    """
    content = {kind: {"schema": fields.model_json_schema()} for kind in ((JSON, FORM) if form else (JSON,))}
    lines: dict[int | str, dict[str, Any]] = (
        {200: {"content": {JSON_LINES: {"schema": {"type": "string"}}}}} if streams else {}
    )
    return {"openapi_extra": {"requestBody": {"required": True, "content": content}}, "responses": ERRORS | lines}


async def read_body(request: Request, limits: LimitsConfig, most: int) -> bytes:
    """Read a body of at most `most` bytes.

    Raises TooLarge as soon as it exceeds them, TooSlow if it takes too long, and Refusal if it is incomplete.
    """
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


async def read_fields(request: Request, limits: LimitsConfig, fields: type[Fields]) -> Fields:
    """Read the fields of the body, or of the query string if there is no body.

    Raises Refusal for a body or fields that are invalid, and what `read_body` raises.
    """
    body = await read_body(request, limits, limits.body_bytes)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or (not kind and body.lstrip().startswith(b"{")):
        values = _parse_json(body)
    elif kind in ("", "application/x-www-form-urlencoded"):
        values = _parse_form(body, request)
    else:
        raise Refusal("send JSON or a form (application/json, application/x-www-form-urlencoded)")
    return validate(values, fields)


def validate(values: Any, fields: type[Fields]) -> Fields:
    """Convert values to fields. Raises Refusal for fields that are missing or invalid."""
    try:
        return fields.model_validate(values)
    except ValidationError as error:
        raise Refusal(_first_problem(error)) from None


def check_texts(texts: Sequence[str], limits: LimitsConfig, field: str = "q") -> None:
    """Raise Refusal for too many texts or too many characters. field: the name of the field that contains them."""
    if len(texts) > limits.texts:
        raise Refusal(f"Invalid request: {field}: {len(texts)} texts, but a list has at most {limits.texts}")
    if (size := sum(map(len, texts))) > limits.characters:
        raise Refusal(f"Invalid request: {field}: {size:,} characters, but a request has at most {limits.characters:,}")


def detect_language(detector: Detector, text: str, sources: Sequence[str]) -> Detected:
    """Return the most probable language of a text, or the first of `sources` with confidence 0 if it is unknown."""
    found = detector.detect(text)
    if not found:
        return Detected(confidence=0, language=sources[0])
    language, confidence = found[0]
    return Detected(confidence=confidence, language=language)


async def while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Await some work, which is cancelled as soon as the client disconnects, and return its result.

    The body of the request must have been read. Raises ClientDisconnected.
    """
    working, watching = asyncio.ensure_future(work), asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnected("the client has disconnected")
    finally:
        working.cancel()
        watching.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _parse_json(body: bytes) -> Any:
    try:
        values = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise Refusal("the request is not valid UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise Refusal(f"the request is not valid JSON: {error}") from None
    if not isinstance(values, dict):
        raise Refusal("the request is not a JSON object")
    return _replace_surrogates(values)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _parse_form(body: bytes, request: Request) -> dict[str, Any]:
    try:
        text = body.decode("utf-8")
        pairs = parse_qsl(text or request.url.query, keep_blank_values=True, errors="strict", max_num_fields=1000)
    except UnicodeDecodeError:
        raise Refusal("the request is not valid UTF-8") from None
    except ValueError as error:
        raise Refusal(f"the request is not a valid form: {error}") from None
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values and name == "q":
            values[name] = [*values[name], value] if isinstance(values[name], list) else [values[name], value]
        else:
            values[name] = value
    return values


def _replace_surrogates(value: Any) -> Any:
    """Replace lone surrogates, such as \\ud800, which JSON allows and Unicode does not, by U+FFFD."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_replace_surrogates(each) for each in value]
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(each) for key, each in value.items()}
    return value


def _first_problem(error: ValidationError) -> str:
    """Describe the first invalid field, without its value."""
    first = error.errors(include_input=False, include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"Invalid request: missing {name} parameter"
    return f"Invalid request: {name or 'the request'}: {first['msg']}"
