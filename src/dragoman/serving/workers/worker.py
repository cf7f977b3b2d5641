"""What a worker process does: it translates one batch after another for the server at the other end of its socket."""

from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection

from dragoman.base.machine.device import use_threads
from dragoman.base.machine.memory import limit_memory
from dragoman.serving.queue.ticket import Found
from dragoman.serving.workers.loading import load_translator
from dragoman.serving.workers.messages import Done, Failed, Nursed, Ready, without_tokenizer
from dragoman.translation.lines import Line
from dragoman.translation.translator import Translator


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
            for answer in _answers(translator, lines, batch_lines):
                connection.send(answer)
    except (EOFError, OSError):  # the server is gone, or wants this worker no more
        return


def _answers(translator: Translator, lines: Sequence[Line], batch_lines: int) -> Iterator[Found | Done | Failed]:
    texts, requests = zip(*lines, strict=True)
    try:
        for found in translator.translate_window(texts, requests, batch_lines):
            yield without_tokenizer(found)
        yield Done()
    except Exception as error:
        yield Failed.of(error)
