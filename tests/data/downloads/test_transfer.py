"""Downloads continue after interruptions, use other addresses, and never leave a wrong file."""

import hashlib
import random
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import pytest
from corpus_server import CorpusServer, corpus_server

from dragoman.base.errors import DataError, ResourceError
from dragoman.data.downloads import transfer
from dragoman.data.downloads.transfer import download, format_size

CONTENT = random.Random(1).randbytes(300_000)
ADDRESS, PATH = "https://corpora.example/a/text.bin", "/corpora.example/a/text.bin"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[CorpusServer]:
    monkeypatch.setattr(transfer, "_FIRST_DELAY", 0.0)
    with corpus_server() as running:
        monkeypatch.setenv("DRAGOMAN_MIRROR", running.address + "/")
        running.files[PATH] = CONTENT
        yield running


def ranges(server: CorpusServer) -> list[str | None]:
    return [headers.get("range") for _, headers in server.requests]


def test_a_connection_that_breaks_off_is_continued(server: CorpusServer, tmp_path: Path) -> None:
    server.breaks[PATH] = [100_000, 0, 50_000]
    server.statuses[PATH] = [503]
    download([ADDRESS], tmp_path / "file", "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert ranges(server) == [None, None, "bytes=100000-", "bytes=100000-", "bytes=150000-"]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_later_call_continues(server: CorpusServer, tmp_path: Path) -> None:
    server.breaks[PATH] = [200_000, *[0] * 10]
    with pytest.raises(DataError, match="the connection broke off.*200 kB are kept, repeat the command"):
        download([ADDRESS], tmp_path / "file", "file")
    assert not (tmp_path / "file").exists()
    del server.breaks[PATH], server.requests[:]
    download([ADDRESS], tmp_path / "file", "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert ranges(server) == ["bytes=200000-"]


def test_a_file_that_changed_meanwhile_is_downloaded_as_a_whole(server: CorpusServer, tmp_path: Path) -> None:
    server.breaks[PATH] = [200_000, *[0] * 10]
    with pytest.raises(DataError):
        download([ADDRESS], tmp_path / "file", "file")
    del server.breaks[PATH]
    server.files[PATH] = CONTENT[::-1]
    download([ADDRESS], tmp_path / "file", "file")
    assert (tmp_path / "file").read_bytes() == CONTENT[::-1]


def test_servers_without_ranges(server: CorpusServer, tmp_path: Path) -> None:
    server.ranges = False
    server.breaks[PATH] = [200_000]
    download([ADDRESS], tmp_path / "file", "file")
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_other_addresses_are_tried(server: CorpusServer, tmp_path: Path) -> None:
    missing = ["https://corpora.example/b", "https://corpora.example/c"]
    download([*missing, ADDRESS], tmp_path / "file", "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    with pytest.raises(DataError) as raised:
        download(missing, tmp_path / "other", "corpus/file")
    assert str(raised.value) == "corpus/file cannot be downloaded: " + "; ".join(
        f"{server.address}/corpora.example/{name} answers with status 404 (Not Found)" for name in "bc"
    )


def test_wrong_contents_are_not_kept(server: CorpusServer, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has another SHA-256"):
        download([ADDRESS], tmp_path / "file", "file", sha256="0" * 64)
    server.files[PATH] = b"<!DOCTYPE html>\n<html><head><title>Log in</title></head></html>"
    with pytest.raises(DataError, match=r"answers with a web page \(HTML, 'Log in'\) instead of a corpus"):
        download([ADDRESS], tmp_path / "file", "file")
    assert not list(tmp_path.iterdir())
    server.files[PATH] = CONTENT
    download([ADDRESS], tmp_path / "file", "file", sha256=hashlib.sha256(CONTENT).hexdigest())


def test_a_disk_that_is_too_small(server: CorpusServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(10**6, 800_000, 200_000))
    with pytest.raises(ResourceError, match=r"file takes 300 kB, but .* has 200 kB free: free some space"):
        download([ADDRESS], tmp_path / "file", "file")
    assert not list(tmp_path.iterdir())


def test_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_MIRROR", "http://127.0.0.1:1")
    with pytest.raises(DataError, match=r"cannot be reached .*: check the connection, the proxy \(HTTPS_PROXY\)"):
        download([ADDRESS], tmp_path / "file", "file")


def test_proxies_of_the_environment(server: CorpusServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAGOMAN_MIRROR")
    monkeypatch.setenv("http_proxy", server.address)
    address = "http://corpora.example/a/text.bin"
    server.files["/a/text.bin"] = CONTENT
    download([address], tmp_path / "file", "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert [path for path, _ in server.requests] == [address]


def test_sizes() -> None:
    assert [format_size(size) for size in (800, 1_115_394, 25_585_843, 2_500_000_000)] == [
        "1 kB",
        "1.1 MB",
        "25.6 MB",
        "2.5 GB",
    ]
