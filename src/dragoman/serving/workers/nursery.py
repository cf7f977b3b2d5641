"""The nursery: a process that loads a model and forks workers, which have its weights without a copy.

It computes nothing itself and has one thread, as a process that forks must. `python -m` starts it, with the number of a
socket; `WorkerPool` is at the other end.
"""

import gc
import os
import signal
import socket
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from dragoman.serving.workers.messages import Failed, Nursed, Ready
from dragoman.serving.workers.worker import load, work
from dragoman.translation.translator import Translator

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


if __name__ == "__main__":
    main()
