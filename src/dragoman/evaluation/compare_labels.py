"""`compare_labels` scores labelled models with several seeds on one test set, and tests their differences."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.log import info, quietly
from dragoman.base.settings.load import Overrides
from dragoman.evaluation.evaluate_labels import check_one_kind, load_labelled
from dragoman.evaluation.stored_test_set import StoredExamples, stored_examples
from dragoman.evaluation.system_table import SystemRow, SystemTable
from dragoman.evaluation.systems import System
from dragoman.evaluation.test_set import warn_of_size
from dragoman.inference.load import kind_of
from dragoman.metrics.labels.report import LARGEST_UNDEFINED, Report
from dragoman.metrics.seed_comparison import SeedComparison, SeedScores, compare_seed_scores

_METRICS = {
    "classification": ("accuracy", "macro_f1"),
    "regression": ("pearson", "spearman"),
    "tagging": ("accuracy", "conlleval_f1", "macro_f1"),
    "question answering": ("exact_match", "f1"),
    "parsing": ("bracket_f1", "complete_match"),
}
"""Keys of the metrics that are compared by default, by the task of a report. Those that it lacks are left out."""


def predicts_labels(folder: Path) -> bool:
    """Return whether the model in a folder predicts labels. Raises ModelError if it is not a model folder."""
    abilities = kind_of(folder).abilities
    return "translate" not in abilities and not abilities.isdisjoint({"predict", "classify_nodes"})


def compare_labels(
    systems: Sequence[System],
    test: Path | None,
    settings: Overrides = (),
    *,
    metric: Sequence[str] | None = None,
    task: str | None = None,
    device: str | None = None,
) -> SystemTable:
    """Evaluate all models on the same labelled examples, and compare the first system with every other one.

    test, settings: as in `evaluate_labels`; None: the examples that training held out, which must be the same for all
    models. metric: keys of metrics of the report. task: name of the task of models with several tasks. Raises
    ConfigError for models with different test sets or kinds of heads and for an unknown metric, and the errors of
    `evaluate_labels`.
    """
    chosen = _common_examples(systems, task) if test is None else StoredExamples(test, settings, task)
    sole = sum(len(system.folders) for system in systems) == 1
    reports: list[list[Report]] = []
    tasks = set[str]()
    for system in systems:
        reports.append([])
        for number, folder in enumerate(system.folders, start=1):
            info(f"{system.name}: model {number} of {len(system.folders)}, {folder}")
            loaded = load_labelled(folder, device, chosen.task, sole=sole)
            tasks.add(loaded.task)
            check_one_kind(tasks)
            reports[-1].append(loaded.evaluate_file(chosen.path, chosen.settings))
    first = reports[0][0]
    warn_of_size(first.examples, first.unit)
    return tabulate_reports(systems, reports, str(chosen.path), metric)


def tabulate_reports(
    systems: Sequence[System], reports: Sequence[Sequence[Report]], data: str, metric: Sequence[str] | None = None
) -> SystemTable:
    """Compare the first system with each other one. reports: by system and seed. data: name of the test set.

    Raises DataError if the reports are of different labels, and ConfigError for an unknown metric.
    """
    first = reports[0][0]
    if any(each.gold_digest != first.gold_digest for group in reports for each in group):
        raise DataError("the models were scored on different labels: give the same test set to all of them")
    keys, remarks = _defined(systems, reports, _keys([each for group in reports for each in group], metric))
    rows = []
    for system, group in zip(systems, reports, strict=True):
        compared = {key: _compare(reports[0], group, key) for key in keys} if group is not reports[0] else {}
        rows.append(
            SystemRow(
                system.name,
                {key: [each[key] for each in group] for key in keys},
                {key: each for key, each in compared.items() if each is not None},
            )
        )
    return SystemTable(rows, data, first.examples, first.unit, remarks)


def _keys(reports: Sequence[Report], metric: Sequence[str] | None) -> list[str]:
    """Return the keys of the metrics to compare, which all reports have with the same signature."""
    signatures = [{score.key: score.signature for score in report.scores} for report in reports]
    known = [key for key, signature in signatures[0].items() if all(each.get(key) == signature for each in signatures)]
    task = reports[0].task
    if metric is None:
        return [key for key in _METRICS.get(task, ()) if key in known] or known
    if unknown := [key for key in metric if key not in known]:
        raise ConfigError(f"{task} has no metric {unknown[0]!r}: expected some of {', '.join(known)}")
    return list(metric)


def _defined(
    systems: Sequence[System], reports: Sequence[Sequence[Report]], keys: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the metrics that are defined for all models, and notes on the others. Raises DataError if none is."""
    kept, remarks = [], []
    for key in keys:
        models = zip(systems, reports, strict=True)
        undefined = next(
            ((system, each[key]) for system, group in models for each in group if not each[key].is_defined), None
        )
        if undefined is None:
            kept.append(key)
        else:
            system, score = undefined
            remarks.append(f"{score.name} is left out, because it is undefined for {system.name}: {score.reason}.")
    if not kept:
        raise DataError(" ".join(remarks))
    return kept, remarks


def _compare(first: Sequence[Report], second: Sequence[Report], key: str) -> SeedComparison | None:
    """Return the comparison of two systems; None if a metric is undefined on many resampled test sets."""
    if not all(key in each.resampled for each in (*first, *second)):
        return None
    sides = [np.stack([each.resampled[key] for each in group]) for group in (first, second)]
    defined = ~np.isnan(np.concatenate(sides)).any(0)
    if defined.mean() < 1 - LARGEST_UNDEFINED:
        return None
    scores = [
        SeedScores(np.array([each[key].value for each in group]), side[:, defined])
        for group, side in zip((first, second), sides, strict=True)
    ]
    return compare_seed_scores(scores[0], scores[1], first[0].examples)


def _common_examples(systems: Sequence[System], task: str | None) -> StoredExamples:
    """Return the examples that all models held out. Raises ConfigError if a model has none or others."""
    folders = [folder for system in systems for folder in system.folders]
    remedy = "give the examples to compare the models with: --test FILE"
    common = stored_examples(folders[0], task)
    if len(common) > 1:
        listed = ", ".join(str(each.path) for each in common)
        raise ConfigError(f"{folders[0]} has several test sets, choose one by --test, or a task by --task: {listed}")
    content = common[0].path.read_bytes()
    for folder in folders[1:]:
        with quietly(True):
            own = stored_examples(folder, task)
        if [each.path.read_bytes() for each in own] != [content]:
            raise ConfigError(f"{folders[0]} and {folder} have different test sets: {remedy}")
    return common[0]
