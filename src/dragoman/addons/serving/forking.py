"""`fork_for_each_byte`: a process with a single thread that forks others on request."""

import gc
import os
import signal
import socket
from collections.abc import Callable
from multiprocessing.connection import Connection


def ignore_signals() -> None:
    """Ignore the signals that the server handles, and let children that end not become zombies."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def fork_for_each_byte(control: socket.socket, run: Callable[[Connection], None]) -> None:
    """Fork a child for each byte received, until the socket is closed.

    A child calls `run` with its connection and ends. The process id of the child and the other end of its connection
    are sent over the socket.
    """
    gc.collect()
    gc.freeze()  # garbage collection would write to shared pages, and thus copy them
    while control.recv(1):
        parent_end, child_end = socket.socketpair()
        pid = os.fork()
        if not pid:
            control.close()
            parent_end.close()
            try:
                run(Connection(child_end.detach()))
            finally:
                os._exit(0)
        child_end.close()
        try:
            socket.send_fds(control, [pid.to_bytes(8, "little")], [parent_end.fileno()])
        except OSError:  # the server has ended
            return
        parent_end.close()
