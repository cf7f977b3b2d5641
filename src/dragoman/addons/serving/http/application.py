"""The ASGI application of the server, with the routes for health and metrics."""

from math import ceil
from typing import Any, Literal

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from dragoman.addons.serving.access.access import Access
from dragoman.addons.serving.access.metrics_access import MetricsAccess
from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.errors import RequestError
from dragoman.addons.serving.http.gate import Gate
from dragoman.addons.serving.http.hosts import HostCheck
from dragoman.addons.serving.http.metrics import Metrics, RequestObserver, write_log_entry
from dragoman.addons.serving.http.origins import OriginCheck
from dragoman.addons.serving.http.public_url import PublicUrl
from dragoman.addons.serving.http.request_line import RequestLine
from dragoman.addons.serving.http.requests import ERRORS, Error
from dragoman.addons.serving.http.routes import files, libretranslate, page, predictions, v1
from dragoman.addons.serving.http.shutdown import ShutdownResponder
from dragoman.addons.serving.service.service import Service
from dragoman.checkpoint.meta import library_versions


def application(service: Service, access: Access, config: ServeConfig, metrics: Metrics) -> FastAPI:
    """Return the application. Every error is returned as `{"error": …}`."""
    app = FastAPI(
        title="dragoman",
        version=library_versions()["dragoman"],
        description="Machine translation, and prediction of labels.",
        docs_url=None,
        redoc_url=None,
    )
    gate = Gate(access, config.limits, MetricsAccess(config.access))
    app.include_router(libretranslate.routes(service, gate, config))
    app.include_router(files.routes(service, gate, config))
    app.include_router(v1.routes(service, gate, config))
    app.include_router(predictions.routes(service, gate, config))
    app.include_router(_operation_routes(service, gate, metrics))
    app.include_router(page.routes(service))
    app.add_middleware(RequestLine)
    app.add_middleware(OriginCheck, public_url=PublicUrl(config), allowed=config.access.allowed_origins)
    if config.access.allowed_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=config.access.allowed_origins,
            allow_methods=("GET", "POST"),
            allow_headers=("authorization", "content-type"),
            expose_headers=("retry-after", "content-disposition"),
        )
    app.add_middleware(HostCheck, config=config)
    app.add_middleware(ShutdownResponder, service=service)
    app.add_middleware(RequestObserver, metrics=metrics, log=write_log_entry if config.log else None)

    @app.exception_handler(RequestError)
    async def handle_request_error(request: Request, error: RequestError) -> JSONResponse:
        request.state.failure = error.reason
        headers = {} if error.retry_after is None else {"Retry-After": str(ceil(error.retry_after))}
        return JSONResponse({"error": error.message}, error.status, headers)

    @app.exception_handler(HTTPException)
    async def handle_http_error(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def handle_invalid_fields(_: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse({"error": "Invalid request"}, 400)

    @app.exception_handler(Exception)
    async def handle_bug(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": "internal error: see the server's log"}, 500)

    return app


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


def _operation_routes(service: Service, gate: Gate, metrics: Metrics) -> APIRouter:
    """Return the routes GET /health, /health/ready, /metrics and /spec."""
    router = APIRouter(tags=["operations"])

    @router.get("/spec", include_in_schema=False)
    async def specification(request: Request) -> JSONResponse:
        """Return the OpenAPI document, at the path where LibreTranslate has it."""
        return JSONResponse(request.app.openapi())

    @router.get("/health")
    async def health() -> Health:
        """Check that the process is alive."""
        return Health(status="ok")

    @router.get("/health/ready", responses={503: ERRORS[503]})
    async def ready() -> Health:
        """Check that the server can translate further texts in time: all models are loaded and the queues progress."""
        service.check_ready()
        return Health(status="ok")

    @router.get("/metrics", response_class=PlainTextResponse, responses=_METRICS_ERRORS)
    async def read_metrics(request: Request) -> PlainTextResponse:
        """Return metrics in Prometheus's text format."""
        gate.check_metrics(request)
        return PlainTextResponse(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return router
