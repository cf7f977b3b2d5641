"""Fields of a request: JSON or a form, within limits, checked against a config class."""

import asyncio
import json
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from dragoman.serving.config import LimitsConfig
from dragoman.serving.errors import Refusal, TooLarge

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
        raise Refusal(_told(error)) from None


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


def _told(error: ValidationError) -> str:
    """What is wrong with the first field, without what it holds."""
    first = error.errors(include_input=False, include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"Invalid request: missing {name} parameter"
    return f"Invalid request: {name or 'the request'}: {first['msg']}"
