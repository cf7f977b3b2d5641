"""`Profiler`: measures how long each part of a training step takes, while the run continues."""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from dragoman.base.files import atomic_write
from dragoman.base.log import info
from dragoman.training.profiling.operators import Operator, Tracer, seconds_by_group
from dragoman.training.profiling.stopwatch import PartPath, Stopwatch, time_methods

T = TypeVar("T")

TEXT_FILE, JSON_FILE = "profile.txt", "profile.json"
WARM_UP, TIMED, TRACED = 5, 20, 5
"""Numbers of updates that are skipped, timed part by part, and recorded by torch.profiler."""
_SHOWN_OPERATORS = 15
_INTERVAL_SETTINGS = {"validation": "train.validate_every", "checkpoint": "train.checkpoint_every"}


class NullProfiler:
    """A profiler that does nothing, for runs that are not profiled."""

    active = False
    """Whether updates are being timed or recorded. During this time, nothing else may run."""

    def phase(self, name: str) -> AbstractContextManager[object]:
        """Return a context that times a phase of an update."""
        return nullcontext()

    def batches(self, batches: Iterator[T]) -> Iterator[T]:
        """Wrap the iterator over batches to time how long updates wait for data."""
        return batches

    def separate(self, name: str) -> AbstractContextManager[object]:
        """Return a context that times a validation or a checkpoint."""
        return nullcontext()

    def after_update(self) -> None:
        """Advance the profile. This is called after each update, including its validation and checkpoint."""

    def close(self) -> None:
        """Finish the profile. This is called when the run ends."""


class Profiler(NullProfiler):
    """Profiles the first updates of a run.

    After 5 updates for warm-up, the parts of 20 updates are timed, and 5 updates are recorded with torch.profiler. The
    results of the run do not change, but during profiling the threads' shares are computed one after another. The
    profile is written to profile.txt and profile.json in the run's folder and shown on stderr. It is written again once
    the following validation and checkpoint have been timed, or when the run ends. On a GPU, timed updates are slower
    than other updates, because they synchronise at every part.
    """

    def __init__(self, folder: Path, model: nn.Module, device: torch.device, precision: str) -> None:
        self.folder, self.device, self.precision = folder, device, precision
        self.watch = Stopwatch(device)
        self._model = model
        self._hooks = ExitStack()
        self._tracer: Tracer | None = None
        self._updates = self._timed = self._traced = 0
        self._start = self._seconds = self._excluded = 0.0
        self._operators: Sequence[Operator] = ()
        self._separate: dict[str, float] = {}
        self._shown = self._complete = False

    @property
    def active(self) -> bool:  # type: ignore[override]
        """Whether updates are being timed or recorded."""
        return self.watch.running or self._tracer is not None

    def phase(self, name: str) -> AbstractContextManager[object]:
        """Time a phase of an update."""
        return self.watch.part(name)

    def batches(self, batches: Iterator[T]) -> Iterator[T]:
        """Time how long updates wait for data."""
        while True:
            with self.watch.part("waiting for data"):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    @contextmanager
    def separate(self, name: str) -> Iterator[None]:
        """Time a validation or a checkpoint, which is not part of the update."""
        running, self.watch.running = self.watch.running, False
        start = self.watch.now()
        try:
            yield
        finally:
            seconds = self.watch.now() - start
            self._excluded += seconds
            self._separate.setdefault(name, seconds)
            self.watch.running = running

    def after_update(self) -> None:
        """Advance to the next stage after enough updates."""
        if self._complete:
            return
        self._updates += 1
        if self.watch.running:
            self._seconds += self.watch.now() - self._start - self._excluded
            self._timed += 1
        if self._tracer is not None:
            self._traced += 1
        if self._updates == WARM_UP:
            self._hooks.enter_context(time_methods(self.watch, self._model))
            self.watch.running = True
        elif self._updates == WARM_UP + TIMED:
            self._stop_timing()
            self._tracer = Tracer(self.device)
            self._tracer.start()
        elif self._updates == WARM_UP + TIMED + TRACED:
            self._stop_tracing()
            self._write()
            info(f"The profile is in {self.folder / TEXT_FILE}. The run continues; Ctrl-C stops and saves it.")
        elif self._updates > WARM_UP + TIMED + TRACED and self._separate.keys() >= _INTERVAL_SETTINGS.keys():
            self._write()
            self._complete = True
        if self.watch.running:
            self._excluded = 0.0
            self._start = self.watch.now()

    def close(self) -> None:
        """If the run ends before the profile is complete, write the measurements made so far."""
        self._stop_timing()
        self._stop_tracing()
        if not self._complete and self._timed:
            self._write()
        elif not self._timed:
            info(f"There is no profile: the run ended before update {WARM_UP + 1}.")
        self._complete = True

    def _stop_timing(self) -> None:
        self.watch.running = False
        self._hooks.close()

    def _stop_tracing(self) -> None:
        if self._tracer is not None:
            self._operators = self._tracer.stop(max(1, self._traced))
            self._tracer = None

    def _write(self) -> None:
        values = self._values()
        atomic_write(self.folder / JSON_FILE, json.dumps(values, indent=1, ensure_ascii=False) + "\n")
        text = _as_text(values)
        atomic_write(self.folder / TEXT_FILE, text)
        info(f"{self.folder / TEXT_FILE} now includes validation and checkpoint." if self._shown else text)
        self._shown = True

    def _values(self) -> dict[str, Any]:
        update = self._seconds / self._timed
        parts = list(_with_rest(self.watch.seconds, self._seconds))
        return {
            "device": str(self.device),
            "precision": self.precision,
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
            "updates": self._timed,
            "update_seconds": update,
            "parts": [
                {"part": list(path), "seconds": seconds / self._timed, "fraction": seconds / self._seconds}
                for path, seconds in parts
            ],
            "separate_seconds": self._separate,
            "traced_updates": self._traced,
            "groups": seconds_by_group(self._operators),
            "operators": [asdict(operator) for operator in self._operators],
        }


def _with_rest(seconds: dict[PartPath, float], total: float) -> Iterator[tuple[PartPath, float]]:
    """Return the parts in display order: each part is followed by its children and its remaining time."""

    def children_of(parent: PartPath, whole: float, rest: str) -> Iterator[tuple[PartPath, float]]:
        children = [path for path in order if path[:-1] == parent]
        for path in children:
            yield path, seconds[path]
            yield from children_of(path, seconds[path], "the rest")
        if children:
            yield (*parent, rest), max(0.0, whole - sum(seconds[path] for path in children))

    order = sorted(seconds, key=lambda path: [_ORDER.index(name) if name in _ORDER else len(_ORDER) for name in path])
    yield from children_of((), total, "everything else")


_ORDER = (
    *("waiting for data", "transfer", "forward", "backward", "clipping", "optimiser"),
    *("encoder", "decoder", "embedding", "self-attention", "attention over the source", "feed-forward"),
)
_REST = {("forward", "the rest"): "projection and loss"}


def _as_text(values: dict[str, Any]) -> str:
    """Format the profile as plain-text tables."""
    lines = [
        f"Profiler of {values['updates']} updates on {values['device']}, {values['precision']}, "
        f"{values['threads']} threads, torch {values['torch']}",
        "",
        f"{'part of an update':<52} {'ms':>9} {'fraction':>8}",
        *(
            _line("  " * (len(each["part"]) - 1) + _REST.get(tuple(each["part"]), each["part"][-1]), each)
            for each in values["parts"]
        ),
        _line("update", {"seconds": values["update_seconds"], "fraction": 1.0}),
        "",
    ]
    for name, setting in _INTERVAL_SETTINGS.items():
        seconds = values["separate_seconds"].get(name)
        shown = f"{seconds:.2f} s each ({setting})" if seconds is not None else "none so far"
        lines.append(f"{name}: {shown}")
    if values["operators"]:
        whole = sum(values["groups"].values())
        lines += ["", f"{'torch operators by group':<52} {'ms':>9} {'fraction':>8}"]
        lines += [
            _line(group, {"seconds": seconds, "fraction": seconds / whole})
            for group, seconds in values["groups"].items()
        ]
        lines += ["", f"{'slowest operators':<52} {'ms':>9} {'fraction':>8} {'calls':>7}"]
        for operator in values["operators"][:_SHOWN_OPERATORS]:
            fraction = operator["seconds"] / whole
            lines.append(
                _line(operator["name"], {"seconds": operator["seconds"], "fraction": fraction})
                + f" {operator['calls']:7.0f}"
            )
        lines += ["", f"Operators: {values['traced_updates']} updates under torch.profiler, self time."]
    return "\n".join(lines) + "\n"


def _line(name: str, each: dict[str, Any]) -> str:
    return f"{name[:52]:<52} {each['seconds'] * 1000:9.2f} {each['fraction']:8.1%}"
