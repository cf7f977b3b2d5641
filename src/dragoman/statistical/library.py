"""Python declarations of the phrase library's functions and structures, which mirror `source/phrases/interface.h`."""

import ctypes
from collections.abc import Mapping
from ctypes import CFUNCTYPE, POINTER, Structure, c_double, c_int32, c_int64, c_void_p
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.native.build import best_library, load
from dragoman.native.compiler import PHRASES

REORDERINGS, MAX_WINDOW, MAX_STATE = 6, 62, 64
NO_MEMORY = 1

ScoreWord = CFUNCTYPE(c_double, c_void_p, c_void_p, c_int32, c_void_p)
"""A function that returns log p(word | state) and writes the following state."""


class _Arrays(Structure):
    """A structure whose pointers refer to NumPy arrays, which it keeps alive."""

    arrays: Any

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any] | None], **numbers: int) -> Any:
        """Create a structure from contiguous arrays by field name, and from numbers."""
        structure = cls(**numbers)
        structure.arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items() if array is not None}
        for name, array in structure.arrays.items():
            setattr(structure, name, array.ctypes.data)
        return structure


class AlignedCorpus(_Arrays):
    """Word-aligned sentence pairs (see `source/phrases/interface.h`)."""

    _fields_ = (
        ("source_starts", c_void_p),
        ("target_starts", c_void_p),
        ("link_starts", c_void_p),
        ("links", c_void_p),
        ("source_given_target", c_void_p),
        ("target_given_source", c_void_p),
        ("source_given_null", c_void_p),
        ("target_given_null", c_void_p),
        ("sentences", c_int32),
        ("max_length", c_int32),
    )


class PhraseOccurrences(_Arrays):
    """Arrays that receive extracted phrase pairs (see `source/phrases/interface.h`)."""

    _fields_ = (
        ("source", c_void_p),
        ("target", c_void_p),
        ("source_length", c_void_p),
        ("target_length", c_void_p),
        ("previous", c_void_p),
        ("next", c_void_p),
        ("source_given_target", c_void_p),
        ("target_given_source", c_void_p),
    )


class PhraseTable(_Arrays):
    """A phrase table (see `source/phrases/interface.h`)."""

    _fields_ = (
        ("words", c_void_p),
        ("child_starts", c_void_p),
        ("pair_starts", c_void_p),
        ("targets", c_void_p),
        ("target_starts", c_void_p),
        ("target_words", c_void_p),
        ("features", c_void_p),
        ("reordering", c_void_p),
        ("table_features", c_int32),
        ("max_length", c_int32),
    )


class LanguageModel(_Arrays):
    """A language model that the search queries (see `source/phrases/interface.h`)."""

    _fields_ = (
        ("score", c_void_p),
        ("model", c_void_p),
        ("start", c_void_p),
        ("empty", c_void_p),
        ("state_size", c_int32),
        ("end", c_int32),
        ("unknown", c_int32),
    )


class SearchSettings(_Arrays):
    """Weights and limits of a search (see `source/phrases/interface.h`)."""

    _fields_ = (
        ("weights", c_void_p),
        ("stack", c_int32),
        ("pops", c_int32),
        ("options", c_int32),
        ("distortion", c_int32),
        ("nbest", c_int32),
    )


class Translations(Structure):
    """The distinct translations of a sentence (see `source/phrases/interface.h`)."""

    _fields_ = (
        ("scores", POINTER(c_double)),
        ("features", POINTER(c_double)),
        ("words", POINTER(c_int32)),
        ("word_starts", POINTER(c_int32)),
        ("phrases", POINTER(c_int32)),
        ("phrase_starts", POINTER(c_int32)),
        ("count", c_int32),
    )


@cache
def phrase_library() -> ctypes.CDLL:
    """Return the phrase library, which is compiled at first use. Raises NoLibraryError if it cannot be compiled."""
    library = load(best_library(PHRASES), PHRASES)
    library.phrases_extract.argtypes = [POINTER(AlignedCorpus), c_int32, c_int32, POINTER(PhraseOccurrences)]
    library.phrases_extract.restype = c_int64
    library.phrases_translate.argtypes = [
        POINTER(PhraseTable),
        POINTER(LanguageModel),
        POINTER(SearchSettings),
        c_void_p,
        c_int32,
        POINTER(Translations),
    ]
    library.phrases_translate.restype = c_int32
    library.phrases_free.argtypes, library.phrases_free.restype = [POINTER(Translations)], None
    return library
