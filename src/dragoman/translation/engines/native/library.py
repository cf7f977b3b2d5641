"""The compiled library as Python sees it: its structures, field by field as in `source/`, and its functions."""

import ctypes
from ctypes import POINTER, Structure, c_double, c_float, c_int32, c_void_p
from functools import cache
from pathlib import Path

from dragoman.base.errors import ModelError, ResourceError

FLOAT32, INT8 = 0, 1
_NO_MEMORY, _NOT_A_NUMBER = 1, 2
LAYER_NORM, RMS_NORM = 0, 1
RELU, GELU, SWISH, SWIGLU = 0, 1, 2, 3
NO_PENALTY, GNMT_PENALTY, MEAN_PENALTY = 0, 1, 2
LANES = 16
"""Every width is filled up with zeros to a multiple of it."""


class Matrix(Structure):
    """weights (outputs, inputs), bias (outputs); no weights: no matrix."""

    _fields_ = (("weights", c_void_p), ("bias", c_void_p), ("outputs", c_int32), ("inputs", c_int32))


class Norm(Structure):
    """gain, offset: (padded), or none. width: the numbers that are normalised."""

    _fields_ = (
        ("gain", c_void_p),
        ("offset", c_void_p),
        ("epsilon", c_float),
        ("kind", c_int32),
        ("width", c_int32),
        ("padded", c_int32),
    )


class Attention(Structure):
    """Widths are those of a head. slopes: (heads) of ALiBi, or none."""

    _fields_ = (
        ("heads", c_int32),
        ("key_width", c_int32),
        ("value_width", c_int32),
        ("rotary", c_int32),
        ("scale", c_float),
        ("slopes", c_void_p),
    )


class Layer(Structure):
    """An encoder's layer leaves out what is of the source."""

    _fields_ = (
        ("attention", Attention),
        ("source", Attention),
        ("projections", Matrix),
        ("output", Matrix),
        ("source_query", Matrix),
        ("source_projections", Matrix),
        ("source_output", Matrix),
        ("inner", Matrix),
        ("gate", Matrix),
        ("outer", Matrix),
        ("around_attention", Norm),
        ("around_source", Norm),
        ("around_feedforward", Norm),
        ("activation", c_int32),
        ("recurrent", c_int32),
    )


class Stack(Structure):
    """tokens: (size, width)."""

    _fields_ = (
        ("layer", POINTER(Layer)),
        ("tokens", c_void_p),
        ("norm", Norm),
        ("layers", c_int32),
        ("width", c_int32),
        ("size", c_int32),
        ("pre", c_int32),
    )


class Model(Structure):
    """All of it is copied when the model is opened."""

    _fields_ = (
        ("encoder", Stack),
        ("decoder", Stack),
        ("vocabulary", Matrix),
        ("precision", c_int32),
        ("threads", c_int32),
    )


class Positions(Structure):
    """vectors: (length, width); turns: (length, turns_width), cosines, then sines; or none."""

    _fields_ = (("vectors", c_void_p), ("turns", c_void_p), ("turns_width", c_int32), ("length", c_int32))
    arrays: object
    """Keeps the arrays alive that it points to."""


class Plan(Structure):
    """How texts are translated."""

    _fields_ = (
        ("source", Positions),
        ("target", Positions),
        ("begin", c_int32),
        ("end", c_int32),
        ("workers", c_int32),
        ("batch", c_int32),
    )


class Text(Structure):
    """See `source/hypotheses.h`."""

    _fields_ = (
        ("source", c_void_p),
        ("prefix", c_void_p),
        ("forbidden", c_void_p),
        ("length", c_int32),
        ("prefix_length", c_int32),
        ("forbidden_count", c_int32),
        ("beam", c_int32),
        ("wanted", c_int32),
        ("limit", c_int32),
        ("minimum", c_int32),
        ("penalty", c_int32),
        ("alpha", c_double),
        ("tokens", c_void_p),
        ("lengths", c_void_p),
        ("log_probabilities", c_void_p),
        ("scores", c_void_p),
        ("finished", c_void_p),
        ("next", c_void_p),
        ("found", c_int32),
    )


@cache
def load(path: Path) -> ctypes.CDLL:
    """The library. Raises ResourceError for one that cannot be loaded, or was made from other sources."""
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ResourceError(
            f"the native engine {path} cannot be loaded ({error}): delete it, and it is made anew"
        ) from None
    library.dragoman_open.argtypes, library.dragoman_open.restype = [POINTER(Model)], c_void_p
    library.dragoman_close.argtypes, library.dragoman_close.restype = [c_void_p], None
    library.dragoman_translate.argtypes = [c_void_p, POINTER(Text), c_int32, POINTER(Plan)]
    library.dragoman_translate.restype = c_int32
    library.dragoman_begin.argtypes, library.dragoman_begin.restype = [c_void_p, POINTER(Plan)], c_void_p
    library.dragoman_put.argtypes, library.dragoman_put.restype = [c_void_p, POINTER(Text), c_int32], None
    library.dragoman_found.argtypes = [c_void_p, c_int32, POINTER(c_int32), POINTER(c_int32)]
    library.dragoman_found.restype = c_void_p
    library.dragoman_end.argtypes, library.dragoman_end.restype = [c_void_p], None
    sizes = (c_int32 * 4)()
    library.dragoman_layout(sizes)
    if list(sizes) != [ctypes.sizeof(each) for each in (Model, Layer, Text, Plan)]:
        raise ResourceError(f"the native engine {path} does not fit this version of dragoman: delete it")
    return library


def check(outcome: int) -> None:
    """Raises ModelError where log-probabilities are not numbers, ResourceError where the memory is too small."""
    if outcome == _NO_MEMORY:
        raise ResourceError("the texts do not fit the memory together: use a smaller batch size or beam")
    if outcome == _NOT_A_NUMBER:
        raise ModelError("the model's log-probabilities are not numbers (NaN): damaged or diverged parameters")
