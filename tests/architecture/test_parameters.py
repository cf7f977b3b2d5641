"""Functions have at most five positional parameters: more are named in calls, or form a value."""

import ast
from collections.abc import Iterator
from pathlib import Path

from repository import ROOT

PACKAGE = ROOT / "src/dragoman"
MOST = 5
EXCEPTIONS = {
    # A Triton kernel takes a flat list of pointers, strides and constants.
    "engines/cuda/kernels.py": {"_self_attention", "_cross_attention"},
    # torch.autograd.Function.apply has no keyword arguments.
    "nn/kernels/attention.py": {"forward"},
    "nn/kernels/linear.py": {"forward"},
    "nn/kernels/residual.py": {"forward"},
    "nn/kernels/gpu/attention.py": {"_weights", "_fill", "_forward", "_backward"},
    "nn/kernels/gpu/cross_entropy.py": {"_differentiate"},
    "nn/kernels/gpu/linear.py": {"_sum_columns"},
    "nn/kernels/gpu/sums.py": {"_sum_parts"},
    "nn/kernels/gpu/residual.py": {"_dropout", "_add", "_norm", "_norm_backward"},
    "training/objectives/fused_cross_entropy.py": {"forward"},
}
"""Functions that Triton or autograd calls with positional arguments, by file."""


def positional(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the names of the positional parameters, without `self` and `cls`."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def excessive(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the names and the descriptions of functions with more positional parameters than allowed."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(positional(node)) > MOST:
            yield node.name, f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}({', '.join(positional(node))})"


def test_parameters_after_the_fifth_are_named() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 700
    found = {path.relative_to(PACKAGE).as_posix(): dict(excessive(path)) for path in files}
    wrong = [
        text
        for path, functions in found.items()
        for name, text in functions.items()
        if name not in EXCEPTIONS.get(path, ())
    ]
    assert not wrong, "make the last parameters keyword-only, or group them:\n" + "\n".join(wrong)
    assert {path: set(found[path]) for path in EXCEPTIONS} == EXCEPTIONS, "remove exceptions that are not needed"


def test_positional_parameters_are_counted() -> None:
    tree = ast.parse("class A:\n    def f(self, a, b, c, d, e, *, g): ...\n    def h(self, a, b, c, d, e, f): ...")
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert [len(positional(each)) for each in functions] == [5, 6]
