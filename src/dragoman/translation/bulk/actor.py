"""What runs on the machines of a cluster: who reads shards, and who translates them."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dragoman.base.errors import DragomanError, ModelError, in_files
from dragoman.base.journal import differences
from dragoman.base.log import quietly
from dragoman.base.machine.device import use_threads
from dragoman.translation.bulk.formats.format import Part, Window
from dragoman.translation.bulk.job import Job
from dragoman.translation.bulk.shard import digest
from dragoman.translation.files.faulty_lines import FaultyLines
from dragoman.translation.files.guarded_lines import guarded_lines
from dragoman.translation.files.noted_lines import NotedLines
from dragoman.translation.translator import Translator

Batch = dict[str, Any]
"""Columns by their names, as arrays of NumPy's."""


@dataclass(frozen=True)
class Translated:
    """A window that is done. noted: what had to be done about its records, and the number of each."""

    first: int
    records: int
    part: Part
    noted: list[tuple[str, int]]


@dataclass(frozen=True)
class End:
    """There are no more windows of a shard. digest: of the file."""

    records: int
    digest: str


@dataclass(frozen=True)
class Failure:
    """An error that the user can mend. It is sent as a value, so that it comes at its place in the order."""

    kind: type[DragomanError]
    message: str


def read_windows(shards: Batch, job: Job) -> Iterator[Batch]:
    """shards: their places in the job. Gives a batch of one row for each of their windows, in order: the place, and a
    `Window`; after the last of a shard its `End`, and a `Failure` where it cannot be read further.
    """
    for place in shards["shard"].tolist():
        shard, records = job.shards[place], 0
        try:
            for window in shard.format.windows(shard.source, job.window, job.on_error):
                records += len(window.texts)
                yield row(place, window)
            yield row(place, End(records, digest(shard.source)))
        except DragomanError as error:
            yield row(place, Failure(type(error), str(error)))


class WindowTranslator:
    """An actor: it holds the model, and translates one window after another."""

    def __init__(self, job: Job) -> None:
        """What is wrong with the model is told where the first window would be."""
        self._job, self._notes = job, _Notes()
        self._failure: Failure | None = None
        use_threads(job.threads)
        try:
            with quietly():
                self._translator = self._load()
                self._faulty = FaultyLines(self._translator, job.on_error, self._notes)
        except DragomanError as error:
            self._failure = Failure(type(error), str(error))

    def __call__(self, windows: Batch) -> Batch:
        """windows: a batch of one row, as `read_windows` gives it. Gives that row with what became of the window."""
        (place,), (item,) = windows["shard"].tolist(), windows["item"]
        if not isinstance(item, Window):
            return row(place, item)
        if self._failure is not None:
            return row(place, self._failure)
        try:
            return row(place, self._translated(place, item))
        except DragomanError as error:
            return row(place, Failure(type(error), str(error)))

    def _load(self) -> Translator:
        """Raises ModelError where this machine would translate otherwise than the one where the command runs."""
        translator = self._job.load()
        translator.report_cut = False  # those are noted
        if different := differences(self._job.settings, self._job.found(translator)):
            raise ModelError(
                f"{socket.gethostname()} would translate otherwise than the machine where the command runs: "
                f"{', '.join(different)}. All machines need the same models under the same paths, and the same packages"
            )
        return translator

    def _translated(self, place: int, window: Window) -> Translated:
        shard, request, batch_size = self._job.shards[place], self._job.request, self._job.batch_size
        self._notes.found = []
        texts, _ = self._faulty.readable(window.texts, {}, window.first)
        found = self._faulty.translate_window(texts, request, batch_size, window.first)
        if request.guard is not None:
            found = guarded_lines(found, window.first, self._notes)
        translations = []
        with in_files(shard.source):
            for number, (best, *_) in enumerate(found, start=window.first):
                if not best.finished:
                    self._notes.note("have translations that a limit of length stopped: they end unfinished", number)
                if best.patched:
                    self._notes.note("have translations that were put together from parts", number)
                translations.append(best.text)
        part = shard.format.part(window, translations, shard.name)
        return Translated(window.first, len(texts), part, self._notes.found)


class _Notes(NotedLines):
    """They go to where the command runs, which tells them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, int]] = []

    def note(self, what: str, line: int | str) -> None:
        """As `NotedLines.note`."""
        self.found.append((what, int(line)))


def row(place: int, item: Any) -> Batch:
    """A batch of one row: the place of a shard in the job, and something of it, which Ray Data sends as it is."""
    items = np.empty(1, dtype=object)
    items[0] = item
    return {"shard": np.array([place]), "item": items}
