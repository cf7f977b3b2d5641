"""The translation page at `/`, and its files."""

from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from dragoman.addons.serving.errors import NotFound
from dragoman.addons.serving.service.service import Service

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    # scripts and styles are loaded from this server only, and text cannot become a script
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # files are revalidated on each use, but sent only if they have changed
    "Cache-Control": "no-cache",
}


class _File(NamedTuple):
    content: bytes
    media_type: str
    etag: str


class PageFiles:
    """The files of a page, and of its folders. All are loaded in advance, so no other file is accessible."""

    def __init__(self, folder: Traversable) -> None:
        self._files = dict(_read_files(folder, ""))

    def respond(self, request: Request, name: str) -> Response:
        """Return the response with a file. name: its path inside the folder. Raises HTTPException for other names."""
        file = self._files.get(name)
        if file is None:
            raise HTTPException(404)
        headers = {**_HEADERS, "ETag": file.etag}
        if request.headers.get("if-none-match") == file.etag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.media_type, headers=headers)


def routes(service: Service) -> APIRouter:
    """Return the routes GET / and /page/PATH. A server that only predicts labels has no page."""
    router, page_files = APIRouter(include_in_schema=False), PageFiles(files("dragoman.addons.serving") / "page")

    @router.get("/")
    async def page(request: Request) -> Response:
        """Return the translation page."""
        if service.is_open and not service.directions.models:
            raise NotFound("this server predicts labels and has no page: use POST /v1/predict, described at /spec")
        return page_files.respond(request, "index.html")

    @router.get("/page/{name:path}")
    async def page_file(request: Request, name: str) -> Response:
        """Return a file of the page."""
        return page_files.respond(request, name)

    return router


def _read_files(folder: Traversable, prefix: str) -> Iterator[tuple[str, _File]]:
    for path in folder.iterdir():
        if path.is_dir():
            yield from _read_files(path, f"{prefix}{path.name}/")
            continue
        media_type = _MEDIA_TYPES.get(path.name[path.name.rfind(".") :])
        if media_type is not None:
            content = path.read_bytes()
            yield prefix + path.name, _File(content, media_type, f'"{sha256(content).hexdigest()[:32]}"')
