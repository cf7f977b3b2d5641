"""The prefork process, which loads a model and forks workers that share the weights without copying them.

The prefork process does not translate and has a single thread, so it is safe to fork. `WorkerPool` starts the process,
and communicates with the process and its workers over private sockets.
"""

import os
import socket
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Protocol, cast

from dragoman.addons.serving.config import EngineConfig, ModelConfig
from dragoman.addons.serving.forking import fork_for_each_byte, ignore_signals
from dragoman.addons.serving.queueing.line_queue import Hypotheses
from dragoman.base.cancellation import Cancellation, Cancelled
from dragoman.base.errors import ConfigError, DragomanError
from dragoman.base.machine.device import use_threads
from dragoman.base.machine.memory import limit_memory
from dragoman.inference.abilities import SupportsLines
from dragoman.inference.load import translator_of
from dragoman.inference.translation.alignment import Aligner
from dragoman.inference.translation.continuous import ContinuousTranslation
from dragoman.inference.translation.request import TextRequest
from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.unknown_tokens import has_unknown_tokens

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES",  # macOS, which would end a fork of a process that uses Objective-C
}
"""Environment variables of the prefork process, which prevent libraries from starting threads."""

_WARM_UP = ("A", "A short sentence that warms up the model.")
_KNOWN_WORDS = 8
"""Words of the text that warms up a model that does not know all words."""


@dataclass(frozen=True)
class WorkerSpec:
    """The first message to the prefork process, with the model and the engine of each worker."""

    model: ModelConfig
    engine: EngineConfig


@dataclass(frozen=True)
class ProcessReady:
    """Reports that the prefork process or a worker process has started.

    is_shared: whether the workers share the weights. precision: as in `Engine.precision`.
    """

    is_shared: bool
    precision: str


@dataclass(frozen=True)
class Batch:
    """Lines for a worker to translate. number: identifies the batch. batch_lines: lines that are decoded together."""

    number: int
    lines: list[TextRequest]
    batch_lines: int


@dataclass(frozen=True)
class CancelBatch:
    """Tells a worker that the remaining lines of a batch are no longer needed."""

    number: int


@dataclass(frozen=True)
class BatchDone:
    """Reports that a worker has sent the hypotheses of all lines of a batch, or that the batch was cancelled."""


@dataclass(frozen=True)
class Failure:
    """Reports that loading the model or translating a batch has failed."""

    error: Exception

    @classmethod
    def of(cls, error: Exception) -> "Failure":
        """Wrap an error. Errors from outside this package may not be picklable, so only their message is sent."""
        return cls(error if isinstance(error, DragomanError) else RuntimeError(f"{type(error).__name__}: {error}"))


class ServedTranslator(SupportsLines, Protocol):
    """What the translator of a server has, so that requests of several clients share the model."""

    def concurrent(self) -> "ServedTranslator | None":
        """Return a translator of the same model for another thread, or None if there can be none."""
        ...

    def continuous(self, batch_size: int = 64) -> ContinuousTranslation | None:
        """Start continuous batching, or return None if lines are translated batch by batch."""
        ...


def strip_tokenizer(hypotheses: Hypotheses) -> Hypotheses:
    """Remove the tokenizer before sending. It is a hundred times larger, and the server already has it."""
    return [replace(hypothesis, tokenizer=None) for hypothesis in hypotheses]  # type: ignore[arg-type]


def attach_tokenizer(hypotheses: Hypotheses, tokenizer: Tokenizer) -> Hypotheses:
    """Add the tokenizer to received hypotheses."""
    return [replace(hypothesis, tokenizer=tokenizer) for hypothesis in hypotheses]


def load_translator(model: ModelConfig, engine: EngineConfig, aligner: Aligner | None = None) -> ServedTranslator:
    """Load a model for serving and warm it up.

    Raises ModelError and ConfigError as `translator_of` does, and ConfigError for a model that expects vectors.
    """
    options = {} if aligner is None else {"aligner": aligner}
    loaded = translator_of(
        model.path,
        engine.device,
        needs=ServedTranslator,
        engine=engine.name,
        precision=engine.precision,
        threads=engine.threads,
        system=model.system,
        **options,
    )
    translator = cast("ServedTranslator", loaded)
    translator.warn_unfinished = False
    if translator.tokenizers.reads_vectors:
        raise ConfigError(f"{model.path} expects vectors, but a server receives text")
    languages = translator.source_tags.languages
    request = translator.request(to=languages[0] if languages else None)
    deque(translator.translate_window(warm_up_texts(translator.tokenizers.source), request), maxlen=0)
    return translator


def warm_up_texts(tokenizer: Tokenizer) -> tuple[str, ...]:
    """Return a short text and a longer one. They have no unknown tokens, of which the operator would be warned."""
    if not has_unknown_tokens(tokenizer):
        return _WARM_UP
    words = [tokenizer.decode([number]) for number in range(UNK + 1, min(UNK + 1 + _KNOWN_WORDS, tokenizer.size))]
    return words[0], " ".join(words)


def main() -> None:
    """Run the prefork process. The command-line argument is the file descriptor of its socket.

    The process ignores signals, because the server handles them. The server ends idle workers by closing their sockets.
    """
    ignore_signals()
    with socket.socket(fileno=int(sys.argv[1])) as control:
        serve_forks(control)


def serve_forks(control: socket.socket) -> None:
    """Load the requested model, then fork a worker for each byte received, until the socket is closed."""
    connection = Connection(os.dup(control.fileno()))
    try:
        spec: WorkerSpec = connection.recv()
        translator: ServedTranslator | None = (loaded := load_translator(spec.model, spec.engine))
    except EOFError:
        return
    except Exception as error:
        connection.send(Failure.of(error))
        return
    precision = loaded.engine.precision
    del loaded
    if not _has_one_thread():  # a fork would lack the engine's threads, so each worker loads the model itself
        translator = None
    connection.send(ProcessReady(translator is not None, precision))
    connection.close()
    fork_for_each_byte(control, lambda connection: run_worker(connection, spec, translator))


def run_worker(connection: Connection, spec: WorkerSpec, translator: ServedTranslator | None) -> None:
    """Translate batches until the server closes the connection. translator: None if the worker must load it."""
    use_threads(spec.engine.threads)
    try:
        if translator is None:
            try:
                translator = load_translator(spec.model, spec.engine)
            except Exception as error:
                connection.send(Failure.of(error))
                return
        if (megabytes := spec.engine.worker_megabytes) is not None:
            limit_memory(megabytes * 1_000_000)
        connection.send(ProcessReady(True, translator.engine.precision))
        inbox = _Inbox(connection)
        while (batch := inbox.next()) is not None:
            for answer in _translate(translator, batch, inbox.cancellation):
                connection.send(answer)
    except (EOFError, OSError):  # the server has ended or closed the connection
        return


class _Inbox:
    """Receives messages in a thread, so that a batch can be cancelled while it is translated."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._lock = connection, Lock()
        self._batches: SimpleQueue[Batch | None] = SimpleQueue()
        self._number = -1
        self.cancellation = Cancellation()
        """The cancellation of the current batch."""
        Thread(target=self._receive, name="receiving", daemon=True).start()

    def next(self) -> Batch | None:
        """Wait for the next batch; None if the server has ended or closed the connection."""
        batch = self._batches.get()
        if batch is not None:
            with self._lock:
                self._number, self.cancellation = batch.number, Cancellation()
        return batch

    def _receive(self) -> None:
        try:
            while True:
                message = self._connection.recv()
                if isinstance(message, Batch):
                    self._batches.put(message)
                    continue
                with self._lock:
                    if message.number == self._number:
                        self.cancellation.cancel()
        except (EOFError, OSError):
            self.cancellation.cancel()
            self._batches.put(None)


def _translate(
    translator: ServedTranslator, batch: Batch, cancellation: Cancellation
) -> Iterator[Hypotheses | BatchDone | Failure]:
    texts, requests = zip(*batch.lines, strict=True)
    try:
        with cancellation.active():
            for hypotheses in translator.translate_window(texts, requests, batch.batch_lines):
                yield strip_tokenizer(hypotheses)
        yield BatchDone()
    except Cancelled:
        yield BatchDone()
    except Exception as error:
        yield Failure.of(error)


def _has_one_thread() -> bool:
    tasks = Path("/proc/self/task")
    return tasks.is_dir() and len(list(tasks.iterdir())) == 1
