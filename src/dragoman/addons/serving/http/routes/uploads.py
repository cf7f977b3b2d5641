"""Uploaded files: their forms are parsed without delaying other requests, and their total size is limited."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import NamedTuple

from fastapi import Request
from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from dragoman.addons.serving.errors import Overloaded, RequestError
from dragoman.addons.serving.http.fields import MULTIPART

_CHUNK_BYTES = 16_384
"""Number of bytes of a form that are parsed at a time. Other requests are processed between two chunks."""


class Upload(NamedTuple):
    """The fields of a form, and the name and the content of its file.

    charset: the encoding in the content type of the file, such as `text/html; charset=iso-8859-1`, or None.
    """

    fields: dict[str, str]
    name: str
    content: bytes
    charset: str | None


class ByteBudget:
    """A limit on the total size of the files that are received and translated at the same time."""

    def __init__(self, capacity: int) -> None:
        self._capacity, self._used = capacity, 0

    @contextmanager
    def account(self) -> Iterator["ByteAccount"]:
        """Return the account of one request. Its bytes are released at the end of the `with` block."""
        account = ByteAccount(self)
        try:
            yield account
        finally:
            self._used -= account.used

    def add(self, count: int) -> None:
        """Add bytes. Raises Overloaded if they exceed the limit."""
        if self._used + count > self._capacity:
            raise Overloaded("too many files are being translated: try again later", retry_after=5)
        self._used += count


class ByteAccount:
    """The bytes of one request."""

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self.used = 0

    def add(self, count: int) -> None:
        """Add received bytes. Raises Overloaded if they exceed the limit of all requests."""
        self._budget.add(count)
        self.used += count


async def parse_upload(request: Request, body: bytes) -> Upload:
    """Parse a form with a file. Raises RequestError for an invalid form."""
    if not request.headers.get("content-type", "").lower().startswith(MULTIPART):
        raise RequestError(f"send a form with a file ({MULTIPART})")

    async def chunks() -> AsyncGenerator[bytes, None]:
        for start in range(0, len(body), _CHUNK_BYTES):
            yield body[start : start + _CHUNK_BYTES]
            await asyncio.sleep(0)

    try:
        form = await MultiPartParser(request.headers, chunks(), max_files=1, max_fields=20).parse()
    except (MultiPartException, KeyError, ValueError) as error:
        raise RequestError(f"the request is not a valid form: {getattr(error, 'message', 'damaged')}") from None
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise RequestError("Invalid request: missing file parameter")
    name = PurePosixPath(file.filename.replace("\\", "/")).name
    fields = {key: value for key, value in form.items() if isinstance(value, str)}
    name = "".join(character for character in name if character.isprintable())
    _, parameters = parse_options_header(file.content_type)
    charset = parameters.get(b"charset", b"").decode("latin-1")
    return Upload(fields, name, await file.read(), charset or None)
