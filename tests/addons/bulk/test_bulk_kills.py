"""Bulk translation on a Ray cluster of this machine: actors and the command itself are killed, and nothing is lost."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import zstandard
from bulk_shards import texts, write_shards
from tiny_model import write_tiny_model
from waiting import PATIENCE, wait_until

from dragoman.addons.bulk.cluster import join_cluster
from dragoman.addons.bulk.translate_shards import translate_shards
from dragoman.base.errors import ResourceError
from dragoman.inference.translation.files.translate_file import translate_file
from dragoman.inference.translation.translator import Translator

SEARCH: dict[str, Any] = {"beam": 1, "search": {"maximum_length": 40}}
HOW: dict[str, Any] = {**SEARCH, "batch_size": 1, "engine": "torch", "threads": 1, "quiet": True}
ACTOR = "ray::MapWorker(MapBatches(WindowTranslator))"


def processes(name: str) -> list[int]:
    """The processes whose command line starts with a string."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().replace(b"\0", b" ").startswith(name.encode()):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def children(process: int) -> set[int]:
    """All descendants of a process."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {process}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {process}


def listening() -> Iterator[tuple[str, str]]:
    """Inode and local address, in little-endian hexadecimal, of each listening socket."""
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A":
                yield words[9], words[1].partition(":")[0]


def links(process: int) -> Iterator[str]:
    """The open files of a process."""
    for path in Path(f"/proc/{process}/fd").glob("*"):
        try:
            yield os.readlink(path)
        except OSError:
            continue


class Dying:
    """An actor whose process ends with its first window."""

    def __init__(self, job: object) -> None:
        pass

    def __call__(self, windows: object) -> object:
        os._exit(1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    before = children(os.getpid())
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RAY_worker_niceness", "0")  # otherwise its workers wait for those of the tests
        with join_cluster("local") as ray:
            yield ray
    wait_until(lambda: not children(os.getpid()) - before, "processes of Ray's survive", interval=0.1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bulk") / "model"
    write_tiny_model(folder)
    return folder


def test_no_statistics_dashboard_or_open_port(cluster: Any) -> None:
    """No usage statistics, no dashboard, and no port that another machine could reach."""
    ours = children(os.getpid())
    commands = {process: Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0") for process in ours}
    (board,) = [process for process, words in commands.items() if any(b"dashboard.py" in word for word in words)]
    assert b"--disable-frontend" in commands[board]
    assert b"RAY_USAGE_STATS_ENABLED=0" in Path(f"/proc/{board}/environ").read_bytes().split(b"\0")
    ours.add(os.getpid())
    sockets = {f"socket:[{inode}]": address for inode, address in listening()}
    ports = [sockets[link] for process in ours for link in links(process) if link in sockets]
    assert len(ports) > 3
    assert all(address.endswith("0100007F") for address in ports), ports


@pytest.mark.slow
def test_a_cluster_translates_what_this_process_translates(cluster: Any, model: Path, tmp_path: Path) -> None:
    files, out = write_shards(tmp_path / "in", 4), tmp_path / "out"
    done = translate_shards(model, tmp_path / "in", out, source_field="t.en", actors=1, **HOW)
    assert (done.shards, done.records) == (5, 16)
    for file in (files[0], files[1], files[4]):
        translate_file(model, file, tmp_path / file.name, **HOW)
        assert (out / file.name).read_bytes() == (tmp_path / file.name).read_bytes()


@pytest.mark.slow
def test_killing_an_actor_loses_nothing(cluster: Any, model: Path, tmp_path: Path) -> None:
    files, out = write_shards(tmp_path / "in", 60), tmp_path / "out"
    left: list[set[str]] = []

    def kill() -> None:
        while not (out / "a.txt").exists():
            time.sleep(0.01)
        os.kill(processes(ACTOR)[0], signal.SIGKILL)
        left.append({file.name for file in files} - set(os.listdir(out)))

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    done = translate_shards(model, tmp_path / "in", out, source_field="t.en", actors=2, **HOW)
    killer.join(PATIENCE)
    assert left and "d.parquet" in left[0], "the actor was to be killed midway"
    assert (done.shards, done.records) == (5, 240)
    translator = Translator.load(model, engine="torch")
    for file in (files[0], files[1], files[4]):
        translate_file(model, file, tmp_path / file.name, **HOW)
        assert (out / file.name).read_bytes() == (tmp_path / file.name).read_bytes()
    with zstandard.open(out / "c.jsonl.zst", "rt", encoding="utf-8") as lines:
        objects = [json.loads(line) for line in lines.read().splitlines()]
    assert [entry["id"] for entry in objects] == list(range(60))
    assert [entry["translation"] for entry in objects] == translator.translate(texts(60), **SEARCH)
    table = pq.read_table(out / "d.parquet")
    assert table.column("id").to_pylist() == list(range(60))
    assert table.column("translation").to_pylist() == translator.translate(texts(60, 200), **SEARCH)


@pytest.mark.slow
def test_a_killed_command_resumes(cluster: Any, model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in "abcd":
        (tmp_path / "in" / f"{name}.txt").write_text("".join(f"{text} {name}\n" for text in texts(48)))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "dragoman", "translate-shards", str(model), "--cluster"]
    command += [cluster.get_runtime_context().gcs_address, "-i", str(tmp_path / "in"), "-o", str(out), "--beam", "1"]
    command += ["search.maximum_length=40", "--batch-size", "1", "--engine", "torch", "--threads", "1", "--actors", "1"]
    here = {
        **os.environ,
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    }  # or Ray would replace 127.0.0.1
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True, env=here)
    manifest = out / "manifest.jsonl"
    while not (manifest.exists() and b"a.txt" in manifest.read_bytes()) and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL, (tmp_path / "said").read_text()
    assert not (out / "d.txt").exists()
    kept = (out / "a.txt").stat().st_mtime_ns
    while processes(ACTOR):  # the cluster releases its processors
        time.sleep(0.05)
    assert translate_shards(model, tmp_path / "in", out, actors=1, **HOW).records == 192
    assert sorted(os.listdir(out)) == ["a.txt", "b.txt", "c.txt", "d.txt", "manifest.jsonl"]
    for name in "abcd":
        translate_file(model, tmp_path / "in" / f"{name}.txt", tmp_path / name, **HOW)
        assert (out / f"{name}.txt").read_bytes() == (tmp_path / name).read_bytes()
    assert (out / "a.txt").stat().st_mtime_ns == kept, "a shard that was done is done again"
    entries = [json.loads(line) for line in (out / "manifest.jsonl").read_text().splitlines()[1:]]
    assert sorted(entry["shard"] for entry in entries) == ["a.txt", "b.txt", "c.txt", "d.txt"]


@pytest.mark.slow
def test_lines_that_kill_every_actor_are_an_error(
    cluster: Any, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr("dragoman.addons.bulk.pipeline.WindowTranslator", Dying)
    (tmp_path / "a.txt").write_text("a dog\n")
    with pytest.raises(ResourceError, match="the process of an actor ended 4 times at the same lines"):
        translate_shards(model, tmp_path / "a.txt", tmp_path / "out", **HOW)
    assert not (tmp_path / "out").exists()
