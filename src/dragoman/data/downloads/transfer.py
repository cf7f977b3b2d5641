"""`download` fetches a file by HTTP: it resumes, follows mirrors, and leaves nothing that looks complete but is not."""

import hashlib
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from dragoman.base.errors import DataError, ResourceError
from dragoman.base.files import unwritable
from dragoman.base.progress import Progress
from dragoman.data.files.recognition import recognise_text

MIRROR = "DRAGOMAN_MIRROR"
"""Environment variable with the address of a mirror, whose files are at MIRROR/HOST/PATH."""

_ATTEMPTS = 5
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 30.0
_RETRIED = frozenset((408, 425, 429, 500, 502, 503, 504))
_HEAD = 4096
_PARTIAL, _VALIDATOR = ".partial", ".partial-validator"


def mirrored(address: str) -> str:
    """Return an address, or its place on the mirror that the environment names."""
    mirror = os.environ.get(MIRROR, "").rstrip("/")
    return f"{mirror}/{address.partition('://')[2]}" if mirror else address


def format_size(size: int) -> str:
    """Return a number of bytes in kB, MB or GB, which have 1,000, 1,000,000 and 1,000,000,000 bytes."""
    for unit, name in ((10**9, "GB"), (10**6, "MB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size / 1000:,.0f} kB"


def fetch_json(address: str, query: dict[str, str]) -> Any:
    """Return the JSON that a service answers with. Raises DataError if it does not."""
    with _client() as client:
        for attempt in range(_ATTEMPTS):
            try:
                response = client.get(mirrored(address), params=query)
            except httpx.HTTPError as error:
                raise _unreachable(address, error) from None
            if response.status_code not in _RETRIED:
                break
            time.sleep(_delay(attempt))
    try:
        return response.raise_for_status().json()
    except (httpx.HTTPStatusError, ValueError):
        raise DataError(
            f"{mirrored(address)} answers with status {response.status_code} and no JSON: try again later, or look for "
            "the corpus in a browser"
        ) from None


def download(addresses: Sequence[str], path: Path, name: str, sha256: str | None = None) -> None:
    """Download a file to `path`, from the first address that has it.

    After an interruption, also one of the process, the part that is there is not downloaded again if the server states
    that the file has not changed. Nothing is downloaded if `path` exists. name: name of the file for the display of
    progress. sha256: of the file, if it is known. Raises DataError if no address has the file or it is another one, and
    ResourceError if the disk is full.
    """
    if path.exists():
        return
    failures = []
    with _client() as client:
        for address in addresses:
            try:
                _fetch(client, address, path, name)
            except _Failure as failure:
                failures.append(str(failure))
                continue
            _check(path, address, sha256)
            return
    raise DataError(f"{name} cannot be downloaded: {'; '.join(failures)}")


class _Failure(Exception):
    """An address that cannot be downloaded from."""


def _client() -> httpx.Client:
    """Return a client, which uses the proxies of the environment. Texts are sent as they are, so that ranges fit."""
    headers = {"User-Agent": "dragoman", "Accept-Encoding": "identity"}
    return httpx.Client(follow_redirects=True, timeout=httpx.Timeout(60, connect=20), headers=headers)


def _delay(attempt: int) -> float:
    return min(_LONGEST_DELAY, _FIRST_DELAY * 2.0**attempt)


def _fetch(client: httpx.Client, address: str, path: Path, name: str) -> None:
    """Download from one address. Raises _Failure if it does not have the file."""
    partial = path.with_name(path.name + _PARTIAL)
    url, attempt, reason = mirrored(address), 0, ""
    while attempt < _ATTEMPTS:
        size = _size(partial)
        try:
            with client.stream("GET", url, headers=_range_headers(partial)) as response:
                if response.is_success:
                    _store(response, partial, name)
                    break
                if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE and size:
                    partial.unlink()  # the file has become shorter
                    continue
                reason = f"{url} answers with status {response.status_code} ({response.reason_phrase})"
                if response.status_code not in _RETRIED:
                    raise _Failure(reason)
        except httpx.ConnectError as error:
            raise _Failure(str(_unreachable(address, error))) from None
        except httpx.TransportError as error:
            reason = f"{url}: the connection broke off ({error or type(error).__name__})"
        except httpx.HTTPError as error:
            raise _Failure(f"{url}: {error}") from None
        # A connection that breaks off again and again still downloads the file, as long as it delivers something.
        attempt = 0 if _size(partial) > size else attempt + 1
        time.sleep(_delay(attempt))
    else:
        kept = f"; {format_size(_size(partial))} are kept, repeat the command to continue" if _size(partial) else ""
        raise _Failure(f"{reason}{kept}")
    os.replace(partial, path)
    _validator(partial).unlink(missing_ok=True)


def _unreachable(address: str, error: Exception) -> DataError:
    return DataError(
        f"{mirrored(address)} cannot be reached ({error or type(error).__name__}): check the connection, the proxy "
        f"(HTTPS_PROXY), or a mirror ({MIRROR})"
    )


def _validator(partial: Path) -> Path:
    return partial.with_name(partial.name.removesuffix(_PARTIAL) + _VALIDATOR)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _range_headers(partial: Path) -> dict[str, str]:
    """Return the headers that ask for the missing part, provided that the file has not changed (RFC 9110, 13.1.5)."""
    if not (_size(partial) and _validator(partial).exists()):
        return {}
    validator = _validator(partial).read_text(encoding="utf-8")
    return {"Range": f"bytes={_size(partial)}-", "If-Range": validator}


def _store(response: httpx.Response, partial: Path, name: str) -> None:
    """Append the body of a response to the partial file, or replace the file if the response is the whole body."""
    start = _size(partial)
    appends = response.status_code == httpx.codes.PARTIAL_CONTENT
    if appends and not response.headers.get("content-range", "").startswith(f"bytes {start}-"):
        raise httpx.RemoteProtocolError("another range than requested")
    start = start if appends else 0
    encoded = "content-encoding" in response.headers
    length = None if encoded else response.headers.get("content-length")
    rest = int(length) if length is not None and length.isdigit() else None
    free = shutil.disk_usage(partial.parent).free
    if rest is not None and rest > free:
        raise ResourceError(
            f"{name} takes {format_size(rest)}, but {partial.parent.parent} has {format_size(free)} free: free some "
            "space, or choose another --out"
        )
    total = None if rest is None else (start + rest) // 1000
    with _writing(partial), Progress(f"Downloading {name}", "kB", total, done=start // 1000) as progress:
        if not appends:
            _write_validator(response, partial, encoded)
        with partial.open("ab" if appends else "wb") as file:
            for chunk in response.iter_bytes():
                file.write(chunk)
                start += len(chunk)
                progress.update(start // 1000)


def _write_validator(response: httpx.Response, partial: Path, encoded: bool) -> None:
    """Record what identifies the version of the file: a strong entity tag, or a date. An encoded body has none."""
    tag = response.headers.get("etag", "")
    validator = tag if tag and not tag.startswith("W/") else response.headers.get("last-modified")
    if validator and not encoded and response.headers.get("accept-ranges") != "none":
        _validator(partial).write_text(validator, encoding="utf-8")
    else:
        _validator(partial).unlink(missing_ok=True)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Raise ResourceError if the file cannot be written."""
    try:
        yield
    except OSError as error:
        raise unwritable(path, error) from None


def _check(path: Path, address: str, sha256: str | None) -> None:
    """Delete a download and raise DataError if it is a web page or an error message, or has another checksum."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest() if sha256 else None
    found = recognise_text(head, "any", len(head) < _HEAD)
    if found is None and digest == sha256:
        return
    path.unlink()
    if found is not None:
        raise DataError(
            f"{mirrored(address)} answers with {found.name} instead of a corpus: open the address in a browser; a "
            "proxy or a login may be in between"
        )
    raise DataError(
        f"{mirrored(address)} has another SHA-256 ({digest}) than expected ({sha256}), so it was not kept: it changed, "
        "or was changed on the way. Try again, or report it"
    )
