"""`train_seeds` trains the same recipe with several seeds, and summarises the validation scores."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from dragoman.base.errors import ConfigError, Interrupted, ModelError
from dragoman.base.files import atomic_write
from dragoman.base.log import info
from dragoman.base.notebook import Card
from dragoman.base.settings.load import dump_settings
from dragoman.checkpoint.folder import CONFIG
from dragoman.metrics.score import Score
from dragoman.training.run.result import TrainingResult
from dragoman.training.task import RunConfig

SEEDS_FILE = "seeds.json"


class SeedScore(NamedTuple):
    """A score over several seeds. values: one value per seed. deviation: the sample standard deviation (n − 1)."""

    score: Score
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return fmean(self.values)

    @property
    def deviation(self) -> float:
        """The sample standard deviation."""
        return stdev(self.values)

    def __str__(self) -> str:
        digits = self.score.digits
        listed = ", ".join(f"{value:.{digits}f}" for value in self.values)
        return f"{self.score.name} = {self.mean:.{digits}f} ± {self.deviation:.{digits}f} ({listed})"


@dataclass(frozen=True)
class SeedResults(TrainingResult):
    """The results of runs with several seeds. The inherited fields are those of the best run on the validation set.

    seeds: the result of each run by its seed.
    """

    seeds: Mapping[int, TrainingResult] = field(default_factory=dict)

    @property
    def scores(self) -> tuple[SeedScore, ...]:
        """The scores over all seeds."""
        results = [result.validation for result in self.seeds.values()]
        return tuple(SeedScore(score, tuple(each[score.key].value for each in results)) for score in results[0].scores)

    @property
    def _title(self) -> str:
        return f"{len(self.seeds)} seeds ({', '.join(map(str, self.seeds))}); on the validation set, mean ± sd"

    @property
    def _best(self) -> str:
        return f"{self.folder}: the best of these models"

    def card(self) -> Card:
        """Return the scores over the seeds, the best model and the verdict."""
        lines = [str(score) for score in self.scores]
        return Card(self._title, [*lines, self._best, *([] if self.verdict is None else [self.verdict.card()])])

    def __str__(self) -> str:
        lines = [self._title, *(f"  {score}" for score in self.scores), self._best]
        return "\n".join([*lines, *([] if self.verdict is None else [self.verdict.explanation])])


def seed_folders(folder: str | Path) -> list[Path]:
    """Return the model folders of a run with several seeds, in the order of the seeds; empty for any other folder."""
    path = Path(folder) / SEEDS_FILE
    if not path.is_file():
        return []
    try:
        return [Path(folder) / f"seed-{int(seed)}" for seed in json.loads(path.read_text(encoding="utf-8"))["seeds"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise ModelError(f"{path} is damaged: train again with --resume to restore it") from None


def train_seeds(config: RunConfig, train: Callable[[RunConfig], TrainingResult]) -> SeedResults:
    """Train the seeds `train.seed`, `train.seed` + 1, … in folders seed-N of `out`, and write `seeds.json` there.

    train: trains one run, or resumes it. Raises ConfigError if there are several processes, and the errors of `train`.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError("seeds: several seeds are trained by one process: start the command without torchrun")
    replaced = [name for name in (CONFIG, SEEDS_FILE) if (config.out / name).exists()]
    if replaced and not any(config.out.glob("seed-*/training")):
        raise ConfigError(
            f"{config.out} does not contain runs of several seeds, and they would replace {' and '.join(replaced)}: "
            "choose another --out"
        )
    config.out.mkdir(parents=True, exist_ok=True)
    atomic_write(config.out / CONFIG, dump_settings(config, explicit=True))
    results = {}
    for number in range(config.seeds):
        seed = config.train.seed + number
        info(f"Seed {seed} ({number + 1} of {config.seeds}):")
        settings = config.train.model_copy(update={"seed": seed})
        folder = config.out / f"seed-{seed}"
        with naming_interruptions(f"seed {seed}"):
            results[seed] = train(config.model_copy(update={"train": settings, "out": folder, "seeds": 1}))
    summary = SeedResults(**fields_of_best(results.values(), config.train.metric), seeds=results)
    atomic_write(config.out / SEEDS_FILE, json.dumps(_as_json(summary), indent=1) + "\n")
    return summary


@contextmanager
def naming_interruptions(run: str) -> Iterator[None]:
    """Say in the message of an interruption which of several runs was interrupted."""
    try:
        yield
    except Interrupted as error:
        raise Interrupted(
            f"interrupted at {run}; everything is saved. Resume with the same command and --resume",
            error.exit_code - 128,
        ) from None


def fields_of_best(results: Iterable[TrainingResult], metric: str) -> dict[str, Any]:
    """Return the fields of `TrainingResult` of the best of several runs on the validation set."""
    best = max(results, key=lambda result: result.validation.rank(metric))
    return {each.name: getattr(best, each.name) for each in fields(TrainingResult)}


def _as_json(summary: SeedResults) -> dict[str, object]:
    return {
        "seeds": list(summary.seeds),
        "best": Path(summary.folder).name,
        "scores": {
            each.score.key: {"mean": each.mean, "sd": each.deviation, "values": list(each.values)}
            for each in summary.scores
        },
    }
