"""Routes for those who run the server."""

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

from dragoman.serving.service import Service


class Health(BaseModel):
    """ok: the process answers."""

    status: Literal["ok"]


def routes(service: Service) -> APIRouter:
    """GET /health, /health/ready."""
    router = APIRouter(tags=["operations"])

    @router.get("/health")
    async def health() -> Health:
        """Whether the process lives."""
        return Health(status="ok")

    return router
