"""`TranslatedFile`: a resumable file of translations, which gets its name once it is complete."""

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
"""Minimum seconds between commits, at the end of a window of lines; a kill loses the work since the last one.
"""


class TranslatedFile:
    """Writes translations in windows of lines, to a folder next to the file (`OutputJournal`).

    Committed windows survive a kill, an error or an interrupt. If there are none, the folder is deleted, so that a
    short failed job leaves no files.
    """

    def __init__(self, journal: OutputJournal, repeatable: bool, companion: Companion | None = None) -> None:
        """repeatable: whether the inputs can be read again; otherwise nothing is committed before the end.

        companion: a second file, written and committed along with this one.
        """
        self._journal, self._repeatable, self.companion = journal, repeatable, companion
        self._compress = compressor_for(journal.output)
        self._committed_at, self._first = time.monotonic(), journal.committed

    @property
    def lines(self) -> int:
        """The number of completed input lines."""
        return self._journal.lines

    @property
    def watched(self) -> bool:
        """False: translations are not visible until the file is complete."""
        return False

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of completed lines by warning."""
        return {what: count for what, count in self._journal.counts.items() if what != _SIZE}

    def follow(self, name: str, lines: Iterable[str], path: Path | None) -> Iterator[str]:
        """Yield the remaining lines of an input. Raises ConfigError if completed lines have changed."""
        return self._journal.remaining_lines(name, lines, path or Path("standard input"))

    def write(self, lines: int, texts: Iterable[bytes], counts: Mapping[str, int]) -> None:
        """Write the translations of a window of `lines` lines."""
        before = 0 if self.companion is None else self.companion.size
        data = self._compress(b"".join(texts))
        along = {} if self.companion is None else {_SIZE: self.companion.size - before}
        self._journal.write(lines, data, {**counts, **along})
        if self._repeatable and time.monotonic() - self._committed_at >= KEEP_EVERY:
            self._commit()
            self._committed_at = time.monotonic()

    def finish(self) -> None:
        """Complete the file after the last line."""
        if self._journal.finished:
            return
        if self._journal.is_empty:  # a file without compressed members would be invalid
            self._journal.write(0, self._compress(b""))
        if self.companion is not None and not self.companion.size:
            self.companion.write("")
        self._commit(finished=True)

    def interrupted(self, number: int) -> Interrupted:
        """Commit the completed lines, and return the error to raise. number: of the signal."""
        if not self._repeatable:
            return Interrupted(
                f"interrupted; a pipe cannot be read again, so no part of {self._output} is kept", number
            )
        if self.lines and not self._journal.finished:
            self._commit()
        if not self._journal.committed:
            return Interrupted("interrupted before the first lines were completed; nothing is kept", number)
        return Interrupted(
            f"interrupted after line {self._journal.committed:,}; {self._journal.folder} keeps the completed lines. "
            "Resume with the same command and --resume",
            number,
        )

    def failed(self) -> None:
        """Log how many lines are kept, if this process completed any of them."""
        if self._journal.committed > self._first and not self._journal.finished:
            info(
                f"{self._journal.folder} keeps the first {self._journal.committed:,} lines. After fixing the "
                "cause, resume with the same command and --resume"
            )

    def _commit(self, finished: bool = False) -> None:
        """Commit, the companion first, so that it is never shorter than recorded in the journal."""
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

    inputs: files that are read, None for the standard input; settings: all other values that determine the
    translations. resume: resume unfinished work if there is any. companion: a second file, written along with the
    first. Raises ConfigError if there is unfinished work and `resume` is False, or if it was started with other
    settings; DataError if an input cannot be read again to resume; ResourceError if a file cannot be written;
    Interrupted after Ctrl-C or SIGTERM.
    """
    once = [path for path in inputs if path is None or not path.is_file()]
    if resume and once:
        raise DataError(
            f"--resume reads the translated lines again, but {once[0] or 'the standard input'} can be read only once: "
            "store the text in a file"
        )
    journal = OutputJournal(target.resolve(), settings, resume)  # a link's target is replaced, not the link
    along = journal.folder / COMPANION
    with ExitStack() as stack:
        stack.enter_context(journal)
        stack.enter_context(signals_raise())
        beside = None
        if companion is not None and not journal.finished:
            beside = stack.enter_context(resumable_companion(companion, along, journal.counts[_SIZE]))
        file = TranslatedFile(journal, not once, beside)
        try:
            if journal.committed:
                info(f"Resuming after line {journal.committed:,}.")
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
    """Make SIGINT and SIGTERM raise `Signal`, unless the process was started with them ignored."""
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
