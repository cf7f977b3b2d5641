"""Python declarations of the engine's functions and structures, which mirror `source/engine/interface.h`."""

import ctypes
from collections.abc import Iterator
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_float, c_int32, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from dragoman.base.errors import ModelError, ResourceError
from dragoman.native import build
from dragoman.native.compiler import ENGINE

FLOAT32, INT8, BFLOAT16 = 0, 1, 2
_NO_MEMORY, _NOT_A_NUMBER = 1, 2
LAYER_NORM, RMS_NORM = 0, 1
RELU, GELU, SWISH, SWIGLU, GELU_TANH = 0, 1, 2, 3, 4
NO_PENALTY, GNMT_PENALTY, MEAN_PENALTY = 0, 1, 2
TOKEN_KINDS = 4
"""Number of kinds of tokens, as in `dragoman.decode.constraints.automaton.KINDS`."""
LANES = 16
"""Number of floats to whose multiples widths are padded with zeros."""


class Matrix(Structure):
    """A matrix and a bias. weights: (rows, inputs), NULL if the matrix does not exist. bias: (outputs).

    Outputs beyond the rows have weights of zero.
    """

    _fields_ = (
        ("weights", c_void_p),
        ("bias", c_void_p),
        ("outputs", c_int32),
        ("inputs", c_int32),
        ("rows", c_int32),
    )


class Norm(Structure):
    """A layer norm or RMS norm. gain, offset: (padded), or NULL. width: the number of normalised values."""

    _fields_ = (
        ("gain", c_void_p),
        ("offset", c_void_p),
        ("epsilon", c_float),
        ("kind", c_int32),
        ("width", c_int32),
        ("padded", c_int32),
    )


class Attention(Structure):
    """An attention. key_width, value_width: the widths of one head. slopes: the ALiBi slopes (heads), or NULL."""

    _fields_ = (
        ("heads", c_int32),
        ("key_width", c_int32),
        ("value_width", c_int32),
        ("rotary", c_int32),
        ("scale", c_float),
        ("slopes", c_void_p),
    )


class Layer(Structure):
    """A layer of an encoder or decoder. An encoder's layer has empty matrices for cross-attention."""

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
    """An encoder or decoder.

    tokens: (size, width), multiplied by `scale`. begin: an id with the vector of the id `replaced`, or −1. pre: whether
    norms are applied before the sublayers. causal: whether an encoder's token attends only to itself and earlier
    tokens. segments: (N, width), added to the token vectors, or NULL. embedding_norm: normalises the inputs of the
    first layer, unless its width is 0.
    """

    _fields_ = (
        ("tokens", c_void_p),
        ("norm", Norm),
        ("scale", c_float),
        ("begin", c_int32),
        ("replaced", c_int32),
        ("layers", c_int32),
        ("width", c_int32),
        ("size", c_int32),
        ("pre", c_int32),
        ("segment_count", c_int32),
        ("causal", c_int32),
        ("segments", c_void_p),
        ("embedding_norm", Norm),
    )


class Model(Structure):
    """A whole Transformer without its layers, which are added one by one.

    Without a decoder, `decoder` and `vocabulary` are zeros.
    """

    _fields_ = (
        ("encoder", Stack),
        ("decoder", Stack),
        ("vocabulary", Matrix),
        ("precision", c_int32),
    )


class Positions(Structure):
    """Position tables of an encoder or decoder.

    vectors: (length, width), added to token vectors, or NULL. angles: (length, angles_width), cosines followed by
    sines, or NULL.
    """

    _fields_ = (("vectors", c_void_p), ("angles", c_void_p), ("angles_width", c_int32), ("length", c_int32))
    arrays: list[Any]
    """References that keep the arrays behind the pointers alive."""


class Options(Structure):
    """Options of a call.

    begin, end: the ids of the beginning and end of sentence. batch: the number of sequences that a worker decodes
    together.
    """

    _fields_ = (
        ("source", Positions),
        ("target", Positions),
        ("begin", c_int32),
        ("end", c_int32),
        ("workers", c_int32),
        ("batch", c_int32),
    )


class EncoderCall(Structure):
    """Texts to encode, and memory for their states (see `source/engine/interface.h`)."""

    _fields_ = (
        ("tokens", c_void_p),
        ("segments", c_void_p),
        ("starts", c_void_p),
        ("states", c_void_p),
        ("positions", Positions),
        ("texts", c_int32),
        ("stride", c_int32),
        ("width", c_int32),
        ("batch", c_int32),
        ("cancelled", c_int32),
    )


class ConstraintState(Structure):
    """A state of the automaton that tracks the required phrases of an output (see `source/engine/interface.h`).

    tokens, banks, needs: (count), in that order in `values`.
    """

    _fields_ = (
        ("tokens", c_void_p),
        ("banks", c_void_p),
        ("needs", c_void_p),
        ("count", c_int32),
        ("complete", c_int32),
        ("other_banks", c_int32 * TOKEN_KINDS),
        ("other_needs", c_int32 * TOKEN_KINDS),
    )
    values: object
    """A reference that keeps the arrays behind the pointers alive."""


FollowTokens = CFUNCTYPE(c_int32, POINTER(c_void_p), POINTER(c_int32), c_int32)
"""A function that replaces each of several states by the state after a token; it returns 0 after an error."""


class Request(Structure):
    """A source, its search settings, and memory for its results (see `source/engine/interface.h`)."""

    _fields_ = (
        ("source", c_void_p),
        ("prefix", c_void_p),
        ("forbidden", c_void_p),
        ("shortlist", c_void_p),
        ("length", c_int32),
        ("prefix_length", c_int32),
        ("forbidden_count", c_int32),
        ("shortlist_count", c_int32),
        ("beam", c_int32),
        ("nbest", c_int32),
        ("limit", c_int32),
        ("minimum", c_int32),
        ("penalty", c_int32),
        ("alpha", c_double),
        ("start", c_void_p),
        ("kinds", c_void_p),
        ("follow", FollowTokens),
        ("requested_beam", c_int32),
        ("phrase_tokens", c_int32),
        ("max_phrase_tokens", c_int32),
        ("tokens", c_void_p),
        ("lengths", c_void_p),
        ("log_probabilities", c_void_p),
        ("scores", c_void_p),
        ("finished", c_void_p),
        ("next", c_void_p),
        ("hypothesis_count", c_int32),
        ("cancelled", c_int32),
    )


STRUCTURES = (
    Matrix,
    Norm,
    Attention,
    Layer,
    Stack,
    Model,
    Positions,
    EncoderCall,
    Options,
    ConstraintState,
    Request,
)
"""All structures shared with the library."""


class _LayoutEntry(Structure):
    """The offset and size in bytes of a field, or of the whole structure if the field name is empty."""

    _fields_ = (("structure", c_char_p), ("field", c_char_p), ("offset", c_int32), ("size", c_int32))


@cache
def load(path: Path) -> ctypes.CDLL:
    """Load the library.

    Raises ResourceError if the library cannot be loaded, or if its structures differ from those in this module.
    """
    library = build.load(path, ENGINE)
    library.dragoman_open.argtypes, library.dragoman_open.restype = [POINTER(Model)], c_void_p
    library.dragoman_add_layer.argtypes = [c_void_p, c_int32, POINTER(Layer)]
    library.dragoman_add_layer.restype = c_int32
    library.dragoman_close.argtypes, library.dragoman_close.restype = [c_void_p], None
    library.dragoman_start.argtypes, library.dragoman_start.restype = [c_void_p, c_int32], c_void_p
    library.dragoman_stop.argtypes, library.dragoman_stop.restype = [c_void_p], None
    library.dragoman_encode.argtypes, library.dragoman_encode.restype = [c_void_p, POINTER(EncoderCall)], c_int32
    library.dragoman_translate.argtypes = [c_void_p, POINTER(Request), c_int32, POINTER(Options)]
    library.dragoman_translate.restype = c_int32
    library.dragoman_session_begin.argtypes = [c_void_p, POINTER(Options)]
    library.dragoman_session_begin.restype = c_void_p
    library.dragoman_session_submit.argtypes = [c_void_p, POINTER(Request), c_int32]
    library.dragoman_session_submit.restype = None
    library.dragoman_session_completed.argtypes = [c_void_p, c_int32, POINTER(c_int32), POINTER(c_int32)]
    library.dragoman_session_completed.restype = c_void_p
    library.dragoman_session_end.argtypes, library.dragoman_session_end.restype = [c_void_p], None
    library.dragoman_layout.argtypes, library.dragoman_layout.restype = [POINTER(c_int32)], POINTER(_LayoutEntry)
    library.dragoman_code_bits.argtypes, library.dragoman_code_bits.restype = [], c_int32
    if differences := layout_differences(library):
        raise ResourceError(
            f"the native engine's library {path} does not match this version of dragoman ({differences[0]})"
        )
    return library


def code_bits(path: Path) -> int:
    """Return the number of bits of a library's codes in int8: 7 with AVX2 alone, otherwise 8.

    Raises ResourceError as `load` does.
    """
    return int(load(path).dragoman_code_bits())


def layout_differences(library: ctypes.CDLL) -> list[str]:
    """List the structures and fields whose offset or size in bytes differs between the library and Python."""
    count = c_int32()
    entries = library.dragoman_layout(ctypes.byref(count))
    compiled = {
        (entry.structure.decode(), entry.field.decode()): (entry.offset, entry.size)
        for entry in (entries[index] for index in range(count.value))
    }
    declared = dict(_declared_layout())
    return [
        f"{structure}.{field}: {compiled.get((structure, field))} compiled, {declared.get((structure, field))} declared"
        for structure, field in sorted(compiled.keys() | declared.keys())
        if compiled.get((structure, field)) != declared.get((structure, field))
    ]


def _declared_layout() -> Iterator[tuple[tuple[str, str], tuple[int, int]]]:
    for structure in STRUCTURES:
        yield (structure.__name__, ""), (0, ctypes.sizeof(structure))
        for name, *_ in structure._fields_:
            field = getattr(structure, name)
            yield (structure.__name__, name), (field.offset, field.size)


def check(outcome: int, results: str, remedy: str) -> None:
    """Raise ModelError if results are not finite, and ResourceError if memory ran out.

    results: their name, in the plural, for the message. remedy: what needs less memory.
    """
    if outcome == _NO_MEMORY:
        raise ResourceError(f"the batch does not fit into memory: use {remedy}")
    if outcome == _NOT_A_NUMBER:
        raise ModelError(f"the model's {results} are NaN: its parameters are damaged or have diverged")
