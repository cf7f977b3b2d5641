"""`Gate`: what every route asks before it does anything: what was sent, by whom, and may it be served now."""

from typing import TypeVar

from pydantic import BaseModel, Field
from starlette.requests import Request

from dragoman.serving.access.access import Access, Client
from dragoman.serving.access.keys import KeyRefused
from dragoman.serving.access.quota import Refused
from dragoman.serving.config import LimitsConfig
from dragoman.serving.errors import Forbidden, NoKey, TooMany
from dragoman.serving.http.fields import read_fields


class Keyed(BaseModel):
    """What every request may have."""

    api_key: str = Field("", description="where keys are on; or as the header `Authorization: Bearer …`")


F = TypeVar("F", bound=Keyed)


class Caller:
    """Who asks."""

    def __init__(self, access: Access, client: Client) -> None:
        self._access, self._client = access, client

    def reserve(self, tokens: int, requests: int = 0) -> None:
        """Raises TooMany where the client has had its share; nothing is taken then."""
        found = self._access.reserve(self._client, tokens, requests)
        if isinstance(found, Refused):
            if found.seconds is None:
                raise TooMany(f"a request of {tokens:,} tokens is more than a client may have in a minute")
            raise TooMany(f"too many {found.what} in a minute: try again in {found.seconds} s", found.seconds)


class Gate:
    """Of one server. A request counts as soon as it has come, whatever becomes of it."""

    def __init__(self, access: Access, limits: LimitsConfig) -> None:
        self._access, self._limits = access, limits

    async def enter(self, request: Request, model: type[F]) -> tuple[F, Caller]:
        """The fields of a request, and who sent them.

        Raises NoKey, Forbidden, TooMany, and what `read_fields` raises.
        """
        header = request.headers.get("authorization", "")
        kind, _, sent = header.partition(" ")
        if kind.lower() == "bearer":
            caller = self._caller(request, sent.strip())
            return await read_fields(request, self._limits, model), caller
        fields = await read_fields(request, self._limits, model)
        return fields, self._caller(request, fields.api_key)

    def _caller(self, request: Request, key: str) -> Caller:
        peer = None if request.client is None else request.client.host
        try:
            client = self._access.client(key or None, peer, request.headers.getlist("x-forwarded-for"))
        except KeyRefused as refused:
            request.state.refused = refused.reason
            raise (NoKey if refused.reason == "missing" else Forbidden)(str(refused)) from None
        request.state.key = client.key
        caller = Caller(self._access, client)
        caller.reserve(0, requests=1)
        return caller
