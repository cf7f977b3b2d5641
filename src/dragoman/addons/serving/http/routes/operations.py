"""The routes for health, metrics and the OpenAPI document."""

from collections.abc import Callable
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from dragoman.addons.serving.http.gate import Gate
from dragoman.addons.serving.http.metrics import Metrics
from dragoman.addons.serving.http.requests import ERRORS, Error
from dragoman.addons.serving.service.service import Service

_METRICS_ERRORS: dict[int | str, dict[str, Any]] = {
    code: {
        "description": "the client may not read the metrics",
        "content": {"application/json": {"schema": Error.model_json_schema()}},
    }
    for code in (401, 403)
}


class Health(BaseModel):
    """The state of the server."""

    status: Literal["ok"]


def routes(service: Service, gate: Gate, metrics: Metrics, openapi: Callable[[], dict[str, Any]]) -> APIRouter:
    """Return the routes GET /health, /health/ready, /metrics and /spec. openapi: returns the OpenAPI document."""
    router = APIRouter(tags=["operations"])

    @router.get("/spec", include_in_schema=False)
    async def specification(request: Request) -> JSONResponse:
        """Return the OpenAPI document, at the path where LibreTranslate has it."""
        return JSONResponse(openapi())

    @router.get("/health")
    async def health(request: Request) -> Health:
        """Check that the process is alive."""
        return Health(status="ok")

    @router.get("/health/ready", responses={503: ERRORS[503]})
    async def ready(request: Request) -> Health:
        """Check that the server can translate further texts in time: all models are loaded and the queues progress."""
        service.check_ready()
        return Health(status="ok")

    @router.get("/metrics", response_class=PlainTextResponse, responses=_METRICS_ERRORS)
    async def read_metrics(request: Request) -> PlainTextResponse:
        """Return metrics in Prometheus's text format."""
        gate.check_metrics(request)
        return PlainTextResponse(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return router
