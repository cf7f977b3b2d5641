"""Kills and full disks during writing leave either the old file or the new one, never a mixture."""

import errno
import fcntl
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from repository import FIXTURES
from tiny_model import write_tiny_model
from waiting import wait_until

from dragoman.base import files
from dragoman.base.errors import ResourceError
from dragoman.base.files import atomic_file, atomic_folder, atomic_write, remove_stale_temporaries
from dragoman.checkpoint.folder import META, PARAMETERS, load_model_folder
from dragoman.checkpoint.store import CheckpointStore
from dragoman.checkpoint.tensors import load_tensors, save_tensors

LEAST_KILLS, LEAST_STEPS = 4, 2
CPU = torch.device("cpu")

# For each line it reads, forks a child that commits snapshots and checkpoints until killed (torch is imported once).
# Every tensor of a commit contains the commit's step.
COMMITTER = """
import os, sys
from pathlib import Path
import torch
from tiny_model import tiny_tokenizers
from dragoman.checkpoint.folder import write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.store import CheckpointStore

torch.set_num_threads(1)
tokenizers = tiny_tokenizers()

def commit_forever(run):
    store = CheckpointStore(run)
    snapshot = store.latest_training()
    step = snapshot.step if snapshot else 0
    store.discard_after(step)
    print(os.getpid(), flush=True)
    while True:
        step += 1
        tensors = {f"part{index}": torch.full((400, 100), float(step)) for index in range(4)}
        # The checkpoint first: a snapshot promises that its step's checkpoint is there.
        write_model_folder(store.checkpoint_folder(step), tensors, "model: {}\\n", tokenizers, Meta(step=step))
        write_model_folder(run, tensors, "model: {}\\n", tokenizers, Meta(step=step))
        store.prune(set(store.checkpoints()[-3:]))
        store.commit_training(step, {"model": tensors, "optimiser": tensors}, {"step": step})

for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        commit_forever(Path(sys.argv[1]))
    os.waitpid(child, 0)
    print("gone", flush=True)
"""


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def check_whole(run: Path, least: int) -> int:
    """Check that everything visible in the run folder is complete; returns the step that training would resume from."""
    with CheckpointStore(run) as store:
        assert not list(run.rglob("*.partial")), "a stale temporary survived the opening"
        snapshot = store.latest_training()
        assert snapshot is not None
        assert snapshot.step >= least, "a committed step was lost"
        assert snapshot.state == {"step": snapshot.step}
        for tensors in snapshot.tensors.values():
            assert len(tensors) == 4
            assert all(bool((tensor == snapshot.step).all()) for tensor in tensors.values())
        folders = store.checkpoints()
        assert store.checkpoint_folder(snapshot.step) in folders
        for folder in folders:
            tensors, labels = load_tensors(folder / PARAMETERS)
            step = json.loads((folder / META).read_text(encoding="utf-8"))["step"]
            assert labels["step"] == str(step)
            assert folder == store.checkpoint_folder(step)
            assert all(bool((tensor == step).all()) for tensor in tensors.values())
        tensors, labels = load_tensors(run / PARAMETERS)
        assert all(bool((tensor == int(labels["step"])).all()) for tensor in tensors.values())
        return snapshot.step


def newest(run: Path) -> str:
    """Return the name of the newest committed snapshot; empty if there is none."""
    return max((path.name for path in (run / "training").glob("step-*")), default="")


def test_kill_at_random_moments(tmp_path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(FIXTURES), *sys.path])
    moments = random.Random(3)
    step, kills, interrupted = 0, 0, 0
    command = [sys.executable, "-c", COMMITTER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as committer:
        assert committer.stdin is not None
        assert committer.stdout is not None
        while kills < LEAST_KILLS or step < LEAST_STEPS:
            committer.stdin.write("go\n")
            committer.stdin.flush()
            child = int(committer.stdout.readline())
            if kills % 2:  # after another commit, so that a busy machine makes progress, too
                before = newest(tmp_path)
                wait_until(lambda before=before: newest(tmp_path) != before, "the commits do not get on")
                time.sleep(moments.uniform(0, 0.1))
            else:
                time.sleep(moments.uniform(0.02, 0.3))
            os.kill(child, signal.SIGKILL)
            assert committer.stdout.readline() == "gone\n"
            kills += 1
            interrupted += bool(list(tmp_path.rglob("*.partial")))
            if any((tmp_path / "training").glob("step-*")):
                step = check_whole(tmp_path, step)
        committer.stdin.close()
    assert interrupted > 0, "no kill fell into a write"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_when_syncing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    atomic_write(tmp_path / "a.txt", "before")
    write_tiny_model(tmp_path / "model", step=3)
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}

    def full(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, "fsync", full)
    for write in (
        lambda: atomic_write(tmp_path / "a.txt", "after"),
        lambda: save_tensors(tmp_path / "b.safetensors", {"a": torch.ones(3)}, {}),
        lambda: write_tiny_model(tmp_path / "model", step=4),
        lambda: write_tiny_model(tmp_path / "new", step=4),
    ):
        with pytest.raises(ResourceError, match="cannot write"):
            write()
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "before"
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before
    assert entries(tmp_path) == ["a.txt", "model"]


def test_full_disk_in_the_middle_of_a_commit(tmp_path: Path) -> None:
    """With a real limit on file sizes, writes fail inside the safetensors library and inside Python."""
    with CheckpointStore(tmp_path) as store:
        store.commit_training(1, {"model": {"a": torch.ones(10)}}, {"epoch": 1})
        write_tiny_model(store.checkpoint_folder(1))
        large = {"a": torch.ones(100_000)}
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
        try:
            with pytest.raises(ResourceError, match="Free some space"):
                store.commit_training(2, {"model": large}, {"epoch": 2})
            with pytest.raises(ResourceError, match="Free some space"):
                store.commit_training(1, {"model": large}, {"epoch": 2})
            with pytest.raises(ResourceError, match="Free some space"):
                atomic_write(tmp_path / "log.txt", b"x" * 100_000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        snapshot = store.latest_training()
        assert snapshot is not None
        assert (snapshot.step, snapshot.state) == (1, {"epoch": 1})
        assert torch.equal(snapshot.tensors["model"]["a"], torch.ones(10))
        assert entries(tmp_path / "training") == ["step-00000001"]
        load_model_folder(store.checkpoint_folder(1), CPU)


def test_an_error_in_the_body_leaves_nothing_and_is_raised_unchanged(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), atomic_folder(tmp_path / "new"):
        raise ZeroDivisionError
    with pytest.raises(FileNotFoundError), atomic_file(tmp_path / "new"):
        (tmp_path / "input").read_text(encoding="utf-8")
    assert entries(tmp_path) == []


def test_unwritable_paths_are_reported(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ResourceError, match="not a regular file"):
        atomic_write(tmp_path / "folder", "x")
    with pytest.raises(ResourceError, match="No such file"):
        atomic_write(tmp_path / "none" / "a.txt", "x")
    with pytest.raises(ResourceError, match="not a regular file"):
        atomic_write(Path(os.devnull), "x")
    (tmp_path / "folder" / "mine").touch()
    with pytest.raises(ResourceError, match="cannot write"), atomic_folder(tmp_path / "folder"):
        pass
    assert (tmp_path / "folder" / "mine").exists()


def test_a_link_remains_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old", encoding="utf-8")
    (tmp_path / "link").symlink_to("real")
    atomic_write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text(encoding="utf-8") == "new"


def test_only_temporary_files_of_dead_processes_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".old.0123abcd.partial").mkdir()
    (tmp_path / "mine.partial").touch()
    with atomic_folder(tmp_path / "new") as living:
        assert [path.name for path in remove_stale_temporaries(tmp_path)] == [".old.0123abcd.partial"]
        assert living.is_dir()
    assert entries(tmp_path) == ["mine.partial", "new"]


def test_the_folders_of_running_writers_are_not_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the creation of a temporary folder and its lock, a process that removes stale folders ignores it."""
    lock = fcntl.flock

    def removal_first(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock_of_removal)
        assert remove_stale_temporaries(tmp_path, min_age=60) == []
        lock(descriptor, operation)

    def lock_of_removal(descriptor: int, operation: int) -> None:
        raise AssertionError("a new folder was locked by another process")

    monkeypatch.setattr(fcntl, "flock", removal_first)
    atomic_write(tmp_path / "file", "content")
    assert (tmp_path / "file").read_text() == "content"


def test_replacing_a_folder_is_atomic(tmp_path: Path) -> None:
    for content in ("old", "new"):
        with atomic_folder(tmp_path / "folder", replace=True) as staged:
            (staged / content).touch()
    assert entries(tmp_path / "folder") == ["new"]
    assert entries(tmp_path) == ["folder"]
