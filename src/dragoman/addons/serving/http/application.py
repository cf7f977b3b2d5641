"""`Application`: the ASGI application of the server."""

import asyncio
import re
from collections.abc import Callable, Iterable
from functools import partial
from math import ceil
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.addons.serving.access.access import Access
from dragoman.addons.serving.access.metrics_access import MetricsAccess
from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.errors import InternalError, Overloaded, RequestError
from dragoman.addons.serving.http.access_log import AccessLog
from dragoman.addons.serving.http.exchange import Exchange
from dragoman.addons.serving.http.gate import Gate
from dragoman.addons.serving.http.metrics import Metrics
from dragoman.addons.serving.http.openai_form import openai_error, uses_openai_form
from dragoman.addons.serving.http.routes import (
    completions,
    files,
    libretranslate,
    operations,
    page,
    predictions,
    scores,
    v1,
)
from dragoman.addons.serving.http.site_check import SiteCheck
from dragoman.addons.serving.service.service import Service
from dragoman.checkpoint.meta import library_versions

_SLASHES = re.compile("/{2,}")
_CONTENT: TypeAdapter[Any] = TypeAdapter(Any)
"""Writes models of pydantic, and lists of them, as JSON."""


class Application:
    """The ASGI application. Every error is returned as `{"error": …}`, or in the form of OpenAI on its routes.

    FastAPI declares the routes and describes them in the OpenAPI document. Requests are passed to the functions of the
    routes directly, because these read and check their requests themselves.
    """

    def __init__(self, service: Service, access: Access, config: ServeConfig, metrics: Metrics) -> None:
        """Raises ConfigError if the log, suggestions or files cannot be stored, or the metrics token cannot be read."""
        self._service, self._metrics = service, metrics
        self._log = AccessLog(access, config.log_clients, config.log_file) if config.log else None
        self._sites = SiteCheck(config)
        gate = Gate(access, config.limits, MetricsAccess(config.access))
        self._api = FastAPI(
            title="dragoman",
            version=library_versions()["dragoman"],
            description="Machine translation, prediction of labels, and completion of texts.",
            docs_url=None,
            redoc_url=None,
        )
        for router in (
            libretranslate.routes(service, gate, config),
            v1.routes(service, gate, config),
            predictions.routes(service, gate, config),
            scores.routes(service, gate, config),
            completions.routes(service, gate, config),
            files.routes(service, gate, config),
            operations.routes(service, gate, metrics, self.openapi),
            page.routes(service),
        ):
            self._api.router.routes.extend(router.routes)
        self._routes = RouteTable(self._api.routes)
        self._answer_allowed: ASGIApp = self._answer
        if config.access.allowed_origins:
            self._answer_allowed = CORSMiddleware(
                self._answer,
                allow_origins=config.access.allowed_origins,
                allow_methods=("GET", "POST"),
                allow_headers=("authorization", "content-type"),
                expose_headers=("retry-after", "content-disposition"),
            )

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        return self._api.openapi()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. If uvicorn cancels it during shutdown, it is answered with status 503."""
        if scope["type"] != "http":
            await self._api(scope, receive, send)
            return
        exchange = Exchange(scope, send)
        try:
            answer = self._sites.refusal(Request(scope)) or self._answer_allowed
            await answer(scope, receive, exchange.send)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if exchange.has_started or not self._service.is_shutting_down or task is None:
                raise
            task.uncancel()
            error = Overloaded("the server is shutting down: send the request again", retry_after=5)
            await _error_response(Request(scope), error)(scope, receive, exchange.send)
        except Exception as bug:
            response = _error_response(Request(scope), InternalError(bug))
            if exchange.has_started:
                raise
            await response(scope, receive, exchange.send)
        finally:
            exchange.record(self._metrics, self._log)

    async def refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for which there are too many connections."""
        exchange = Exchange(scope, send)
        error = Overloaded("too many connections: try again later", retry_after=1)
        try:
            await _error_response(Request(scope), error)(scope, receive, exchange.send)
        finally:
            exchange.record(self._metrics, self._log)

    def note_rejection(self, status: int) -> None:
        """Count the answer to input that is no valid request."""
        self._metrics.record_request("none", status, 0.0)
        self._metrics.record_failure(RequestError.reason)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with the function of its route."""
        request = Request(scope, receive)
        try:
            endpoint = self._routes.find(scope)
            content = await endpoint(request, **scope["path_params"])
            response = content if isinstance(content, Response) else _json_response(content)
        except (RequestError, HTTPException) as error:
            response = _error_response(request, error)
        except Exception as bug:
            response = _error_response(request, InternalError(bug))
        await response(scope, receive, send)


class RouteTable:
    """The functions that answer requests, by path and method.

    Repeated slashes and slashes at the end of a path are ignored, because clients join a base URL with or without a
    slash at the end. HEAD, which monitors send, is answered like GET.
    """

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        """routes: each answers one or several methods."""
        self._fixed: dict[str, dict[str, Route]] = {}
        self._patterns: dict[re.Pattern[str], dict[str, Route]] = {}
        for route in routes:
            assert isinstance(route, Route)
            if route.param_convertors:
                by_method = self._patterns.setdefault(route.path_regex, {})
            else:
                by_method = self._fixed.setdefault(route.path, {})
            by_method.update(dict.fromkeys(route.methods or (), route))

    def find(self, scope: Scope) -> Callable[..., Any]:
        """Return the function for a request, and enter its route and its `path_params` into the scope.

        Raises HTTPException for an unknown path, and for a method that the path does not support. OPTIONS is answered
        with the methods.
        """
        path = _plain_path(scope)
        by_method, scope["path_params"] = self._fixed.get(path), {}
        for pattern, others in self._patterns.items() if by_method is None else ():
            if found := pattern.match(path):
                by_method, scope["path_params"] = others, found.groupdict()
        if by_method is None:
            raise HTTPException(404)
        method = scope["method"]
        if (route := by_method.get("GET" if method == "HEAD" else method)) is not None:
            scope["route"] = route
            return route.endpoint
        scope["route"] = next(iter(by_method.values()))
        methods = {*by_method, "OPTIONS"} | ({"HEAD"} if "GET" in by_method else set())
        allow = {"Allow": ", ".join(sorted(methods))}
        if method == "OPTIONS":
            return partial(_options, Response(status_code=204, headers=allow))
        raise HTTPException(405, headers=allow)


def _plain_path(scope: Scope) -> str:
    """Return the path of a request without repeated slashes and slashes at its end."""
    return _SLASHES.sub("/", scope["path"].removeprefix(scope.get("root_path", ""))).rstrip("/") or "/"


async def _options(response: Response, request: Request) -> Response:
    return response


def _json_response(content: Any) -> Response:
    return Response(_CONTENT.dump_json(content), media_type="application/json")


def _error_response(request: Request, error: RequestError | HTTPException) -> JSONResponse:
    is_openai = uses_openai_form(_plain_path(request.scope))
    if isinstance(error, HTTPException):
        status, message = error.status_code, str(error.detail)
        content = openai_error(message, status, None) if is_openai else {"error": message}
        return JSONResponse(content, status, error.headers)
    request.state.failure = error.reason
    if isinstance(error, InternalError):
        request.state.error_id = error.id
    headers = {} if error.retry_after is None else {"Retry-After": str(ceil(error.retry_after))}
    content = openai_error(error.message, error.status, error.field) if is_openai else {"error": error.message}
    return JSONResponse(content, error.status, headers)
