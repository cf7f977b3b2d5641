"""What only Linux or glibc has is left out on macOS, which these tests pretend to run on."""

import ctypes
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dragoman.addons.serving.config import EngineConfig
from dragoman.addons.serving.models import prefork
from dragoman.base.files import _exchange
from dragoman.base.machine import memory, startup
from dragoman.data.cleaning.chunks import new_array
from dragoman.data.workers import available_cores
from dragoman.native import compiler

_READ = Path.read_text


@pytest.fixture(autouse=True)
def macos(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Mac with an Apple processor: no /proc and /sys, no glibc, no processor affinity."""

    def read_text(self: Path, *arguments: Any, **options: Any) -> str:
        if self.parts[:2] in (("/", "proc"), ("/", "sys")):
            raise FileNotFoundError(str(self))
        return _READ(self, *arguments, **options)

    is_dir = Path.is_dir
    monkeypatch.setattr(Path, "read_text", read_text)
    monkeypatch.setattr(Path, "is_dir", lambda self: self.parts[:2] != ("/", "proc") and is_dir(self))
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda *_: SimpleNamespace())
    for name in ("sched_getaffinity", "posix_fallocate"):
        monkeypatch.delattr(os, name)
    monkeypatch.setattr(compiler.platform, "machine", lambda: "arm64")


def test_memory_and_processors_without_proc() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    memory.limit_memory(1)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert memory.resident_memory() == 0 and memory.available_memory() > 10**8
    assert available_cores() == os.cpu_count()
    memory.limit_arenas(2)
    memory.release_free_memory()


def test_the_allocator_is_that_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("restarted"))
    startup.restart_on_tcmalloc()
    assert not startup.keep_large_tensors_on_heap()


def test_the_native_engine_is_portable_c() -> None:
    assert compiler.machine() == "aarch64"
    found = compiler.compilable(compiler.machine())
    assert [each.name for each in found if each.needs <= compiler._processor_flags()] == ["portable"]


def test_folders_are_exchanged_in_three_steps(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    _exchange(tmp_path / "a", tmp_path / "b")
    assert [(tmp_path / name / "file").read_text() for name in ("a", "b")] == ["b", "a"]
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_files_are_sized_without_posix_fallocate(tmp_path: Path) -> None:
    array = new_array(tmp_path / "file", (3, 4), np.int32)
    assert array.shape == (3, 4) and not array.any() and (tmp_path / "file").stat().st_size == 48


def test_worker_processes_are_refused() -> None:
    assert not prefork._has_one_thread()  # so that no process with threads would be forked
    assert EngineConfig().workers == 0
    with pytest.raises(ValueError, match="macOS does not support: set workers to 0"):
        EngineConfig(workers=2)


@pytest.mark.slow
@pytest.mark.parametrize("source", compiler.LIBRARIES, ids=lambda source: source.name)
def test_clang_compiles_every_library_for_a_mac(source: compiler.LibrarySource, tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    command = (sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-macos")
    library = compiler.compile_library(command, compiler.INSTRUCTION_SETS[-1], tmp_path, source=source)
    assert library[:4] == bytes.fromhex("cffaedfe")  # Mach-O, 64 bits
