"""The start-up time of commands: nothing that takes a second is imported without need."""

import subprocess
import sys
from functools import cache
from importlib.metadata import version

import pytest
from trained_model import FOLDER as MODEL

PROGRAM = """
import sys
from dragoman import Translator
from dragoman.models.kinds.encoder_decoder import ModelConfig
Translator.load(sys.argv[1], device="cpu").translate(["a"])
for kind in ("learned", "relative", "rotary", "alibi", "one_hot"):
    ModelConfig.model_validate({"positions": {"kind": kind}})
ModelConfig.model_validate({"preset": "rnn"})
ModelConfig.model_validate({"encoder": {"kind": "convolutional"}, "decoder": {"kind": "bytenet"}})
print("torch._dynamo" if "torch._dynamo" in sys.modules else "")
import dragoman.training.run.loop
from dragoman.training.ranks.group import open_ranks
with open_ranks("cpu") as ranks:
    ranks.wait()
several = [f"torch.distributed.{name}" for name in ("fsdp", "checkpoint", "tensor")]
print(*(name for name in several if name in sys.modules))
"""


@cache
def unnecessary_imports() -> list[str]:
    """Return the modules that should not have been imported after translating, and after the start of a training run.

    One process does both, because its imports take seconds.
    """
    command = [sys.executable, "-c", PROGRAM, str(MODEL)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


OLD = tuple(map(int, version("torch").split("+")[0].split(".")[:2])) < (2, 13)


@pytest.mark.skipif(OLD, reason="torch before 2.13 imports it also for Tensor.sign on the meta device")
def test_translating_imports_no_compiler() -> None:
    """torch imports it for random tensors and torch.arange on the meta device, and for dispatch modes."""
    assert unnecessary_imports()[0] == "", "importing it takes a second"


def test_one_process_imports_nothing_for_several() -> None:
    assert unnecessary_imports()[1] == ""


COMMAND = """
import atexit, gc, sys
from dragoman.cli.main import main
usual = gc.get_threshold()
sys.argv = ["dragoman", "settings", "train.max_steps"]
def collected():
    return sum(each["collections"] for each in gc.get_stats())
atexit.register(lambda: print(gc.get_freeze_count() > 100_000))  # called last
before = collected()
main()
print(collected() - before)
gc.collect()
print(gc.get_threshold() == usual, gc.callbacks)
"""


@pytest.mark.slow
def test_a_command_collects_no_garbage_while_it_imports_and_when_it_ends() -> None:
    result = subprocess.run([sys.executable, "-c", COMMAND], capture_output=True, text=True, check=True)
    *_, imports, after, end = result.stdout.splitlines()
    assert (imports, after, end) == ("0", "True []", "True")
