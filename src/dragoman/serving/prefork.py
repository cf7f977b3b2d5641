"""The prefork process, which loads a model and forks workers that share its weights without a copy.

The process decodes nothing itself and has a single thread, which makes it safe to fork. `WorkerPool` starts it, and
communicates with it and with its workers over private sockets.
"""

import gc
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path

from dragoman.base.errors import ConfigError, DragomanError
from dragoman.base.machine.device import use_threads
from dragoman.base.machine.memory import limit_memory
from dragoman.serving.config import EngineConfig, ModelConfig
from dragoman.serving.queue import Hypotheses
from dragoman.text.tokenizer import Tokenizer
from dragoman.translation.alignment import Aligner
from dragoman.translation.request import TextRequest
from dragoman.translation.translator import Translator

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""The prefork process's environment variables, so that no library starts threads in it."""

_WARM_UP = ("A", "A short sentence that warms up the model.")


@dataclass(frozen=True)
class WorkerSpec:
    """Message to the prefork process: the model, and the engine of each worker."""

    model: ModelConfig
    engine: EngineConfig


@dataclass(frozen=True)
class Ready:
    """Message: the prefork process can fork, or a worker can translate. is_shared: whether workers share weights."""

    is_shared: bool


@dataclass(frozen=True)
class BatchDone:
    """Message of a worker: the hypotheses of all lines of a batch were sent."""


@dataclass(frozen=True)
class Failure:
    """Message: loading the model or translating a batch failed."""

    error: Exception

    @classmethod
    def of(cls, error: Exception) -> "Failure":
        """Wrap an error. Errors other than the package's own may not be picklable, so only their message is sent."""
        return cls(error if isinstance(error, DragomanError) else RuntimeError(f"{type(error).__name__}: {error}"))


def without_tokenizer(hypotheses: Hypotheses) -> Hypotheses:
    """Return hypotheses as they are sent: a tokenizer is a hundred times larger, and the server has it already."""
    return [replace(each, tokenizer=None) for each in hypotheses]  # type: ignore[arg-type]


def with_tokenizer(hypotheses: Hypotheses, tokenizer: Tokenizer) -> Hypotheses:
    """Return received hypotheses with their tokenizer."""
    return [replace(each, tokenizer=tokenizer) for each in hypotheses]


def load_translator(model: ModelConfig, engine: EngineConfig, aligner: Aligner | None = None) -> Translator:
    """Load a model for serving and warm it up.

    Raises ModelError and ConfigError as `Translator.load` does, and ConfigError for a model that reads vectors.
    """
    translator = Translator.load(model.path, engine.device, engine.name, engine.precision, engine.threads)
    translator.report_cut, translator.aligner = False, aligner
    if translator.tokenizers.reads_vectors:
        raise ConfigError(f"{model.path} reads vectors, and a server receives text")
    languages = translator.source_tags.languages
    translator.translate(_WARM_UP, to=languages[0] if languages else None)
    return translator


def main() -> None:
    """Run the prefork process; the program's argument is the file descriptor of its socket.

    It ignores signals: the server handles them, and ends its workers by closing their sockets once they are idle.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # workers that end leave no zombies
    with socket.socket(fileno=int(sys.argv[1])) as control:
        serve_forks(control)


def serve_forks(control: socket.socket) -> None:
    """Load the model that the server names, then fork a worker for each byte received, until the socket is closed."""
    connection = Connection(os.dup(control.fileno()))
    try:
        spec: WorkerSpec = connection.recv()
        translator: Translator | None = load_translator(spec.model, spec.engine)
    except EOFError:
        return
    except Exception as error:
        connection.send(Failure.of(error))
        return
    if not _has_one_thread():  # a fork would lack the engine's threads: each worker loads its own model
        translator = None
    connection.send(Ready(translator is not None))
    connection.close()
    gc.collect()
    gc.freeze()  # a collection would write to shared pages, and thus copy them
    while control.recv(1):
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if not pid:
            control.close()
            ours.close()
            try:
                run_worker(Connection(theirs.detach()), spec, translator)
            finally:
                os._exit(0)
        theirs.close()
        try:
            socket.send_fds(control, [pid.to_bytes(8, "little")], [ours.fileno()])
        except OSError:  # the server is gone
            return
        ours.close()


def run_worker(connection: Connection, spec: WorkerSpec, translator: Translator | None) -> None:
    """Translate batches until the server closes the connection. translator: as loaded before the fork, or None."""
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
        connection.send(Ready(is_shared=True))
        while True:
            lines, batch_lines = connection.recv()
            for answer in _translate(translator, lines, batch_lines):
                connection.send(answer)
    except (EOFError, OSError):  # the server is gone, or has closed this worker
        return


def _translate(
    translator: Translator, lines: Sequence[TextRequest], batch_lines: int
) -> Iterator[Hypotheses | BatchDone | Failure]:
    texts, requests = zip(*lines, strict=True)
    try:
        for hypotheses in translator.translate_window(texts, requests, batch_lines):
            yield without_tokenizer(hypotheses)
        yield BatchDone()
    except Exception as error:
        yield Failure.of(error)


def _has_one_thread() -> bool:
    tasks = Path("/proc/self/task")
    return tasks.is_dir() and len(list(tasks.iterdir())) == 1
