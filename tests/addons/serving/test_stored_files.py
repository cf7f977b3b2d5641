"""Translated files are stored in memory, or in a folder that several servers share, within limits of size and time."""

import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_server import asked, served, shouting
from test_files import sent

from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.stored_files import FileStore, FolderFiles, MemoryFiles, open_store
from dragoman.base.errors import ConfigError, ResourceError

Make = Callable[..., Any]


@pytest.fixture(params=["memory", "folder"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Return a function that makes a store with these limits and this clock."""
    if request.param == "memory":
        return MemoryFiles
    return lambda *limits, clock: FolderFiles(tmp_path / "new" / "files", *limits, clock=clock)


def test_a_store_is_bounded_in_time_and_size(make: Make) -> None:
    now = 1000.0
    kept: FileStore = make(1000, 10, clock=lambda: now)
    first = kept.put("a\n/../é.txt", b"x" * 600 + b"\n\0")
    now += 1
    second = kept.put("b", b"y" * 300)
    assert len({first, second}) == 2 and len(first) >= 32
    assert kept.get(first) == ("a\n/../é.txt", b"x" * 600 + b"\n\0") and kept.get(second) is not None
    now += 1
    third = kept.put("c", b"z" * 200)
    assert kept.get(first) is None and kept.get(second) is not None, "the oldest is deleted"
    now += 9
    assert kept.get(second) is None and kept.get(third) is not None
    now += 1
    assert kept.get(third) is None
    assert kept.get(kept.put("d", b"x" * 1001)) is None
    for id in ("", "..", "../x", first + "/..", "x" * 32, "\0" * 32, first + "\n"):
        assert kept.get(id) is None


def test_a_store_is_used_by_several_threads(make: Make) -> None:
    now = 1000.0
    kept: FileStore = make(100, 10, clock=lambda: now)
    errors: list[Exception] = []

    def work(seed: int) -> None:
        draw = random.Random(seed)
        try:
            for _ in range(30):
                found = kept.get(kept.put("e", b"x" * draw.randint(0, 60)))
                assert found is None or found.name == "e"
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_other_files_of_the_folder_are_kept(tmp_path: Path) -> None:
    others = [tmp_path / "thesis.tex", tmp_path / "a.translated", tmp_path / f"{'x' * 31}.translated"]
    for path in others:
        path.write_text("mine")
        os.utime(path, (0, 0))
    kept = FolderFiles(tmp_path, 100, 10)
    damaged = tmp_path / f"{'y' * 32}.translated"
    damaged.write_bytes(b"[]\nx")
    assert kept.get("y" * 32) is None
    os.utime(damaged, (0, 0))
    id = kept.put("a", b"x")
    assert all(path.exists() for path in others) and not damaged.exists()
    assert (tmp_path / f"{id}.translated").stat().st_size < 100


def test_two_servers_share_a_folder(tmp_path: Path) -> None:
    """A file that one of them has translated can be downloaded from the other one, under the public URL."""
    settings: dict[str, Any] = {"files": str(tmp_path), "public_url": "https://example.org/mt/"}
    with served({"en-de": shouting}, **settings) as one, served({"en-de": shouting}, **settings) as other:
        answer = asked(one, lambda client: sent(client, "a.txt", b"a dog"))
        url = answer.json()["translatedFileUrl"]
        assert url.startswith("https://example.org/mt/download_file/")
        path = url.removeprefix("https://example.org/mt")
        for service in (one, other):
            assert asked(service, lambda client: client.get(path)).content == b"A DOG"


def test_a_folder_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "folder"):
        with pytest.raises(ConfigError, match=r"files: the folder .* cannot be used"):
            open_store(ServeConfig.model_validate({"files": folder}))

    def full(*_: object) -> None:
        raise ResourceError("cannot write x: No space left on device")

    with served({"en-de": shouting}, files=str(tmp_path / "folder")) as service:
        monkeypatch.setattr("dragoman.addons.serving.stored_files.atomic_write", full)
        answer = asked(service, lambda client: sent(client, "a.txt", b"a dog"))
    assert answer.status_code == 503 and "No space left" in answer.json()["error"]
