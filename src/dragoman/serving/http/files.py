"""File routes: a client uploads a document, and downloads its translation within a few minutes."""

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
from dragoman.serving.errors import NotFound, Refusal
from dragoman.serving.http.gate import Gate, KeyFields
from dragoman.serving.http.requests import (
    AUTO,
    ERRORS,
    MULTIPART,
    detect_language,
    read_body,
    validate,
    while_connected,
)
from dragoman.serving.service import Service, TranslationJob

SUPPORTED = {".txt": "text", **EXTENSIONS}
"""The format of a file by its extension."""

_LONGEST_NAME = 100
_DETECTION_PASSAGES = 50
"""The number of passages from which a document's language is detected."""


class StoredFile(NamedTuple):
    """A translated file. expires: by the store's clock, in seconds."""

    name: str
    content: bytes
    expires: float


class FileStore:
    """Files in memory, bounded in bytes; names that clients choose never become paths. Safe for several threads.

    Anyone who has the id of a file, which cannot be guessed, can download it any number of times.
    """

    def __init__(self, capacity: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """capacity: bytes of all files; the oldest is deleted first. seconds: how long each is stored."""
        self._capacity, self._seconds, self._clock = capacity, seconds, clock
        self._files: OrderedDict[str, StoredFile] = OrderedDict()
        self._lock = Lock()

    def put(self, name: str, content: bytes) -> str:
        """Store a file and return its id. A file that exceeds the capacity is not stored."""
        id = secrets.token_urlsafe(24)
        with self._lock:
            self._files[id] = StoredFile(name, content, self._clock() + self._seconds)
            self._clean()
        return id

    def get(self, id: str) -> StoredFile | None:
        """Return a file, or None if the id is unknown or the file has expired."""
        with self._lock:
            self._clean()
            return self._files.get(id)

    def _clean(self) -> None:
        size = sum(len(each.content) for each in self._files.values())
        while self._files:
            oldest = next(iter(self._files.values()))
            if size <= self._capacity and oldest.expires > self._clock():
                return
            size -= len(oldest.content)
            self._files.popitem(last=False)


class FileFields(KeyFields):
    """Fields that accompany a file."""

    source: str = Field(description="Code of the source language, or auto.")
    target: str = Field(description="Code of the target language.")


class TranslatedFile(BaseModel):
    """The address of the translation, valid for a few minutes."""

    translatedFileUrl: str


_UPLOAD_SCHEMA = {
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
    store = FileStore(limits.kept_bytes, limits.kept_seconds)

    @router.post(
        "/translate_file",
        responses=ERRORS,
        openapi_extra={"requestBody": {"required": True, "content": {MULTIPART: {"schema": _UPLOAD_SCHEMA}}}},
    )
    async def translate_file(request: Request) -> TranslatedFile:
        """Translate a document, whose file name extension indicates its format. Layout and markup are kept."""
        gate.check_header(request)
        values, name, data = await _read_upload(request, await read_body(request, limits, limits.file_bytes))
        fields = validate(values, FileFields)
        caller = gate.admit(request, fields.api_key)
        stem, _, extension = name.rpartition(".")
        extension = f".{extension.lower()}"
        if extension not in SUPPORTED:
            raise Refusal(f"Invalid request: file: the name must end in one of {', '.join(SUPPORTED)}")
        format = format_of(SUPPORTED[extension])
        try:
            content = format.decode(data, "the file", "stop")
        except DataError as error:
            raise Refusal(str(error)) from None
        source = known_code(fields.source, service.directions.sources)
        if fields.source == AUTO:
            text = await asyncio.to_thread(_first_text, format, content)
            source = detect_language(service.detector, text, service.directions.sources).language
        target = known_code(fields.target, service.directions.all_targets)
        job = TranslationJob([content], source, target, format, reserve=caller.reserve, seconds=limits.file_seconds)
        (translated,) = await while_connected(request, service.translate(job))
        new_name = f"{stem[:_LONGEST_NAME] or 'file'}.{target}{extension}"
        id = store.put(new_name, format.encode(translated.text))
        return TranslatedFile(translatedFileUrl=f"{request.base_url}download_file/{id}/{quote(new_name)}")

    @router.get("/download_file/{id}/{name}", response_class=Response, responses={404: ERRORS[400]})
    async def download_file(id: str, name: str) -> Response:
        """Download a translated file. Only its owner knows its id, so no key is required."""
        file = store.get(id)
        if file is None:
            raise NotFound("this file has expired: translate it again")
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.name)}"}
        return Response(file.content, media_type="application/octet-stream", headers=headers)

    return router


def _first_text(format: Format[Any], content: Any) -> str:
    """Return the text of a document's first passages. Raises Refusal for a document that cannot be read."""
    try:
        passages = islice(passages_in(format.parse(content).parts), _DETECTION_PASSAGES)
        return " ".join("".join(passage.texts) for passage in passages)
    except (ConfigError, DataError) as error:
        raise Refusal(str(error)) from None


async def _read_upload(request: Request, body: bytes) -> tuple[dict[str, str], str, bytes]:
    """Return the fields of a form, and the name and content of its file. Raises Refusal for an invalid form."""
    if not request.headers.get("content-type", "").lower().startswith(MULTIPART):
        raise Refusal(f"send a form with a file ({MULTIPART})")

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    replayed = Request(request.scope, receive)
    try:
        form = await MultiPartParser(replayed.headers, replayed.stream(), max_files=1, max_fields=20).parse()
    except (MultiPartException, KeyError, ValueError) as error:
        raise Refusal(f"the request is not a valid form: {getattr(error, 'message', 'damaged')}") from None
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise Refusal("Invalid request: missing file parameter")
    name = PurePosixPath(file.filename.replace("\\", "/")).name
    fields = {key: value for key, value in form.items() if isinstance(value, str)}
    return fields, "".join(sign for sign in name if sign.isprintable()), await file.read()
