"""Measures the fastest numbers of workers (for many sources) and of threads (for a single source), and
the speed of precisions."""

import json
import os
import random
import time
from functools import cache
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

import torch

from dragoman.base.errors import ResourceError
from dragoman.base.files import atomic_write
from dragoman.decode.rules.length_penalty import NoPenalty
from dragoman.engines.native.model import NativeModel
from dragoman.engines.native.request import NativeRequest
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.native.cache_folders import cache_folders, check_owner, create
from dragoman.text.symbols import EOS

_SECONDS = 2.0
_VOCABULARY, _LENGTHS, _REQUESTS = 6000, (4, 24), 160
_MIN_REQUESTS, _PASS_SECONDS = 16, 0.25
_SPEED_TURNS = 5


class Calibration(NamedTuple):
    """The fastest numbers of threads.

    workers: the number of threads that share many requests, with one batch each. threads: the number of threads that
    compute a single request together.
    """

    workers: int
    threads: int


@cache
def calibrate(max_threads: int, library: Path) -> Calibration:
    """Return the fastest numbers of workers and threads, each at most `max_threads`.

    The numbers are measured once per machine, in two seconds, and stored in a cache folder if one is writable. The
    largest numbers are not always the fastest, because the second hardware thread of a core adds little, and threads
    that wait for one another are slow if cores are far apart. library: the library for this machine.
    """
    if max_threads == 1:
        return Calibration(1, 1)
    name = f"calibration-{library.stem}-{max_threads}-of-{os.cpu_count()}.json"
    for folder in cache_folders():
        if (stored := _read(folder / name, max_threads)) is not None:
            return stored
    measured = _measure(max_threads)
    _store(name, measured._asdict())
    return measured


@cache
def relative_speed(precision: Literal["bfloat16", "int8"], library: Path) -> float:
    """Return how many times as fast as float32 another precision is on this processor, with one thread.

    The ratio is the smaller one of batches and single sentences, for a model of the preset `small` with random weights.
    It is measured once per machine, in a second or two, and stored like the numbers of threads. library: the library
    for this machine.
    """
    name = f"{precision}-speed-{library.stem}.json"
    for folder in cache_folders():
        if (stored := _read_speed(folder / name)) is not None:
            return stored
    speed = _measure_speed(precision)
    _store(name, {"speed": speed})
    return speed


def _read_speed(path: Path) -> float | None:
    """Return a stored ratio, or None if the file is missing, damaged, or was written by another user."""
    try:
        check_owner(path)
        speed = float(json.loads(path.read_bytes())["speed"])
    except (OSError, ResourceError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return speed if isfinite(speed) and speed > 0 else None


def _measure_speed(precision: Literal["bfloat16", "int8"]) -> float:
    model = _model()
    exact, other = NativeModel(model, "float32"), NativeModel(model, precision)
    requests = _requests(_MIN_REQUESTS)
    batches: list[float] = []
    single: list[float] = []
    end = time.monotonic() + _SECONDS
    while not batches or (len(batches) < _SPEED_TURNS and time.monotonic() < end):
        batches.append(_seconds(exact, requests, 1) / _seconds(other, requests, 1))
        single.append(_seconds(exact, requests[:1], 1) / _seconds(other, requests[:1], 1))
    return min(median(batches), median(single))


def _store(name: str, measured: dict[str, float]) -> None:
    """Write a measurement to the first writable cache folder, if there is one."""
    for folder in cache_folders():
        try:
            create(folder, is_for_libraries=False)
            atomic_write(folder / name, json.dumps(measured))
            return
        except (OSError, ResourceError):
            continue


def _read(path: Path, max_threads: int) -> Calibration | None:
    """Return a stored measurement, or None if the file is missing, damaged, or was written by another user."""
    try:
        check_owner(path)
        numbers = json.loads(path.read_bytes())
        found = Calibration(numbers["workers"], numbers["threads"])
    except (OSError, ResourceError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return found if all(type(each) is int and 1 <= each <= max_threads for each in found) else None


def _measure(max_threads: int) -> Calibration:
    powers = (2**power for power in range(max_threads.bit_length()))
    counts = sorted({max_threads, *powers, max(1, max_threads // 2)})
    model = _model()
    models = {count: NativeModel(model, "int8", count) for count in counts}
    requests = _requests(_REQUESTS)
    few = requests[:_MIN_REQUESTS]
    passes = _PASS_SECONDS / _seconds(models[max_threads], few, 1)
    requests = requests[: max(_MIN_REQUESTS, int(_MIN_REQUESTS * passes))]  # fewer on slow processors
    end = time.monotonic() + _SECONDS
    many: dict[int, list[float]] = {count: [] for count in counts}
    single: dict[int, list[float]] = {count: [] for count in counts}
    while time.monotonic() < end or len(single[max_threads]) < 3:
        for count, native in models.items():
            many[count].append(_seconds(models[max_threads], requests, count))
            single[count].append(sum(_seconds(native, [request], 1) for request in requests[:8]))
    return Calibration(_fastest(many), _fastest(single))


def _model() -> Seq2Seq:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return ModelConfig(preset="small").build(_VOCABULARY, _VOCABULARY)


def _requests(count: int) -> list[NativeRequest]:
    generator = random.Random(1)
    return [_random_request(generator, generator.randint(*_LENGTHS)) for _ in range(count)]


def _random_request(generator: random.Random, length: int) -> NativeRequest:
    """Return a request with a random source, whose greedy translation has the same number of tokens."""
    source = [*(generator.randrange(4, _VOCABULARY) for _ in range(length)), EOS]
    return NativeRequest(source, (), (EOS,), 1, 1, length, 0, NoPenalty())


def _seconds(native: NativeModel, requests: list[NativeRequest], workers: int) -> float:
    start = time.perf_counter()
    native.translate(requests, 32, workers)
    return time.perf_counter() - start


def _fastest(seconds: dict[int, list[float]]) -> int:
    """Return the smallest number of threads whose median time is within 5% of the fastest."""
    medians = {count: median(each) for count, each in seconds.items()}
    return min(count for count, time in medians.items() if time <= 1.05 * min(medians.values()))
