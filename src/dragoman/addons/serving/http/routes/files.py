"""File routes: a client uploads a document, and downloads its translation within a few minutes."""

import asyncio
from functools import partial
from itertools import islice
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from dragoman.addons.documents.formats.encoding import EncodingError, find_encoding
from dragoman.addons.documents.formats.format import DecodedFile, Format
from dragoman.addons.documents.formats.recognition import check_content
from dragoman.addons.documents.formats.union import EXTENSIONS, WRITTEN_AS, explain_unknown_format, format_of_name
from dragoman.addons.documents.passage import iterate_passages
from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.errors import NotFound, Overloaded, RequestError, TooLarge
from dragoman.addons.serving.http.fields import MULTIPART, query_fields, validate
from dragoman.addons.serving.http.gate import Caller, Gate, KeyFields
from dragoman.addons.serving.http.public_url import PublicUrl
from dragoman.addons.serving.http.requests import (
    ERRORS,
    read_body,
    while_connected,
)
from dragoman.addons.serving.http.routes.uploads import ByteBudget, Upload, parse_upload
from dragoman.addons.serving.http.source_languages import is_auto, source_language
from dragoman.addons.serving.service.service import Service
from dragoman.addons.serving.service.translation_job import TranslationJob
from dragoman.addons.serving.stored_files import open_store
from dragoman.base.errors import ConfigError, DataError, ResourceError

_MAX_NAME_LENGTH = 100
_FORM_BYTES = 65_536
"""Number of bytes that a form may have in addition to its file."""

_DETECTION_PASSAGES = 50
"""The number of passages that are used to detect the language of a document."""


class FileFields(KeyFields):
    """The fields of an uploaded file."""

    source: str = Field(description="Code of the source language, or auto.")
    target: str = Field(description="Code of the target language.")
    encoding: str | None = Field(None, description="Encoding of a text file, such as windows-1252; else what it shows.")


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
    """Return the routes POST /translate_file and GET /download_file/…"""
    router, limits = APIRouter(tags=["LibreTranslate"]), config.limits
    store, public_url, uploads = open_store(config), PublicUrl(config), ByteBudget(limits.upload_bytes)

    @router.post(
        "/translate_file",
        responses=ERRORS,
        openapi_extra={"requestBody": {"required": True, "content": {MULTIPART: {"schema": _UPLOAD_SCHEMA}}}},
    )
    async def translate_file(request: Request) -> TranslatedFile:
        """Translate a document and preserve its layout and markup. The file name extension determines the format."""
        arrival = gate.arrive(request, translates=True)
        with uploads.account() as account:
            too_large = TooLarge(f"a file may have at most {limits.file_bytes:,} bytes (limits.file_bytes): divide it")
            body = await read_body(request, limits, limits.file_bytes + _FORM_BYTES, account.add, too_large)
            upload = await parse_upload(request, body)
            del body
            if len(upload.content) > limits.file_bytes:
                raise too_large
            fields = validate(query_fields(request) | upload.fields, FileFields)
            caller = gate.admit(request, arrival, fields.api_key, translates=True)
            async with while_connected(request):
                id, new_name = await translate(fields, upload, caller)
        return TranslatedFile(translatedFileUrl=f"{public_url.base(request)}download_file/{id}/{quote(new_name)}")

    async def translate(fields: FileFields, upload: Upload, caller: Caller) -> tuple[str, str]:
        """Translate a file, and return the id and the name of the stored translation."""
        format_name = format_of_name(upload.name)
        if format_name is None:
            explain = partial(explain_unknown_format, upload.name, upload.content)
            remedy = await service.prepare(caller.name, explain, is_document=True)
            known = f"supported extensions are {', '.join(EXTENSIONS)}"
            raise RequestError(f"Invalid request: file: {known if remedy is None else f'this is {remedy}'}")
        stem, dot, ending = upload.name.rpartition(".") if "." in upload.name else (upload.name, "", "")
        with service.documents.open(format_name, len(upload.content)) as format:
            decode = partial(_decode, format_name, format, upload, fields.encoding or None)
            file = await service.prepare_file(caller.name, decode)
            target = service.directions.match(fields.target)

            def find_source() -> str:
                text = _first_text(format, file.content) if is_auto(fields.source) else ""
                return source_language(service, fields.source, target, text).code

            source = await service.prepare_file(caller.name, find_source)
            job = TranslationJob(
                [file.content], source, target, format, reserve=caller.reserve, client=caller.name, is_document=True
            )
            (translated,) = await service.translate(await service.resolve(job))
            ending = WRITTEN_AS.get(format_name, ending)
            new_name = f"{stem[:_MAX_NAME_LENGTH] or 'file'}.{target}{dot}{ending.lower()}"

            def store_translation() -> str:
                return store.put(new_name, file.encode(translated.text))

            try:
                return await service.prepare_file(caller.name, store_translation), new_name
            except ResourceError as error:
                raise Overloaded(f"the translated file cannot be stored: {error}") from None

    @router.get("/download_file/{id}/{name}", response_class=Response, responses={404: ERRORS[400]})
    async def download_file(request: Request, id: str, name: str) -> Response:
        """Download a translated file. No key is required, because the id is secret."""
        file = await asyncio.to_thread(store.get, id)
        if file is None:
            raise NotFound("this file has expired: translate it again")
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.name)}"}
        return Response(file.content, media_type="application/octet-stream", headers=headers)

    return router


def _decode(name: str, format: Format[Any], upload: Upload, encoding: str | None) -> DecodedFile[Any]:
    """Decode a file. Raises RequestError for one that is not in its format or encoding."""
    if encoding is None and upload.charset and format.takes_encoding and find_encoding(upload.charset) is not None:
        encoding = upload.charset
    try:
        check_content(upload.content, name, "the file")
        return format.decode(upload.content, "the file", "stop", encoding)
    except EncodingError as error:
        raise RequestError(str(error.with_remedy("the field encoding=ENCODING"))) from None
    except (ConfigError, DataError) as error:
        raise RequestError(str(error)) from None


def _first_text(format: Format[Any], content: Any) -> str:
    """Return the text of a document's first passages. Raises RequestError for a document that cannot be parsed."""
    try:
        passages = islice(iterate_passages(format.parse(content).parts), _DETECTION_PASSAGES)
        return " ".join("".join(passage.texts) for passage in passages)
    except (ConfigError, DataError) as error:
        raise RequestError(str(error)) from None
