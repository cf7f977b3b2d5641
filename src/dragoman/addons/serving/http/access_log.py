"""`AccessLog`: writes one line of JSON per request."""

import hashlib
import hmac
import json
import secrets
import sys
from contextlib import suppress
from typing import Any, Literal

from starlette.requests import Request
from starlette.types import Scope

from dragoman.addons.serving.access.access import Access
from dragoman.addons.serving.http.gate import origin

_HASH_BYTES = 6


class AccessLog:
    """The log of a server's requests, on stderr.

    By default, clients are named by a salted hash of their address. The salt is random and never stored, so nobody can
    compute the addresses later, and the hashes of two runs of the server cannot be compared.
    """

    def __init__(self, access: Access, clients: Literal["none", "hash", "address"]) -> None:
        self._access, self._clients, self._salt = access, clients, secrets.token_bytes(16)

    def client(self, scope: Scope) -> dict[str, str]:
        """Return the field that names the client: its address, or the first 64 bits of an IPv6 address, or a hash."""
        if self._clients == "none":
            return {}
        network = self._access.sender(*origin(Request(scope))).network
        if self._clients == "address":
            return {"client": network}
        return {"client": hmac.digest(self._salt, network.encode(), hashlib.sha256)[:_HASH_BYTES].hex()}

    def write(self, entry: dict[str, Any]) -> None:
        """Write an entry. An entry that cannot be written is dropped."""
        with suppress(OSError):
            print(json.dumps(entry, ensure_ascii=False), file=sys.stderr, flush=True)
