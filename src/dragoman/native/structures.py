"""`ArrayStructure`: structures of the C libraries whose pointers refer to NumPy arrays."""

from collections.abc import Mapping
from ctypes import Structure, c_void_p
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


def pointers(*names: str) -> tuple[tuple[str, type[c_void_p]], ...]:
    """Return the declarations of fields that are pointers."""
    return tuple((name, c_void_p) for name in names)


class ArrayStructure(Structure):
    """A structure that keeps the arrays alive to which its pointers refer.

    arrays: the arrays by field name. A pointer without an array is NULL.
    """

    arrays: dict[str, Any]

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any] | None], **numbers: int) -> Self:
        """Create a structure from arrays and numbers by field name. Arrays that are not contiguous are copied."""
        structure = cls(**numbers)
        structure.arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items() if array is not None}
        for name, array in structure.arrays.items():
            setattr(structure, name, array.ctypes.data)
        return structure
