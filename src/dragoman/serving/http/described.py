"""What the OpenAPI document says of a route that reads its body by itself."""

from typing import Any

from pydantic import BaseModel

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
