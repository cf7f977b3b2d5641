"""`python -m dragoman`: the same as the `dragoman` command."""

import os
import signal
import sys
from types import FrameType


def main() -> int:
    """Run the `dragoman` command, and return its exit code.

    Ctrl-C also works while the command line is imported. The server handles its signals itself.
    """
    if sys.argv[1:2] != ["serve"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from dragoman.cli.main import main

    return main()


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
