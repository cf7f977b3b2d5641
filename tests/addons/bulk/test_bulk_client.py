"""Bulk translation from outside the cluster, through Ray's client, also if the relay is killed."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bulk_shards import texts, write_shards
from tiny_model import write_tiny_model
from waiting import PATIENCE, wait_until

from dragoman.inference.translation.files.translate_file import translate_file

pytestmark = pytest.mark.slow
HERE = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_worker_niceness": "0"}
HOW = ["--beam", "1", "search.maximum_length=40", "--batch-size", "1", "--engine", "torch", "--threads", "1"]
ALONE: dict[str, Any] = {"beam": 1, "search": {"maximum_length": 40}, "batch_size": 1, "engine": "torch", "threads": 1}


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def relays() -> list[int]:
    """The processes of the cluster that relay translations."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::Relay"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a head that accepts clients."""
    for package in ("ray", "grpc"):
        pytest.importorskip(package)
    said, client = tmp_path_factory.mktemp("head") / "said", free_port()
    start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--node-ip-address=127.0.0.1"]
    start += [f"--port={free_port()}", f"--ray-client-server-port={client}", "--num-cpus=2"]
    start += ["--include-dashboard=false", "--disable-usage-stats"]
    with said.open("wb") as into:
        head = subprocess.Popen(start, stdout=into, stderr=into, env=HERE)
    try:
        wait_until(lambda: b"Ray runtime started" in said.read_bytes() or head.poll() is not None, interval=0.1)
        assert head.poll() is None, said.read_text()
        yield f"ray://127.0.0.1:{client}"
    finally:
        head.terminate()
        head.wait(PATIENCE)


def start(model: Path, address: str, given: Path, out: Path, said: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dragoman", "translate-shards", str(model), "--cluster", address]
    command += ["-i", str(given), "-o", str(out), "--source-field", "t.en", "--actors", "1", *HOW]
    with said.open("wb") as into:
        return subprocess.Popen(command, stdout=into, stderr=into, env=HERE)


def test_a_command_outside_the_cluster_resumes_after_its_relay_is_killed(address: str, tmp_path: Path) -> None:
    model, out, said = tmp_path / "model", tmp_path / "out", tmp_path / "said"
    write_tiny_model(model)
    files = write_shards(tmp_path / "in", 60)
    (tmp_path / "in" / "z.txt").write_text("".join(f"{text}\n" for text in texts(400)))
    process = start(model, address, tmp_path / "in", out, said)
    while not (out / "a.txt").exists() and process.poll() is None:
        time.sleep(0.01)
    for relay in relays():
        os.kill(relay, signal.SIGKILL)
    assert process.wait(2 * PATIENCE) == 1, said.read_text()
    last = said.read_text().splitlines()[-1]
    assert "was lost" in last and "run the same command to continue" in last
    assert "Traceback" not in said.read_text()
    assert not (out / "z.txt").exists()

    kept = (out / "a.txt").stat().st_mtime_ns
    assert start(model, address, tmp_path / "in", out, said).wait(300) == 0, said.read_text()
    assert (out / "a.txt").stat().st_mtime_ns == kept, "a shard that was done is done again"
    for file in (files[0], files[1], files[4], tmp_path / "in" / "z.txt"):
        alone = tmp_path / file.name
        translate_file(model, file, alone, **ALONE)
        assert (out / file.name).read_bytes() == alone.read_bytes()
    assert {"c.jsonl.zst", "d.parquet"} < set(os.listdir(out))
    wait_until(lambda: not relays(), "the relay outlives its command", interval=0.1)
