"""`TranslatedFile`: a resumable output file, which gets its name once it is complete."""

import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from dragoman.base.cancellation import Cancelled
from dragoman.base.companion import Companion, compressor_for, publish_companion, resumable_companion
from dragoman.base.errors import DataError, Interrupted
from dragoman.base.interruption import own_signal_handlers
from dragoman.base.journal import COMPANION, OutputJournal
from dragoman.base.log import info

_SIZE = "bytes of the companion"
COMMIT_INTERVAL = 10.0
"""Minimum number of seconds between two commits. If the process is killed, lines since the last commit are lost."""


class TranslatedFile:
    """Writes translations in windows of lines to a folder next to the output file (`OutputJournal`).

    Committed windows are kept if the process is killed, interrupted or stopped by an error. A folder without committed
    windows is deleted.
    """

    def __init__(self, journal: OutputJournal, repeatable: bool, companion: Companion | None = None) -> None:
        """repeatable: True if the inputs can be read again; if False, lines are committed only at the end.

        companion: a second file, which is written and committed together with this file.
        """
        self._journal, self._repeatable, self.companion = journal, repeatable, companion
        self._compress = compressor_for(journal.output)
        self._committed_at, self._first = time.monotonic(), journal.committed

    @property
    def lines(self) -> int:
        """Number of completed input lines."""
        return self._journal.lines

    @property
    def is_visible(self) -> bool:
        """False, because translations are not visible until the file is complete."""
        return False

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of completed lines by warning."""
        return {what: count for what, count in self._journal.counts.items() if what != _SIZE}

    def remaining_lines(self, name: str, lines: Iterable[str], path: Path | None) -> Iterator[str]:
        """Yield the lines of an input that are not completed. Raises ConfigError if completed lines have changed."""
        return self._journal.remaining_lines(name, lines, path or Path("standard input"))

    def write(self, lines: int, texts: Iterable[bytes], counts: Mapping[str, int]) -> None:
        """Write the translations of a window of `lines` lines."""
        previous_size = 0 if self.companion is None else self.companion.size
        data = self._compress(b"".join(texts))
        written = {} if self.companion is None else {_SIZE: self.companion.size - previous_size}
        self._journal.write(lines, data, {**counts, **written})
        if self._repeatable and time.monotonic() - self._committed_at >= COMMIT_INTERVAL:
            self._commit()
            self._committed_at = time.monotonic()

    def finish(self) -> None:
        """Complete the file after the last line."""
        if self._journal.finished:
            return
        if self._journal.is_empty:  # a compressed file without members would be invalid
            self._journal.write(0, self._compress(b""))
        if self.companion is not None and not self.companion.size:
            self.companion.write("")
        self._commit(finished=True)

    def interrupted(self, number: int) -> Interrupted:
        """Commit the completed lines, and return the error to raise. number: the signal number."""
        if not self._repeatable:
            return Interrupted(
                f"interrupted: a pipe cannot be read again, so no part of {self._output} is kept", number
            )
        if self.lines and not self._journal.finished:
            self._commit()
        if not self._journal.committed:
            return Interrupted("interrupted before the first lines were completed: nothing is kept", number)
        return Interrupted(
            f"interrupted after line {self._journal.committed:,}; the completed lines are kept. Resume with the same "
            "command and --resume",
            number,
        )

    def log_failure(self) -> None:
        """Log the number of kept lines, if this process completed any of them."""
        if self._journal.committed > self._first and not self._journal.finished:
            info(
                f"the first {self._journal.committed:,} lines are kept. After fixing the cause, resume with the same "
                "command and --resume"
            )

    def _commit(self, finished: bool = False) -> None:
        """Commit the companion, then the journal, so that the companion is never shorter than the journal records."""
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
    """Yield the file to write, which gets its name on success.

    inputs: the input files, None for the standard input. settings: all other values that determine the translations.
    resume: resume unfinished work if there is any. companion: a second output file. Raises ConfigError if there is
    unfinished work and `resume` is False, or if the work was started with other settings; DataError if `resume` is True
    and an input can be read only once; ResourceError if a file cannot be written; Interrupted after Ctrl-C or SIGTERM.
    """
    read_once = [path for path in inputs if path is None or not path.is_file()]
    if resume and read_once:
        raise DataError(
            f"--resume reads the translated lines again, but {read_once[0] or 'the standard input'} can be read only "
            "once: store the text in a file"
        )
    journal = OutputJournal(target.resolve(), settings, resume)  # the target of a link is replaced, not the link
    companion_draft = journal.folder / COMPANION
    with ExitStack() as stack:
        stack.enter_context(journal)
        stack.enter_context(signals_raise())
        second = None
        if companion is not None and not journal.finished:
            second = stack.enter_context(resumable_companion(companion, companion_draft, journal.counts[_SIZE]))
        file = TranslatedFile(journal, not read_once, second)
        try:
            if journal.committed:
                info(f"Resuming after line {journal.committed:,}.")
            yield file
            file.finish()
        except (Signal, Cancelled) as stop:
            raise file.interrupted(stop.number if isinstance(stop, Signal) else signal.SIGINT) from None
        except Exception:
            file.log_failure()
            raise
    if companion is not None:
        publish_companion(companion, companion_draft)
    journal.publish(replace=True)


class Signal(KeyboardInterrupt):
    """Raised after Ctrl-C or SIGTERM. number: the signal number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def signals_raise() -> Iterator[None]:
    """Raise `Signal` on SIGINT and SIGTERM in this context, except for signals that the process already ignores."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise Signal(number)

    signals = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
    previous_handlers = {number: signal.signal(number, stop) for number in signals}
    try:
        with own_signal_handlers():
            yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
