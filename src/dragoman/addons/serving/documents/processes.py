"""`DocumentProcesses`: formats whose documents are parsed and written in a process of their own, which can be ended."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any

from dragoman.addons.documents.formats.format import DecodedFile, Format, ParsedDocument, TextFormat
from dragoman.addons.documents.formats.union import get_format
from dragoman.addons.documents.languages import UNKNOWN, Languages
from dragoman.addons.documents.passage import Passage
from dragoman.addons.documents.sentences import Sentence
from dragoman.addons.serving.config import LimitsConfig
from dragoman.addons.serving.documents.worker import Failed, SentenceRange, Start
from dragoman.addons.serving.errors import Overloaded, TooLarge
from dragoman.base.cancellation import check_cancelled, until_cancelled
from dragoman.statistical.alignment.links import Alignment

_COMMAND = "from dragoman.addons.serving.documents.worker import main; main()"
_SMALL = 20_000
"""Number of bytes up to which a document is parsed in the server. Parsing takes time in proportion to the size,
which other formats than text do not show, because they are compressed."""

_POLL_SECONDS = 0.05
"""Time in seconds between two checks for cancellation."""

_MESSAGE_ITEMS = 2000
"""Number of passages or sentences of a message. The other threads of the server wait while it is packed or unpacked."""

_MOST_TIMES = 20
"""The processor time of a worker, in timeouts of a file: a worker whose server was killed ends after it at last."""


class DocumentProcesses:
    """Starts a worker process for each document.

    The first document starts a process that imports the formats, and forks a worker within milliseconds.
    """

    def __init__(self, limits: LimitsConfig) -> None:
        self._limits = limits
        self._lock = Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._open: set[DocumentFormat] = set()

    @contextmanager
    def open(self, name: str, size: int) -> Iterator[Format[Any]]:
        """Return a format for one document of `size` bytes. Its worker is ended at the end of the `with` block.

        A small document has no worker, because it is parsed within milliseconds. The methods of other formats wait for
        their worker, and end it if the calling thread's function is cancelled. They raise the errors of the format,
        TooLarge for a document that needs too much memory, and Overloaded if no worker can be started.
        """
        direct = get_format(name)
        if not hasattr(os, "fork") or (size <= _SMALL and isinstance(direct, TextFormat)):
            yield direct
            return
        format = DocumentFormat(name, self)
        self._open.add(format)
        try:
            yield format
        finally:
            self._open.discard(format)
            format.close()

    def close(self) -> None:
        """End all processes."""
        for format in list(self._open):
            format.close()
        with self._lock:
            self._stop()

    def fork(self, format: str) -> tuple[int, Connection]:
        """Return the process id and the connection of a new worker. Raises Overloaded."""
        with self._lock:
            for _ in range(2):  # the process that forks may have ended
                with suppress(OSError):
                    control = self._start()
                    control.send(b"f")
                    pid, descriptors, _, _ = socket.recv_fds(control, 8, 1)
                    if descriptors:
                        connection = Connection(descriptors[0])
                        seconds = int(_MOST_TIMES * self._limits.file_seconds) + 1
                        connection.send(Start(format, self._limits.file_megabytes * 1_000_000, seconds))
                        return int.from_bytes(pid, "little"), connection
                self._stop()
        raise Overloaded("no process can be started for this file: try again later", retry_after=5)

    def _start(self) -> socket.socket:
        if self._control is None:
            self._control, child_end = socket.socketpair()
            with child_end:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _COMMAND, str(child_end.fileno())],
                    pass_fds=[child_end.fileno()],
                    stdin=subprocess.DEVNULL,
                    env={**os.environ, "OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES"},  # as in `prefork.ENVIRONMENT`
                )
        return self._control

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def too_large(self) -> TooLarge:
        """Return the error for a document that needs too much memory."""
        return TooLarge(
            f"this file needs more than {self._limits.file_megabytes:,} megabytes of memory (limits.file_megabytes): "
            "divide it into several files"
        )


class DocumentFormat:
    """A `Format` that parses and writes one document in a worker process."""

    def __init__(self, name: str, processes: DocumentProcesses) -> None:
        self.takes_encoding = get_format(name).takes_encoding
        self._name, self._processes = name, processes
        self._lock = Lock()
        self._worker: tuple[int, Connection] | None = None
        self._is_closed = False

    def decode(self, data: bytes, origin: str, on_error: str = "stop", encoding: str | None = None) -> DecodedFile[Any]:
        """See `Format.decode`."""
        return DecodedFile(
            self._call("decode", data, origin, on_error, encoding), lambda text: self._call("encode", text)
        )

    def parse(self, content: Any, languages: Languages = UNKNOWN) -> ParsedDocument[Any]:
        """See `Format.parse`. The parts of the document are all its passages, without their original form."""
        return self.parse_pivot(content, None, languages)

    def parse_pivot(self, content: Any, pivot: Any | None, languages: Languages) -> ParsedDocument[Any]:
        """See `documents.formats.format.parse_pivot`."""
        number, count = self._call("parse", content, pivot, languages)
        passages = [
            Passage(each.texts, (), each.marks, each.code, kept=each.kept)
            for begin in range(0, count, _MESSAGE_ITEMS)
            for each in self._call("passages", number, begin, begin + _MESSAGE_ITEMS)
        ]
        indices = {id(passage): index for index, passage in enumerate(until_cancelled(passages))}

        def write(sentences: Sequence[Sentence], texts: Sequence[str], alignments: Sequence[Alignment]) -> Any:
            for begin in range(0, len(sentences), _MESSAGE_ITEMS):
                part = slice(begin, begin + _MESSAGE_ITEMS)
                ranges = [
                    SentenceRange(indices[id(each.passage)], each.begin, each.end, each.first, each.last, each.terms)
                    for each in sentences[part]
                ]
                self._call("add", ranges, list(texts[part]), list(alignments[part]))
            return self._call("write", number)

        return ParsedDocument(passages, lambda _: content, write)

    def close(self) -> None:
        """End the worker. A thread that waits for it raises Overloaded, and closes the connection that it uses."""
        self._is_closed = True
        worker = self._worker
        if self._lock.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._lock.release()
        elif worker is not None:
            _kill(worker[0])

    def _call(self, method: str, *arguments: Any) -> Any:
        with self._lock:
            try:
                if self._worker is None and not self._is_closed:
                    self._worker = self._processes.fork(self._name)
                answer = self._receive(method, arguments)
            except BaseException:
                self._end()
                raise
        if isinstance(answer, Failed):
            raise self._processes.too_large() if answer.error is None else answer.error
        return answer

    def _receive(self, method: str, arguments: tuple[Any, ...]) -> Any:
        if self._worker is None or self._is_closed:
            raise Overloaded("the server is shutting down: send the request again", retry_after=5)
        _, connection = self._worker
        try:
            connection.send((method, arguments))
            while not connection.poll(_POLL_SECONDS):
                check_cancelled()
            return connection.recv()
        except (EOFError, OSError, ValueError):  # the worker has ended, or was ended
            if self._is_closed:
                raise Overloaded("the server is shutting down: send the request again", retry_after=5) from None
            raise self._processes.too_large() from None

    def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            _kill(worker[0])
            worker[1].close()


def _kill(pid: int) -> None:
    """End a worker whose connection is open, so that its id has not been reused."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
