"""Sharded tensors, saved by torch.distributed.checkpoint in safetensors files.

torch's default writer uses pickle, so torch's writer for the Hugging Face format is used instead. Each rank writes one
safetensors file with its shards; the metadata (JSON) contain their offsets in the whole tensors. Any number of ranks
can read them.
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
    """Write the tensors into `folder`, in a collective operation of all ranks of the process group `group`.

    Tensors that are not sharded are written by one rank. Raises ResourceError if a disk is full.
    """
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    writer = HuggingFaceStorageWriter(str(folder), save_distributed=True)
    # The order decides which rank writes unsharded tensors.
    ordered = {name: tensors[name].detach() for name in sorted(tensors)}
    try:
        save(ordered, storage_writer=writer, process_group=group)
    except CheckpointException as error:
        for failure, _ in error.failures.values():
            if isinstance(failure, OSError):
                raise unwritable(folder, failure) from error
        raise


def read_shards(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Fill `tensors`, sharded or whole, from any number of shards. Raises ModelError if names or shapes differ."""
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.state_dict_loader import load

    shapes = shard_shapes(folder)
    wrong = sorted(shapes.keys() ^ tensors.keys())
    wrong += [name for name, tensor in tensors.items() if name in shapes and shapes[name] != tensor.shape]
    if wrong:
        raise ModelError(f"{folder} contains different tensors than this run: {', '.join(wrong[:5])} differ")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        try:
            load(dict(tensors), storage_reader=HuggingFaceStorageReader(str(folder)), no_dist=True)
        except CheckpointException as error:
            raise ModelError(f"{folder} is damaged: {error}") from error


def shard_shapes(folder: Path) -> dict[str, torch.Size]:
    """Return the names and unsharded shapes of the tensors in `folder`."""
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader

    found = HuggingFaceStorageReader(str(folder)).read_metadata().state_dict_metadata
    return {name: content.size for name, content in found.items()}  # type: ignore[union-attr]
