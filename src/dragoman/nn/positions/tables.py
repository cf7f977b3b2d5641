"""Tables with one row per position, which all layers and models share."""

from collections.abc import Callable
from threading import Lock
from typing import Concatenate, ParamSpec

import torch
from torch import Tensor

_FIRST_LENGTH = 512

Constants = ParamSpec("Constants")


def growing_table(
    compute: Callable[Concatenate[int, Constants], Tensor],
) -> Callable[Concatenate[int, torch.device, Constants], Tensor]:
    """Return a function that looks up the table of `compute` with at least a given number of rows, on a device.

    compute: returns the table with a number of rows, on the CPU; its other arguments are constants of the table. The
    first arguments of the result are the number of rows that are needed, and the device. The number of rows of the
    table is the next power of two, at least 512, so that all tables together are at most twice as long as the longest.

    A table is never replaced or freed. A captured CUDA graph refers to its tensors by address and does not keep them:
    if a longer text replaced a table, the graphs that were captured before would read freed memory, and add it to the
    embeddings of all further texts. This includes threads that need the same table at the same time.
    """
    tables: dict[object, Tensor] = {}
    lock = Lock()

    def table(rows: int, device: torch.device, /, *constants: Constants.args, **names: Constants.kwargs) -> Tensor:
        length = max(_FIRST_LENGTH, 1 << (rows - 1).bit_length())
        key = length, device, constants, *names.items()
        if (known := tables.get(key)) is not None:
            return known
        with lock, torch.inference_mode(False):  # a table built during translation must be usable in training
            if key not in tables:
                tables[key] = compute(length, *constants, **names).to(device)
            return tables[key]

    return table
