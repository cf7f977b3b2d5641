"""Every library that the package imports is a declared dependency; optional ones are listed under an extra."""

import ast
import importlib.metadata
import re
import sys
import tomllib
from functools import cache

from repository import ROOT

COMES_WITH_TORCH = {"triton"}
"""Included in PyTorch for GPUs, but not in PyTorch for CPUs; the code that imports it also works without it."""

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-") for requirement in requirements} - {
        "dragoman"
    }


@cache
def imported_distributions() -> dict[str, set[str]]:
    """Return the files of src/ that import each distribution, by its name."""
    providers = importlib.metadata.packages_distributions()
    found: dict[str, set[str]] = {}
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module]
            for module in modules:
                top = module.split(".")[0]
                if top != "dragoman" and top not in sys.stdlib_module_names:
                    name = providers.get(top, [top])[0].lower().replace("_", "-")
                    found.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    return found


def test_imported_libraries_are_declared() -> None:
    extras = PROJECT["optional-dependencies"]
    declared = names(PROJECT["dependencies"]) | names(
        [line for name in extras if name != "dev" for line in extras[name]]
    )
    declared |= COMES_WITH_TORCH
    undeclared = {name: files for name, files in imported_distributions().items() if name not in declared}
    assert not undeclared, f"imported but not declared in pyproject.toml: {undeclared}"


def test_declared_libraries_are_imported() -> None:
    unused = names(PROJECT["dependencies"]) - set(imported_distributions())
    assert not unused, f"declared in pyproject.toml but never imported: {unused}"


def test_the_extra_all_contains_every_optional_dependency() -> None:
    extras = PROJECT["optional-dependencies"]
    parts = set(extras) - {"all", "dev", "docs"}
    chosen = set(re.findall(r"[\w-]+", extras["all"][0].partition("[")[2]))
    assert chosen == parts
