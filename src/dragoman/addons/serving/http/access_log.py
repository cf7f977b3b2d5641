"""`AccessLog`: writes one line of JSON per request."""

import hashlib
import hmac
import json
import logging
import secrets
import sys
from contextlib import suppress
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Any, Literal

from starlette.requests import Request
from starlette.types import Scope

from dragoman.addons.serving.access.access import Access
from dragoman.addons.serving.http.gate import origin
from dragoman.base.errors import ConfigError

_HASH_BYTES = 6


class AccessLog:
    """The log of a server's requests, on stderr or in a file.

    By default, clients are named by a salted hash of their address. The salt is random and never stored, so nobody can
    compute the addresses later, and the hashes of two runs of the server cannot be compared.
    """

    def __init__(self, access: Access, clients: Literal["none", "hash", "address"], file: Path | None = None) -> None:
        """file: the lines are appended to it; None: to stderr. Raises ConfigError if the file cannot be opened."""
        self._access, self._clients, self._salt = access, clients, secrets.token_bytes(16)
        self._file: WatchedFileHandler | None = None
        if file is not None:
            try:
                self._file = WatchedFileHandler(file, encoding="utf-8")
            except OSError as error:
                raise ConfigError(f"cannot write log_file {file}: {error.strerror}") from None
            # by default, a full disk would be reported on stderr, with a traceback for each request
            self._file.handleError = lambda record: None  # type: ignore[method-assign]

    def client(self, scope: Scope) -> dict[str, str]:
        """Return the field that names the client: its address, or the first 64 bits of an IPv6 address, or a hash."""
        if self._clients == "none":
            return {}
        network = self._access.sender(*origin(Request(scope))).network
        if self._clients == "address":
            return {"client": network}
        return {"client": hmac.digest(self._salt, network.encode(), hashlib.sha256)[:_HASH_BYTES].hex()}

    def write(self, entry: dict[str, Any]) -> None:
        """Write an entry. An entry that cannot be written is dropped.

        The file is opened again if it was renamed or removed, as logrotate does, so that no entry is lost.
        """
        line = json.dumps(entry, ensure_ascii=False)
        with suppress(OSError):
            if self._file is None:
                print(line, file=sys.stderr, flush=True)
            else:
                self._file.handle(logging.LogRecord("access", logging.INFO, "", 0, line, None, None))
