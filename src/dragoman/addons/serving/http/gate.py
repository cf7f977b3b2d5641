"""`Gate`: reads a request, identifies its client, and enforces the client's quotas."""

from typing import NamedTuple, TypeVar

from pydantic import BaseModel, Field
from starlette.requests import Request

from dragoman.addons.serving.access.access import Access, Client
from dragoman.addons.serving.access.keys import InvalidKey
from dragoman.addons.serving.access.metrics_access import MetricsAccess
from dragoman.addons.serving.access.quota import QuotaExceeded, Reservation
from dragoman.addons.serving.config import LimitsConfig
from dragoman.addons.serving.errors import Forbidden, MissingKey, TooManyRequests
from dragoman.addons.serving.http.requests import read_fields


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
        self._reservations: list[Reservation] = []

    @property
    def name(self) -> str:
        """The name of the client's account, which is the id of its key or its network."""
        return self._client.account.name

    @property
    def key(self) -> str | None:
        """The id of the client's key; None if the server requires no keys."""
        return self._client.key

    @property
    def key_name(self) -> str | None:
        """The name of the client's key; None if the server requires no keys."""
        return self._client.key_name

    @property
    def tokens(self) -> int:
        """The source tokens of the request that were charged to the client so far."""
        return sum(reservation.amount.tokens for reservation in self._reservations)

    def reserve(self, tokens: int, requests: int = 0) -> Reservation:
        """Reserve tokens and requests of the client's quota. Raises TooManyRequests if they exceed what remains of it.

        More tokens than the whole quota of a minute are granted to a client that has not used any of its quota. Its
        further requests are then rejected until the quota has refilled.
        """
        try:
            reservation = self._access.reserve(self._client, tokens, requests)
        except QuotaExceeded as exceeded:
            seconds = exceeded.retry_after
            raise TooManyRequests(
                f"too many {exceeded.resource} per minute: try again in {seconds} s", retry_after=seconds
            ) from None
        self._reservations.append(reservation)
        return reservation

    def check_tokens(self) -> None:
        """Raise TooManyRequests if the client may not translate even a single token now."""
        self.reserve(1).cancel()


class Arrival(NamedTuple):
    """A request that was counted before its body was read.

    caller: the client; None if its key is in the body. reservation: the request in the quota of the client's address,
    if its key is in the body.
    """

    caller: Caller | None
    reservation: Reservation | None


class Gate:
    """Admits requests. Each request counts against the client's quota when it arrives, regardless of its outcome.

    Keys in the header, and the quotas of clients without a key, are checked before the body is read. If the key is in
    the body, the quota of the client's address is checked first, so that a client cannot try many keys.
    """

    def __init__(self, access: Access, limits: LimitsConfig, metrics: MetricsAccess) -> None:
        self._access, self._limits, self._metrics = access, limits, metrics

    async def enter(self, request: Request, fields: type[Fields], translates: bool = False) -> tuple[Fields, Caller]:
        """Read the fields of a request, and admit its client. translates: as in `arrive`.

        Raises MissingKey, Forbidden, TooManyRequests, and the errors of `read_fields`.
        """
        arrival = self.arrive(request, translates)
        parsed = await read_fields(request, self._limits, fields)
        return parsed, self.admit(request, arrival, parsed.api_key)

    def arrive(self, request: Request, translates: bool = False) -> Arrival:
        """Count a request before its body is read.

        translates: whether the request needs tokens; it is then rejected if none are left. Raises Forbidden for an
        invalid key in the header, and TooManyRequests.
        """
        key = _header_key(request)
        if self._access.needs_keys and key is None:
            return Arrival(None, self._sender(request).reserve(0, requests=1))
        try:
            client = self._identify(request, key or "")
        except Forbidden:
            self._sender(request).reserve(0, requests=1)
            raise
        return Arrival(self._count(request, client, translates), None)

    def admit(self, request: Request, arrival: Arrival, key: str, translates: bool = False) -> Caller:
        """Identify the client after the body has been read, unless its key was in the header. key: the key in the body.

        Raises MissingKey, Forbidden and TooManyRequests.
        """
        if arrival.caller is not None:
            return arrival.caller
        caller = self._count(request, self._identify(request, key), translates)
        if arrival.reservation is not None:
            arrival.reservation.cancel()
        return caller

    def check_key(self, request: Request) -> None:
        """Admit a request that needs no key and counts against no quota, as clients of LibreTranslate expect.

        Raises Forbidden for an invalid key in the header, so that a client can check its key.
        """
        if self._access.needs_keys and (key := _header_key(request)) is not None:
            self._identify(request, key)

    def _count(self, request: Request, client: Client, translates: bool) -> Caller:
        request.state.caller = caller = Caller(self._access, client)
        caller.reserve(0, requests=1)
        if translates:
            caller.check_tokens()
        return caller

    def check_metrics(self, request: Request) -> None:
        """Raise MissingKey or Forbidden unless the client may read the metrics."""
        token = _header_key(request)
        if not self._metrics.allows(token, *origin(request)):
            request.state.refused = "metrics"
            raise (Forbidden if token else MissingKey)(
                "the metrics require the token in access.metrics_token, as `Authorization: Bearer …`, or an address in "
                "access.metrics_networks"
            )

    def _sender(self, request: Request) -> Caller:
        return Caller(self._access, self._access.sender(*origin(request)))

    def _identify(self, request: Request, key: str) -> Client:
        try:
            return self._access.client(key or None, *origin(request))
        except InvalidKey as refused:
            request.state.refused = refused.reason
            raise (MissingKey if refused.reason == "missing" else Forbidden)(str(refused)) from None


def origin(request: Request) -> tuple[str | None, list[str], bool]:
    """Return the peer's address, the X-Forwarded-For headers, and whether a proxy has passed the request on."""
    peer = None if request.client is None else request.client.host
    is_proxied = any(name in _PROXY_HEADERS or name.startswith(_PROXY_PREFIXES) for name in request.headers)
    return peer, request.headers.getlist("x-forwarded-for"), is_proxied


_PROXY_HEADERS = frozenset(
    "forwarded forwarded-for via cdn-loop client-ip true-client-ip x-client-ip x-cluster-client-ip x-remote-ip "
    "x-remote-addr x-proxyuser-ip".split()
)
_PROXY_PREFIXES = tuple(
    "x-forwarded x-real- x-original- x-envoy- x-amzn- x-amz-cf- x-arr- x-azure- x-appengine- cf- fastly-".split()
)
"""Headers that proxies and the networks of providers add, and the first letters of further ones."""


def _header_key(request: Request) -> str | None:
    """Return the key in the header `Authorization: Bearer KEY`; None without the header or with an empty key.

    Clients whose field for the key is empty send the header with an empty key.
    """
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    return (key.strip() or None) if kind.lower() == "bearer" else None
