"""The form in which OpenAI's clients expect errors and lists of models."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel

from dragoman.addons.serving.http.fields import JSON

_PATHS = ("/v1/completions", "/v1/models")

_TYPES = {
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("permission_error", "forbidden"),
    404: ("invalid_request_error", "not_found"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
    500: ("server_error", "internal"),
    503: ("server_error", "overloaded"),
}
"""Type and code of an error by status; of all others, the type is `invalid_request_error`, without a code."""


class ErrorDetail(BaseModel):
    """What went wrong. param: the invalid field, if known."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIError(BaseModel):
    """An error in the form that OpenAI's clients expect."""

    error: ErrorDetail


class OpenAIModel(BaseModel):
    """A model in OpenAI's form. created: when it was loaded, in seconds since 1970."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "dragoman"


def uses_openai_form(path: str) -> bool:
    """Return whether the errors of a path have OpenAI's form."""
    return any(path == each or path.startswith(f"{each}/") for each in _PATHS)


def openai_error(message: str, status: int, field: str | None) -> dict[str, Any]:
    """Return an error as JSON types. field: the invalid field, if known."""
    type, code = _TYPES.get(status, ("invalid_request_error", None))
    if field == "model" and status == 404:
        code = "model_not_found"
    return {"error": {"message": message, "type": type, "param": field or None, "code": code}}


_ERROR = {"content": {JSON: {"schema": {"$ref": f"#/components/schemas/{OpenAIError.__name__}"}}}}


def openai_errors(errors: Mapping[int | str, Mapping[str, Any]], others: Iterable[int] = ()) -> dict[int | str, Any]:
    """Return the responses of a route, for the OpenAPI document, in OpenAI's form. others: further statuses."""
    descriptions = {status: each["description"] for status, each in errors.items()}
    descriptions |= dict.fromkeys(others, "no such model")
    described = {status: {"description": each, **_ERROR} for status, each in descriptions.items()}
    # the first response has the model, to which the others refer, as in `requests.ERRORS`
    return described | {400: {"model": OpenAIError, "description": "the request is invalid"}}
