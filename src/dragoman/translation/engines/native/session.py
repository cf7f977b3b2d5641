"""`NativeSession`: workers of the native engine, to which texts are given while they work on others."""

import ctypes
from collections.abc import Sequence
from ctypes import c_int32
from typing import Self
from weakref import finalize

from dragoman.base.errors import ResourceError
from dragoman.decode.search import Hypothesis
from dragoman.translation.engines.native import library
from dragoman.translation.engines.native.texts import NativeText, TextArray


class NativeSession:
    """Each worker takes in texts as others of its batch are done. Ends with its `with` block; for one thread.

    Not to be asked anything once it is closed. Continuous batching: Yu et al. 2022, "Orca: A Distributed Serving System
    for Transformer-Based Generative Models".
    """

    def __init__(
        self,
        functions: ctypes.CDLL,
        model: int,
        plan: library.Plan,
        tables: tuple[library.Positions, library.Positions],
        sizes: tuple[int, int],
        owner: object,
    ) -> None:
        """functions, model: the library and what it has open, as long as its owner lives. tables, sizes: positions and
        vocabularies, source first.

        Raises ResourceError where there is no room for it.
        """
        self._library, self._tables, self._sizes = functions, tables, sizes
        self._session = functions.dragoman_begin(model, ctypes.byref(plan))
        if not self._session:
            raise ResourceError("there is no room for another thread of the native engine")
        self._numbers: dict[int, tuple[TextArray, int]] = {}
        self.close = finalize(self, _end, functions, self._session, self._numbers, (owner, tables))
        """What is not done is given up."""
        self._given = 0
        self.waiting = 0
        """Texts that no worker had begun with when it was last asked what is found."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def under_way(self) -> int:
        """Texts that were given and not found yet."""
        return len(self._numbers)

    def has_room_for(self, text: NativeText) -> bool:
        """Whether it is no longer than this session's tables of positions."""
        source, target = self._tables
        return bool(len(text.source) <= source.length and text.limit <= target.length)

    def put(self, texts: Sequence[NativeText]) -> None:
        """Texts that there is room for, the first to begin with first. They are numbered on, from 0."""
        batch = TextArray(texts, self._sizes)
        first, size = ctypes.addressof(batch.texts), ctypes.sizeof(library.Text)
        for place in range(len(texts)):
            self._numbers[first + place * size] = batch, self._given + place
        self._given += len(texts)
        self.waiting += len(texts)
        self._library.dragoman_put(self._session, batch.texts, len(texts))

    def found(self, seconds: float) -> list[tuple[int, list[Hypothesis]]]:
        """The numbers of texts that are done since the last time, and their hypotheses; waits so long for one.

        Raises what `NativeModel.translate` raises, for all that is under way.
        """
        outcome, waiting = c_int32(), c_int32()
        address = self._library.dragoman_found(self._session, round(seconds * 1000), outcome, waiting)
        library.check(outcome.value)
        self.waiting = waiting.value
        done = []
        while address:
            batch, number = self._numbers.pop(address)
            place = batch.place(address)
            address = batch.texts[place].next
            done.append((number, batch.hypotheses(place)))
        return done


def _end(functions: ctypes.CDLL, session: int, numbers: dict[int, tuple[TextArray, int]], _: object) -> None:
    """Until the workers have ended they need all that they were given."""
    functions.dragoman_end(session)
    numbers.clear()
