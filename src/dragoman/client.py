"""`Client` and `AsyncClient`: a translation server, asked from Python."""

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

AGAIN = frozenset((429, 502, 503, 504))
"""Statuses of a server that may answer later."""


@dataclass(frozen=True)
class Retry:
    """Doubling waits with a random part, so that many clients do not come back together; a server's word goes first.

    attempts: tries in all; first: seconds of the first wait; longest: seconds of any wait. A server that asks for more
    than the longest is not asked again.
    """

    attempts: int = 5
    first: float = 0.5
    longest: float = 60.0
    draw: random.Random = field(default_factory=random.Random, compare=False)

    def wait(self, attempt: int, status: int | None, headers: Mapping[str, str]) -> float | None:
        """Seconds before the next try; None where there is none.

        attempt: how many there were; status: None where no answer came.
        """
        if attempt >= self.attempts or (status is not None and status not in AGAIN):
            return None
        asked = _retry_after(headers.get("retry-after"))
        if asked is not None and asked > self.longest:
            return None
        backed_off = min(self.longest, self.first * 2.0 ** (attempt - 1))
        return max(asked or 0.0, backed_off * (0.5 + self.draw.random() / 2))


def _retry_after(value: str | None) -> float | None:
    """Seconds, of a number or a date (RFC 9110, section 10.2.3)."""
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
    """What a server refused, or that it could not be reached. status: None where no answer came."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class _Requests:
    """What both clients send, and how they read answers."""

    def __init__(self, url: str, key: str | None, timeout: float, retry: Retry | None) -> None:
        self._httpx: Any = import_optional("httpx", "client")
        self._url, self._key, self._retry = url.rstrip("/"), key, retry or Retry()
        self._options = {"base_url": self._url, "timeout": timeout}

    def _body(self, fields: dict[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in fields.items() if value is not None}
        return given if self._key is None else {**given, "api_key": self._key}

    def _answer(self, answer: Any) -> Any:
        """Raises ServerError where it is none."""
        try:
            content = answer.json()
        except ValueError:
            content = None
        if answer.status_code != 200:
            told = content.get("error") if isinstance(content, dict) else None
            raise ServerError(f"{self._url}: {told or f'status {answer.status_code}'}", answer.status_code)
        if content is None:
            raise ServerError(f"{self._url} does not answer as a translation server does", answer.status_code)
        return content

    def _lost(self, error: Exception) -> ServerError:
        return ServerError(f"{self._url} cannot be reached ({error or type(error).__name__}): is the server running?")


def _translated(content: Any) -> list[str]:
    return [each["text"] for each in content["translations"]]


class Client(_Requests):
    """A server, asked one thing at a time. Safe between threads.

    url: such as http://127.0.0.1:5000; key: where the server wants one; timeout: seconds that an answer may take;
    retry: what is done about a server that is busy or cannot be reached.
    """

    def __init__(self, url: str, key: str | None = None, timeout: float = 30.0, retry: Retry | None = None) -> None:
        """Raises ConfigError where the package httpx is missing."""
        super().__init__(url, key, timeout, retry)
        self._client = self._httpx.Client(**self._options)

    @overload
    def translate(self, text: str, target: str, source: str = ..., **settings: Any) -> str: ...
    @overload
    def translate(self, text: Sequence[str], target: str, source: str = ..., **settings: Any) -> list[str]: ...
    def translate(
        self, text: str | Sequence[str], target: str, source: str = "auto", **settings: Any
    ) -> str | list[str]:
        """A text, or several of one language. settings: fields of /v1/translate, such as `format`, `beam`, `glossary`.

        Raises ServerError where the server refuses or cannot be reached.
        """
        found = _translated(self.translate_fully(text, target, source, **settings))
        return found[0] if isinstance(text, str) else found

    def translate_fully(
        self, text: str | Sequence[str], target: str, source: str = "auto", **settings: Any
    ) -> dict[str, Any]:
        """All that /v1/translate tells: sentences, hypotheses with scores, alignments. Otherwise like `translate`."""
        given = text if isinstance(text, str) else list(text)
        answer = self._ask("POST", "/v1/translate", {"text": given, "target": target, "source": source, **settings})
        return answer  # type: ignore[no-any-return]

    def detect(self, text: str) -> list[dict[str, Any]]:
        """Languages of a text with confidences from 0 to 100, the likeliest first."""
        return self._ask("POST", "/detect", {"q": text})  # type: ignore[no-any-return]

    def languages(self) -> list[dict[str, Any]]:
        """What the server translates: `code`, `name` and `targets` of each language."""
        return self._ask("GET", "/languages", None)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close its connections."""
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
            wait = self._retry.wait(attempt, *_of(answer))
            if wait is None:
                if lost is not None:
                    raise lost
                return self._answer(answer)
            time.sleep(wait)


class AsyncClient(_Requests):
    """The same in asyncio: any number of requests at a time."""

    def __init__(self, url: str, key: str | None = None, timeout: float = 30.0, retry: Retry | None = None) -> None:
        """As of `Client`."""
        super().__init__(url, key, timeout, retry)
        self._client = self._httpx.AsyncClient(**self._options)

    @overload
    async def translate(self, text: str, target: str, source: str = ..., **settings: Any) -> str: ...
    @overload
    async def translate(self, text: Sequence[str], target: str, source: str = ..., **settings: Any) -> list[str]: ...
    async def translate(
        self, text: str | Sequence[str], target: str, source: str = "auto", **settings: Any
    ) -> str | list[str]:
        """As `Client.translate`."""
        found = _translated(await self.translate_fully(text, target, source, **settings))
        return found[0] if isinstance(text, str) else found

    async def translate_fully(
        self, text: str | Sequence[str], target: str, source: str = "auto", **settings: Any
    ) -> dict[str, Any]:
        """As `Client.translate_fully`."""
        given = text if isinstance(text, str) else list(text)
        fields = {"text": given, "target": target, "source": source, **settings}
        return await self._ask("POST", "/v1/translate", fields)  # type: ignore[no-any-return]

    async def detect(self, text: str) -> list[dict[str, Any]]:
        """As `Client.detect`."""
        return await self._ask("POST", "/detect", {"q": text})  # type: ignore[no-any-return]

    async def languages(self) -> list[dict[str, Any]]:
        """As `Client.languages`."""
        return await self._ask("GET", "/languages", None)  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Close its connections."""
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
            wait = self._retry.wait(attempt, *_of(answer))
            if wait is None:
                if lost is not None:
                    raise lost
                return self._answer(answer)
            await asyncio.sleep(wait)


def _of(answer: Any) -> tuple[int | None, Any]:
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
    """A translation a line, in order; a blank line stays blank. Lines are read as there is room for them.

    at_once: lines of a request; parallel: requests that are under way; settings: as `Client.translate` takes them.
    Raises ServerError once all lines before were given.
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
