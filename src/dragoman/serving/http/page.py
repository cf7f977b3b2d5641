"""The translation page at `/`, and its files."""

from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    # scripts and styles come from this server only, and no text can become a script
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # revalidated each time, but sent again only if the file has changed
    "Cache-Control": "no-cache",
}


class _File(NamedTuple):
    content: bytes
    kind: str
    tag: str


def routes() -> APIRouter:
    """GET / and /page/NAME. The files are read once, so no address can lead to any other file."""
    router, known = APIRouter(include_in_schema=False), _read()

    @router.get("/")
    async def page(request: Request) -> Response:
        """The translation page."""
        return _answer(request, known["index.html"])

    @router.get("/page/{name}")
    async def part(request: Request, name: str) -> Response:
        """A file of the page."""
        if name not in known:
            raise HTTPException(404)
        return _answer(request, known[name])

    return router


def _read() -> dict[str, _File]:
    found = {}
    for path in (files("dragoman.serving") / "page").iterdir():
        kind = _KINDS.get(path.name[path.name.rfind(".") :])
        if kind is not None:
            content = path.read_bytes()
            found[path.name] = _File(content, kind, f'"{sha256(content).hexdigest()[:32]}"')
    return found


def _answer(request: Request, file: _File) -> Response:
    headers = {**_HEADERS, "ETag": file.tag}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.kind, headers=headers)
