"""Routes for those who run the server."""

from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from dragoman.serving.http.described import ERRORS
from dragoman.serving.http.gate import Gate, Keyed
from dragoman.serving.observation.metrics import Metrics
from dragoman.serving.service import Service


class Health(BaseModel):
    """ok: the process answers."""

    status: Literal["ok"]


def routes(service: Service, gate: Gate, metrics: Metrics) -> APIRouter:
    """GET /health, /health/ready and /metrics."""
    router = APIRouter(tags=["operations"])

    @router.get("/health")
    async def health() -> Health:
        """Whether the process lives."""
        return Health(status="ok")

    @router.get("/health/ready", responses={503: ERRORS[503]})
    async def ready() -> Health:
        """Whether it translates: all models are loaded and warm, and it is not about to end."""
        service.check_ready()
        return Health(status="ok")

    @router.get("/metrics", response_class=PlainTextResponse)
    async def counted(request: Request) -> PlainTextResponse:
        """For Prometheus."""
        await gate.enter(request, Keyed)
        return PlainTextResponse(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return router
