"""The wheel builds offline, contains the package, the native engine and the recipes, and works without a compiler."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from repository import ROOT
from tiny_model import write_tiny_model

from dragoman.native.build import compiled_library
from dragoman.native.compiler import INSTRUCTION_SETS, LIBRARIES, compilable, library_name, machine

pytest.importorskip("hatchling", reason="building without an isolated environment needs hatchling here")


PREBUILT = "dragoman/native/prebuilt"
USE = """
from contextlib import redirect_stdout
from io import StringIO
from dragoman.cli.main import main
assert main(["translate", "model", "--engine", "native", "--threads", "1", "-i", "lines"]) == 0
with redirect_stdout(StringIO()):
    assert main(["recipes", "multi30k-en-de", "--to", "copied"]) == 0
"""
"""Uses an installed wheel; one process, because its imports take seconds."""


def run(command: list[str], folder: Path = ROOT, **environment: str) -> str:
    settings = {**os.environ, **environment}
    result = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def pip(*arguments: str, **environment: str) -> None:
    run([sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments], **environment)


def built(folder: Path, **environment: str) -> Path:
    """Return a new wheel, built by the backend that pip also calls."""
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], **environment)
    (wheel,) = folder.glob("dragoman-*.whl")
    return wheel


def quick_compiler(folder: Path) -> str:
    """Return the path of a program that returns the library for plain C at once, for any instruction set."""
    program = folder / "compiler"
    library = compiled_library(INSTRUCTION_SETS[-1])
    program.write_text(f'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\nexec cp {library} "$2"\n')
    program.chmod(0o755)
    return str(program)


@pytest.mark.slow
def test_the_wheel_works_without_a_compiler(tmp_path: Path) -> None:
    wheel = built(tmp_path / "dist", CC=quick_compiler(tmp_path))
    assert "-py3-none-manylinux_2_" in wheel.name and wheel.name.endswith(f"_{machine()}.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        entry_points = next(name for name in names if name.endswith("entry_points.txt"))
        assert "dragoman = dragoman.cli.main:main" in archive.read(entry_points).decode()
    files = (path for path in (ROOT / "src/dragoman/addons/serving/page").rglob("*") if path.is_file())
    page = {path.relative_to(ROOT / "src").as_posix() for path in files}
    assert page and page <= set(names)
    modules = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "dragoman").rglob("*.py")}
    assert modules == {name for name in names if name.endswith(".py")}
    libraries = {library_name(each, source=source) for source in LIBRARIES for each in compilable(machine())}
    assert {f"{PREBUILT}/{name}" for name in libraries} <= set(names)
    assert {f"dragoman/recipe_files/{path.name}" for path in (ROOT / "recipes").iterdir()} <= set(names)
    assert "dragoman/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests", "docs"))]

    pip("install", str(wheel), "--no-deps", "--no-index", "--no-compile", "--target", str(tmp_path / "site"))
    site, empty = tmp_path / "site", tmp_path / "empty"
    empty.write_text("no folder")
    write_tiny_model(tmp_path / "model")
    (tmp_path / "lines").write_text("a dog\n")
    # there is neither a compiler nor a folder for a library
    places = dict.fromkeys(("XDG_CACHE_HOME", "HOME", "XDG_RUNTIME_DIR", "PATH"), str(empty))
    settings = {"PYTHONPATH": str(site), **places}
    assert run([sys.executable, "-c", USE], tmp_path, **settings).count("\n") == 1
    copied, original = tmp_path / "copied/multi30k-en-de.yaml", ROOT / "recipes/multi30k-en-de.yaml"
    assert copied.read_bytes() == original.read_bytes()


def test_without_a_compiler_the_wheel_is_for_any_platform(tmp_path: Path) -> None:
    """It is then compiled when it is used. If engines were asked for, the build fails instead."""
    wheel = built(tmp_path / "dist", CC="false")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.startswith(PREBUILT)]
    with pytest.raises(AssertionError, match="DRAGOMAN_ENGINES=x86_64: the C compiler false"):
        built(tmp_path / "other", CC="false", DRAGOMAN_ENGINES="x86_64")


@pytest.mark.slow
@pytest.mark.parametrize("processor", ["x86_64", "aarch64"])
def test_engines_for_other_processors(processor: str, tmp_path: Path) -> None:
    """The platform is that of auditwheel, and the library for ARM can be loaded by a program under an emulator."""
    compiler = "cc" if processor == machine() else f"{processor}-linux-gnu-gcc"
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    wheel = built(tmp_path, DRAGOMAN_ENGINES=processor)
    pytest.importorskip("auditwheel")
    platform = wheel.stem.split("-")[-1]
    shown = " ".join(run([sys.executable, "-m", "auditwheel", "show", str(wheel)]).split())
    assert f'the following platform tag: "{platform}"' in shown
    emulator = shutil.which(f"qemu-{processor}")
    if processor == machine() or emulator is None:
        return
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    (library,) = (tmp_path / "site" / PREBUILT).glob("engine-*.so")
    (tmp_path / "program.c").write_text(
        "#include <dlfcn.h>\n#include <stdint.h>\n#include <stdio.h>\n"
        "int main(int count, char **arguments) {\n"
        "    void *library = dlopen(arguments[1], RTLD_NOW);\n"
        "    if (!library) return puts(dlerror());\n"
        "    int32_t entries;\n"
        '    ((void *(*)(int32_t *))dlsym(library, "dragoman_layout"))(&entries);\n'
        "    return entries <= 0;\n}\n"
    )
    run([compiler, str(tmp_path / "program.c"), "-o", str(tmp_path / "program")])
    run([emulator, "-L", f"/usr/{processor}-linux-gnu", str(tmp_path / "program"), str(library)])
