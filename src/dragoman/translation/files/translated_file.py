"""`TranslatedFile`: a file of translations that takes its name when it is complete, and can be gone on with."""

import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from dragoman.base.companion import Companion, compressor_for, publish_companion, resumable_companion
from dragoman.base.errors import DataError, Interrupted
from dragoman.base.journal import COMPANION, OutputJournal
from dragoman.base.log import info

_SIZE = "bytes of the companion"
KEEP_EVERY = 10.0
"""Seconds after which what is done is kept, at the end of a window of lines: all that a kill can cost."""


class TranslatedFile:
    """Lines are translated into a folder beside the file (`OutputJournal`), in windows that are kept whole.

    What is kept stays after a kill, an error or an interrupt. Where nothing is kept, the folder goes: a short work that
    fails leaves no file.
    """

    def __init__(self, journal: OutputJournal, repeatable: bool, companion: Companion | None = None) -> None:
        """repeatable: whether the inputs can be read again; else nothing is kept before the end.

        companion: what is written along, and as far kept.
        """
        self._journal, self._repeatable, self.companion = journal, repeatable, companion
        self._compress = compressor_for(journal.output)
        self._kept_at, self._first = time.monotonic(), journal.kept

    @property
    def lines(self) -> int:
        """Of the input that are done with."""
        return self._journal.lines

    @property
    def watched(self) -> bool:
        """Nobody looks into the folder."""
        return False

    @property
    def counts(self) -> Mapping[str, int]:
        """What had to be done about lines that are done with, of each kind how many."""
        return {what: count for what, count in self._journal.counts.items() if what != _SIZE}

    def follow(self, name: str, lines: Iterable[str], path: Path | None) -> Iterator[str]:
        """The lines of an input that are not done yet. Raises ConfigError where those before were changed."""
        return self._journal.remaining_lines(name, lines, path or Path("standard input"))

    def write(self, lines: int, texts: Iterable[bytes], counts: Mapping[str, int]) -> None:
        """The translations of a window of so many lines."""
        before = 0 if self.companion is None else self.companion.size
        data = self._compress(b"".join(texts))
        along = {} if self.companion is None else {_SIZE: self.companion.size - before}
        self._journal.write(lines, data, {**counts, **along})
        if self._repeatable and time.monotonic() - self._kept_at >= KEEP_EVERY:
            self._commit()
            self._kept_at = time.monotonic()

    def finish(self) -> None:
        """There are no more lines."""
        if self._journal.finished:
            return
        if self._journal.empty:  # an empty file of no compressed members would be none of its format
            self._journal.write(0, self._compress(b""))
        if self.companion is not None and not self.companion.size:
            self.companion.write("")
        self._commit(finished=True)

    def interrupted(self, number: int) -> Interrupted:
        """Keep what is done. Gives what is to be told of it. number: the signal."""
        if not self._repeatable:
            return Interrupted(
                f"interrupted; a pipe cannot be read again, so nothing of {self._output} is kept", number
            )
        if self.lines and not self._journal.finished:
            self._commit()
        if not self._journal.kept:
            return Interrupted("interrupted before the first lines were done; nothing is kept", number)
        return Interrupted(
            f"interrupted after line {self._journal.kept:,}; {self._journal.folder} keeps what is done. Go on with the "
            "same command and --resume",
            number,
        )

    def failed(self) -> None:
        """Tell what is kept, if this process has done any of it."""
        if self._journal.kept > self._first and not self._journal.finished:
            info(
                f"{self._journal.folder} keeps the first {self._journal.kept:,} lines. When the cause is mended, go on "
                "with the same command and --resume"
            )

    def _commit(self, finished: bool = False) -> None:
        """Keep what is done, first what is written along, so that there is never less of it than counts."""
        if self.companion is not None:
            self.companion.sync()
        self._journal.commit(finished)

    @property
    def _output(self) -> Path:
        return self._journal.output


@contextmanager
def translated_file(
    target: Path,
    inputs: Iterable[Path | None],
    settings: Mapping[str, Any],
    resume: bool,
    companion: Path | None = None,
) -> Iterator[TranslatedFile]:
    """The file to write; it has its name when all went well.

    inputs: that are read, None for the standard input; settings: all that the translations depend on beside these.
    resume: go on with unfinished work if there is any. companion: a second file, written along. Raises ConfigError
    where there is some and `resume` is False, or where it was begun otherwise; DataError where an input cannot be read
    again to resume; ResourceError where a file cannot be written; Interrupted when Ctrl-C or SIGTERM came.
    """
    once = [path for path in inputs if path is None or not path.is_file()]
    if resume and once:
        raise DataError(
            f"--resume reads again what was translated, but {once[0] or 'the standard input'} can be read only once: "
            "store the text in a file"
        )
    journal = OutputJournal(target.resolve(), settings, resume)  # what a link points to is replaced, not the link
    along = journal.folder / COMPANION
    with ExitStack() as stack:
        stack.enter_context(journal)
        stack.enter_context(signals_raise())
        beside = None
        if companion is not None and not journal.finished:
            beside = stack.enter_context(resumable_companion(companion, along, journal.counts[_SIZE]))
        file = TranslatedFile(journal, not once, beside)
        try:
            if journal.kept:
                info(f"Going on after line {journal.kept:,}.")
            yield file
            file.finish()
        except Signal as stop:
            raise file.interrupted(stop.number) from None
        except Exception:
            file.failed()
            raise
    if companion is not None:
        publish_companion(companion, along)
    journal.publish(replace=True)


class Signal(KeyboardInterrupt):
    """Ctrl-C or SIGTERM."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def signals_raise() -> Iterator[None]:
    """SIGINT and SIGTERM raise `Signal` while open; those that the process was started to ignore stay ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise Signal(number)

    heard = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
