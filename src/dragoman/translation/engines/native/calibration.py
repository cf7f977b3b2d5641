"""How many threads are best on this machine: for many texts, each worker by itself, and for a single one, together."""

import json
import os
import random
import time
from functools import cache
from pathlib import Path
from statistics import median
from typing import NamedTuple

import torch

from dragoman.base.files import atomic_write
from dragoman.decode.rules.length_penalty import NoPenalty
from dragoman.models.seq2seq import ModelConfig
from dragoman.text.special import EOS
from dragoman.translation.engines.native.build import cache_folder
from dragoman.translation.engines.native.model import NativeModel
from dragoman.translation.engines.native.texts import NativeText

_SECONDS = 2.0
_VOCABULARY, _LENGTHS, _TEXTS = 6000, (4, 24), 160


class Calibration(NamedTuple):
    """workers: that share many texts, a thread each. threads: that work on a single text together."""

    workers: int
    threads: int


@cache
def calibrated(most: int, library: Path) -> Calibration:
    """For at most so many threads; measured in two seconds when it is first asked for, and kept for the machine.

    A core that offers two threads gains little from the second, and threads that wait for one another lose where cores
    are far apart: what is best is measured. library: what was compiled for this machine.
    """
    if most == 1:
        return Calibration(1, 1)
    path = cache_folder() / f"calibration-{library.stem}-{most}-of-{os.cpu_count()}.json"
    try:
        return Calibration(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        found = _measured(most)
        atomic_write(path, json.dumps(found._asdict()))
        return found


def _measured(most: int) -> Calibration:
    counts = sorted({most, *(2**power for power in range(most.bit_length())), max(1, most // 2)})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = ModelConfig(preset="small").build(_VOCABULARY, _VOCABULARY)
    models = {count: NativeModel(model, "int8", count) for count in counts}
    chance = random.Random(1)
    texts = [_text(chance, chance.randint(*_LENGTHS)) for _ in range(_TEXTS)]
    end = time.monotonic() + _SECONDS
    together: dict[int, list[float]] = {count: [] for count in counts}
    single: dict[int, list[float]] = {count: [] for count in counts}
    while time.monotonic() < end or len(single[most]) < 3:
        for count, native in models.items():
            together[count].append(_seconds(models[most], texts, count))
            single[count].append(sum(_seconds(native, [text], 1) for text in texts[:8]))
    return Calibration(_fastest(together), _fastest(single))


def _text(chance: random.Random, length: int) -> NativeText:
    """Random tokens, whose translation is as long."""
    source = [*(chance.randrange(4, _VOCABULARY) for _ in range(length)), EOS]
    return NativeText(source, (), (EOS,), 1, 1, length, 0, NoPenalty())


def _seconds(native: NativeModel, texts: list[NativeText], workers: int) -> float:
    begun = time.perf_counter()
    native.translate(texts, 32, workers)
    return time.perf_counter() - begun


def _fastest(seconds: dict[int, list[float]]) -> int:
    """The smallest number that is within a twentieth of the fastest."""
    medians = {count: median(each) for count, each in seconds.items()}
    return min(count for count, time in medians.items() if time <= 1.05 * min(medians.values()))
