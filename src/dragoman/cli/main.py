"""The `dragoman` command and its subcommands. Only this file turns errors into messages and exit codes."""

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from functools import cache
from typing import Any

import typer
from typer.main import get_command

from dragoman import __version__
from dragoman.addons.lecture.commands import demo, positions, scenes
from dragoman.addons.serving.commands import client, keys, serve
from dragoman.addons.workbench import command as workbench
from dragoman.base.cancellation import Cancelled
from dragoman.base.errors import DragomanError
from dragoman.base.imports import VARIABLE, import_modules, requested_modules
from dragoman.base.interruption import EXIT_CODE, InterruptWatch
from dragoman.base.machine.startup import limit_garbage_collection, restart_on_tcmalloc
from dragoman.cli.commands import (
    align,
    average,
    backtranslate,
    data,
    describe,
    distill,
    evaluate,
    export,
    generate,
    import_,
    lexicon,
    predict,
    recipes,
    score,
    settings,
    shortlist,
    train,
    translate,
    tune,
)
from dragoman.cli.commands.inspection import app as inspection
from dragoman.cli.usage import WRONG_USAGE, move_help_to_end, reject_empty_paths, usage_hint

app = typer.Typer(
    name="dragoman",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train translation models from parallel text, translate, and evaluate.",
)


def _show_version(value: bool) -> None:
    if value:
        print(f"dragoman {__version__}")
        raise typer.Exit


_IMPORTS = typer.Option(
    [],
    "--import",
    metavar="MODULE",
    help="Import a module that registers own parts: a file (own.py) or a name in Python. Repeatable.",
)


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Print the version."),
    imports: list[str] = _IMPORTS,
) -> None:
    if imports:
        # In the environment, processes that the command starts see it as well.
        os.environ[VARIABLE] = ",".join([*requested_modules(), *imports])
        import_modules(imports, "--import")


app.command("train")(train.train)
app.command("translate")(translate.translate)
app.command("generate")(generate.generate)
app.command("predict")(predict.predict)
app.command("score")(score.score)
app.command("evaluate")(evaluate.evaluate)
app.command("align")(align.align)
app.command("lexicon")(lexicon.lexicon)
app.command("shortlist")(shortlist.shortlist)
app.command("tune")(tune.tune)
app.command("average")(average.average)
app.command("import")(import_.import_model)
app.command("export")(export.export)
app.command("backtranslate")(backtranslate.backtranslate)
app.command("distill")(distill.distill)
app.command("serve")(serve.serve)
app.command("client")(client.client)
app.add_typer(data.app, name="data")
app.command("settings")(settings.settings)
app.command("recipes")(recipes.recipes)
app.command("describe")(describe.describe)
app.add_typer(inspection.app, name="inspect")
app.command("workbench")(workbench.workbench)
app.command("demo")(demo.demo)
app.command("positions")(positions.positions)
app.command("scenes")(scenes.scenes)
app.add_typer(keys.app, name="keys")


_RESUMES = "interrupted: completed work is kept. Repeat the same command to resume"
_INTERRUPTED = {
    "train": "interrupted before the first update: repeat the same command",
    "demo": _RESUMES,
    "distill": f"{_RESUMES}, with --resume if the student's training has begun",
    "backtranslate": _RESUMES,
    "translate": "interrupted",
    "generate": "interrupted",
    "serve": "interrupted",
    "workbench": "interrupted",
}
"""Messages after Ctrl-C by command."""


@cache
def root_command() -> Any:
    """Return the command line as one command. `app(…)` would build all commands again in each call."""
    return get_command(app)


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
    given = move_help_to_end(sys.argv[1:] if arguments is None else arguments)
    verb = next(iter(given[_count_imports(given) :]), "")
    watch = InterruptWatch(_INTERRUPTED.get(verb, "interrupted: nothing was saved"))
    try:
        with nullcontext() if verb in ("serve", "workbench") else watch:  # servers handle their signals
            if any(argument == "" or argument.endswith("=") for argument in given):
                reject_empty_paths(given, root_command())
            root_command()(args=given)
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # typer converts it, too
            return _discard_stdout()
        if watch.is_interrupted:  # typer converts KeyboardInterrupt
            print(watch.message, file=sys.stderr)
            return _leave(EXIT_CODE, arguments is None)
        if stop.code == WRONG_USAGE and (hint := usage_hint(given, root_command())):
            print(f"hint: {hint}", file=sys.stderr)
        return _flush_stdout(stop.code if isinstance(stop.code, int) else int(stop.code is not None))
    except (KeyboardInterrupt, Cancelled):
        print(watch.message, file=sys.stderr)
        return _leave(EXIT_CODE, arguments is None)
    except BrokenPipeError:
        return _discard_stdout()
    except DragomanError as error:
        _print_traceback()
        # an exit code of 128 + signal means that the run was interrupted after saving its state
        print(f"{'' if error.exit_code > 128 else 'error: '}{error}", file=sys.stderr)
        return _leave(error.exit_code, arguments is None)
    except OSError as error:
        _print_traceback()
        place = "" if error.filename is None else f"{error.filename}: "
        print(f"error: {place}{error.strerror or error}", file=sys.stderr)
        return 1
    except MemoryError:
        _print_traceback()
        print("error: not enough memory", file=sys.stderr)
        return 1
    except Exception as error:
        _print_traceback()
        frame = traceback.extract_tb(error.__traceback__)[-1]
        location = f"{os.path.basename(frame.filename)}:{frame.lineno}"
        print(
            f"error: unexpected {type(error).__name__} at {location}: {error}\nThis is a bug in dragoman. Please "
            "report it with the output of the same command with DRAGOMAN_TRACEBACK=1",
            file=sys.stderr,
        )
        return 1
    return _flush_stdout(0)


def _count_imports(given: Sequence[str]) -> int:
    """Return the number of arguments before the verb that belong to `--import`."""
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
