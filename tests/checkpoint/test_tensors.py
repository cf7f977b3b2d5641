"""Named tensors on disk: they are restored, and equal content gives equal files."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.checkpoint import tensors as tensors_module
from dragoman.checkpoint.tensors import load_tensors, read_into, save_tensors


def test_the_same_content_is_the_same_file_byte_for_byte(tmp_path: Path) -> None:
    tensors = {"weight": torch.arange(6.0).view(2, 3), "bias": torch.ones(3, dtype=torch.bfloat16)}
    metadata = {"step": "7", "format_version": "1", "note": "Straße"}
    for number in range(8):
        save_tensors(tmp_path / f"{number}.safetensors", tensors, metadata)
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
    found, labels = load_tensors(tmp_path / "0.safetensors")
    assert labels == metadata
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(found[name], tensor)


def test_tensors_without_metadata_are_saved_too(tmp_path: Path) -> None:
    save_tensors(tmp_path / "plain.safetensors", {"weight": torch.zeros(1)}, {})
    found, labels = load_tensors(tmp_path / "plain.safetensors")
    assert torch.equal(found["weight"], torch.zeros(1)) and labels == {}


def test_large_tensors_are_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last block may be smaller; tensors of other types are converted."""
    tensors = {
        "table": torch.randn(11, 3),
        "row": torch.randn(40),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 4),
    }
    save_tensors(tmp_path / "some.safetensors", tensors, {})
    monkeypatch.setattr("dragoman.checkpoint.tensors._BLOCK", 24)
    found = {name: torch.full_like(tensor, 7, dtype=torch.float64) for name, tensor in tensors.items()}
    read_into(found, tmp_path / "some.safetensors")
    for name, tensor in tensors.items():
        assert torch.equal(found[name], tensor.double())


def test_a_file_that_is_replaced_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parameters of two files are never mixed, as when a run writes a better model while another process loads it."""
    path, opened = tmp_path / "some.safetensors", tensors_module._opened
    old, new = ({name: torch.full((4,), value) for name in "ab"} for value in (1.0, 2.0))
    save_tensors(path, old, {})
    monkeypatch.setattr(tensors_module, "_BLOCK", 16)
    times = []

    def replacing(file: Path) -> AbstractContextManager[Any]:
        times.append(file)
        if len(times) == 2:
            save_tensors(path, new, {})
        return opened(file)

    monkeypatch.setattr(tensors_module, "_opened", replacing)
    found = {name: torch.zeros(4) for name in "ab"}
    read_into(found, path)
    assert all(torch.equal(found[name], new[name]) for name in "ab") and len(times) == 4
