"""The wheel builds offline, contains the package and its metadata, and its modules can be imported."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="building without an isolated environment needs hatchling here")
ROOT = Path(__file__).resolve().parents[2]


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_wheel_builds_and_its_modules_can_be_imported(tmp_path: Path) -> None:
    pip("wheel", ".", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(tmp_path / "dist"))
    (wheel,) = (tmp_path / "dist").glob("dragoman-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        entry_points = next(name for name in names if name.endswith("entry_points.txt"))
        assert "dragoman = dragoman.cli.main:main" in archive.read(entry_points).decode()
    page = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src/dragoman/serving/page").iterdir()}
    assert page and page <= set(names)
    modules = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "dragoman").rglob("*.py")}
    assert modules == {name for name in names if name.endswith(".py")}
    assert "dragoman/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests", "docs"))]

    pip("install", str(wheel), "--no-deps", "--no-index", "--target", str(tmp_path / "site"))
    program = "import dragoman, dragoman.cli.main; print(dragoman.__file__)"
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert Path(result.stdout.strip()).is_relative_to(tmp_path / "site")
