"""The budget of every run: the corpus, the passes over it, the schedule; and the complete settings of a run."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dragoman.addons.lecture.grammar.corpus import generate
from dragoman.data.files.lines import open_lines

VALID, TEST = 100, 500
"""Numbers of sentences of the embedded corpus."""


@dataclass(frozen=True)
class Budget:
    """A budget. pairs: of the embedded corpus, None for Multi30k; pieces: vocabulary size; tokens: per batch.

    Dropout and label smoothing are for corpora that are read so often that models overfit.
    """

    pairs: int | None
    epochs: int
    pieces: int
    tokens: int
    peak: float
    dropout: float
    label_smoothing: float
    seed: int = 1
    precision: str = "float32"


EMBEDDED = Budget(pairs=20000, epochs=3, pieces=2000, tokens=512, peak=5e-3, dropout=0.0, label_smoothing=0.0)
MULTI30K = Budget(pairs=None, epochs=6, pieces=6000, tokens=2048, peak=3e-3, dropout=0.1, label_smoothing=0.1)


@dataclass(frozen=True)
class Corpus:
    """A corpus. data: the settings of a run's data; test: both sides of the test set."""

    data: dict[str, Any]
    test: tuple[list[str], list[str]]


def corpus(budget: Budget, out: Path) -> Corpus:
    """Return the corpus, English to German; the embedded one is written to `out`."""
    if budget.pairs is None:
        folder = Path(os.environ["DRAGOMAN_DATA"]) / "multi30k"
        paths = {part: [str(folder / f"{part}.{side}.gz") for side in ("en", "de")] for part in ("train", "val")}
        sources, targets = (list(open_lines(Path(path))) for path in paths["val"])  # no run makes choices with it
    else:
        made = generate(seed=1, train=budget.pairs, valid=VALID, test=TEST)
        paths = {part: [str(out / f"{part}.{side}") for side in ("en", "de")] for part in ("train", "val")}
        for sentences, files in ((made.train, paths["train"]), (made.valid, paths["val"])):
            for side, path in zip(("en", "de"), files, strict=True):
                Path(path).write_text("".join(getattr(each, side) + "\n" for each in sentences), "utf-8")
        sources, targets = [each.en for each in made.test], [each.de for each in made.test]
    train, valid = ({"source": source, "target": target} for source, target in (paths["train"], paths["val"]))
    return Corpus({"train": train, "valid": valid, "batch": {"tokens": budget.tokens}}, (sources, targets))


def recipe(settings: dict[str, Any], budget: Budget, data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the complete settings of a run."""
    whole: dict[str, Any] = json.loads(json.dumps(settings))
    subword = whole.setdefault("text", {}).setdefault("subword", {})
    if subword.get("kind", "bpe") in ("bpe", "wordpiece", "unigram"):
        subword["size"] = budget.pieces
    whole.setdefault("model", {})["dropout"] = budget.dropout
    train = {
        "seed": budget.seed,
        "max_epochs": budget.epochs,
        "patience": None,
        "validate_every": 10**6,
        "checkpoint_every": 10**6,
        "log_every": 100,
        "metric": "loss",
        "objective": {"label_smoothing": budget.label_smoothing},
        "average": {"count": 0},
        "ema": None,
        "dropout_epochs": 0,
        "optimiser": {"kind": "adam"},
        "schedule": {"kind": "cosine", "peak": budget.peak, "warmup": 0.1},
        "precision": budget.precision,
        "threads": 1,
        "device": "cpu",
        **whole.get("train", {}),
    }
    return {**whole, "train": train, "data": data, "out": str(folder)}


def as_text(budget: Budget) -> str:
    """Return the budget as part of the results, so that runs under different budgets are never compared."""
    return json.dumps(asdict(budget), sort_keys=True)
