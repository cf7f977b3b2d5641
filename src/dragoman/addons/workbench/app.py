"""The ASGI application of the workbench: the page, the content of views as data and as files, and news of runs."""

import json
import sys
import tempfile
import traceback
from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.http.routes.page import PageFiles
from dragoman.addons.serving.http.site_check import SiteCheck
from dragoman.addons.workbench.computation import Computations, Disconnected
from dragoman.addons.workbench.packing import pack
from dragoman.addons.workbench.run_news import follow_runs
from dragoman.addons.workbench.view_state import MAX_CHARACTERS, VIEWS, parse_view_state
from dragoman.addons.workbench.views.view import ViewContent, ViewState
from dragoman.addons.workbench.workspace import Workspace
from dragoman.base.errors import ConfigError, DragomanError
from dragoman.figures.figure import FORMATS
from dragoman.inference.subject import MAX_TOKENS

_MEDIA_TYPES = {"svg": "image/svg+xml", "png": "image/png", "json": "application/json", "csv": "text/csv"}
_CLIENT_CLOSED_REQUEST = 499
"""Nobody receives this status; nginx logs it in the same case."""


class Workbench:
    """The routes. is_ending: whether the server ends, so that open streams must end, too."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace, self.computations, self.is_ending = workspace, Computations(), False
        self._page = PageFiles(files("dragoman.addons.workbench") / "page")
        self._shared = PageFiles(files("dragoman.addons.serving") / "page")

    async def page(self, request: Request) -> Response:
        """GET /: return the page."""
        return self._page.respond(request, "index.html")

    async def page_file(self, request: Request) -> Response:
        """GET /page/PATH: return a file of the page."""
        return self._page.respond(request, request.path_params["path"])

    async def shared_file(self, request: Request) -> Response:
        """GET /shared/PATH: return a file of the translation page, whose modules the workbench also uses."""
        return self._shared.respond(request, request.path_params["path"])

    async def workspace(self, request: Request) -> Response:
        """GET /workspace: return the views, the models and runs that are open, their checkpoints, and the limits."""
        models = [
            {
                "name": model.name,
                "kind": model.kind.title,
                "abilities": sorted(model.kind.abilities),
                "languages": model.languages(),
            }
            for model in self._workspace.models.values()
        ]
        names = dict.fromkeys([*self._workspace.models, *self._workspace.runs])
        return JSONResponse(
            {
                "views": {name: state.title for name, state in VIEWS.items()},
                "models": models,
                "runs": list(self._workspace.runs),
                "aligners": list(self._workspace.aligners),
                "checkpoints": {name: self._workspace.checkpoints(name) for name in names},
                "limits": {"tokens": MAX_TOKENS, "characters": MAX_CHARACTERS},
            }
        )

    async def content(self, request: Request) -> Response:
        """POST /content: return the content of a view, whose state is the body. figure=NAME selects figures."""
        state = await self._read_state(request)

        def compute() -> bytes:
            content = state.content(self._workspace)
            names = request.query_params.getlist("figure") or list(content.figures)
            return pack(content, state.fragment, [_checked(content, name) for name in names])

        packed = await self.computations.run(request, compute)
        return Response(packed, media_type="application/octet-stream")

    async def file(self, request: Request) -> Response:
        """POST /file?figure=NAME&format=FORMAT: return a figure of a view as the file that `workbench figures`
        writes."""
        state, suffix = await self._read_state(request), request.query_params.get("format", "")
        if suffix not in FORMATS:
            raise ConfigError(f"there is no format {suffix!r}: choose one of {', '.join(FORMATS)}")

        def compute() -> bytes:
            content = state.content(self._workspace)
            name = _checked(content, request.query_params.get("figure", next(iter(content.figures))))
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"{name}.{suffix}"
                content.figures[name].write(path)
                return path.read_bytes()

        return Response(await self.computations.run(request, compute), media_type=_MEDIA_TYPES[suffix])

    async def news(self, request: Request) -> Response:
        """GET /news: stream an event whenever the log of a run has grown (server-sent events)."""

        async def events() -> AsyncIterator[str]:
            async for names in follow_runs(self._workspace.runs, lambda: self.is_ending):
                yield f"data: {json.dumps(names)}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    async def _read_state(self, request: Request) -> ViewState:
        """Return the state in the body. Raises ConfigError, and HTTPException for a body that is too large."""
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > 4 * MAX_CHARACTERS:
                raise HTTPException(413, f"the state of a view is limited to {MAX_CHARACTERS:,} characters")
        return parse_view_state(body.decode("utf-8", "replace"))


def application(workbench: Workbench) -> Starlette:
    """Return the application. Every error is returned as `{"error": …}`."""
    return Starlette(
        routes=[
            Route("/", workbench.page),
            Route("/page/{path:path}", workbench.page_file),
            Route("/shared/{path:path}", workbench.shared_file),
            Route("/workspace", workbench.workspace),
            Route("/content", workbench.content, methods=["POST"]),
            Route("/file", workbench.file, methods=["POST"]),
            Route("/news", workbench.news),
        ],
        middleware=[Middleware(_SiteCheckMiddleware)],
        exception_handlers={
            DragomanError: _respond_error,
            HTTPException: _respond_http_error,
            Disconnected: _respond_disconnected,
            Exception: _respond_bug,
        },
    )


class _SiteCheckMiddleware:
    """Rejects requests that pages of other sites cause. The server has only loopback addresses, and no other names."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._sites = app, SiteCheck(ServeConfig())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._sites.refusal(Request(scope)) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)


def _checked(content: ViewContent, name: str) -> str:
    if name not in content.figures:
        raise ConfigError(f"this view has no figure {name!r}: its figures are {', '.join(content.figures)}")
    return name


async def _respond_error(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400)


async def _respond_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": str(error.detail)}, error.status_code)


async def _respond_disconnected(request: Request, error: Exception) -> Response:
    return Response(status_code=_CLIENT_CLOSED_REQUEST)


async def _respond_bug(request: Request, error: Exception) -> Response:
    print("".join(traceback.format_exception(error)), file=sys.stderr)
    return JSONResponse({"error": "internal error: see the terminal of `dragoman workbench`"}, 500)
