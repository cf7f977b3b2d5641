"""Reads and writes sharded tensors as safetensors files, with torch.distributed.checkpoint.

PyTorch's default writer uses pickle, so its writer for the Hugging Face format is used instead. Each rank writes one
safetensors file with its shards, whose JSON metadata contain the offsets of the shards in the full tensors. Any number
of ranks can read the files.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.base.errors import ModelError
from dragoman.base.files import unwritable


def write_shards(folder: Path, tensors: Mapping[str, Tensor], group: Any) -> None:
    """Write tensors into `folder`. This is a collective operation of all ranks of the process group `group`.

    Tensors that are not sharded are written by a single rank. Raises ResourceError if a disk is full.
    """
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    writer = HuggingFaceStorageWriter(str(folder), save_distributed=True)
    # The order determines the rank that writes an unsharded tensor, so it must be equal on all ranks.
    ordered = {name: tensors[name].detach() for name in sorted(tensors)}
    try:
        save(ordered, storage_writer=writer, process_group=group)
    except CheckpointException as error:
        for failure, _ in error.failures.values():
            if isinstance(failure, OSError):
                raise unwritable(folder, failure) from error
        raise


def read_shards(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Load stored values into `tensors`, which may be sharded. Raises ModelError if names or shapes differ."""
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.state_dict_loader import load

    shapes = shard_shapes(folder)
    mismatched = sorted(shapes.keys() ^ tensors.keys())
    mismatched += [name for name, tensor in tensors.items() if name in shapes and shapes[name] != tensor.shape]
    if mismatched:
        raise ModelError(f"the tensors in {folder} do not fit this run: {', '.join(mismatched[:5])} differ")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        try:
            load(dict(tensors), storage_reader=HuggingFaceStorageReader(str(folder)), no_dist=True)
        except CheckpointException as error:
            raise ModelError(f"{folder} is damaged: {error}") from error


def shard_shapes(folder: Path) -> dict[str, torch.Size]:
    """Return the full shape of each tensor in `folder`, by name."""
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader

    metadata = HuggingFaceStorageReader(str(folder)).read_metadata().state_dict_metadata
    return {name: tensor.size for name, tensor in metadata.items()}  # type: ignore[union-attr]
