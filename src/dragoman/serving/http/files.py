"""Files: one is sent, and its translation can be fetched for a while."""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from pathlib import PurePosixPath
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.types import Message

from dragoman.base.errors import ConfigError, DataError
from dragoman.documents.formats.format import Format
from dragoman.documents.formats.union import EXTENSIONS, format_of
from dragoman.documents.passage import passages_in
from dragoman.serving.config import ServeConfig
from dragoman.serving.detection.languages import known_code
from dragoman.serving.errors import Refusal
from dragoman.serving.http.gate import Gate, Keyed
from dragoman.serving.http.requests import AUTO, ERRORS, MULTIPART, best_of, checked, read_body, while_connected
from dragoman.serving.service import Service, TranslationJob


class KeptFile(NamedTuple):
    """until: by the clock."""

    name: str
    content: bytes
    until: float


class KeptFiles:
    """In memory, bounded: no name that a client chose becomes a path. Safe between threads.

    Whoever has the id of a file, which nobody can guess, may fetch it as often as he likes.
    """

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """most: bytes of all together; the oldest goes first. seconds: how long each is kept."""
        self._most, self._seconds, self._clock = most, seconds, clock
        self._files: OrderedDict[str, KeptFile] = OrderedDict()
        self._lock = Lock()

    def keep(self, name: str, content: bytes) -> str:
        """The id of a file. One that is larger than all may be together is not kept."""
        id = secrets.token_urlsafe(24)
        with self._lock:
            self._files[id] = KeptFile(name, content, self._clock() + self._seconds)
            self._clean()
        return id

    def find(self, id: str) -> KeptFile | None:
        """None where there is none, or none any more."""
        with self._lock:
            self._clean()
            return self._files.get(id)

    def _clean(self) -> None:
        size = sum(len(each.content) for each in self._files.values())
        while self._files:
            first = next(iter(self._files.values()))
            if size <= self._most and first.until > self._clock():
                return
            size -= len(first.content)
            self._files.popitem(last=False)


SUPPORTED = {".txt": "text", **EXTENSIONS}
"""The format by how a file's name ends."""

_LONGEST_NAME = 100
_LOOKED_AT = 50
"""Passages by which a document's language is told."""


class FileFields(Keyed):
    """Form fields sent with the file."""

    source: str = Field(description="Code of the source language, or auto.")
    target: str = Field(description="Code of the target language.")


class TranslatedFile(BaseModel):
    """Where the translation is, for some minutes."""

    translatedFileUrl: str


class NotKept(Refusal):
    """No such file, or none any more."""

    status = 404


_SENT = {
    "type": "object",
    "required": ["file", "source", "target"],
    "properties": {
        "file": {"type": "string", "format": "binary"},
        **FileFields.model_json_schema()["properties"],
    },
}


def routes(service: Service, gate: Gate, config: ServeConfig) -> APIRouter:
    """POST /translate_file and GET /download_file/…"""
    router, limits = APIRouter(tags=["LibreTranslate"]), config.limits
    kept = KeptFiles(limits.kept_bytes, limits.kept_seconds)

    @router.post(
        "/translate_file",
        responses=ERRORS,
        openapi_extra={"requestBody": {"required": True, "content": {MULTIPART: {"schema": _SENT}}}},
    )
    async def translate_file(request: Request) -> TranslatedFile:
        """Translate a document; its format is told by its name. Layout and markup stay."""
        gate.check_header(request)
        sent, name, data = await _read(request, await read_body(request, limits, limits.file_bytes))
        fields = checked(sent, FileFields)
        caller = gate.admit(request, fields.api_key)
        stem, _, ending = name.rpartition(".")
        ending = f".{ending.lower()}"
        if ending not in SUPPORTED:
            raise Refusal(f"Invalid request: file: its name ends in none of {', '.join(SUPPORTED)}")
        format = format_of(SUPPORTED[ending])
        try:
            content = format.decode(data, "the file", "stop")
        except DataError as error:
            raise Refusal(str(error)) from None
        source = known_code(fields.source, service.directions.sources)
        if fields.source == AUTO:
            words = await asyncio.to_thread(_words, format, content)
            source = best_of(service.detector, words, service.directions.sources).language
        target = known_code(fields.target, service.directions.all_targets)
        job = TranslationJob([content], source, target, format, reserve=caller.reserve, seconds=limits.file_seconds)
        (found,) = await while_connected(request, service.translate(job))
        new = f"{stem[:_LONGEST_NAME] or 'file'}.{target}{ending}"
        id = kept.keep(new, format.encode(found.text))
        return TranslatedFile(translatedFileUrl=f"{request.base_url}download_file/{id}/{quote(new)}")

    @router.get("/download_file/{id}/{name}", response_class=Response, responses={404: ERRORS[400]})
    async def download_file(id: str, name: str) -> Response:
        """A translated file. Its id is known to nobody but its owner, so no key is job for."""
        found = kept.find(id)
        if found is None:
            raise NotKept("there is no such file any more: translate it again")
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(found.name)}"}
        return Response(found.content, media_type="application/octet-stream", headers=headers)

    return router


def _words(format: Format[Any], content: Any) -> str:
    """What is translated of a document, or the beginning of it. Raises Refusal."""
    try:
        passages = islice(passages_in(format.parse(content).parts), _LOOKED_AT)
        return " ".join("".join(passage.texts) for passage in passages)
    except (ConfigError, DataError) as error:
        raise Refusal(str(error)) from None


async def _read(request: Request, body: bytes) -> tuple[dict[str, str], str, bytes]:
    """The fields of a form, and the file's name and content. Raises Refusal for what is none."""
    if not request.headers.get("content-type", "").lower().startswith(MULTIPART):
        raise Refusal(f"send a form with a file ({MULTIPART})")

    async def once() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    again = Request(request.scope, once)
    try:
        form = await MultiPartParser(again.headers, again.stream(), max_files=1, max_fields=20).parse()
    except (MultiPartException, KeyError, ValueError) as error:
        raise Refusal(f"the request is no form: {getattr(error, 'message', 'damaged')}") from None
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise Refusal("Invalid request: missing file parameter")
    name = PurePosixPath(file.filename.replace("\\", "/")).name
    fields = {key: value for key, value in form.items() if isinstance(value, str)}
    return fields, "".join(sign for sign in name if sign.isprintable()), await file.read()
