"""Where the native engine's library comes from, and that whatever is in the way of one folder leads to the next."""

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dragoman.base.errors import ResourceError
from dragoman.engines.native import calibration
from dragoman.engines.native.calibration import Calibration, calibrate
from dragoman.native import build, compiler, library
from dragoman.native.build import NoCompilerError, NoLibraryError, best_library, compiled_library
from dragoman.native.cache_folders import cache_folders
from dragoman.native.compiler import INSTRUCTION_SETS, is_intact, library_name, seal

PORTABLE = INSTRUCTION_SETS[-1]
FOLDERS = ("XDG_CACHE_HOME", "HOME", "XDG_RUNTIME_DIR", "TMPDIR")


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Path]:
    """All cache folders are empty, and new."""
    found = {name: tmp_path / name for name in FOLDERS}
    for name, folder in found.items():
        folder.mkdir()
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.delenv("CC", raising=False)
    return found


@pytest.fixture(scope="module")
def content() -> bytes:
    return compiled_library(PORTABLE).read_bytes()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, content: bytes) -> list[str]:
    """Compiling takes no time; returns the instruction sets that were compiled for."""
    compiled: list[str] = []

    def compile_library(
        command: tuple[str, ...], instructions: compiler.InstructionSet, folder: Path, source: compiler.LibrarySource
    ) -> bytes:
        compiled.append(instructions.name)
        return content

    monkeypatch.setattr(build, "compile_library", compile_library)
    return compiled


def test_the_order_of_the_folders(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [
        places["XDG_CACHE_HOME"] / "dragoman",
        places["HOME"] / ".cache" / "dragoman",
        places["XDG_RUNTIME_DIR"] / "dragoman",
        places["TMPDIR"] / f"dragoman-{os.geteuid()}",
    ]
    assert list(cache_folders()) == expected
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(places["HOME"] / ".cache"))
    assert list(cache_folders()) == [expected[1], expected[3]]


def test_without_a_home(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch, quick: list[str]) -> None:
    for name in FOLDERS[:3]:
        monkeypatch.delenv(name)

    def no_entry() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_entry)
    assert compiled_library(PORTABLE).is_relative_to(places["TMPDIR"])
    assert places["TMPDIR"].joinpath(f"dragoman-{os.geteuid()}").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_used_leads_to_the_next(places: dict[str, Path], quick: list[str]) -> None:
    places["XDG_CACHE_HOME"].rmdir()
    places["XDG_CACHE_HOME"].write_text("a file")
    assert compiled_library(PORTABLE).is_relative_to(places["HOME"])
    assert compiled_library(PORTABLE).is_relative_to(places["HOME"])
    assert quick == ["portable"]


def test_no_folder_can_be_used(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch, quick: list[str]) -> None:
    """The error names every folder with its reason, and nothing is compiled in vain."""
    for name, folder in places.items():
        if name != "TMPDIR":
            folder.rmdir()
            folder.write_text("a file")
    (places["TMPDIR"] / f"dragoman-{os.geteuid()}").mkdir(mode=0o700)
    (places["TMPDIR"] / f"dragoman-{os.geteuid()}").chmod(0o777)
    with pytest.raises(NoLibraryError) as caught:
        best_library()
    message = str(caught.value)
    assert all(str(each) in message for each in places.values()) and "writable by all users" in message
    assert "set XDG_CACHE_HOME" in message and "\n" not in message
    assert not quick


@pytest.mark.parametrize("damage", ["empty", "short", "changed", "not a library", "another processor"])
def test_a_damaged_library_is_replaced(places: dict[str, Path], quick: list[str], content: bytes, damage: str) -> None:
    first, middle = places["XDG_CACHE_HOME"] / "dragoman" / library_name(PORTABLE), len(content) // 2
    first.parent.mkdir(mode=0o700)
    first.write_bytes(
        {
            "empty": b"",
            "short": content[:middle],
            "changed": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
            "not a library": seal(b"nothing"),
            "another processor": seal(content[:18] + b"\xb7\0" + content[20:-48]),  # e_machine: AArch64
        }[damage]
    )
    assert compiled_library(PORTABLE) == first
    assert first.read_bytes() == content and quick == ["portable"]


def test_a_library_that_others_could_have_written_is_not_loaded(places: dict[str, Path], quick: list[str]) -> None:
    path = compiled_library(PORTABLE)
    path.chmod(0o666)
    assert compiled_library(PORTABLE) == path
    assert path.stat().st_mode & 0o777 == 0o644 and len(quick) == 2
    if os.geteuid() == 0:
        os.chown(path.parent, 12345, -1)
        assert compiled_library(PORTABLE).is_relative_to(places["HOME"])


def test_a_library_is_used_without_its_compiler(
    places: dict[str, Path], quick: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = compiled_library(PORTABLE)
    monkeypatch.setattr(compiler.shutil, "which", lambda _: None)
    assert compiled_library(PORTABLE) == path


def test_the_wheels_library_comes_first(
    places: dict[str, Path], quick: list[str], content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is used with any $CC, if it was made from the sources of this version."""
    monkeypatch.setattr(build, "PREBUILT", tmp_path / "prebuilt")
    (tmp_path / "prebuilt").mkdir()
    shipped = tmp_path / "prebuilt" / library_name(PORTABLE)
    shipped.write_bytes(content)
    shipped.chmod(0o666)  # as some installers make it, or another user; the package itself is not checked, either
    monkeypatch.setenv("CC", "no-such-compiler")
    assert compiled_library(PORTABLE) == shipped
    shipped.rename(shipped.with_name("engine-portable-0123456789abcdef.so"))
    assert compiled_library(PORTABLE).is_relative_to(places["XDG_CACHE_HOME"])


def test_without_a_compiler(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cases = {
        "no-such-compiler --flag": "no-such-compiler cannot be run",
        "false": "false cannot compile the native engine",
        "'": "cannot be run",
        str(tmp_path): "cannot be run",
    }
    for name, message in cases.items():
        monkeypatch.setenv("CC", name)
        with pytest.raises(NoCompilerError, match=message):
            best_library()
    monkeypatch.delenv("CC")
    monkeypatch.setattr(compiler.shutil, "which", lambda _: None)
    with pytest.raises(NoCompilerError, match="install one"):
        best_library()
    assert not list(tmp_path.rglob("*.so")) and not list(tmp_path.rglob("*.partial"))


def test_a_compiler_that_fails_leads_to_the_next_one(
    places: dict[str, Path], content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First for the same instruction set, then for the next one."""
    monkeypatch.setattr(compiler.shutil, "which", lambda name: name if name != "cc" else None)

    def compile_library(
        command: tuple[str, ...], instructions: compiler.InstructionSet, folder: Path, source: compiler.LibrarySource
    ) -> bytes:
        if command == ("gcc",) or instructions != PORTABLE:
            raise compiler.CompilerError("this compiler is too old")
        return content

    monkeypatch.setattr(build, "compile_library", compile_library)
    assert best_library().name == library_name(PORTABLE)


def test_a_damaged_measurement_is_repeated(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Calibration(2, 1)
    monkeypatch.setattr(calibration, "_measure", lambda _: measured)
    calibrate.cache_clear()
    assert calibrate(2, Path("engine.so")) == measured
    (path,) = places["XDG_CACHE_HOME"].rglob("calibration-*.json")
    for damaged in ("", "{}", "[]", '{"workers": 2, "threads": "1"}', '{"workers": 9, "threads": 1}', "[" * 99999):
        path.write_text(damaged)
        calibrate.cache_clear()
        assert calibrate(2, Path("engine.so")) == measured
        path.write_text('{"workers": 1, "threads": 2}')
        calibrate.cache_clear()
        assert calibrate(2, Path("engine.so")) == Calibration(1, 2)
    places["XDG_CACHE_HOME"].joinpath("dragoman").rename(places["XDG_CACHE_HOME"] / "away")
    places["XDG_CACHE_HOME"].joinpath("dragoman").write_text("a file")
    calibrate.cache_clear()
    assert calibrate(2, Path("engine.so")) == measured
    assert list(places["HOME"].rglob("calibration-*.json"))
    calibrate.cache_clear()


def test_processes_that_compile_at_the_same_time(places: dict[str, Path], content: bytes, tmp_path: Path) -> None:
    (tmp_path / "compiled.so").write_bytes(content)
    fake = tmp_path / "compiler"
    fake.write_text(f'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\nsleep 0.3\ncp {tmp_path / "compiled.so"} "$2"\n')
    fake.chmod(0o755)
    program = (
        "from dragoman.native.build import compiled_library\n"
        "from dragoman.native.compiler import INSTRUCTION_SETS\n"
        "print(compiled_library(INSTRUCTION_SETS[-1]))"
    )
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "CC": str(fake)}

    def run(_: int) -> str:
        command = [sys.executable, "-c", program]
        return subprocess.run(command, env=settings, capture_output=True, text=True, check=True).stdout

    with ThreadPoolExecutor(3) as threads:
        (path,) = {each.strip() for each in threads.map(run, range(3))}
    assert is_intact(Path(path).read_bytes())
    assert [each.name for each in Path(path).parent.iterdir()] == [Path(path).name]


def test_a_file_that_is_not_a_library_is_reported(tmp_path: Path) -> None:
    (tmp_path / "engine.so").write_bytes(b"nothing")
    with pytest.raises(ResourceError, match="cannot load the library of the native engine"):
        library.load(tmp_path / "engine.so")


@pytest.mark.parametrize(("seconds", "largest"), [(0.001, 160), (0.1, 16), (0.005, 50)])
def test_slow_processors_measure_fewer_requests(seconds: float, largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In plain C, all requests would take half a minute."""
    sizes: list[int] = []

    def measure(native: object, requests: list[object], workers: int) -> float:
        sizes.append(len(requests))
        return seconds * len(requests)

    monkeypatch.setattr(calibration, "NativeModel", lambda *_: None)
    monkeypatch.setattr(calibration, "_SECONDS", 0)
    monkeypatch.setattr(calibration, "_seconds", measure)
    assert calibration._measure(2) == Calibration(1, 1)
    assert max(sizes) == largest
