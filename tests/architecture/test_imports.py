"""The import rules of pyproject.toml are kept, and violations would be noticed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

pytest.importorskip("importlinter")


def check_contracts(source: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(cache_dir=None))"
    shutil.copy(ROOT / "pyproject.toml", folder / "pyproject.toml")
    return subprocess.run(
        [sys.executable, "-c", command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_imports_go_down_only(tmp_path: Path) -> None:
    result = check_contracts(ROOT / "src", tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("base/errors.py", "import dragoman.text.symbols"),
        ("nn/__init__.py", "import dragoman.models.interface"),
        ("decode/__init__.py", "import dragoman.models.kinds.encoder_decoder"),
        ("metrics/__init__.py", "import dragoman.decode"),
        ("training/__init__.py", "import dragoman.cli"),
        ("inference/__init__.py", "import dragoman.addons.documents.document"),
        ("text/__init__.py", "import dragoman.addons.lecture.scenes"),
    ],
)
def test_an_import_that_breaks_a_rule_is_refused(tmp_path: Path, module: str, line: str) -> None:
    copy = tmp_path / "src"
    shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
    with (copy / "dragoman" / module).open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")
    result = check_contracts(copy, tmp_path)
    assert result.returncode != 0, result.stdout
    assert "BROKEN" in result.stdout, result.stdout + result.stderr


def test_the_command_line_starts_without_torch() -> None:
    command = "import sys, dragoman.cli.main; sys.exit('torch' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", command],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, (
        result.stderr or "importing dragoman.cli.main imports torch: import it inside the command"
    )


def test_folders_of_results_are_not_taken_for_modules() -> None:
    """mypy takes a folder in the root for a package, if a module of a benchmark or a test has its name."""
    folders = {line.strip("/\n") for line in (ROOT / ".gitignore").read_text("utf-8").split() if line.endswith("/")}
    files = [path for folder in ("benchmarks", "tests") for path in (ROOT / folder).rglob("*.py")]
    modules = {path.stem for path in files}
    settings = (ROOT / "tests/mypy.ini").read_text("utf-8")
    for name in folders & modules:
        assert f"[mypy-{name}]\nfollow_imports = skip" in settings, name
