"""Every public name has a docstring with an example that runs, and is on a page of the API reference."""

import re
from importlib import import_module
from inspect import getdoc, isclass
from typing import Any

import pytest
from page_commands import PageCommands
from page_inputs import provide
from repository import ROOT

import dragoman

API = ROOT / "docs" / "reference" / "api"
NAMES = [name for name in dragoman.__all__ if name != "__version__"]
LANGUAGES = ["corpus", "translator", "language-model", "reviews", "classifier"]
_SERVER = """```bash
dragoman serve runs/ende > server.log 2>&1 &
curl --silent --retry 40 --retry-delay 1 --retry-all-errors --fail localhost:5000/health/ready > health.json
```
"""
_WITHOUT_RAY = """```python
import pytest
from bulk_shards import without_ray
without_ray(pytest.MonkeyPatch())
```
"""
PREPARATIONS = {"Client": _SERVER, "AsyncClient": _SERVER, "translate_shards": _WITHOUT_RAY}
"""Blocks before an example: what it needs, or in place of Ray, which starts several processes."""
_EXAMPLE = re.compile(r"^>>> .*", re.DOTALL | re.MULTILINE)
_DIRECTIVE = re.compile(r"^\.\. auto(?:function|class|exception|data):: (\S+)$", re.MULTILINE)
SHOWN = [name for page in API.glob("*.md") for name in _DIRECTIVE.findall(page.read_text(encoding="utf-8"))]
"""The names on the pages of the reference."""


def docstring(name: str) -> str:
    return getdoc(getattr(dragoman, name)) or ""


@pytest.fixture
def files(address: str, tmp_path: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with the files that the examples read."""
    folder = tmp_path / "page"
    folder.mkdir()
    provide(LANGUAGES, folder, address, tmp_path_factory)
    return folder


def run_example(name: str, preparation: str, files: Any, address: str, scratch: Any) -> None:
    example = _EXAMPLE.search(docstring(name))
    assert example, f"the docstring of {name} has no example"
    page = f"{preparation}\n```python\n{example[0].rstrip()}\n```\n"
    with PageCommands(address, files, scratch) as commands:
        assert commands.run_page(page) == 1 + bool(preparation)


@pytest.mark.commands
@pytest.mark.parametrize("name", NAMES)
def test_the_example_runs(name: str, files: Any, address: str, tmp_path: Any) -> None:
    run_example(name, PREPARATIONS.get(name, ""), files, address, tmp_path / "scratch")


@pytest.mark.slow
@pytest.mark.commands
def test_files_are_translated_with_ray(files: Any, address: str, tmp_path: Any) -> None:
    run_example("translate_shards", "", files, address, tmp_path / "scratch")


@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_has_a_summary_and_the_errors(name: str) -> None:
    text = docstring(name)
    value = getattr(dragoman, name)
    assert text.split("\n")[0].endswith(".")
    if not isclass(value) and name not in ("quietly", "write_scenes"):
        assert re.search(r"\b[Rr]aises\b", text), f"the docstring of {name} does not name the errors"


def test_every_public_name_is_in_the_reference_once() -> None:
    assert sorted(name.removeprefix("dragoman.") for name in SHOWN if name.count(".") == 1) == sorted(NAMES)


@pytest.mark.parametrize("name", [name for name in SHOWN if name.count(".") > 1])
def test_the_interfaces_in_the_reference_exist_and_are_described(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    value = getattr(import_module(module), attribute)
    assert getdoc(value)
