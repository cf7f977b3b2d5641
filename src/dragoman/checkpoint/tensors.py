"""Reads and writes named tensors in safetensors files. Files are written atomically and cannot execute code."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from dragoman.base.errors import ModelError
from dragoman.base.files import atomic_file, unwritable

_BLOCK = 2**23
"""Number of bytes that are read at once."""

_SIGNATURES = {
    b"PK\x03\x04": "a PyTorch pickle, which is never loaded because it can execute code: convert it to safetensors",
    b"\x80": "a pickle, which is never loaded because it can execute code: convert it to safetensors",
    b"version https://git-lfs": "a Git LFS pointer: fetch the file with git lfs pull",
}


class Shape(NamedTuple):
    """The shape of a tensor in a file's header, and the name of its dtype in safetensors, such as F32."""

    size: tuple[int, ...]
    dtype: str


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write `tensors` atomically. Tensors that share memory (tied parameters) must be passed only once.

    Raises ResourceError if the disk is full; the previous file then remains intact.
    """
    cpu_tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with atomic_file(path) as file:
        try:
            safetensors.torch.save_file(cpu_tensors, file, dict(metadata))
        except safetensors.SafetensorError as error:
            match = re.search(r"os error (\d+)", str(error))
            if match is None:
                raise
            raise unwritable(Path(path), OSError(int(match[1]), os.strerror(int(match[1])))) from error
        sort_metadata(file)
        _set_default_permissions(file)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Load the tensors of a file on the CPU, by name, and its metadata.

    Raises ModelError if the file is missing, truncated, too long, or not a safetensors file. The sizes in the header
    are compared with the file size before memory is allocated.
    """
    with _opened(path) as file:
        return {name: file.get_tensor(name) for name in sorted(file.keys())}, dict(file.metadata() or {})


@torch.no_grad()
def read_into(parameters: Mapping[str, Tensor], path: Path) -> None:
    """Copy the tensors of a file into the parameters with the same names and shapes.

    The file is opened for each `_BLOCK` bytes: while it is open, what was read stays in memory. If it is replaced
    meanwhile, the new file is read from the beginning. Raises ModelError as `load_tensors` does.
    """
    first = _version(path)
    for block in _blocks(parameters):
        with _opened(path) as file:
            for name, rows in block:
                if rows is None:
                    parameters[name].copy_(file.get_tensor(name))
                else:
                    parameters[name][rows].copy_(file.get_slice(name)[rows])
    if _version(path) != first:
        read_into(parameters, path)


def _version(path: Path) -> tuple[int, int] | None:
    """Return what identifies the content of a file; None if there is no file."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _blocks(parameters: Mapping[str, Tensor]) -> Iterator[list[tuple[str, slice | None]]]:
    """Yield lists of names, each with a range of rows or None for all, of up to `_BLOCK` bytes or a single row."""
    block: list[tuple[str, slice | None]] = []
    size = 0
    for name, parameter in parameters.items():
        parts: list[slice | None] = [None]
        if parameter.nbytes > _BLOCK:
            rows = max(1, _BLOCK * len(parameter) // parameter.nbytes)
            parts = [slice(start, start + rows) for start in range(0, len(parameter), rows)]
        for part in parts:
            size += parameter.nbytes // len(parts)
            if block and size > _BLOCK:
                yield block
                block, size = [], parameter.nbytes // len(parts)
            block.append((name, part))
    yield block


def read_shapes(path: Path) -> tuple[dict[str, Shape], dict[str, str]]:
    """Return the shapes of a file's tensors, by name, and its metadata. Raises ModelError as `load_tensors` does."""
    with _opened(path) as file:
        slices = {name: file.get_slice(name) for name in sorted(file.keys())}
        shapes = {name: Shape(tuple(part.get_shape()), part.get_dtype()) for name, part in slices.items()}
        return shapes, dict(file.metadata() or {})


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    path = Path(path)
    if not path.is_file():
        raise ModelError(f"{path} {'is not a file' if path.exists() else 'does not exist'}")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            yield file
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        with path.open("rb") as content:
            first_bytes = content.read(32)
        for signature, description in _SIGNATURES.items():
            if first_bytes.startswith(signature):
                raise ModelError(f"{path} is {description}") from error
        size = path.stat().st_size
        raise ModelError(
            f"{path} ({size:,} bytes) is damaged or not a safetensors file: {error}. Copy it again from its source, or "
            f"use another checkpoint"
        ) from error


def model_parameters(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters and persistent buffers of a model by name. Tied tensors occur once, by their first name."""
    unique: dict[int, tuple[str, Tensor]] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        unique.setdefault(id(tensor), (name, tensor))
    return dict(unique.values())


@torch.no_grad()
def fill(parameters: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
    """Copy `values` into the parameters with the same names."""
    for name, parameter in parameters.items():
        parameter.copy_(values[name])


def sort_metadata(file: Path) -> None:
    """Sort the metadata of a safetensors file, which the library writes in random order.

    Files with equal contents are then identical in every byte.
    """
    with file.open("r+b") as content:
        size = int.from_bytes(content.read(8), "little")
        header = json.loads(content.read(size))
        header["__metadata__"] = dict(sorted(header.get("__metadata__", {}).items()))
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        if len(text) <= size:
            content.seek(8)
            content.write(text.ljust(size))


def _set_default_permissions(file: Path) -> None:
    """Set the default permissions of new files. The library creates files that only their owner can read."""
    mask = os.umask(0)
    os.umask(mask)
    file.chmod(0o666 & ~mask)
