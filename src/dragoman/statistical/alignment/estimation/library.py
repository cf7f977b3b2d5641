"""Python declarations of the functions and structures of the C library `native/source/alignment`."""

import ctypes
from ctypes import POINTER, Structure, c_double, c_int32, c_int64, c_void_p
from functools import cache
from typing import Any, Self

from numpy.typing import NDArray

from dragoman.base.errors import ResourceError
from dragoman.native import build
from dragoman.native.compiler import ALIGNMENT
from dragoman.native.structures import ArrayStructure, pointers
from dragoman.statistical.alignment.estimation.pairs import Ints, WordPairs


class Pairs(ArrayStructure):
    """See `pairs.h`."""

    _fields_ = pointers("source", "target", "source_starts", "target_starts", "cells", "slots")

    @classmethod
    def of_pairs(cls, pairs: WordPairs, slots: Ints) -> Self:
        """Return a structure that points to the arrays of the pairs."""
        names = ("source", "target", "source_starts", "target_starts", "cells")
        return cls.of({**{name: getattr(pairs, name) for name in names}, "slots": slots})


class PositionTable(ArrayStructure):
    """See `mixture.h`. Without `probabilities`, positions have uniform probabilities."""

    _fields_ = pointers("shapes", "starts", "probabilities")


class Jumps(Structure):
    """See `hmm.h`."""

    _fields_ = (
        *pointers("jumps", "start"),
        ("distance", c_int64),
        ("null", c_double),
        ("smoothing", c_double),
    )


class JumpCounts(Structure):
    """See `hmm.h`."""

    _fields_ = pointers("jumps", "start", "lows", "highs", "firsts")


class SamplerSettings(Structure):
    """See `fertility.h`."""

    _fields_ = (
        ("row_priors", c_void_p),
        *((name, c_double) for name in ("lexicon", "null_lexicon", "jump", "fertility", "null")),
        ("distance", c_int64),
        ("fertilities", c_int64),
    )


class Sampler(Structure):
    """See `fertility.h`."""

    _fields_ = pointers("links", "counts", "totals", "jumps", "words", "random", "marginals")


class FertilityModel(Structure):
    """See `fertility.h`."""

    _fields_ = (
        *pointers("lexicon", "jumps", "fertilities"),
        ("null", c_double),
        *((name, c_int64) for name in ("distance", "count", "burn_in", "sweeps")),
    )


@cache
def functions() -> ctypes.CDLL:
    """Return the library, which is compiled at first use. Raises NoLibraryError if it cannot be loaded or compiled."""
    library = build.load(build.best_library(ALIGNMENT), ALIGNMENT)
    pairs, array, number, word = POINTER(Pairs), c_void_p, c_int64, c_int32
    table = POINTER(PositionTable)
    for name, arguments, result in (
        ("list_targets", [pairs, array, array, array, number, number, *[array] * 5], None),
        ("find_entries", [pairs, array, array, number, number, word, array], None),
        ("count_entries", [pairs, array, number, number, word, word, array], None),
        ("estimate_rows", [array, array, c_double, number, number, array, array], None),
        ("expect_mixture", [pairs, array, table, number, number, array, array], c_int32),
        ("count_positions", [pairs, table, array, number, number, word, word, array], None),
        ("diagonal_positions", [array, array, number, c_double, c_double, array], None),
        ("diagonal_moments", [array, array, number, c_double, array, array], None),
        (
            "expect_hmm",
            [pairs, array, POINTER(Jumps), number, number, array, array, POINTER(JumpCounts)],
            c_int32,
        ),
        *(
            (name, [pairs, POINTER(Sampler), POINTER(SamplerSettings), number, word], c_int32)
            for name in ("draw_links", "count_links", "sample_links")
        ),
        ("expect_fertility", [pairs, POINTER(FertilityModel), number, number, array, array], c_int32),
        ("find_likelihoods", [pairs, POINTER(FertilityModel), number, number, array], None),
        ("choose_links", [pairs, array, number, number, array], None),
    ):
        function = getattr(library, f"dragoman_{name}")
        function.argtypes, function.restype = arguments, result
    return library


def address(array: NDArray[Any]) -> int:
    """Return the address of the first element of a contiguous array, which the caller keeps alive."""
    first: int = array.__array_interface__["data"][0]
    return first


def check_memory(succeeded: int) -> None:
    """Raise ResourceError if a function of the library could not allocate its memory."""
    if not succeeded:
        raise ResourceError("not enough memory to align the longest sentence pairs: remove them, or divide them")
