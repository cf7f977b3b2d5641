"""Parses the fields of a request, in any form that LibreTranslate accepts, and validates them."""

import asyncio
import codecs
import json
import re
from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any, TypeVar, get_args, get_origin
from urllib.parse import parse_qsl

from pydantic import BaseModel, Field, ValidationError
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from dragoman.addons.serving.errors import RequestError

JSON, FORM, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"

_MAX_FIELDS = 1000
_CHUNK_BYTES = 16_384
"""Number of bytes of a form in parts that are parsed at a time."""

_ENCODINGS = ("utf-8", "utf-16", "utf-32", "ascii", "iso8859", "cp125", "koi8", "gb", "big5", "shift_jis", "euc_")
"""Prefixes of the names, in Python, of encodings that are in use and are decoded in linear time."""

_LISTS = ("q", "text")
"""Fields that may be repeated in a form, in addition to fields that are always lists."""

_MOST_ERRORS = 50
"""Number of errors of a request that are described without delay. Pydantic describes all of them, even if only the
first is needed, which takes seconds for a list of 300,000 numbers instead of texts."""

_MOST_ITEMS = 20
"""Number of items of a list or an object that are described if a request has more errors."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""The beginning of an escaped surrogate in JSON."""

Texts = str | Annotated[list[str], Field(fail_fast=True)]
"""One or several texts. The first invalid one is reported without a look at the others."""

Fields = TypeVar("Fields", bound=BaseModel)


async def parse_fields(request: Request, body: bytes, fields: type[Fields]) -> Fields:
    """Return the fields of a request: those of its address, overridden by those of its body.

    The body is a JSON object, a form, or a form in parts; files in it are ignored. Raises RequestError for a body that
    cannot be parsed and for invalid fields.
    """
    media_type, encoding = _content_type(request)
    if request.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise RequestError("compressed requests are not supported: send the body without Content-Encoding")
    values = query_fields(request)
    if not body.strip():
        pass
    elif media_type == JSON or media_type.endswith("+json") or (not media_type and body.lstrip().startswith(b"{")):
        values |= _parse_json(body, encoding)
    elif media_type in ("", FORM):
        values |= _parse_pairs(body, encoding)
    elif media_type == MULTIPART:
        values |= await _parse_parts(request.headers, body)
    else:
        raise RequestError(f"unsupported content type: use {JSON}, {FORM} or {MULTIPART}")
    return validate(values, fields)


def query_fields(request: Request) -> dict[str, Any]:
    """Return the fields in the address of a request. Raises RequestError if they are not valid UTF-8."""
    return _parse_pairs(request.url.query.encode(), "utf-8")


def validate(values: Mapping[str, Any], fields: type[Fields]) -> Fields:
    """Convert values to fields.

    A field with the value null is treated as missing, and so is an empty text unless the field is a list of texts. A
    single text is accepted for a list, and a JSON object or list in a text is accepted for a structured field. Raises
    RequestError for fields that are missing or invalid.
    """
    converted = {}
    for name, value in values.items():
        field = fields.model_fields.get(name)
        if value is None or (value == "" and field is not None and name not in _LISTS):
            continue
        container = None if field is None else _container(field.annotation)
        converted[name] = value if container is None else _parse_structure(value, container)
    try:
        return fields.model_validate(converted)
    except ValidationError as error:
        raise RequestError(*_describe_first_error(error, converted, fields)) from None


def _content_type(request: Request) -> tuple[str, str]:
    """Return the media type, in lower case, and the encoding. Raises RequestError for an encoding that is not usual."""
    media_type, _, parameters = request.headers.get("content-type", "").partition(";")
    encoding = "utf-8"
    for each in parameters.split(";"):
        name, _, value = each.partition("=")
        if name.strip().lower() == "charset" and value.strip(" \"'"):
            try:
                encoding = codecs.lookup(value.strip(" \"'")).name
            except (LookupError, ValueError):
                encoding = ""
            if not encoding.startswith(_ENCODINGS):
                raise RequestError("unknown character set in the content type: use UTF-8")
    return media_type.strip().lower(), encoding


def _parse_json(body: bytes, encoding: str) -> dict[str, Any]:
    try:
        text = body.decode(encoding).removeprefix("\ufeff")
        values = json.loads(text, parse_constant=_reject_constant)
    except UnicodeDecodeError:
        raise RequestError(f"the request is not valid {_display_name(encoding)}") from None
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the request is not valid JSON: {error}") from None
    if not isinstance(values, dict):
        raise RequestError("the request is not a JSON object")
    if _SURROGATE.search(text) is None:  # most requests; otherwise, each value is inspected
        return values
    try:
        replaced: dict[str, Any] = _replace_surrogates(values)
    except RecursionError:
        raise RequestError("the request is not valid JSON: it is nested too deeply") from None
    return replaced


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _parse_pairs(body: bytes, encoding: str) -> dict[str, Any]:
    """Parse `name=value&…`. An encoding other than UTF-8 also applies to the escaped bytes."""
    try:
        text = body.decode(encoding)
        pairs = parse_qsl(text, keep_blank_values=True, encoding=encoding, errors="strict", max_num_fields=_MAX_FIELDS)
    except UnicodeError:
        raise RequestError(f"the request is not valid {_display_name(encoding)}") from None
    except ValueError as error:
        raise RequestError(f"the request is not a valid form: {error}") from None
    return _join_repeated(pairs)


async def _parse_parts(headers: Headers, body: bytes) -> dict[str, Any]:
    async def stream() -> Any:
        for start in range(0, len(body), _CHUNK_BYTES):
            yield body[start : start + _CHUNK_BYTES]
            await asyncio.sleep(0)  # other requests are processed between two parts

    try:
        form = await MultiPartParser(
            headers, stream(), max_files=_MAX_FIELDS, max_fields=_MAX_FIELDS, max_part_size=len(body)
        ).parse()
    except UnicodeDecodeError:
        raise RequestError("the request is not valid UTF-8") from None
    except (MultiPartException, KeyError, ValueError, LookupError) as error:
        raise RequestError(f"the request is not a valid form: {getattr(error, 'message', 'damaged')}") from None
    try:
        return _join_repeated([(name, value) for name, value in form.multi_items() if isinstance(value, str)])
    finally:
        await form.close()


def _join_repeated(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Return the values by name. A repeated field, or one whose name ends with [], is a list; others keep the last."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        bare = name.removesuffix("[]")
        if bare not in values:
            values[bare] = [value] if bare != name else value
        elif bare != name or bare in _LISTS or isinstance(values[bare], list):
            former = values[bare]
            values[bare] = [*former, value] if isinstance(former, list) else [former, value]
        else:
            values[bare] = value
    return values


def _container(annotation: Any) -> type | None:
    """Return `list` or `dict` if the values of a field are lists or objects, but not texts; otherwise None."""
    members = (annotation,) if get_origin(annotation) in (list, dict) else get_args(annotation)
    origins = [get_origin(each) for each in members if get_origin(each) in (list, dict)]
    return None if str in members or not origins else origins[0]


def _parse_structure(value: Any, container: type) -> Any:
    """Parse the value that a form contains for a list or an object; values of other types are returned unchanged."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith(("[", "{")):
        try:
            return json.loads(value, parse_constant=_reject_constant)
        except (ValueError, RecursionError):
            return value
    return [value] if container is list else value


def _replace_surrogates(value: Any) -> Any:
    """Replace lone surrogates such as \\ud800, which JSON allows but Unicode does not, with U+FFFD."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_replace_surrogates(each) for each in value]
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(each) for key, each in value.items()}
    return value


def _shorten(value: Any) -> Any:
    """Return a value with only the first items of each list and object in it."""
    if isinstance(value, list):
        return [_shorten(each) for each in value[:_MOST_ITEMS]]
    if isinstance(value, Mapping):
        return {key: _shorten(each) for key, each in islice(value.items(), _MOST_ITEMS)}
    return value


def _display_name(encoding: str) -> str:
    return encoding.upper() if encoding.startswith("utf") else encoding


def _describe_first_error(
    error: ValidationError, values: Mapping[str, Any], fields: type[BaseModel]
) -> tuple[str, str]:
    """Describe the first invalid field, without its value. Return the message and the name of the field.

    values: those that are invalid. If there are many errors, the first values of each list and object are described.
    """
    if error.error_count() > _MOST_ERRORS:
        try:
            fields.model_validate(_shorten(values))
        except ValidationError as first_errors:
            error = first_errors
        else:
            return f"Invalid request: {error.error_count():,} of its values are invalid", ""
    first = error.errors(include_input=False, include_url=False)[0]
    # other parts of the location are names of types
    name = ".".join(str(part) for index, part in enumerate(first["loc"]) if index == 0 or isinstance(part, int))
    if first["type"] == "missing":
        return f"Invalid request: missing {name} parameter", name
    return f"Invalid request: {name or 'the request'}: {first['msg']}", name
