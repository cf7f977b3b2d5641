"""Reads request bodies within limits, and describes their fields in the OpenAPI document."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.requests import ClientDisconnect, Request

from dragoman.addons.serving.config import LimitsConfig
from dragoman.addons.serving.errors import ClientDisconnected, RequestError, TooLarge, TooSlow
from dragoman.addons.serving.http.fields import FORM, JSON, MULTIPART, parse_fields

JSON_LINES = "application/x-ndjson"

Fields = TypeVar("Fields", bound=BaseModel)


class Error(BaseModel):
    """An error. error: describes the problem and its solution."""

    error: str


# The first response has the model, and the others refer to its schema: a model each would take FastAPI most of the time
# that it needs to declare all routes.
_ERROR = {"content": {JSON: {"schema": {"$ref": f"#/components/schemas/{Error.__name__}"}}}}
ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": Error, "description": "the request is invalid"},
    401: _ERROR | {"description": "a key is required"},
    403: _ERROR | {"description": "the key is not valid, or the server does not offer this"},
    408: _ERROR | {"description": "the body did not arrive in time"},
    413: _ERROR | {"description": "the body is too large"},
    421: _ERROR | {"description": "the host is not a name of the server"},
    429: _ERROR | {"description": "too many requests, or too much text, per minute: see Retry-After"},
    500: _ERROR | {"description": "an internal error"},
    503: _ERROR | {"description": "the server is overloaded, or the request timed out: see Retry-After"},
}
"""The responses of every route, for the OpenAPI document."""


def describe_route(fields: type[BaseModel], form: bool = True, streams: bool = False) -> dict[str, Any]:
    """Return the decorator arguments that describe a route whose handler reads the request body.

    form: whether the route accepts forms in addition to JSON; streams: whether it can return JSON lines.
    """
    schema = fields.model_json_schema()
    content = {media_type: {"schema": schema} for media_type in ((JSON, FORM, MULTIPART) if form else (JSON,))}
    lines: dict[int | str, dict[str, Any]] = (
        {200: {"content": {JSON_LINES: {"schema": {"type": "string"}}}}} if streams else {}
    )
    return {"openapi_extra": {"requestBody": {"required": True, "content": content}}, "responses": ERRORS | lines}


_MEGABYTE = 1_000_000
"""A longer body has proportionally more time to arrive."""


async def read_body(
    request: Request,
    limits: LimitsConfig,
    max_bytes: int,
    account: Callable[[int], None] = lambda count: None,
    too_large: TooLarge | None = None,
) -> bytes:
    """Read a body of at most `max_bytes` bytes. account: called with the number of bytes of each part received.

    Raises `too_large` as soon as the body exceeds the limit, TooSlow if it takes too long, and RequestError if it is
    incomplete.
    """
    too_large = too_large or TooLarge(f"a request has at most {max_bytes:,} bytes (limits.body_bytes)")
    announced = request.headers.get("content-length", "")
    size = int(announced) if announced.isdigit() else 0
    if size > max_bytes:
        raise too_large
    body = bytearray()
    seconds = limits.body_seconds * max(1.0, size / _MEGABYTE)
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                account(len(chunk))
                body += chunk
                if len(body) > max_bytes:
                    raise too_large
    except TimeoutError:
        raise TooSlow(f"the request was not complete after {seconds:g} seconds") from None
    except ClientDisconnect:
        raise RequestError("the request was not complete") from None
    return bytes(body)


async def read_fields(request: Request, limits: LimitsConfig, fields: type[Fields]) -> Fields:
    """Read the fields of the address and of the body. Raises the errors of `read_body` and `parse_fields`."""
    return await parse_fields(request, await read_body(request, limits, limits.body_bytes), fields)


def check_forms(field: str, forms: str | Sequence[str], limits: LimitsConfig) -> None:
    """Raise RequestError for forms of a phrase or a term that are too many, too long, blank or of several lines."""
    forms = [forms] if isinstance(forms, str) else forms
    if len(forms) > limits.forms:
        raise RequestError(f"Invalid request: {field}: a phrase may have at most {limits.forms} forms")
    if any(len(form) > limits.form_characters for form in forms):
        raise RequestError(f"Invalid request: {field}: a phrase may have at most {limits.form_characters} characters")
    if not all(form.strip() and "\n" not in form.strip() for form in forms):
        raise RequestError(f"Invalid request: {field}: a phrase must be a single line and must not be blank")


def check_texts(texts: Sequence[str], limits: LimitsConfig, field: str = "q", count: int | None = None) -> None:
    """Raise RequestError for too many texts or too many characters.

    field: the name of the field that contains them. count: the number of texts if some consist of several strings.
    """
    count = len(texts) if count is None else count
    if count > limits.texts:
        raise RequestError(f"Invalid request: {field}: {count} texts, but a list has at most {limits.texts}", field)
    if (size := sum(map(len, texts))) > limits.characters:
        raise RequestError(
            f"Invalid request: {field}: {size:,} characters, but a request has at most {limits.characters:,}", field
        )


@asynccontextmanager
async def while_connected(request: Request) -> AsyncIterator[None]:
    """Cancel a `with` block as soon as the client disconnects. Raises ClientDisconnected.

    The request body must already have been read.
    """
    task, is_disconnected = asyncio.current_task(), False
    assert task is not None

    async def watch() -> None:
        nonlocal is_disconnected
        while (await request.receive())["type"] != "http.disconnect":
            pass
        is_disconnected = True
        task.cancel()

    watcher = asyncio.ensure_future(watch())
    try:
        yield
    except BaseException:
        if is_disconnected:
            raise ClientDisconnected("the client has disconnected") from None
        raise
    finally:
        watcher.cancel()
        if is_disconnected:
            task.uncancel()
