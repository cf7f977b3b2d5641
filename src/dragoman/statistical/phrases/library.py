"""Python declarations of the phrase library's functions and structures, which mirror `source/phrases/interface.h`."""

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_double, c_int32, c_int64, c_void_p
from functools import cache

from dragoman.native.build import best_library, load
from dragoman.native.compiler import PHRASES
from dragoman.native.structures import ArrayStructure, pointers

REORDERINGS, MAX_WINDOW, MAX_STATE = 6, 62, 64
NO_MEMORY = 1

ScoreWord = CFUNCTYPE(c_double, c_void_p, c_void_p, c_int32, c_void_p)
"""A function that returns log p(word | state) and writes the following state."""


class AlignedCorpus(ArrayStructure):
    """Word-aligned sentence pairs (see `source/phrases/interface.h`)."""

    _fields_ = (
        *pointers(
            "source_starts",
            "target_starts",
            "link_starts",
            "links",
            "source_given_target",
            "target_given_source",
            "source_given_null",
            "target_given_null",
        ),
        ("sentences", c_int32),
        ("max_length", c_int32),
    )


class PhraseOccurrences(ArrayStructure):
    """Arrays that receive extracted phrase pairs (see `source/phrases/interface.h`)."""

    _fields_ = pointers(
        "source",
        "target",
        "source_length",
        "target_length",
        "previous",
        "next",
        "source_given_target",
        "target_given_source",
    )


class PhraseTable(ArrayStructure):
    """A phrase table (see `source/phrases/interface.h`)."""

    _fields_ = (
        *pointers(
            "words", "child_starts", "pair_starts", "targets", "target_starts", "target_words", "features", "reordering"
        ),
        ("table_features", c_int32),
        ("max_length", c_int32),
    )


class LanguageModel(ArrayStructure):
    """A language model that the search queries (see `source/phrases/interface.h`)."""

    _fields_ = (
        *pointers("score", "model", "start", "empty"),
        ("state_size", c_int32),
        ("end", c_int32),
        ("unknown", c_int32),
    )


class SearchSettings(ArrayStructure):
    """Weights and limits of a search (see `source/phrases/interface.h`)."""

    _fields_ = (
        *pointers("weights"),
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
