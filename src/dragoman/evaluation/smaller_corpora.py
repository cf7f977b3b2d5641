"""`measure_learning_curve` trains the system of a model folder again on parts of its corpus, and scores each."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.log import info
from dragoman.checkpoint.folder import read_meta
from dragoman.checkpoint.systems import system_folder
from dragoman.checkpoint.verdict import ScoreRange
from dragoman.data.cleaning.sentence_keys import SentenceKeys
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.held_out.sets import HeldOutSets, sentence_keys
from dragoman.evaluation.learning_curve import CurvePoint, LearningCurve
from dragoman.evaluation.test_set import TestSet
from dragoman.metrics.bleu import BLEU
from dragoman.metrics.bootstrap import compare_statistics
from dragoman.metrics.chrf import ChrF
from dragoman.metrics.resampling import Comparison
from dragoman.tasks.train import load_recipe, train
from dragoman.tasks.verdict.training_pairs import usable_pairs

FOLDER = "learning_curve"
"""The folder of the picture in a model folder."""

FRACTIONS = (0.25, 0.5)
"""Fractions of the pairs that the system is trained on again. The folder itself was trained on all of them."""

_FEWEST = 400
_KINDS = ("translation", "statistical_translation")


def measure_learning_curve(
    folder: Path,
    system: str | None,
    test_set: TestSet,
    outputs: Sequence[str],
    *,
    tokenizer: str,
    translate: Callable[[Path], Sequence[str]],
) -> LearningCurve:
    """Train a system of a model folder on a quarter and on half of its pairs, and score all sizes on a test set.

    The smaller part is contained in the larger one. Both runs have the settings and the validation set of the folder's
    own run. system: None for the system that the folder translates with. outputs: translations of the test set by the
    folder itself. tokenizer: of BLEU. translate: translates the test set with a model folder. The picture is written to
    the folder `learning_curve` of the model folder, and the models are deleted. After an interruption, the next call
    continues the run of a neural model.

    Raises ConfigError if the folder is not that of a translation run, DataError if a corpus is missing or has fewer
    than 400 pairs, and the errors of training.
    """
    own, run = load_recipe(folder, ()), load_recipe(system_folder(folder, system), ())
    if own.task.kind not in _KINDS or getattr(own.text, "vectors", None) is not None:
        raise ConfigError(f"{folder} is not the run of a model that translates text: leave out --learning-curve")
    stored = HeldOutSets.of_model(folder)
    valid = own.data.valid_sets or (() if stored is None else stored.valid)
    held_out = [*own.data.test_sets, *valid, *(() if stored is None else stored.test)]
    scratch = folder / FOLDER
    corpora, counts = _write_parts(own.data.corpora, sentence_keys(held_out), scratch)
    is_resumable = hasattr(run, "train")
    lines = []
    for fraction, part in corpora.items():
        info(f"Learning curve: training on {counts[fraction]:,} of {counts[1.0]:,} pairs, with the settings of the run")
        smaller = _smaller_run(run, part, valid, scratch / f"trained-on-{fraction:g}")
        if not is_resumable:
            shutil.rmtree(smaller.out, ignore_errors=True)
        train(smaller, resume=is_resumable)
        lines.append(translate(smaller.out))
    title, systems = str(folder), read_meta(folder).systems
    if systems:
        name = system or systems[0].name
        title += f" ({next(each.title for each in systems if each.name == name)})"
    points, gains = _compare(counts, [*lines, outputs], test_set, tokenizer)
    found = LearningCurve(title, points, gains, len(test_set))
    for path in scratch.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    found.figure().save(scratch, "learning-curve")
    info(f"Learning curve: the picture is in {scratch}")
    return found


def _write_parts(
    corpora: Sequence[CorpusConfig], held_out: SentenceKeys, folder: Path
) -> tuple[dict[float, tuple[CorpusConfig, ...]], dict[float, int]]:
    """Write random parts of corpora, and return the corpora of each fraction and the numbers of pairs, also of 1.0.

    Each pair is drawn independently of the others, so that corpora of any size can be divided while they are read.
    """
    counts = dict.fromkeys((*FRACTIONS, 1.0), 0)
    parts: dict[float, list[CorpusConfig]] = {fraction: [] for fraction in FRACTIONS}
    folder.mkdir(exist_ok=True)
    for number, corpus in enumerate(corpora, 1):
        random = Random(number)
        with ExitStack() as stack:
            written = {}
            for fraction in FRACTIONS:
                paths = [folder / f"pairs-{fraction:g}-{number}.{side}" for side in ("source", "target")]
                files = [stack.enter_context(path.open("w", encoding="utf-8", newline="\n")) for path in paths]
                written[fraction] = paths, files
            for texts in usable_pairs(corpus, held_out):
                if any("\n" in text for text in texts):
                    continue
                draw = random.random()
                counts[1.0] += 1
                for fraction, (_, files) in written.items():
                    if draw < fraction:
                        counts[fraction] += 1
                        for file, text in zip(files, texts, strict=True):
                            file.write(f"{text}\n")
        kept = {name: getattr(corpus, name) for name in ("weight", "tags", "target_language")}
        codes = {name: getattr(corpus, name) for name in ("source_code", "target_code")}
        for fraction, (paths, _) in written.items():
            name = f"{fraction:g} of {corpus}"
            part = CorpusConfig(source=paths[0], target=paths[1], name=name, **kept, **codes)
            parts[fraction].append(part)
    if counts[1.0] < _FEWEST:
        raise DataError(f"a learning curve needs at least {_FEWEST} training pairs, but there are {counts[1.0]:,}")
    return {fraction: tuple(part) for fraction, part in parts.items()}, counts


def _smaller_run(run: Any, corpora: Sequence[CorpusConfig], valid: Sequence[CorpusConfig], out: Path) -> Any:
    """Return a run with other training pairs and a named validation set. run: of neural or statistical translation."""
    one_or_all = valid[0] if len(valid) == 1 else tuple(valid)
    data = run.data.model_copy(update={"train": tuple(corpora), "valid": one_or_all, "test": None, "held_out": None})
    update: dict[str, Any] = {"data": data, "out": out}
    if hasattr(run, "systems"):
        update |= {"systems": (), "seeds": 1}
    return run.model_copy(update=update)


def _compare(
    counts: Mapping[float, int], lines: Sequence[Sequence[str]], test_set: TestSet, tokenizer: str
) -> tuple[tuple[CurvePoint, ...], tuple[Comparison, ...]]:
    """Return the points, and the comparisons of each with the previous one by chrF. lines: translations by size."""
    scores: list[list[ScoreRange]] = [[] for _ in lines]
    gains: list[Comparison] = []
    for metric in (BLEU(tokenizer=tokenizer), ChrF()):
        rows = [metric.statistics(each, *test_set.references) for each in lines]
        gains = [
            compare_statistics(smaller, larger, metric, len(test_set.references)) for smaller, larger in pairwise(rows)
        ]
        sides = [(gains[0].first, gains[0].first_interval), *((each.second, each.second_interval) for each in gains)]
        for point, (score, interval) in zip(scores, sides, strict=True):
            point.append(ScoreRange.of(score, interval))
    points = (CurvePoint(*size, tuple(each)) for size, each in zip(counts.items(), scores, strict=True))
    return tuple(points), tuple(gains)
