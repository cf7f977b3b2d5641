"""The process that loads a model and forks workers, which share its weights without a copy.

It computes nothing itself and has one thread, as a process that forks must. `WorkerPool` starts it, and talks to it and
to its workers over sockets that only they have.
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
from dragoman.serving.queue import Found
from dragoman.text.tokenizer import Tokenizer
from dragoman.translation.alignment import Aligner
from dragoman.translation.request import TextRequest
from dragoman.translation.translator import Translator


@dataclass(frozen=True)
class Nursed:
    """What a nursery is started for: a model, and what computes it in each worker."""

    model: ModelConfig
    engine: EngineConfig


@dataclass(frozen=True)
class Ready:
    """The nursery can fork; or a worker can translate. is_shared: whether workers have the nursery's weights."""

    is_shared: bool


def without_tokenizer(found: Found) -> Found:
    """To be sent: a tokenizer is a hundred times as large as what it belongs to, and the other end has it."""
    return [replace(each, tokenizer=None) for each in found]  # type: ignore[arg-type]


def with_tokenizer(found: Found, tokenizer: Tokenizer) -> Found:
    """As it was before it was sent."""
    return [replace(each, tokenizer=tokenizer) for each in found]


@dataclass(frozen=True)
class Done:
    """All lines of a batch were given."""


@dataclass(frozen=True)
class Failed:
    """What was wrong with a batch, or with the model."""

    error: Exception

    @classmethod
    def of(cls, error: Exception) -> "Failed":
        """Errors that are raised on purpose can be sent; another one is its message."""
        return cls(error if isinstance(error, DragomanError) else RuntimeError(f"{type(error).__name__}: {error}"))


_WARM_UP = ("A", "A short sentence, so that all is ready.")


def load_translator(model: ModelConfig, engine: EngineConfig, aligner: Aligner | None = None) -> Translator:
    """Raises ModelError and ConfigError as `Translator.load`, and ConfigError for a model that reads vectors."""
    translator = Translator.load(model.path, engine.device, engine.name, engine.precision, engine.threads)
    translator.report_cut, translator.aligner = False, aligner
    if translator.tokenizers.reads_vectors:
        raise ConfigError(f"{model.path} reads vectors, and a server is given texts")
    languages = translator.source_tags.languages
    translator.translate(_WARM_UP, to=languages[0] if languages else None)
    return translator


def load(nursed: Nursed) -> Translator:
    """The model, warm. Raises ModelError and ConfigError."""
    return load_translator(nursed.model, nursed.engine)


def work(connection: Connection, nursed: Nursed, translator: Translator | None) -> None:
    """Until the other end is closed. translator: what was loaded before the process was forked, if it was."""
    use_threads(nursed.engine.threads)
    try:
        if translator is None:
            try:
                translator = load(nursed)
            except Exception as error:
                connection.send(Failed.of(error))
                return
        if (megabytes := nursed.engine.worker_megabytes) is not None:
            limit_memory(megabytes * 1_000_000)
        connection.send(Ready(is_shared=True))
        while True:
            lines, batch_lines = connection.recv()
            for answer in _translated(translator, lines, batch_lines):
                connection.send(answer)
    except (EOFError, OSError):  # the server is gone, or wants this worker no more
        return


def _translated(
    translator: Translator, lines: Sequence[TextRequest], batch_lines: int
) -> Iterator[Found | Done | Failed]:
    texts, requests = zip(*lines, strict=True)
    try:
        for found in translator.translate_window(texts, requests, batch_lines):
            yield without_tokenizer(found)
        yield Done()
    except Exception as error:
        yield Failed.of(error)


ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
"""Its environment, so that no library starts threads of its own."""


def nurse(control: socket.socket) -> None:
    """Load what the other end names, then fork a worker whenever it sends a byte, until it is closed."""
    talk = Connection(os.dup(control.fileno()))
    try:
        nursed: Nursed = talk.recv()
        translator: Translator | None = load(nursed)
    except EOFError:
        return
    except Exception as error:
        talk.send(Failed.of(error))
        return
    if not _has_one_thread():  # threads of an engine would be missing in a fork: each worker loads its own
        translator = None
    talk.send(Ready(translator is not None))
    talk.close()
    gc.collect()
    gc.freeze()  # a collection would write to pages that all share
    while control.recv(1):
        ours, theirs = socket.socketpair()
        identity = os.fork()
        if not identity:
            control.close()
            ours.close()
            try:
                work(Connection(theirs.detach()), nursed, translator)
            finally:
                os._exit(0)
        theirs.close()
        try:
            socket.send_fds(control, [identity.to_bytes(8, "little")], [ours.fileno()])
        except OSError:  # nobody is there any more
            return
        ours.close()


def _has_one_thread() -> bool:
    tasks = Path("/proc/self/task")
    return tasks.is_dir() and len(list(tasks.iterdir())) == 1


def main() -> None:
    """Signals are the server's to answer: it ends its workers by closing their sockets, when their work is done."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # workers that end leave nothing behind
    with socket.socket(fileno=int(sys.argv[1])) as control:
        nurse(control)
