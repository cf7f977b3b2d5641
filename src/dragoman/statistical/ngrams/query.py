"""`NgramQuery`: an n-gram model in the memory layout of the C library, for decoders that score token by token.

The structures mirror `native/source/ngrams/ngrams.h`.
"""

import ctypes
from collections.abc import Sequence
from ctypes import Structure, c_double, c_int32, c_int64, c_void_p
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ModelError
from dragoman.models.kinds.ngram import MAX_ORDER, NgramModel
from dragoman.native.build import best_library, load
from dragoman.native.compiler import NGRAMS
from dragoman.native.structures import ArrayStructure, pointers
from dragoman.text.symbols import BOS

_MOST = 2**31 - 1
"""Maximum number of n-grams of an order, because their numbers are stored in 32 bits."""


class _Order(ArrayStructure):
    _fields_ = pointers("tokens", "probabilities", "backoffs", "firsts")


class _Model(Structure):
    _fields_ = (("order", c_int32), ("vocabulary", c_int32), ("orders", _Order * MAX_ORDER))


class NgramState(Structure):
    """The context after a text, 64 bytes. Contexts with the same bytes have the same scores for all continuations."""

    _fields_ = (("length", c_int32), ("numbers", c_int32 * (MAX_ORDER - 1)))


class NgramQuery:
    """Scores tokens with an n-gram model.

    pointer, function: addresses of the model and of the C function `double score(const void *model, const void *before,
    int32_t token, void *after)`, which other C code can call with states of 64 bytes. They are valid as long as this
    object exists. The function returns the natural log-probability of a token and sets the context after the token.
    """

    def __init__(self, model: NgramModel) -> None:
        """Copy the tables of a model. Raises NoLibraryError if the C library is not available, ModelError if the model
        has 2³¹ n-grams of one order.
        """
        self.order, self.vocabulary = model.order, model.vocabulary
        self._orders: list[_Order] = []
        self._model = _Model(model.order, model.vocabulary)
        tables = [[None if each is None else each.detach().cpu().numpy() for each in table] for table in model.tables]
        for index, (keys, probabilities, backoffs) in enumerate(tables):
            assert keys is not None
            assert probabilities is not None
            if len(keys) > _MOST:
                raise ModelError(
                    f"the model has {len(keys):,} n-grams of order {index + 1}, more than {_MOST:,}: prune it"
                )
            arrays = {"probabilities": probabilities}
            if index:
                arrays["tokens"] = (keys % model.vocabulary).astype(np.int32)
            if backoffs is not None:
                following = tables[index + 1][0]
                assert following is not None
                firsts = np.searchsorted(following, np.arange(len(keys) + 1) * model.vocabulary)
                arrays |= {"backoffs": backoffs, "firsts": firsts.astype(np.int64)}
            self._orders.append(_Order.of(arrays))  # owns the arrays
            self._model.orders[index] = self._orders[-1]
        self.pointer = ctypes.addressof(self._model)
        self.function = ctypes.cast(_library().dragoman_ngram_score, c_void_p).value

    @property
    def empty(self) -> NgramState:
        """The context without tokens."""
        return NgramState()

    @property
    def start(self) -> NgramState:
        """The context at the beginning of a text."""
        return self.score(self.empty, BOS)[1]

    def score(self, before: NgramState, token: int) -> tuple[float, NgramState]:
        """Return the natural log-probability of a token after a context, and the context after the token."""
        after = NgramState()
        score = _library().dragoman_ngram_score(self.pointer, ctypes.byref(before), token, ctypes.byref(after))
        return float(score), after

    def score_texts(self, texts: Sequence[Sequence[int]]) -> list[NDArray[np.float64]]:
        """Return the natural log-probability of each token after the preceding tokens of its text.

        texts: ids, each text with BOS before it, which is not scored.
        """
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        tokens = np.fromiter((token for text in texts for token in text), np.int32)
        scores = np.zeros(len(tokens))
        pointers = (each.ctypes.data_as(c_void_p) for each in (tokens, ends))
        _library().dragoman_ngram_score_texts(self.pointer, *pointers, len(texts), scores.ctypes.data_as(c_void_p))
        return [scores[first + 1 : end] for first, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]


@cache
def _library() -> ctypes.CDLL:
    library = load(best_library(NGRAMS), NGRAMS)
    library.dragoman_ngram_score.argtypes = (c_void_p, c_void_p, c_int32, c_void_p)
    library.dragoman_ngram_score.restype = c_double
    library.dragoman_ngram_score_texts.argtypes = (c_void_p, c_void_p, c_void_p, c_int64, c_void_p)
    library.dragoman_ngram_score_texts.restype = None
    return library
