"""A program's process: reads its task from the command line, starts the program, and measures at the gate."""

import importlib
import json
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gate import Gate
from sizes import SIZES, Sizes


@dataclass(frozen=True)
class Task:
    """The task of a program.

    folder: of the corpus written by `corpus.py`; own: a folder for this program only. tokens: maximum of padded target
    tokens per batch. options: of this program.
    """

    folder: Path
    own: Path
    model: str
    tokens: int
    bf16: bool
    device: str
    threads: int
    seed: int
    options: dict[str, Any]

    @property
    def sizes(self) -> Sizes:
        """The size of the model."""
        return SIZES[self.model]

    @property
    def corpus(self) -> dict[str, Any]:
        """The content of corpus.json: `size` of the vocabulary, ids of `pad`, `bos`, `eos`, `unk`, the text files."""
        return dict(json.loads((self.folder / "corpus.json").read_text()))

    def ids(self, side: str) -> list[list[int]]:
        """Return the training sentences of `source` or `target`, without special symbols."""
        return [[int(word) for word in line.split()] for line in (self.folder / f"train.{side}").open()]


def main() -> None:
    """Run one program until the measuring process ends it."""
    task = json.loads(sys.argv[1])
    program, clock, pipes = task.pop("program"), task.pop("clock"), task.pop("pipes")
    gate = Gate(*pipes, clock, task["device"] != "cpu")
    given = Task(**{**task, "folder": Path(task["folder"]), "own": Path(task["own"])})
    try:
        module = importlib.import_module(f"programs.{program}")
        import torch

        torch.set_num_threads(given.threads)
        gate.facts = {"torch": torch.__version__}
        module.train(given, gate)
        gate.fail("it ended by itself")
    except ModuleNotFoundError as error:
        traceback.print_exc()
        gate.fail(f"{error.name} is not installed for {sys.executable}")
    except BaseException as error:
        traceback.print_exc()
        gate.fail(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
