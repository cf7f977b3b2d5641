"""Benchmarks are run by hand, and rarely, so these tests check that everything they import still exists."""

import ast
from importlib import import_module
from pathlib import Path

import pytest
from repository import ROOT

BENCHMARKS = ROOT / "benchmarks"


def imports(source: str) -> list[tuple[str, str]]:
    """The modules of dragoman that a file imports, and the names that it imports from them."""
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom))
    return [
        (node.module, alias.name)
        for node in nodes
        if node.module is not None and node.module.partition(".")[0] == "dragoman"
        for alias in node.names
    ]


def missing(source: str) -> list[str]:
    found = []
    for module, name in imports(source):
        try:
            if not hasattr(import_module(module), name):
                import_module(f"{module}.{name}")
        except ImportError:
            found.append(f"{module}.{name}")
    return found


def test_a_missing_name_is_found() -> None:
    source = "def f():\n    from dragoman.base.log import info, gone\n    from dragoman.nowhere import x\nimport torch"
    assert missing(source) == ["dragoman.base.log.gone", "dragoman.nowhere.x"]


@pytest.mark.parametrize("path", sorted(BENCHMARKS.rglob("*.py")), ids=lambda path: str(path.relative_to(BENCHMARKS)))
def test_everything_that_benchmarks_import_exists(path: Path) -> None:
    assert missing(path.read_text(encoding="utf-8")) == []
