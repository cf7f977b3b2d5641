"""`main` runs the command line. Only this file turns errors into messages and exit codes."""

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import nullcontext, suppress

import typer

from dragoman.base.cancellation import Cancelled
from dragoman.base.errors import DragomanError
from dragoman.base.interruption import EXIT_CODE, InterruptWatch
from dragoman.base.machine.startup import limit_garbage_collection, restart_on_tcmalloc
from dragoman.cli.command import traits_of
from dragoman.cli.root import root_command
from dragoman.cli.usage import WRONG_USAGE, expand_home, find_command, move_help_to_end, reject_empty_paths, usage_hint


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    The exit code is 0 for success, 1 for a failure, 2 for wrong usage or settings, and 130 after an interruption. If
    the environment variable DRAGOMAN_TRACEBACK is 1, the traceback of every failure is printed.
    """
    own = sys.argv[1 + _count_imports(sys.argv[1:]) :]
    if arguments is None:
        if own[:1] in (["train"], ["distill"]):
            restart_on_tcmalloc()
        limit_garbage_collection()
    given = expand_home(move_help_to_end(sys.argv[1:] if arguments is None else arguments))
    watch = InterruptWatch("interrupted: nothing was saved")
    try:
        traits = traits_of(find_command(given[_count_imports(given) :], root_command())[0])
        watch.message = traits.interrupted
        with nullcontext() if traits.handles_signals else watch:
            if any(argument == "" or argument.endswith("=") for argument in given):
                reject_empty_paths(given, root_command())
            root_command()(args=given, prog_name="dragoman")
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # typer converts it, too
            return _discard_stdout()
        if watch.is_interrupted:  # typer converts KeyboardInterrupt
            print(watch.message, file=sys.stderr)
            return _leave(EXIT_CODE, arguments is None)
        if stop.code == WRONG_USAGE and (hint := usage_hint(given, root_command())):
            _tell(hint, "hint", "cyan")
        return _flush_stdout(stop.code if isinstance(stop.code, int) else int(stop.code is not None))
    except (KeyboardInterrupt, Cancelled):
        print(watch.message, file=sys.stderr)
        return _leave(EXIT_CODE, arguments is None)
    except BrokenPipeError:
        return _discard_stdout()
    except DragomanError as error:
        _print_traceback()
        # an exit code of 128 + signal means that the run was interrupted after saving its state
        _tell(str(error), None if error.exit_code > 128 else "error")
        return _leave(error.exit_code, arguments is None)
    except OSError as error:
        _print_traceback()
        place = "" if error.filename is None else f"{error.filename}: "
        _tell(f"{place}{error.strerror or error}")
        return 1
    except MemoryError:
        _print_traceback()
        _tell("not enough memory")
        return 1
    except Exception as error:
        _print_traceback()
        frame = traceback.extract_tb(error.__traceback__)[-1]
        location = f"{os.path.basename(frame.filename)}:{frame.lineno}"
        _tell(
            f"unexpected {type(error).__name__} at {location}: {error}\nThis is a bug in dragoman. Please report it "
            "with the output of the same command with DRAGOMAN_TRACEBACK=1"
        )
        return 1
    return _flush_stdout(0)


def _tell(message: str, kind: str | None = "error", colour: str = "red") -> None:
    """Print a message on stderr. kind: the word before it, which has a colour on a terminal unless NO_COLOR is set."""
    if kind is not None:
        is_plain = not sys.stderr.isatty() or bool(os.environ.get("NO_COLOR"))
        message = f"{kind if is_plain else typer.style(kind, fg=colour, bold=True)}: {message}"
    print(message, file=sys.stderr)


def _count_imports(given: Sequence[str]) -> int:
    """Return the number of arguments before the command that belong to `--import`."""
    count = 0
    while count < len(given) and given[count].partition("=")[0] == "--import":
        count += 1 if "=" in given[count] else 2
    return count


def _leave(code: int, is_process: bool) -> int:
    """Return an exit code. After Ctrl-C, end the process at once, because another signal could kill it at its exit.

    is_process: whether the command is the whole process.
    """
    if is_process and code == EXIT_CODE:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(code)
    return code


def _flush_stdout(code: int) -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _discard_stdout()
    return code


def _discard_stdout() -> int:
    # the reader of stdout has exited (`| head`): Python must not flush into the closed pipe again at exit
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


def _print_traceback() -> None:
    if os.environ.get("DRAGOMAN_TRACEBACK", "0") not in ("", "0"):
        traceback.print_exc()
