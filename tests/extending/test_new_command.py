"""A package adds a command through an entry point, and commands whose modules are missing are left out."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

import dragoman

PAGE = ROOT / "docs" / "how-to" / "extending" / "commands.md"
SOURCE = Path(dragoman.__file__).parents[1]


def install(folder: Path, entries: dict[str, str], name: str = "count-words") -> None:
    """Write the metadata of an installed package with commands."""
    metadata = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "".join(f"{command} = {value}\n" for command, value in entries.items())
    (metadata / "entry_points.txt").write_text(f"[dragoman.commands]\n{lines}")


def run(folder: Path, *arguments: str, source: Path = SOURCE) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(folder)]), "COLUMNS": "80"}
    command = [sys.executable, "-m", "dragoman", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the module of the documentation, and its metadata."""
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "count_words.py").write_text(code[0], encoding="utf-8")
    install(tmp_path, {"count-words": "count_words:count_words"})
    return tmp_path


def test_the_command_of_a_package_runs(folder: Path) -> None:
    (folder / "text").write_text("a dog sees a dog\n")
    done = run(folder, "count-words", "text", "--minimum", "2")
    assert (done.returncode, done.stdout) == (0, "2\ta\n2\tdog\n")
    failed = run(folder, "count-words", "none")
    assert (failed.returncode, failed.stderr) == (1, "error: none is not a file: give a text\n")
    mistaken = run(folder, "count-words", "text", "--minimun", "2")
    assert mistaken.returncode == 2 and "--minimum" in mistaken.stderr


def test_the_help_of_a_package_is_that_of_the_core(folder: Path) -> None:
    assert "  count-words " in run(folder, "--help").stdout
    shown = run(folder, "count-words", "--help").stdout
    assert shown.startswith("Count the words of a text.\n\nExample:\n  dragoman count-words test.en --minimum 5\n")
    assert "--minimum N" in shown


def test_commands_that_cannot_be_imported_are_left_out_and_explained(tmp_path: Path) -> None:
    install(tmp_path, {"first": "missing_module:run", "second": "os:missing_name", "train": "os:getcwd"})
    listed = run(tmp_path, "--help")
    assert listed.returncode == 0
    assert "first" not in listed.stdout and "second" not in listed.stdout
    failed = run(tmp_path, "first")
    assert failed.returncode == 2
    assert "`dragoman first` of count-words cannot be imported (missing_module:run): No module named" in failed.stderr
    assert "Reinstall count-words" in failed.stderr
    assert "has no attribute 'missing_name'" in run(tmp_path, "second").stderr
    assert "Train a model." in run(tmp_path, "train", "--help").stdout, "names of the core cannot be replaced"


@pytest.mark.slow  # tests/architecture/test_core.py runs commands without them
def test_the_command_line_works_without_the_folders_of_add_ons(tmp_path: Path) -> None:
    copy = tmp_path / "source"
    # compiled modules are copied too, except those that another process is still writing
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("*.pyc.*"))
    addons = copy / "dragoman" / "addons"
    for path in addons.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
    registered = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition('[project.entry-points."dragoman')[2]
    entries = dict(re.findall(r'^([\w-]+) = "(dragoman\.addons\S+)"', registered, re.MULTILINE))
    assert len(entries) >= 9
    install(tmp_path, entries, "dragoman")
    listed = run(tmp_path, "--help", source=copy)
    assert listed.returncode == 0, listed.stderr
    assert "Add-ons" not in listed.stdout and "translate" in listed.stdout
    program = (
        "import sys; from dragoman.cli.main import main\n"
        "print([main([name]) for name in sys.argv[1:]])\n"
        "import dragoman; from dragoman import *; print(Translator.__name__, 'serve' in dir(dragoman))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *entries],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(copy), str(tmp_path)])},
    )
    assert done.stdout == f"{[2] * len(entries)}\nTranslator False\n"
    for name in entries:
        assert f"`dragoman {name}` of dragoman cannot be imported" in done.stderr


def test_commands_of_the_core_do_not_read_the_metadata_of_packages(tmp_path: Path) -> None:
    program = (
        "import sys, dragoman.cli.installed_commands as installed\n"
        "installed.entry_points = lambda **options: sys.exit('entry points are read')\n"
        "from dragoman.cli.main import main\n"
        "sys.exit(main(['recipes', '--to', sys.argv[1]]))"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir())


def test_one_command_imports_no_other() -> None:
    program = (
        "import sys; from dragoman.cli.main import main; main(['average', '--help'])\n"
        "print(sorted(each for each in sys.modules if each.startswith('dragoman.cli.commands.')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "['dragoman.cli.commands.average']\n"
