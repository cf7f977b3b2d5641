"""Functions have at most five positional parameters: more are named in calls, or form a value."""

import ast
from collections.abc import Iterator
from pathlib import Path

from repository import ROOT

PACKAGE = ROOT / "src/dragoman"
ROOMS = ("base", "text", "data", "nn", "models", "metrics", "decode", "native")
MOST = 5


def positional(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the names of the positional parameters, without `self` and `cls`."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def excessive(path: Path) -> Iterator[str]:
    """Yield the functions of a file with more positional parameters than allowed."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(positional(node)) > MOST:
            yield f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}({', '.join(positional(node))})"


def test_parameters_after_the_fifth_are_named() -> None:
    files = [path for room in ROOMS for path in sorted((PACKAGE / room).rglob("*.py"))]
    assert len(files) > 250
    found = [each for path in files for each in excessive(path)]
    assert not found, "make the last parameters keyword-only, or group them:\n" + "\n".join(found)


def test_positional_parameters_are_counted() -> None:
    tree = ast.parse("class A:\n    def f(self, a, b, c, d, e, *, g): ...\n    def h(self, a, b, c, d, e, f): ...")
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert [len(positional(each)) for each in functions] == [5, 6]
