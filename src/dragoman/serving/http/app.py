"""The server's routes as one application (ASGI)."""

from collections.abc import Awaitable, Callable
from math import ceil

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

import dragoman
from dragoman.serving.config import ServeConfig
from dragoman.serving.detection.detector import Detector
from dragoman.serving.errors import Refusal
from dragoman.serving.http import libretranslate, operations
from dragoman.serving.service import Service

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}


def application(service: Service, detector: Detector, config: ServeConfig) -> FastAPI:
    """All routes. Whatever goes wrong is told as `{"error": …}`."""
    app = FastAPI(
        title="dragoman",
        version=dragoman.__version__,
        description="Machine translation.",
        docs_url=None,
        redoc_url=None,
    )
    app.include_router(libretranslate.routes(service, detector, config))
    app.include_router(operations.routes(service))

    @app.middleware("http")
    async def headers(request: Request, call: Callable[[Request], Awaitable[JSONResponse]]) -> JSONResponse:
        response = await call(request)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

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
