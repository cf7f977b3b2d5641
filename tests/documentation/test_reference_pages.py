"""The pages of the reference say what the code does: generated pages are current, and the others are complete."""

import ast
import os
import re
import runpy
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from repository import ROOT
from tiny_model import write_tiny_model

from dragoman.base.errors import DragomanError, Interrupted
from dragoman.base.settings.load import load_settings
from dragoman.checkpoint import folder as folders
from dragoman.cli.main import main
from dragoman.cli.settings_addresses import INDEX, PAGES, page_of
from dragoman.tasks.registry import TASKS
from dragoman.tasks.seeds import SEEDS_FILE
from dragoman.tasks.train import load_recipe
from dragoman.text.tokenizers import SOURCE_FILE, TARGET_FILE
from dragoman.training.profiling.profile import JSON_FILE, TEXT_FILE
from dragoman.training.progress.report import CURVES_FILE, LOG_FILE

REFERENCE = ROOT / "docs" / "reference"
_GENERATE = "run: make reference"
_MARK = "<!-- What follows is generated"


def test_generated_pages_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    for name in [name for name, task in TASKS.items() if not task.run.__module__.startswith("dragoman.")]:
        monkeypatch.delitem(TASKS, name)  # other tests register tasks of their own
    monkeypatch.syspath_prepend(ROOT / "docs")
    pages = runpy.run_path(str(ROOT / "docs" / "generate.py"))["reference_pages"]()
    stale = [name for name, text in pages.items() if (REFERENCE / name).read_text(encoding="utf-8") != text]
    assert stale == [], _GENERATE
    generated = {f"{path.parent.name}/{path.name}" for at in ("cli", "settings") for path in (REFERENCE / at).iterdir()}
    assert generated <= pages.keys(), "these pages have no command or section"


SETTINGS = sorted((REFERENCE / "settings").glob("*.md"))


def leaves(group: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The addresses of the settings of a recipe."""
    for key, value in group.items():
        yield from leaves(value, f"{path}{key}.") if isinstance(value, dict) else [path + key]


@pytest.mark.parametrize("page", SETTINGS, ids=lambda page: page.stem)
def test_a_page_of_settings_begins_with_a_valid_example_of_them(page: Path) -> None:
    pytest.importorskip("fastapi")
    from dragoman.addons.serving.config import ServeConfig

    introduction = page.read_text(encoding="utf-8").split(_MARK)[0]
    examples = [yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```", introduction, re.S | re.M)]
    assert examples
    for example in examples:
        if page.stem == "server":
            load_settings(example, [], ServeConfig)
            continue
        load_recipe({"out": "run", "data": {"train": {"source": "train.en", "target": "train.de"}}, **example}, [])
        if page.stem != INDEX:
            assert introduction.startswith(f"# {PAGES[page.stem][0]}\n")
            assert page.stem in {page_of(path.rpartition(".")[0]) for path in leaves(example)}


def _raise(error: BaseException) -> Callable[..., object]:
    def fail(*arguments: object) -> object:
        raise error

    return fail


def _press(key: signal.Signals) -> Callable[..., object]:
    return lambda *arguments: os.kill(os.getpid(), key)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Handle SIGINT, which a shell ignores in commands that it starts in the background."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.mark.usefixtures("interruptible")
def test_every_exit_code_is_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {0: main(["--version"]), 1: main(["score", str(tmp_path), "--target", "x"]), 2: main(["train", "no=1"])}
    monkeypatch.setattr("dragoman.tasks.train.settings", _press(signal.SIGINT))
    found[130] = main(["settings"])
    monkeypatch.setattr("dragoman.tasks.train.settings", _raise(Interrupted("saved", signal.SIGTERM)))
    found[143] = main(["settings"])
    process = subprocess.Popen([sys.executable, "-m", "dragoman", "--version"], stdout=subprocess.PIPE)
    process.stdout.close()
    found[141] = process.wait()
    page = (REFERENCE / "exit-codes.md").read_text(encoding="utf-8")
    assert found == {int(code): int(code) for code in re.findall(r"^\| (\d+) \|", page, flags=re.M)}
    codes = {each.exit_code for each in _all_errors(DragomanError)}
    assert codes <= found.keys()


def _all_errors(error: type[DragomanError]) -> Iterator[type[DragomanError]]:
    yield error
    for each in error.__subclasses__():
        yield from _all_errors(each)


def variables_read() -> set[str]:
    """Return the environment variables that the code of the package reads."""
    names = set()
    for path in [*(ROOT / "src").rglob("*.py"), ROOT / "hatch_build.py"]:
        if "environ" not in (text := path.read_text(encoding="utf-8")):
            continue
        tree = ast.parse(text)
        constants = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            keys = []
            if isinstance(node, ast.Subscript) and _is_environment(node.value):
                keys = [node.slice]
            elif (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_environment(node.func.value)
            ):
                keys = node.args[:1]
            elif isinstance(node, ast.Compare) and any(map(_is_environment, node.comparators)):
                keys = [node.left]
            found = [constants.get(key.id) if isinstance(key, ast.Name) else key for key in keys]
            names |= {key.value for key in found if isinstance(key, ast.Constant)}
    return names


def _is_environment(node: ast.expr) -> bool:
    return ast.unparse(node) in ("os.environ", "environ")


def test_the_page_of_environment_variables_is_complete() -> None:
    page = (REFERENCE / "environment.md").read_text(encoding="utf-8").split("\n## ")[0]
    cells = [line.split("|")[1] for line in page.split("\n") if line.startswith("| `")]
    listed = {name for cell in cells for name in re.findall("`(.*?)`", cell)}
    read = variables_read()
    assert {"DRAGOMAN_KEY", "XDG_CACHE_HOME", "RANK", "CC"} <= read
    own_value = {"TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD"}  # a key of a dict, before **os.environ
    assert listed - own_value == read
    sources = [path for ending in ("c", "h", "cpp") for path in (ROOT / "src").rglob(f"*.{ending}")]
    assert sources
    assert not [path for path in sources if "getenv" in path.read_text(encoding="utf-8")]


def test_the_page_of_model_folders_names_every_file(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "model")
    names = {path.name for path in (tmp_path / "model").iterdir()} | {SOURCE_FILE, TARGET_FILE, f"{folders.ALIGNER}/"}
    names |= {folders.SHORTLIST, folders.PRECISION, LOG_FILE, CURVES_FILE, TEXT_FILE, JSON_FILE, SEEDS_FILE}
    page = (REFERENCE / "model-folder.md").read_text(encoding="utf-8")
    assert {"model.safetensors", "config.yaml", "meta.json"} <= names
    assert {name for name in names if f"`{name}`" not in page} == set()
