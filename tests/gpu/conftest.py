"""Tests in this folder need a GPU and are skipped without one; those of kernels can be interpreted on a CPU."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them as `gpu`."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.gpu)
            if not item.path.name.endswith("_kernels.py") and not torch.cuda.is_available():
                item.add_marker(pytest.mark.skip(reason="needs a GPU"))


@pytest.fixture(autouse=True, scope="session")
def interpreted_ranges() -> None:
    """Let the interpreter of Triton up to 3.6 convert the bounds of loops to integers.

    It stores scalars as arrays with one element, and converts them by `int(array)`, which NumPy 2.4 refuses:
    https://github.com/triton-lang/triton/issues/9171
    """
    if os.environ.get("TRITON_INTERPRET") != "1":
        return
    from triton.runtime import interpreter

    patch = getattr(interpreter, "_patch_lang_tensor", None)
    if patch is None:
        return

    def patch_with_index(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = patch_with_index
