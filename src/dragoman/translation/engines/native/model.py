"""`NativeModel`: a Transformer that the native engine holds, and what it does: it translates texts."""

import ctypes
from collections.abc import Sequence
from typing import Literal
from weakref import finalize

from dragoman.base.errors import ModelError, ResourceError
from dragoman.decode.search import Hypothesis
from dragoman.models.seq2seq import Seq2Seq
from dragoman.text.special import BOS, EOS
from dragoman.translation.engines.native import library
from dragoman.translation.engines.native.build import built
from dragoman.translation.engines.native.processor import InstructionSet, available
from dragoman.translation.engines.native.session import NativeSession
from dragoman.translation.engines.native.texts import NativeText, TextArray
from dragoman.translation.engines.native.transformer import Packing, PositionTables, stacks

Precision = Literal["float32", "int8"]


class NativeModel:
    """Weights packed once, as float32 or 8-bit codes; products, attention and search in one call of the library.

    Not for several calls at a time, nor while a session is open.
    """

    def __init__(
        self,
        model: Seq2Seq,
        precision: Precision = "int8",
        threads: int = 1,
        instructions: InstructionSet | None = None,
    ) -> None:
        """threads: that work on a text together where there is one worker. instructions: None for the best there are.

        Raises Unsupported for a model that the engine does not have, NoCompilerError where it cannot be built.
        """
        packing = Packing(model, library.INT8 if precision == "int8" else library.FLOAT32, threads)
        self.library = built(instructions or available()[0])
        """The file of the compiled engine."""
        self._library = library.load(self.library)
        self._model = self._library.dragoman_open(ctypes.byref(packing.model))
        if not self._model:
            raise ResourceError(
                "the model does not fit the memory a second time, packed for the native engine: use --engine torch"
            )
        self._close = finalize(self, self._library.dragoman_close, self._model)
        encoder, decoder = stacks(model)
        self._source, self._target = PositionTables(encoder), PositionTables(decoder)
        self._vocabulary = packing.model.vocabulary.outputs
        self._sizes = packing.model.encoder.size, packing.model.decoder.size

    def translate(self, texts: Sequence[NativeText], batch_size: int, workers: int) -> list[list[Hypothesis]]:
        """The hypotheses of each, as `dragoman.decode.search.search` has them.

        The texts are taken up in their order. batch_size: that a worker has at work at most. workers: that share the
        texts, a thread each; with one, the model's threads work together. Raises ModelError where log-probabilities
        are not numbers, ResourceError where the memory is too small.
        """
        if not texts:
            return []
        batch = TextArray(texts, self._sizes)
        tables = self._tables(texts)
        plan = library.Plan(*tables, BOS, EOS, max(1, min(workers, len(texts))), max(1, min(batch_size, len(texts))))
        outcome = self._library.dragoman_translate(self._model, batch.texts, len(texts), ctypes.byref(plan))
        library.check(outcome)
        return [batch.hypotheses(number) for number in range(len(texts))]

    def session(self, texts: Sequence[NativeText], batch_size: int, workers: int) -> NativeSession:
        """Workers that begin with these, and to which more may be given. batch_size, workers: as above.

        Raises ResourceError where there is no room for them, ModelError for ids beyond the vocabulary.
        """
        tables = self._tables(texts)
        plan = library.Plan(*tables, BOS, EOS, workers, batch_size)
        session = NativeSession(self._library, self._model, plan, tables, self._sizes, self)
        try:
            session.put(texts)
        except ModelError:
            session.close()
            raise
        return session

    def _tables(self, texts: Sequence[NativeText]) -> tuple[library.Positions, library.Positions]:
        source = self._source.table(max(len(text.source) for text in texts))
        return source, self._target.table(max(text.limit for text in texts))
