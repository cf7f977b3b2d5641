"""`Client` and `AsyncClient`: clients of a dragoman server that retry failed requests."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from types import TracebackType
from typing import Any, overload

from dragoman.base.errors import DragomanError
from dragoman.base.packages import import_optional

RETRIED_STATUSES = frozenset((429, 502, 503, 504))
"""Status codes after which the same request may succeed later."""


@dataclass(frozen=True)
class Retry:
    """Exponential backoff with jitter, so that many clients do not retry together; `Retry-After` takes precedence.

    attempts: the total number of attempts; first: the first delay, in seconds; longest: the longest delay. If a server
    requests a longer one, there is no further attempt.
    """

    attempts: int = 5
    first: float = 0.5
    longest: float = 60.0
    draw: random.Random = field(default_factory=random.Random, compare=False)

    def wait(self, attempt: int, status: int | None, headers: Mapping[str, str]) -> float | None:
        """Return the seconds before the next attempt, or None if there is none.

        attempt: the number of attempts so far; status: None if there was no answer.
        """
        if attempt >= self.attempts or (status is not None and status not in RETRIED_STATUSES):
            return None
        asked = _retry_after(headers.get("retry-after"))
        if asked is not None and asked > self.longest:
            return None
        backed_off = min(self.longest, self.first * 2.0 ** (attempt - 1))
        return max(asked or 0.0, backed_off * (0.5 + self.draw.random() / 2))


def _retry_after(value: str | None) -> float | None:
    """Parse `Retry-After`, a number of seconds or a date (RFC 9110, section 10.2.3)."""
    if value is None:
        return None
    if value.strip().isdigit():
        return float(value)
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())


class ServerError(DragomanError):
    """A request that a server refused, or a server that cannot be reached. status: None if there was no answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class _Requests:
    """Builds requests and interprets answers, for both clients."""

    def __init__(self, url: str, key: str | None, timeout: float, retry: Retry | None) -> None:
        self._httpx: Any = import_optional("httpx", "client")
        self._url, self._key, self._retry = url.rstrip("/"), key, retry or Retry()
        self._options = {"base_url": self._url, "timeout": timeout}

    def _body(self, fields: dict[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in fields.items() if value is not None}
        return given if self._key is None else {**given, "api_key": self._key}

    def _answer(self, answer: Any) -> Any:
        """Return the content of an answer. Raises ServerError unless it is a successful answer in JSON."""
        try:
            content = answer.json()
        except ValueError:
            content = None
        if answer.status_code != 200:
            message = content.get("error") if isinstance(content, dict) else None
            raise ServerError(f"{self._url}: {message or f'status {answer.status_code}'}", answer.status_code)
        if content is None:
            raise ServerError(f"{self._url} does not answer like a translation server", answer.status_code)
        return content

    def _lost(self, error: Exception) -> ServerError:
        return ServerError(f"{self._url} cannot be reached ({error or type(error).__name__}): is the server running?")


def _translated(content: Any) -> list[str]:
    return [each["text"] for each in content["translations"]]


class Client(_Requests):
    """A synchronous client. Safe for several threads.

    url: the server's address, such as http://127.0.0.1:5000; key: an API key, if the server requires one; timeout:
    seconds to wait for an answer; retry: what to do if the server is busy or cannot be reached.
    """

    def __init__(self, url: str, key: str | None = None, timeout: float = 30.0, retry: Retry | None = None) -> None:
        """Raises ConfigError if the package httpx is not installed."""
        super().__init__(url, key, timeout, retry)
        self._client = self._httpx.Client(**self._options)

    @overload
    def translate(self, text: str, target: str, source: str = ..., **settings: Any) -> str: ...
    @overload
    def translate(self, text: Sequence[str], target: str, source: str = ..., **settings: Any) -> list[str]: ...
    def translate(
        self, text: str | Sequence[str], target: str, source: str = "auto", **settings: Any
    ) -> str | list[str]:
        """Translate one or several texts in one language.

        settings: further fields of /v1/translate, such as `format`, `beam` or `glossary`. Raises ServerError if the
        server refuses the request or cannot be reached.
        """
        found = _translated(self.translate_fully(text, target, source, **settings))
        return found[0] if isinstance(text, str) else found

    def translate_fully(
        self, text: str | Sequence[str], target: str, source: str = "auto", **settings: Any
    ) -> dict[str, Any]:
        """Like `translate`, but return the full answer of /v1/translate: sentences, hypotheses, scores, alignments."""
        given = text if isinstance(text, str) else list(text)
        answer = self._ask("POST", "/v1/translate", {"text": given, "target": target, "source": source, **settings})
        return answer  # type: ignore[no-any-return]

    def detect(self, text: str) -> list[dict[str, Any]]:
        """Detect the language of a text: `language` and `confidence` (0 to 100), the most probable first."""
        return self._ask("POST", "/detect", {"q": text})  # type: ignore[no-any-return]

    def languages(self) -> list[dict[str, Any]]:
        """Return the source languages of the server, each with `code`, `name` and `targets`."""
        return self._ask("GET", "/languages", None)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _ask(self, method: str, route: str, fields: dict[str, Any] | None) -> Any:
        attempt = 0
        while True:
            attempt += 1
            answer, lost = None, None
            try:
                answer = self._client.request(method, route, json=None if fields is None else self._body(fields))
            except self._httpx.TransportError as error:
                lost = self._lost(error)
            wait = self._retry.wait(attempt, *_status(answer))
            if wait is None:
                if lost is not None:
                    raise lost
                return self._answer(answer)
            time.sleep(wait)


class AsyncClient(_Requests):
    """The asyncio version of `Client`; any number of requests can be in progress at a time."""

    def __init__(self, url: str, key: str | None = None, timeout: float = 30.0, retry: Retry | None = None) -> None:
        """See `Client`."""
        super().__init__(url, key, timeout, retry)
        self._client = self._httpx.AsyncClient(**self._options)

    @overload
    async def translate(self, text: str, target: str, source: str = ..., **settings: Any) -> str: ...
    @overload
    async def translate(self, text: Sequence[str], target: str, source: str = ..., **settings: Any) -> list[str]: ...
    async def translate(
        self, text: str | Sequence[str], target: str, source: str = "auto", **settings: Any
    ) -> str | list[str]:
        """See `Client.translate`."""
        found = _translated(await self.translate_fully(text, target, source, **settings))
        return found[0] if isinstance(text, str) else found

    async def translate_fully(
        self, text: str | Sequence[str], target: str, source: str = "auto", **settings: Any
    ) -> dict[str, Any]:
        """See `Client.translate_fully`."""
        given = text if isinstance(text, str) else list(text)
        fields = {"text": given, "target": target, "source": source, **settings}
        return await self._ask("POST", "/v1/translate", fields)  # type: ignore[no-any-return]

    async def detect(self, text: str) -> list[dict[str, Any]]:
        """See `Client.detect`."""
        return await self._ask("POST", "/detect", {"q": text})  # type: ignore[no-any-return]

    async def languages(self) -> list[dict[str, Any]]:
        """See `Client.languages`."""
        return await self._ask("GET", "/languages", None)  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def _ask(self, method: str, route: str, fields: dict[str, Any] | None) -> Any:
        attempt = 0
        while True:
            attempt += 1
            answer, lost = None, None
            try:
                answer = await self._client.request(method, route, json=None if fields is None else self._body(fields))
            except self._httpx.TransportError as error:
                lost = self._lost(error)
            wait = self._retry.wait(attempt, *_status(answer))
            if wait is None:
                if lost is not None:
                    raise lost
                return self._answer(answer)
            await asyncio.sleep(wait)


def _status(answer: Any) -> tuple[int | None, Any]:
    return (None, {}) if answer is None else (answer.status_code, answer.headers)


def translate_lines(
    lines: Iterable[str],
    client: Client,
    target: str,
    source: str = "auto",
    at_once: int = 32,
    parallel: int = 4,
    **settings: Any,
) -> Iterator[str]:
    """Yield the translation of each line in order; a blank line stays blank. Lines are read as needed.

    at_once: lines per request; parallel: the number of concurrent requests; settings: as in `Client.translate`. Raises
    ServerError after yielding all lines before the failed request.
    """

    def translated(some: list[str]) -> list[str]:
        return client.translate(some, target, source, **settings)

    lines = iter(lines)
    waiting: deque[Future[list[str]]] = deque()
    with ThreadPoolExecutor(parallel) as pool:
        try:
            while True:
                while len(waiting) < parallel and (some := list(islice(lines, at_once))):
                    waiting.append(pool.submit(translated, some))
                if not waiting:
                    return
                for text in waiting.popleft().result():
                    yield " ".join(text.split("\n"))
        finally:
            for each in waiting:
                each.cancel()
