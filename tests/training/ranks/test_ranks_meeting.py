"""Processes that wait for a missing one, and threads of a closed connection."""

import os
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from torch.distributed import TCPStore
from training_runs import Server
from waiting import PATIENCE

from dragoman.training.ranks import group
from dragoman.training.ranks.group import open_ranks
from dragoman.training.ranks.ranks import RankLost

LEAVING = """
import os, sys, time, torch
from dragoman.base.errors import Interrupted
from dragoman.training.ranks.group import open_ranks

def threads():
    return len(os.listdir("/proc/self/task"))

torch.set_num_threads(1)
before = threads()
try:
    with open_ranks("cpu") as ranks:
        assert ranks.sum([1.0]) == [2.0]
        assert threads() > before
        if sys.argv[1] == "interrupted":
            raise Interrupted("SIGTERM", 1)
except (Interrupted, SystemExit):
    pass
end = time.monotonic() + 100
while threads() > before and time.monotonic() < end:
    time.sleep(0.01)
assert threads() == before
"""


ENDS = pytest.mark.parametrize("end", ["finished", "interrupted"])


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in /proc")
@ENDS
def test_no_thread_of_a_connection_outlives_it(server: Server, tmp_path: Path, end: str) -> None:
    """The connection is made through a store of another process, as with torchrun."""
    (tmp_path / "leaving.py").write_text(LEAVING, encoding="utf-8")
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    told = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port)}
    told["TORCHELASTIC_USE_AGENT_STORE"] = "True"
    processes = [
        server.start(tmp_path, "leaving.py", end, environment={**told, "RANK": str(rank)}, name=str(rank))
        for rank in range(2)
    ]
    assert [process.wait() for process in processes] == [0, 0]


@pytest.mark.slow
@ENDS
def test_torchrun_is_left_without_an_abort(end: str) -> None:
    """A thread that frees a tensor during the interpreter's exit aborts the process: exit code -6 after a good run."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python"]
    done = subprocess.run(
        [*torchrun, sys.executable, "-c", LEAVING, end], capture_output=True, text=True, timeout=2 * PATIENCE
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("rank", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_waiting_for_a_missing_process_ends(monkeypatch: pytest.MonkeyPatch, rank: int) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = {"RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    for name, value in told.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(group, "JOIN_TIMEOUT", timedelta(seconds=1))
    lost = f"rank {rank}: another process of this run has ended or cannot be reached"
    with pytest.raises(RankLost, match=lost), open_ranks("cpu"):
        pass
