"""Python declarations of the library for training (`source/training/`)."""

import ctypes
from ctypes import POINTER, Structure, c_float, c_int32, c_int64, c_void_p
from functools import cache
from pathlib import Path

from dragoman.native.build import best_library, load
from dragoman.native.compiler import TRAINING


class Rows(Structure):
    """See `source/training/attention.h`."""

    _fields_ = (
        ("query_starts", c_void_p),
        ("key_starts", c_void_p),
        ("sentences", c_int64),
        ("query_rows", c_int64),
        ("key_rows", c_int64),
        ("query_stride", c_int64),
        ("key_stride", c_int64),
        ("value_stride", c_int64),
        ("out_stride", c_int64),
        ("heads", c_int32),
        ("key_width", c_int32),
        ("value_width", c_int32),
        ("causal", c_int32),
        ("scale", c_float),
    )


class MuonStep(Structure):
    """The constants of a step of Muon (`source/training/muon_step.h`).

    W ← keep · W − rate · orthogonal((1 − momentum) · G + momentum · M). margin: factor on the estimate of the largest
    singular value. steps: the coefficients of three polynomials.
    """

    _fields_ = (
        ("momentum", c_float),
        ("keep", c_float),
        ("rate", c_float),
        ("margin", c_float),
        ("steps", c_float * 9),
    )


_WITHOUT_RESULT = ("drop", "normalise", "rotate", "narrow", "sum_widened")


@cache
def library() -> ctypes.CDLL:
    """Return the library, which is compiled if necessary. Raises NoLibraryError."""
    return declared(best_library(TRAINING))


def declared(path: Path) -> ctypes.CDLL:
    """Return a compiled library with the types of its functions."""
    found = load(path, TRAINING)
    pointer, size, count, number = c_void_p, c_int64, c_int32, c_float
    rows = POINTER(Rows)
    declarations = {
        "attend": (rows, *[pointer] * 4, count),
        "differentiate_attention": (rows, *[pointer] * 7, count),
        "rotate": (pointer, pointer, pointer, size, size, size, size, count, count),
        "drop": (pointer, pointer, pointer, size, size, number, count),
        "normalise": (*[pointer] * 8, size, size, number, size, number, count),
        "differentiate_norm": (*[pointer] * 9, size, size, size, number, count),
        "sum_rows": (*[pointer] * 4, size, size, count),
        "differentiate_entropy": (*[pointer] * 5, size, size, number, count),
        "narrow": (pointer, pointer, pointer, size),
        "sum_widened": (pointer, size, pointer, size),
        "muon": (pointer, pointer, pointer, size, size, count, POINTER(MuonStep), count),
    }
    for name, arguments in declarations.items():
        function = getattr(found, f"dragoman_training_{name}")  # not by [], which returns a new function
        function.argtypes = arguments
        function.restype = None if name in _WITHOUT_RESULT else c_int32
    return found


def has_pairs() -> bool:
    """Return whether this processor multiplies pairs of bfloat16, which Muon's products in bfloat16 require."""
    return bool(library().dragoman_training_has_pairs())
