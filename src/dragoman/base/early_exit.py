"""Ctrl-C while the command line is still being imported. This module imports as little as possible."""

import os
import signal
import sys
from types import FrameType


def exit_on_interrupt() -> None:
    """Make Ctrl-C end the process at once, if it runs the `dragoman` command, except for the server.

    An exception in an import could be swallowed, abort the process, or show a traceback. `cli.main` replaces this
    handler.
    """
    is_command = sys.orig_argv[1:3] == ["-m", "dragoman"] or os.path.basename((sys.argv or [""])[0]) == "dragoman"
    is_server = "serve" in sys.orig_argv[1:4]
    if is_command and not is_server and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(128 + number)
