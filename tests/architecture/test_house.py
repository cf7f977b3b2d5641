"""The house rules that a machine can check: file lengths, machine paths, described settings, unique test names."""

import importlib
import pkgutil
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from repository import FIXTURES, ROOT

import dragoman
from dragoman.base.settings.config import Config

LONGEST_FILE = 400
FOLDERS = ("src", "tests", "docs", "recipes", "benchmarks", ".ci")
TEXT = {".py", ".c", ".h", ".md", ".yaml", ".yml", ".toml", ".json", ".sh", ""}
# Absolute paths with a folder that only some machines have. An address such as https://host/home/x is not one.
MACHINE_PATH = re.compile(r"(?<![\w.$}/<>:-])/(?:home|root|work|opt|Users|srv|mnt|farm)/\w")


def files() -> Iterator[Path]:
    """Return every text file of the project, without generated folders."""
    for path in ROOT.iterdir():
        if path.is_file() and path.suffix in TEXT and path.name not in {"LICENSE", ".git"}:
            yield path
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in TEXT and "__pycache__" not in path.parts:
                yield path


def configs() -> list[type[Config]]:
    """Return every configuration class of the package."""
    for module in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
        importlib.import_module(module.name)
    found: list[type[Config]] = []
    waiting = [Config]
    while waiting:
        children = waiting.pop().__subclasses__()
        found += [child for child in children if child.__module__.startswith("dragoman.")]
        waiting += children
    return found


def test_no_file_is_too_long() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in files()
        if path.suffix in (".py", ".c", ".h") and (lines := path.read_text(encoding="utf-8").count("\n")) > LONGEST_FILE
    }
    assert not long, f"files over {LONGEST_FILE} lines, each asking to be two: {long}"


def test_no_path_of_one_machine() -> None:
    assert MACHINE_PATH.search("see /home" + "/someone/data")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in files()
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        if MACHINE_PATH.search(line)
    ]
    assert not found, "\n".join(found)


def test_every_setting_has_a_description() -> None:
    settings = [(config, name, field) for config in configs() for name, field in config.model_fields.items()]
    assert len(settings) > 20
    missing = [
        f"{config.__name__}.{name}" for config, name, field in settings if name != "kind" and not field.description
    ]
    assert not missing, f"settings without a description: {', '.join(missing)}"


def test_every_config_refuses_unknown_keys_and_changes() -> None:
    loose = [config.__name__ for config in configs() if config.model_config.get("extra") != "forbid"]
    changeable = [config.__name__ for config in configs() if not config.model_config.get("frozen")]
    assert not loose
    assert not changeable


def test_test_files_have_unique_names_and_no_packages() -> None:
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert not [name for name, count in names.items() if count > 1]
    assert not list((ROOT / "tests").rglob("__init__.py"))


def test_tests_are_in_the_folders_of_the_packages() -> None:
    packages, rooms = folders(ROOT / "src" / "dragoman"), folders(ROOT / "tests")
    others = {"architecture", "benchmarks", "documentation", "extending", "first_hour", "fixtures", "gpu"}
    assert rooms - others == packages
    assert folders(ROOT / "tests" / "addons") == folders(ROOT / "src" / "dragoman" / "addons")


def test_every_folder_of_tests_runs_alone() -> None:
    """Its files import helpers from their own folder or from tests/fixtures, and no others, which may be missing."""
    places = {path.stem: path.parent for path in (ROOT / "tests").rglob("*.py")}
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r"^ *(?:from|import) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        if places.get(name, path.parent) not in (path.parent, FIXTURES)
    ]
    assert not found


def folders(path: Path) -> set[str]:
    """Return the names of the folders with Python files."""
    return {each.name for each in path.iterdir() if each.is_dir() and any(each.rglob("*.py"))}


def test_packages_have_empty_init_files() -> None:
    """Sub-packages are folders, not interfaces: names are imported from the module that defines them."""
    full = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "src" / "dragoman").glob("*/__init__.py")
        if "import" in path.read_text("utf-8")
    ]
    assert not full


def test_no_model_file_format_that_runs_code() -> None:
    forbidden = re.compile(r"\bimport pickle\b|\btorch\.(?:load|save)\(|\bfrom pickle\b")
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in (ROOT / "src").rglob("*.py")
        for line in path.read_text("utf-8").split("\n")
        if forbidden.search(line)
    ]
    # with the user's permission, torch reads the tensors of a foreign model's pickle, and nothing else
    asked = (
        'src/dragoman/exchange/huggingface/files.py: content = torch.load(path, map_location="cpu", weights_only=True)'
    )
    # a published corpus consists of pickles; its reader admits no names but those of arrays, which it replaces
    arrays = "src/dragoman/data/downloads/conversions/planetoid.py: import pickle"
    assert sorted(found) == sorted([asked, arrays]), f"pickle is never read or written: {found}"


def test_torch_is_limited_to_tested_releases() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "torch>=2.11,<=2.13.0" in project["dependencies"]
    assert not [name for name in project["dependencies"] if "==" in name]
