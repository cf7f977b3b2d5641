"""Memory of a model with a large vocabulary: each weight is in memory once, and once more if it is packed."""

import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from native_searches import native_request, random_model, random_search, random_settings

from dragoman.engines.native.model import NativeModel

_PROGRAM = """
import resource, sys
from pathlib import Path

import torch
from dragoman.checkpoint.tensors import model_parameters, read_into, save_tensors
from dragoman.engines.native.model import NativeModel
from dragoman.models.kinds.encoder_decoder import ModelConfig

torch.set_num_threads(1)
side = {"layers": 1, "heads": 4, "feedforward": 64}
settings = {"preset": None, "width": 256, "encoder": side, "decoder": side, "tie_embeddings": True}
parameters = model_parameters(ModelConfig.model_validate(settings).build(60_003, 60_003))
save_tensors(Path(sys.argv[1]), parameters, {})
kept = [ModelConfig.model_validate(settings).build(60_003, 60_003)]
NativeModel(ModelConfig.model_validate(settings | {"width": 16}).build(9, 9), "float32")  # loads the library
del parameters


def growth(step):
    Path("/proc/self/clear_refs").write_text("5")  # the peak is now what is resident
    before = memory("VmRSS")
    kept.append(step())
    return memory("VmHWM") - before


def memory(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 2**10 for line in lines if line.startswith(field))


for step in (
    lambda: read_into(model_parameters(kept[0]), Path(sys.argv[1])),
    lambda: NativeModel(kept[0], "float32"),
    lambda: kept[-1].copy(1),
    lambda: NativeModel(kept[0], "int8"),
):
    print(growth(step))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")
def test_every_weight_is_in_memory_once_and_once_packed(tmp_path: Path) -> None:
    """The table of 60,003 vectors, which are source, target and output vectors, takes 59 MiB in float32."""
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path / "parameters.safetensors")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    reading, packing, copying, packing_codes = map(float, done.stdout.split())
    assert reading < 20, "beside the parameters, whose memory exists already"
    assert packing < 59 + 20
    assert copying < 5
    assert packing_codes < 59 / 4 + 20


def test_copies_compute_the_same_at_the_same_time() -> None:
    """Engines that share packed weights, each in its own thread, also when the first of them no longer exists."""
    chance = random.Random(5)
    model = random_model(random_settings(chance), 5)
    first = NativeModel(model, "float32")
    requests = [native_request(model, *random_search(chance)) for _ in range(40)]
    expected = first.translate(requests, 4, 1)
    copies = [first.copy(1) for _ in range(3)]
    del first
    found = [[] for _ in copies]

    def translate(number: int) -> None:
        found[number] = copies[number].translate(requests, 4, 1)

    threads = [threading.Thread(target=translate, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 3
