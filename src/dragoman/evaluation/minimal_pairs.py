"""`evaluate_pairs` counts the minimal pairs whose acceptable text is more probable under a model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field

from dragoman.base.errors import DataError
from dragoman.base.log import quietly
from dragoman.base.machine.device import use_threads
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import Overrides, all_overrides, load_settings
from dragoman.data.files.jsonl import read_object
from dragoman.data.files.lines import open_lines
from dragoman.evaluation.score import score

if TYPE_CHECKING:
    from dragoman.inference.load import Model

BATCH = 64
"""Number of texts that a language model reads at once."""


class MinimalPairsConfig(Config):
    """A file of minimal pairs, one JSON object per line. The default keys are those of BLiMP (Warstadt et al. 2020)."""

    path: Path = Field(description="JSON Lines file; plain, .gz, .bz2, .xz or .zst.")
    good: str = Field("sentence_good", description="Key of the acceptable text.")
    bad: str = Field("sentence_bad", description="Key of the other text.")
    paradigm: str = Field(
        "UID",
        description="Key of the name of a group of pairs, for which an accuracy is reported. Optional in the file.",
    )


class MinimalPair(NamedTuple):
    """Two texts that differ in one point. paradigm: name of the phenomenon; empty if the file does not state it."""

    good: str
    bad: str
    paradigm: str


@dataclass(frozen=True)
class PairAccuracy:
    """Accuracies of a model on minimal pairs, in percent: the fraction of pairs whose good text has the higher score.

    A pair with equal scores counts as wrong. by_paradigm: accuracy of each paradigm, in the order of the file. pairs:
    number of pairs of each paradigm. mean: the unweighted mean over paradigms, as in BLiMP.
    """

    model: str
    by_paradigm: Mapping[str, float]
    pairs: Mapping[str, int]

    @property
    def mean(self) -> float:
        """The unweighted mean over paradigms."""
        return sum(self.by_paradigm.values()) / len(self.by_paradigm)

    def __str__(self) -> str:
        total = sum(self.pairs.values())
        width = max(len(name) for name in self.by_paradigm)
        count = len(self.pairs)
        paradigms = f"mean of {count} paradigms" if count > 1 else "1 paradigm"
        lines = [f"{self.model}: accuracy {self.mean:.1f} ({paradigms}, {total:,} pairs)"]
        if len(self.pairs) > 1:
            lines += [f"  {name:<{width}}  {value:5.1f}" for name, value in self.by_paradigm.items()]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON types."""
        return {
            "model": self.model,
            "accuracy": self.mean,
            "paradigms": dict(self.by_paradigm),
            "pairs": dict(self.pairs),
        }


def evaluate_pairs(
    model: "Model",
    pairs: str | Path,
    settings: Overrides = (),
    *,
    device: str | None = None,
    threads: int | None = None,
    quiet: bool = False,
) -> PairAccuracy:
    """Compare the scores of the two texts of each minimal pair, like `dragoman evaluate pairs`.

    model: a language model, which scores by log-probability, or a masked language model, which scores by
    pseudo-log-likelihood; a folder or a loaded model. pairs: a JSON Lines file. settings: the fields of
    `MinimalPairsConfig`, such as `{"good": "right"}`. Raises ConfigError for an unknown setting, DataError if the file
    cannot be read, and the errors of `score`.

    >>> from dragoman import evaluate_pairs
    >>> with open("pairs.jsonl", "w") as file:
    ...     _ = file.write('{"sentence_good": "The dog sleeps.", "sentence_bad": "The dog sleep."}')
    >>> print(evaluate_pairs("runs/lm", "pairs.jsonl"))
    runs/lm: accuracy ... (1 paradigm, 1 pairs)
    """
    config = load_settings(None, all_overrides({"path": str(pairs)}, settings), MinimalPairsConfig)
    with quietly(quiet):
        use_threads(threads)
        read = read_pairs(config)
        texts = [text for pair in read for text in (pair.good, pair.bad)]
        scores = [each.log_probability for each in score(model, texts, batch_size=BATCH, device=device).each]
    correct: dict[str, list[bool]] = {}
    for pair, good, bad in zip(read, scores[::2], scores[1::2], strict=True):
        correct.setdefault(pair.paradigm, []).append(good > bad)
    accuracies = {name: 100 * sum(each) / len(each) for name, each in correct.items()}
    name = str(model) if isinstance(model, str | Path) else "model"
    return PairAccuracy(name, accuracies, {name: len(each) for name, each in correct.items()})


def read_pairs(config: MinimalPairsConfig) -> Sequence[MinimalPair]:
    """Read the pairs of a file. Raises DataError with the line if a line is not an object with both texts."""
    pairs = list(_read(config))
    if not pairs:
        raise DataError(f"{config.path} contains no pairs: give a file with one JSON object per line")
    return pairs


def _read(config: MinimalPairsConfig) -> Iterator[MinimalPair]:
    for number, line in enumerate(open_lines(config.path, "json"), 1):
        if not line.strip():
            continue
        location = f"{config.path}, line {number}"
        values = read_object(line, location)
        for key in (config.good, config.bad):
            if not isinstance(values.get(key), str):
                raise DataError(
                    f"{location}: the key {key!r} has no text; the keys are {', '.join(map(repr, values))}. Name the "
                    "keys of the two texts with good=KEY and bad=KEY"
                )
        yield MinimalPair(values[config.good], values[config.bad], str(values.get(config.paradigm, "")))
