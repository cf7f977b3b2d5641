"""`Gate`: reads a request, identifies its client, and enforces the client's quotas."""

from typing import TypeVar

from pydantic import BaseModel, Field
from starlette.requests import Request

from dragoman.serving.access.access import Access, Client
from dragoman.serving.access.keys import InvalidKey
from dragoman.serving.access.metrics_access import MetricsAccess
from dragoman.serving.access.quota import QuotaExceeded, Reservation
from dragoman.serving.config import LimitsConfig
from dragoman.serving.errors import Forbidden, MissingKey, TooLarge, TooManyRequests
from dragoman.serving.http.requests import read_fields


class KeyFields(BaseModel):
    """Fields that every request accepts."""

    api_key: str = Field(
        "", description="API key, if the server requires one. The header `Authorization: Bearer …` is also accepted."
    )


Fields = TypeVar("Fields", bound=KeyFields)


class Caller:
    """The identified client of a request."""

    def __init__(self, access: Access, client: Client) -> None:
        self._access, self._client = access, client

    def reserve(self, tokens: int, requests: int = 0) -> Reservation:
        """Reserve tokens and requests of the client's quota.

        Raises TooManyRequests if they exceed the remaining quota, and TooLarge if they exceed the whole quota.
        """
        try:
            return self._access.reserve(self._client, tokens, requests)
        except QuotaExceeded as exceeded:
            resource, seconds = exceeded.resource, exceeded.retry_after
        if seconds is None:
            raise TooLarge(f"{tokens:,} tokens are more than a client may use per minute: send less at once")
        raise TooManyRequests(f"too many {resource} per minute: try again in {seconds} s", seconds)


class Gate:
    """Admits requests. Each request counts against the client's quota when it arrives, regardless of its outcome."""

    def __init__(self, access: Access, limits: LimitsConfig, metrics: MetricsAccess) -> None:
        self._access, self._limits, self._metrics = access, limits, metrics

    async def enter(self, request: Request, fields: type[Fields]) -> tuple[Fields, Caller]:
        """Read the fields of a request, and admit its client.

        Raises MissingKey, Forbidden, TooManyRequests, and the errors of `read_fields`.
        """
        self.check_header(request)
        parsed = await read_fields(request, self._limits, fields)
        return parsed, self.admit(request, parsed.api_key)

    def check_header(self, request: Request) -> None:
        """Reject a request with an invalid key in its header before its body is read. Raises Forbidden."""
        if (key := _header_key(request)) is not None:
            self._identify(request, key)

    def admit(self, request: Request, key: str) -> Caller:
        """Identify the client and count the request. key: the key in the fields; a key in the header has precedence.

        Raises MissingKey, Forbidden and TooManyRequests.
        """
        client = self._identify(request, _header_key(request) or key)
        request.state.key = client.key
        caller = Caller(self._access, client)
        caller.reserve(0, requests=1)
        return caller

    def check_metrics(self, request: Request) -> None:
        """Raise MissingKey or Forbidden unless the client may read the metrics."""
        token, peer = _header_key(request), None if request.client is None else request.client.host
        if not self._metrics.allows(token, peer, request.headers.getlist("x-forwarded-for")):
            request.state.refused = "metrics"
            raise (Forbidden if token else MissingKey)(
                "the metrics require the token in access.metrics_token, as `Authorization: Bearer …`, or an address in "
                "access.metrics_networks"
            )

    def _identify(self, request: Request, key: str) -> Client:
        peer = None if request.client is None else request.client.host
        try:
            return self._access.client(key or None, peer, request.headers.getlist("x-forwarded-for"))
        except InvalidKey as refused:
            request.state.refused = refused.reason
            raise (MissingKey if refused.reason == "missing" else Forbidden)(str(refused)) from None


def _header_key(request: Request) -> str | None:
    """Return the key in the header `Authorization: Bearer …`, or None if there is none."""
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if kind.lower() == "bearer" else None
