"""The code that runs on a cluster: a task that reads shards, and an actor that translates windows of records."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dragoman.addons.bulk.format import Part, Window
from dragoman.addons.bulk.job import Job, digest
from dragoman.base.errors import DragomanError, ModelError, in_files
from dragoman.base.journal import differences
from dragoman.base.log import quietly
from dragoman.base.machine.device import use_threads
from dragoman.inference.abilities import SupportsLines
from dragoman.inference.translation.files.faulty_lines import FaultyLines
from dragoman.inference.translation.line_warnings import LineWarnings

Batch = dict[str, Any]
"""Columns by name, as NumPy arrays."""


@dataclass(frozen=True)
class TranslatedWindow:
    """A translated window. first: number of the first record. records: number of records. notes: warnings with record
    numbers.
    """

    first: int
    records: int
    part: Part
    notes: list[tuple[str, int]]


@dataclass(frozen=True)
class EndOfShard:
    """Marks the end of a shard, after its last window. digest: digest of the input file."""

    records: int
    digest: str


@dataclass(frozen=True)
class Failure:
    """An error that the user can correct. It is sent as a value, so that the order of items is preserved."""

    kind: type[DragomanError]
    message: str


def read_windows(shards: Batch, job: Job) -> Iterator[Batch]:
    """Read the shards with these indices in the job, and yield batches of one row: the index and an item.

    The items of a shard are its windows in order, then `EndOfShard`. If reading fails, the last item is a `Failure`.
    """
    for index in shards["shard"].tolist():
        shard, records = job.shards[index], 0
        try:
            for window in shard.format.windows(shard.source, job.window, job.on_error):
                records += len(window.texts)
                yield as_row(index, window)
            yield as_row(index, EndOfShard(records, digest(shard.source)))
        except DragomanError as error:
            yield as_row(index, Failure(type(error), str(error)))


class WindowTranslator:
    """An actor that loads the model once and translates windows one after another."""

    def __init__(self, job: Job) -> None:
        """Load the model. If loading fails, each call returns a `Failure`."""
        self._job, self._notes = job, _Notes()
        self._failure: Failure | None = None
        use_threads(job.threads)
        try:
            with quietly():
                self._translator = self._load()
                self._notes.compares_lengths = not self._translator.meta.whole_texts
                self._faulty = FaultyLines(self._translator, job.on_error, self._notes)
        except DragomanError as error:
            self._failure = Failure(type(error), str(error))

    def __call__(self, windows: Batch) -> Batch:
        """Translate a batch of one row from `read_windows`. The returned item is a `TranslatedWindow` or a `Failure`;
        items other than windows are returned unchanged.
        """
        (index,), (item,) = windows["shard"].tolist(), windows["item"]
        if not isinstance(item, Window):
            return as_row(index, item)
        if self._failure is not None:
            return as_row(index, self._failure)
        try:
            return as_row(index, self._translate(index, item))
        except DragomanError as error:
            return as_row(index, Failure(type(error), str(error)))

    def _load(self) -> SupportsLines:
        """Load the model. Raises ModelError if this machine would translate differently from the driver's machine."""
        translator = self._job.load()
        translator.warn_unfinished = False  # reported in the notes
        if different := differences(self._job.settings, self._job.dependencies(translator)):
            raise ModelError(
                f"{socket.gethostname()} would translate differently from the machine that runs the command: "
                f"{', '.join(different)}. All machines need the same models at the same paths, and the same packages"
            )
        return translator

    def _translate(self, index: int, window: Window) -> TranslatedWindow:
        shard, request, batch_size = self._job.shards[index], self._job.request, self._job.batch_size
        self._notes.entries = []
        texts, _ = self._faulty.repair(window.texts, {}, window.first)
        hypotheses = self._faulty.translate_window(texts, request, batch_size, window.first)
        translations, lengths = [], self._translator.training_texts.lengths(request.tags)
        with in_files(shard.source):
            for number, (text, (best, *_)) in enumerate(zip(texts, hypotheses, strict=True), start=window.first):
                self._notes.note_translation(number, text, best, self._translator.engine.limits.target, lengths)
                self._notes.note_guard(number, best)
                translations.append(best.text)
        part = shard.format.part(window, translations, shard.name)
        return TranslatedWindow(window.first, len(texts), part, self._notes.entries)


class _Notes(LineWarnings):
    """Collects warnings, which the machine that runs the command reports."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[tuple[str, int]] = []

    def note(self, what: str, line: int | str) -> None:
        """See `LineWarnings.note`."""
        self.entries.append((what, int(line)))


def as_row(index: int, item: Any) -> Batch:
    """Return a batch of one row: the index of a shard in the job, and an item that Ray Data does not convert."""
    items = np.empty(1, dtype=object)
    items[0] = item
    return {"shard": np.array([index]), "item": items}
