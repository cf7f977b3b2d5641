"""The server's routes as one application (ASGI)."""

from math import ceil

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from dragoman.checkpoint.meta import library_versions
from dragoman.serving.access.access import Access
from dragoman.serving.config import ServeConfig
from dragoman.serving.errors import Refusal
from dragoman.serving.http import files, libretranslate, operations, page, v1
from dragoman.serving.http.gate import Gate
from dragoman.serving.http.observed import Observed, log_line
from dragoman.serving.observation.metrics import Metrics
from dragoman.serving.service import Service


def application(service: Service, access: Access, config: ServeConfig, metrics: Metrics) -> FastAPI:
    """All routes. Whatever goes wrong is told as `{"error": …}`."""
    app = FastAPI(
        title="dragoman",
        version=library_versions()["dragoman"],
        description="Machine translation.",
        docs_url=None,
        redoc_url=None,
    )
    gate = Gate(access, config.limits)
    app.include_router(libretranslate.routes(service, gate, config))
    app.include_router(files.routes(service, gate, config))
    app.include_router(v1.routes(service, gate, config))
    app.include_router(operations.routes(service, gate, metrics))
    app.include_router(page.routes())
    app.add_middleware(Observed, metrics=metrics, log=log_line if config.log else None)

    @app.exception_handler(Refusal)
    async def refused(_: Request, error: Refusal) -> JSONResponse:
        headers = {} if error.retry_after is None else {"Retry-After": str(ceil(error.retry_after))}
        return JSONResponse({"error": error.message}, error.status, headers)

    @app.exception_handler(HTTPException)
    async def not_found(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse({"error": "Invalid request"}, 400)

    @app.exception_handler(Exception)
    async def failed(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": "a fault of the server; its log says more"}, 500)

    return app
