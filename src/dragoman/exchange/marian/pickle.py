"""Tensors of a pickle, the only place where one is read, and only where the user asks for it."""

from pathlib import Path

import torch
from torch import Tensor

from dragoman.base.errors import ModelError


def load_pickle(path: Path) -> dict[str, Tensor]:
    """Named tensors, on the CPU; torch's own reader refuses all that could run code (weights_only).

    Raises ModelError for a file that holds anything else.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of many classes: it is a reader of foreign bytes
        reason = str(error).split("\n", 1)[0]
        raise ModelError(f"{path} is damaged, or holds more than tensors, which is not read: {reason}") from None
    if not isinstance(content, dict):
        raise ModelError(f"{path} must hold tensors by name, not {type(content).__name__}")
    for name, tensor in content.items():
        if not (isinstance(name, str) and isinstance(tensor, Tensor)):
            raise ModelError(f"{path} must hold tensors by name, but {name!r} is of type {type(tensor).__name__}")
    return {name: tensor.detach() for name, tensor in content.items()}
