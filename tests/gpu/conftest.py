"""Tests in this folder need a GPU and are skipped without one; those of kernels can be interpreted on a CPU."""

from pathlib import Path

import pytest
import torch
from triton_interpreter import interpreted_ranges

__all__ = ["interpreted_ranges"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them as `gpu`."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.gpu)
            if not item.path.name.endswith("_kernels.py") and not torch.cuda.is_available():
                item.add_marker(pytest.mark.skip(reason="needs a GPU"))
