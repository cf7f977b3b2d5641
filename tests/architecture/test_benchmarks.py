"""Benchmarks are run by hand, and seldom: what they import must still be there."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def imports(source: str) -> list[tuple[str, str]]:
    """Modules of dragoman and the names that are taken from them."""
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


def test_a_name_that_is_gone_is_found() -> None:
    source = "def f():\n    from dragoman.base.log import info, gone\n    from dragoman.nowhere import x\nimport torch"
    assert missing(source) == ["dragoman.base.log.gone", "dragoman.nowhere.x"]


@pytest.mark.parametrize("path", sorted(BENCHMARKS.rglob("*.py")), ids=lambda path: str(path.relative_to(BENCHMARKS)))
def test_what_benchmarks_import_is_there(path: Path) -> None:
    assert missing(path.read_text(encoding="utf-8")) == []
