"""Speed of kept models, each compared with its centre in one process: alternating updates and translations."""

import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman.base.settings.load import parse_settings
from dragoman.checkpoint.folder import load_model_folder
from dragoman.data.batches.batch import Batch, collate
from dragoman.data.batches.plan import plan_epoch
from dragoman.data.files.lines import open_lines
from dragoman.inference.translation.translator import Translator
from dragoman.tasks.translation.config import TranslationRun
from dragoman.training.machine.journal import Journal
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.ranks.parallel import SingleProcess
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.updates.engine import Engine
from dragoman.training.updates.update import Update

PAIRS, SENTENCES, UPDATES, WINDOWS = 2000, 64, 3, 5
"""Training pairs for batches; sentences translated and updates made per window; number of windows."""
LONGEST = 6.0
"""Seconds after which no further window is started; at least two are measured."""


class Contender:
    """A kept model for training and translation."""

    def __init__(self, folder: Path, settings: dict[str, Any], scratch: Path) -> None:
        self.config = parse_settings({**settings, "out": str(folder)}, TranslationRun, "benchmark")
        self.translator = Translator.load(folder, device="cpu")
        self._trained = load_model_folder(folder, torch.device("cpu")).model
        train = self.config.train
        self._engine = Engine(
            train,
            SingleProcess(self._trained, CrossEntropy(train.objective)),
            train.optimiser.build(self._trained, torch.float32),
            Runtime(torch.device("cpu"), torch.bfloat16 if train.precision == "bfloat16" else torch.float32),
            journal=Journal(scratch / "decisions.jsonl"),
        )
        self._numbers = itertools.count(1)
        self._batches = self._windows()

    def train(self) -> float:
        """Return target tokens per second over some updates."""
        window = list(itertools.islice(self._batches, UPDATES))
        began = time.perf_counter()
        for batch in window:
            # with a learning rate of 0 the model does not change
            self._engine.step(Update([batch]), TrainingPoint(next(self._numbers)), 0.0)
        return sum(batch.target_tokens for batch in window) / (time.perf_counter() - began)

    def translate(self, sources: list[str]) -> float:
        """Return sentences translated per second."""
        began = time.perf_counter()
        self.translator.translate(sources)
        return len(sources) / (time.perf_counter() - began)

    def _windows(self) -> Iterator[Batch]:
        files = self.config.data.train
        sides = []
        for path, tokenizer in (
            (files.source, self.translator.tokenizers.source),
            (files.target, self.translator.tokenizers.target),
        ):
            sides.append(tokenizer.encode_batch(list(itertools.islice(open_lines(Path(str(path))), PAIRS))))
        lengths = np.array([tuple(map(len, pair)) for pair in zip(*sides, strict=True)], np.int32)
        for epoch in itertools.count():
            for rows in map(list, plan_epoch(lengths, self.config.data.batch, seed=1, epoch=epoch).batches):
                yield collate([sides[0][row] for row in rows], [sides[1][row] for row in rows], rows)


def compare(
    folder: Path, settings: dict[str, Any], centre: Path, usual: dict[str, Any], sources: list[str]
) -> dict[str, Any]:
    """Return medians over windows of a model's speeds, and of their ratios to its centre in the neighbouring window."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        one = Contender(folder, settings, Path(scratch))
        two = Contender(centre, usual, Path(scratch))
        training = _turns(one.train, two.train)
        decoding = _turns(lambda: one.translate(sources[:SENTENCES]), lambda: two.translate(sources[:SENTENCES]))
    return {
        "training_tokens_per_second": training[0],
        "training_ratio": training[1],
        "centre_training_tokens_per_second": training[2],
        "sentences_per_second": decoding[0],
        "decoding_ratio": decoding[1],
        "centre_sentences_per_second": decoding[2],
    }


def _turns(one: Callable[[], float], two: Callable[[], float]) -> tuple[float, float, float]:
    """Return the medians of one, of the ratios of one to two, and of two; the first turn of each is a warm-up."""
    one(), two()
    began = time.perf_counter()
    found: list[tuple[float, float]] = []
    while len(found) < 2 or (len(found) < WINDOWS and time.perf_counter() - began < LONGEST / 2):
        found.append((one(), two()))
    firsts, seconds = zip(*found, strict=True)
    ratios = [first / second for first, second in found]
    return statistics.median(firsts), statistics.median(ratios), statistics.median(seconds)
