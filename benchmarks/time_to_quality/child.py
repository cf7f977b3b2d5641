"""A program's process: reads its task from the command line, trains until the limit, and ends with its parent."""

import importlib
import json
import os
import sys
import threading
from pathlib import Path

from recorder import Recorder

MISSING = 3
"""Exit code if the program, or one of its dependencies, is not installed."""


def main() -> None:
    """Train."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "training"))
    from worker import Task

    asked = json.loads(sys.argv[1])
    threading.Thread(target=_end_with_parent, args=(asked["pipe"],), daemon=True).start()
    given = asked["task"]
    task = Task(**{**given, "folder": Path(given["folder"]), "own": Path(given["own"])})
    recorder = Recorder(task.own, asked["every"], asked["minutes"])
    try:
        trainer = importlib.import_module(f"trainers.{asked['trainer']}")
        import torch

        torch.set_num_threads(task.threads)
        facts = trainer.train(task, recorder)
    except ModuleNotFoundError as error:
        print(f"{error.name} is not installed for {sys.executable}")
        sys.exit(MISSING)
    done = {"minutes": asked["minutes"], "facts": {"torch": torch.__version__, **facts}}
    (task.own / "done.part").write_text(json.dumps(done), "utf-8")
    os.replace(task.own / "done.part", task.own / "done.json")


def _end_with_parent(pipe: int) -> None:
    os.read(pipe, 1)  # returns when the other end is closed
    os._exit(1)


if __name__ == "__main__":
    main()
