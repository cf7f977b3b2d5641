"""`Gate`: what every route asks before it does anything: what was sent, by whom, and may it be served now."""

from typing import TypeVar

from pydantic import BaseModel, Field
from starlette.requests import Request

from dragoman.serving.access.access import Access, Client
from dragoman.serving.access.keys import KeyRefused
from dragoman.serving.access.quota import QuotaExceeded, Reservation
from dragoman.serving.config import LimitsConfig
from dragoman.serving.errors import Forbidden, NoKey, TooLarge, TooMany
from dragoman.serving.http.requests import read_fields


class Keyed(BaseModel):
    """Field that every request may have."""

    api_key: str = Field(
        "", description="API key, if the server requires one; alternatively the header `Authorization: Bearer …`."
    )


F = TypeVar("F", bound=Keyed)


class Caller:
    """Who asks."""

    def __init__(self, access: Access, client: Client) -> None:
        self._access, self._client = access, client

    def reserve(self, tokens: int, requests: int = 0) -> Reservation:
        """Takes tokens and requests, or raises TooMany where there are none left now, TooLarge where never so many."""
        try:
            return self._access.reserve(self._client, tokens, requests)
        except QuotaExceeded as exceeded:
            resource, seconds = exceeded.resource, exceeded.retry_after
        if seconds is None:
            raise TooLarge(f"{tokens:,} tokens are more than a client may have in a minute: send less at once")
        raise TooMany(f"too many {resource} in a minute: try again in {seconds} s", seconds)


class Gate:
    """Of one server. A request counts as soon as it has come, whatever becomes of it."""

    def __init__(self, access: Access, limits: LimitsConfig) -> None:
        self._access, self._limits = access, limits

    async def enter(self, request: Request, model: type[F]) -> tuple[F, Caller]:
        """The fields of a request, and who sent them.

        Raises NoKey, Forbidden, TooMany, and what `read_fields` raises.
        """
        self.check_header(request)
        fields = await read_fields(request, self._limits, model)
        return fields, self.admit(request, fields.api_key)

    def check_header(self, request: Request) -> None:
        """Whose key in the header is none is refused before anything is read. Raises Forbidden."""
        if (key := _key_of(request)) is not None:
            self._client(request, key)

    def admit(self, request: Request, key: str) -> Caller:
        """Who asks. key: of the fields; one in the header goes before it. Raises NoKey, Forbidden and TooMany."""
        client = self._client(request, _key_of(request) or key)
        request.state.key = client.key
        caller = Caller(self._access, client)
        caller.reserve(0, requests=1)
        return caller

    def _client(self, request: Request, key: str) -> Client:
        peer = None if request.client is None else request.client.host
        try:
            return self._access.client(key or None, peer, request.headers.getlist("x-forwarded-for"))
        except KeyRefused as refused:
            request.state.refused = refused.reason
            raise (NoKey if refused.reason == "missing" else Forbidden)(str(refused)) from None


def _key_of(request: Request) -> str | None:
    """Of the header `Authorization: Bearer …`."""
    kind, _, sent = request.headers.get("authorization", "").partition(" ")
    return sent.strip() if kind.lower() == "bearer" else None
