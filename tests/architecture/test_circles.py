"""No files import one another in a circle, including imports inside functions and imports for types only."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from repository import ROOT

SOURCE = ROOT / "src"
INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.MULTILINE)


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST, modules: set[str]) -> Iterator[str]:
    """Return the modules of the package that a file imports anywhere; other names count as the package they are in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name in modules:
                yield name
            elif name.rpartition(".")[0] in modules:
                yield name.rpartition(".")[0]


def import_graph(root: Path) -> dict[str, set[str]]:
    paths = {module_name(path, root): path for path in root.rglob("*.py")}
    graph = {}
    for name, path in paths.items():
        found = set(imported(ast.parse(path.read_text(encoding="utf-8")), set(paths)))
        graph[name] = found - {name}
    return graph


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one module (Tarjan 1972)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for other in sorted(graph[module]):
            if other not in order:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], order[other])
        if lowest[module] == order[module]:
            start = stack.index(module)
            component = stack[start:]
            del stack[start:]
            if len(component) > 1:
                found.append(sorted(component))

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return found


def package_graph() -> dict[str, set[str]]:
    """Return dragoman's import graph, without the package itself, which names public functions for type checkers."""
    graph = import_graph(SOURCE)
    public = graph.pop("dragoman")
    assert public
    return {name: others - {"dragoman"} for name, others in graph.items()}


def test_no_files_import_one_another_in_a_circle() -> None:
    graph = package_graph()
    assert len(graph) > 300  # the whole package was read
    assert circles(graph) == []


def test_a_circle_is_found_wherever_its_imports_are(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "top.py").write_text("import package.middle\n")
    (package / "middle.py").write_text("def late():\n    from package import bottom\n    return bottom\n")
    (package / "bottom.py").write_text(
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from package.top import late\n"
    )
    (package / "alone.py").write_text("from package.bottom import TYPE_CHECKING\n")
    assert circles(import_graph(tmp_path)) == [["package.bottom", "package.middle", "package.top"]]


def test_no_c_sources_include_one_another_in_a_circle() -> None:
    files = [path.resolve() for suffix in ("*.h", "*.c") for path in SOURCE.rglob(suffix)]
    graph = {
        str(path): {str((path.parent / name).resolve()) for name in INCLUDE.findall(path.read_text(encoding="utf-8"))}
        for path in files
    }
    assert len(graph) == len(files) > 5
    assert circles(graph) == []
