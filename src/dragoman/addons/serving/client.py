"""`Client` and `AsyncClient`: clients of a dragoman server that retry failed requests."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from types import TracebackType
from typing import Any, TypeVar, overload

import httpx

from dragoman.base.errors import DragomanError

T = TypeVar("T")

Input = str | Mapping[str, Any]
"""A text whose labels are predicted: a string, or a mapping as in `Client.predict`."""

RETRIED_STATUSES = frozenset((429, 502, 503, 504))
"""Status codes after which the same request may succeed later."""


@dataclass(frozen=True)
class Retry:
    """Exponential backoff with jitter, so that many clients do not retry together. `Retry-After` takes precedence.

    attempts: maximum number of attempts; first: first delay in seconds; longest: maximum delay in seconds; draw: random
    number generator for the jitter. If `Retry-After` exceeds the maximum delay, the request is not repeated.
    """

    attempts: int = 5
    first: float = 0.5
    longest: float = 60.0
    draw: random.Random = field(default_factory=random.Random, compare=False)

    def wait(self, attempt: int, status: int | None, headers: Mapping[str, str]) -> float | None:
        """Return the number of seconds before the next attempt, or None if the request must not be repeated.

        attempt: number of previous attempts; status, headers: those of the last response; status is None without a
        response.
        """
        if attempt >= self.attempts or (status is not None and status not in RETRIED_STATUSES):
            return None
        requested = _retry_after(headers.get("retry-after"))
        if requested is not None and requested > self.longest:
            return None
        backoff = min(self.longest, self.first * 2.0 ** (attempt - 1))
        return max(requested or 0.0, backoff * (0.5 + self.draw.random() / 2))


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
    """A server rejected a request or cannot be reached. status: HTTP status code, None without a response."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class _Requests:
    """Base class of both clients, which builds requests and parses responses."""

    def __init__(self, url: str, key: str | None, retry: Retry | None) -> None:
        self._url, self._key, self._retry = url.rstrip("/"), key, retry or Retry()

    def _body(self, fields: dict[str, Any]) -> dict[str, Any]:
        payload = {name: value for name, value in fields.items() if value is not None}
        return payload if self._key is None else {**payload, "api_key": self._key}

    def _parse_response(self, response: Any) -> Any:
        """Return the content of a response. Raises ServerError unless the response is successful and JSON."""
        try:
            content = response.json()
        except ValueError:
            content = None
        if response.status_code != 200:
            message = content.get("error") if isinstance(content, dict) else None
            if isinstance(message, dict):  # the form of OpenAI's API
                message = message.get("message")
            raise ServerError(f"{self._url}: {message or f'status {response.status_code}'}", response.status_code)
        if content is None:
            raise ServerError(f"{self._url} does not respond like a dragoman server", response.status_code)
        return content

    def _connection_error(self, error: Exception) -> ServerError:
        return ServerError(f"{self._url} cannot be reached ({error or type(error).__name__}): is the server running?")


def _texts(content: Any) -> list[str]:
    return [each["text"] for each in content["translations"]]


class Client(_Requests):
    """A synchronous, thread-safe client.

    url: the server's address, such as http://127.0.0.1:5000; key: an API key, if the server requires one; timeout:
    seconds to wait for a response; retry: policy for a server that is busy or cannot be reached.

    >>> from dragoman import Client
    >>> with Client("http://127.0.0.1:5000") as client:
    ...     client.translate(["The dog sleeps."], target="de")
    ['...']
    """

    def __init__(self, url: str, key: str | None = None, timeout: float = 30.0, retry: Retry | None = None) -> None:
        """Create the client; it connects at the first request."""
        super().__init__(url, key, retry)
        self._client = httpx.Client(base_url=self._url, timeout=timeout)

    @overload
    def translate(self, text: str, target: str, source: str = ..., **settings: Any) -> str: ...
    @overload
    def translate(self, text: Sequence[str], target: str, source: str = ..., **settings: Any) -> list[str]: ...
    def translate(
        self, text: str | Sequence[str], target: str, source: str = "auto", **settings: Any
    ) -> str | list[str]:
        """Translate a text, or several texts in the same language.

        target, source: language codes; "auto" detects the source language. settings: further fields of /v1/translate,
        such as `format`, `beam` or `glossary`. Raises ServerError if the server rejects the request or cannot be
        reached.
        """
        translations = _texts(self.translate_fully(text, target, source, **settings))
        return translations[0] if isinstance(text, str) else translations

    def translate_fully(
        self, text: str | Sequence[str], target: str, source: str = "auto", **settings: Any
    ) -> dict[str, Any]:
        """Translate, and return the full response, with sentences, hypotheses, scores and alignments."""
        payload = text if isinstance(text, str) else list(text)
        response = self._request(
            "POST", "/v1/translate", {"text": payload, "target": target, "source": source, **settings}
        )
        return response  # type: ignore[no-any-return]

    @overload
    def predict(self, text: Input, model: str | None = ..., task: str | None = ...) -> dict[str, Any]: ...
    @overload
    def predict(
        self, text: list[Any] | tuple[Any, ...], model: str | None = ..., task: str | None = ...
    ) -> list[dict[str, Any]]: ...
    def predict(
        self, text: Input | list[Any] | tuple[Any, ...], model: str | None = None, task: str | None = None
    ) -> Any:
        """Predict the labels of a text, or of several texts in order, with a prediction model of the server.

        text: a string; a mapping with the keys `text` and `pair`, `words`, or `question` and `context`; or a list of
        them. model: its name; None: the only prediction model. task: the name of one of its tasks; None: the only one.
        Each prediction is a mapping as `dragoman predict` writes it; a text of a list that has no prediction has only
        the key `error`. Raises ServerError as `translate`.
        """
        is_single = isinstance(text, str | Mapping)
        payload = text if is_single else list(text)
        response = self._request("POST", "/v1/predict", {"text": payload, "model": model, "task": task})
        return response["predictions"][0] if is_single else response["predictions"]

    def models(self) -> list[dict[str, Any]]:
        """Return the models of the server, each with `name`, `kind`, and its languages or labels."""
        return (self._request("GET", "/v1/models", None))["models"]  # type: ignore[no-any-return]

    def detect(self, text: str) -> list[dict[str, Any]]:
        """Return the possible languages of a text, most probable first, with `language` and `confidence` (0 to 100)."""
        return self._request("POST", "/detect", {"q": text})  # type: ignore[no-any-return]

    def languages(self) -> list[dict[str, Any]]:
        """Return the source languages of the server, each with `code`, `name` and `targets`."""
        return self._request("GET", "/languages", None)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _request(self, method: str, route: str, fields: dict[str, Any] | None) -> Any:
        attempt = 0
        while True:
            attempt += 1
            response, failure = None, None
            try:
                response = self._client.request(method, route, json=None if fields is None else self._body(fields))
            except httpx.TransportError as error:
                failure = self._connection_error(error)
            wait = self._retry.wait(attempt, *_status(response))
            if wait is None:
                if failure is not None:
                    raise failure
                return self._parse_response(response)
            time.sleep(wait)


class AsyncClient(_Requests):
    """The asyncio version of `Client`, which can send any number of requests concurrently.

    >>> from dragoman import AsyncClient
    >>> import asyncio
    >>> async def translate(texts):
    ...     async with AsyncClient("http://127.0.0.1:5000") as client:
    ...         return await client.translate(texts, target="de")
    >>> len(asyncio.run(translate(["The dog sleeps.", "The cat sleeps."])))
    2
    """

    def __init__(self, url: str, key: str | None = None, timeout: float = 30.0, retry: Retry | None = None) -> None:
        """See `Client`."""
        super().__init__(url, key, retry)
        self._client = httpx.AsyncClient(base_url=self._url, timeout=timeout)

    @overload
    async def translate(self, text: str, target: str, source: str = ..., **settings: Any) -> str: ...
    @overload
    async def translate(self, text: Sequence[str], target: str, source: str = ..., **settings: Any) -> list[str]: ...
    async def translate(
        self, text: str | Sequence[str], target: str, source: str = "auto", **settings: Any
    ) -> str | list[str]:
        """See `Client.translate`."""
        translations = _texts(await self.translate_fully(text, target, source, **settings))
        return translations[0] if isinstance(text, str) else translations

    async def translate_fully(
        self, text: str | Sequence[str], target: str, source: str = "auto", **settings: Any
    ) -> dict[str, Any]:
        """See `Client.translate_fully`."""
        payload = text if isinstance(text, str) else list(text)
        fields = {"text": payload, "target": target, "source": source, **settings}
        return await self._request("POST", "/v1/translate", fields)  # type: ignore[no-any-return]

    @overload
    async def predict(self, text: Input, model: str | None = ..., task: str | None = ...) -> dict[str, Any]: ...
    @overload
    async def predict(self, text: list[Any] | tuple[Any, ...], model: str | None = ...) -> list[dict[str, Any]]: ...
    async def predict(
        self, text: Input | list[Any] | tuple[Any, ...], model: str | None = None, task: str | None = None
    ) -> Any:
        """See `Client.predict`."""
        is_single = isinstance(text, str | Mapping)
        payload = text if is_single else list(text)
        response = await self._request("POST", "/v1/predict", {"text": payload, "model": model, "task": task})
        return response["predictions"][0] if is_single else response["predictions"]

    async def models(self) -> list[dict[str, Any]]:
        """See `Client.models`."""
        return (await self._request("GET", "/v1/models", None))["models"]  # type: ignore[no-any-return]

    async def detect(self, text: str) -> list[dict[str, Any]]:
        """See `Client.detect`."""
        return await self._request("POST", "/detect", {"q": text})  # type: ignore[no-any-return]

    async def languages(self) -> list[dict[str, Any]]:
        """See `Client.languages`."""
        return await self._request("GET", "/languages", None)  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _request(self, method: str, route: str, fields: dict[str, Any] | None) -> Any:
        attempt = 0
        while True:
            attempt += 1
            response, failure = None, None
            try:
                response = await self._client.request(
                    method, route, json=None if fields is None else self._body(fields)
                )
            except httpx.TransportError as error:
                failure = self._connection_error(error)
            wait = self._retry.wait(attempt, *_status(response))
            if wait is None:
                if failure is not None:
                    raise failure
                return self._parse_response(response)
            await asyncio.sleep(wait)


def _status(response: Any) -> tuple[int | None, Any]:
    return (None, {}) if response is None else (response.status_code, response.headers)


def translate_lines(
    lines: Iterable[str],
    client: Client,
    target: str,
    source: str = "auto",
    *,
    lines_per_request: int = 32,
    parallel: int = 4,
    **settings: Any,
) -> Iterator[str]:
    """Yield the translation of each line in order. Blank lines stay blank. Lines are read as needed.

    lines_per_request: number of lines per request; parallel: number of concurrent requests; settings: as in
    `Client.translate`. Raises ServerError after yielding all lines before the failed request.
    """

    def translate(batch: list[str]) -> list[str]:
        return client.translate(batch, target, source, **settings)

    for text in _map_batches(translate, lines, lines_per_request, parallel):
        yield " ".join(text.split("\n"))


def predict_lines(
    lines: Iterable[str],
    client: Client,
    model: str | None = None,
    *,
    lines_per_request: int = 32,
    parallel: int = 4,
    task: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the prediction for each line in order. Lines are read as needed.

    The arguments are those of `Client.predict` and `translate_lines`. Raises ServerError after yielding the predictions
    for all lines before the failed request.
    """

    def predict(batch: list[str]) -> list[dict[str, Any]]:
        return client.predict(batch, model, task)

    return _map_batches(predict, lines, lines_per_request, parallel)


def _map_batches(
    function: Callable[[list[str]], list[T]], lines: Iterable[str], lines_per_request: int, parallel: int
) -> Iterator[T]:
    """Yield the results of a function for batches of lines, in order. Some batches are processed concurrently."""
    lines = iter(lines)
    pending: deque[Future[list[T]]] = deque()
    with ThreadPoolExecutor(parallel) as pool:
        try:
            while True:
                while len(pending) < parallel and (batch := list(islice(lines, lines_per_request))):
                    pending.append(pool.submit(function, batch))
                if not pending:
                    return
                yield from pending.popleft().result()
        finally:
            for each in pending:
                each.cancel()
