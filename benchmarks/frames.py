"""Length of the way of a sentence and of a request: Python frames between a call and the computation that it causes.

    python benchmarks/frames.py [MODEL] [--requests] [--stacks]

Rule: when a probe is called for the first time below its entry point, the frames on the stack whose code belongs to the
package `dragoman` are counted, from the outermost entry point to the probe, both included. Generators, comprehensions
and properties count like functions. Frames of Python, PyTorch, Starlette and FastAPI do not count, but the column `all`
includes them. `files` are the distinct files of the counted frames. A task of asyncio continues the stack of the
coroutine that created it.

| row | entry point | probe |
| --- | --- | --- |
| torch, beam step | `Translator.translate` | `BeamSearch.step`, which expands all hypotheses by one token |
| torch, decoder step | `Translator.translate` | `step` of the model's decoder, called by the beam step |
| native | `Translator.translate` | the function that calls the compiled `dragoman_translate` |
| request, to the queue | the ASGI application of `dragoman serve` | `LineQueue.put`, which queues the lines |
| request, to the engine | `Batcher._run`, which takes lines from the queue | `NativeEngine.hypotheses` |

MODEL is the folder of a Transformer that translates from English into German; without it, one is trained in a temporary
folder in a few seconds. With --requests, a server is started as well. --stacks prints the frames. Other versions of the
package are measured by the same rule: `PYTHONPATH=OTHER/src python benchmarks/frames.py`.
"""

import argparse
import asyncio
import contextlib
import ctypes
import gc
import importlib
import inspect
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import dragoman
from dragoman.cli.main import main as command

PACKAGE = str(Path(dragoman.__file__).parent)
SENTENCE = "The dog sleeps ."

TASKS: dict[Any, list[CodeType]] = {}
"""The functions on the stack at the creation of each task of asyncio, the innermost first."""


def stack(depth: int) -> list[CodeType]:
    """Return the functions on the stack, the innermost first, without the first `depth` of them."""
    try:
        task: Any = asyncio.current_task()
    except RuntimeError:  # outside of an event loop
        task = None
    codes: list[CodeType] = []
    frame: FrameType | None = sys._getframe(depth + 1)
    while frame is not None:
        codes.append(frame.f_code)
        if task is not None and frame is task.get_coro().cr_frame:
            return [*codes, *TASKS.get(task, ())]
        frame = frame.f_back
    return codes


def record_tasks() -> None:
    """Record the creation of tasks from now on."""
    for name in ("create_task", "ensure_future"):
        function = getattr(asyncio, name)

        def recorded(*arguments: Any, function: Callable[..., Any] = function, **named: Any) -> Any:
            codes = stack(1)
            task = function(*arguments, **named)
            TASKS.setdefault(task, codes)
            return task

        setattr(asyncio, name, recorded)


class Probe:
    """Replaces a function, and keeps the way to its first call.

    way: the functions from the outermost entry point to the probe, which is included if it is written in Python.
    """

    def __init__(self, owner: Any, name: str, entry: str, through: str = "") -> None:
        """Replace `owner.name`. entry: the qualified name of the entry point; through: that of a caller on the way."""
        self.way: list[CodeType] = []
        function = getattr(owner, name)
        code = getattr(inspect.unwrap(function), "__code__", None)

        def probed(*arguments: Any, **named: Any) -> Any:
            if not self.way:
                codes = stack(1)
                names = [each.co_qualname for each in codes]
                if entry in names and (not through or through in names):
                    outermost = len(names) - 1 - names[::-1].index(entry)
                    self.way = [*codes[outermost::-1], *([] if code is None else [code])]
            return function(*arguments, **named)

        setattr(owner, name, probed)


def train_toy(folder: Path) -> Path:
    """Train a Transformer of 16 units on a few sentences."""
    sides = {"source": ["The dog sleeps .", "A man runs ."], "target": ["Der Hund schläft .", "Ein Mann rennt ."]}
    for name, lines in sides.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines * 20), encoding="utf-8")
    corpus = {name: str(folder / name) for name in sides}
    layers = {"layers": 1, "feedforward": 16}
    recipe = {
        "data": {"train": corpus, "valid": corpus, "source_language": "en", "target_language": "de"},
        "text": {"subword": {"size": 280}},
        "model": {"preset": "tiny", "width": 16, "encoder": layers, "decoder": layers},
        "train": {"max_steps": 2},
        "out": str(folder / "run"),
    }
    dragoman.train(recipe, quiet=True)
    return folder / "run"


def sentence_ways(model: Path) -> dict[str, list[CodeType]]:
    """Return the ways of a sentence in both engines."""
    entry = "Translator.translate"
    beam_search = importlib.import_module("dragoman.decode.beam.beam_search").BeamSearch
    translator: Any = dragoman.Translator.load(model, "cpu", engine="torch")
    decoder = type(translator.engine.model.decoder)
    beam, decoding = Probe(beam_search, "step", entry), Probe(decoder, "step", entry, "BeamSearch.step")
    translator.translate([SENTENCE])
    native = dragoman.Translator.load(model, "cpu", engine="native", precision="float32")
    library = next(
        each for each in gc.get_objects() if isinstance(each, ctypes.CDLL) and "dragoman_translate" in vars(each)
    )
    compiled = Probe(library, "dragoman_translate", entry)
    native.translate([SENTENCE], unknown="forbid")
    return {"torch, beam step": beam.way, "torch, decoder step": decoding.way, "native": compiled.way}


def module(*names: str) -> ModuleType:
    """Return the first of several modules that exists: versions of the package have different layouts."""
    for name in names:
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(f"dragoman.{name}")
    raise ModuleNotFoundError(f"none of {', '.join(names)} exists")


def request_ways(model: Path) -> dict[str, list[CodeType]]:
    """Return the way of a request to `dragoman serve`, in the event loop and in the engine's thread."""
    queue = module("addons.serving.queueing.line_queue", "addons.serving.queue", "serving.queue").LineQueue
    application = module("addons.serving.http.application", "addons.serving.http.app", "serving.http.app")
    entry = "Application.__call__" if hasattr(application, "Application") else "FastAPI.__call__"
    engine = module("engines.native.engine", "translation.engines.native.engine").NativeEngine
    queued, computed = Probe(queue, "put", entry), Probe(engine, "hypotheses", "Batcher._run")
    record_tasks()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def ask() -> None:
        body = json.dumps({"q": SENTENCE, "source": "en", "target": "de"}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/translate", body, {"Content-Type": "application/json"}
        )
        for _ in range(600):
            with contextlib.suppress(OSError):  # the server is not ready
                urllib.request.urlopen(request).read()
                break
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=ask, daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt, SystemExit):
        options = ["--port", str(port), "--device", "cpu", "--languages", "en-de"]
        command(["serve", str(model), *options])
    return {"request, to the queue": queued.way, "request, to the engine": computed.way}


def report(name: str, way: list[CodeType], stacks: bool) -> None:
    """Print one row of the table and, if requested, the counted frames."""
    own = [code for code in way if code.co_filename.startswith(PACKAGE)]
    print(f"{name:<24} {len(own):>6} {len({code.co_filename for code in own}):>6} {len(way):>6}")
    for code in own if stacks else ():
        print(f"    {code.co_filename.removeprefix(PACKAGE)[1:]}: {code.co_qualname}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--requests", action="store_true", help="start a server as well")
    parser.add_argument("--stacks", action="store_true", help="print the frames")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.model or train_toy(Path(temporary))
        found = sentence_ways(folder)
        if chosen.requests:
            found |= request_ways(folder)
    print(f"{'way':<24} {'frames':>6} {'files':>6} {'all':>6}")
    for name, way in found.items():
        report(name, way, chosen.stacks)
