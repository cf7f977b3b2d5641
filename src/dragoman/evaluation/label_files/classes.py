"""`score_labels` compares classes and numbers that any program has written with those of a test set."""

import json
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Literal

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.log import warn
from dragoman.base.settings.load import Overrides, all_overrides, load_settings
from dragoman.data.labelled.corpus import LabelledCorpusConfig
from dragoman.data.labelled.examples import LabelledText
from dragoman.data.labelled.predictions import has_only_labels, read_label_file
from dragoman.data.labelled.read import read_labelled
from dragoman.data.labelled.rows import read_lines
from dragoman.metrics.labels.report import Report
from dragoman.metrics.labels.scoring import classification_report, regression_report

ClassTask = Literal["classification", "regression"]


def score_labels(
    test: Path, hypotheses: Sequence[Path], settings: Overrides, task: ClassTask | None = None
) -> list[Report]:
    """Return the report on each file of predicted classes or numbers.

    test: labelled texts in any format, or labels alone. settings: of labelled texts. task: None to recognise it: the
    labels are numbers for regression if one of them is not whole. Raises ConfigError if all are whole numbers, and
    DataError with file and line if a label is missing, or if the files have different numbers of labels.
    """
    gold = _read_gold(test, settings)
    sides = [in_order(gold, read_label_file(path)) for path in hypotheses]
    if (task or _recognise(gold, sides)) == "regression":
        values = list(map(_number, gold))
        return [regression_report(values, list(map(_number, each))) for each in sides]
    correct = [each.label or "" for each in gold]
    for each in sides:
        _check_classes(set(correct), each, test)
    return [classification_report(correct, [each.label or "" for each in side]) for side in sides]


def _read_gold(test: Path, settings: Overrides) -> list[LabelledText]:
    if not all_overrides(settings) and _has_labels_alone(test):
        return read_label_file(test)
    return read_labelled(load_settings(None, all_overrides({"path": str(test)}, settings), LabelledCorpusConfig))


def _has_labels_alone(path: Path) -> bool:
    """Return whether a file has no texts: by the keys or the header in its first line, or because it has one column."""
    first = next((line for _, line in read_lines(path, "utf-8") if line.strip()), "")
    if first.lstrip().startswith("{"):
        try:
            return has_only_labels(list(json.loads(first)))
        except ValueError:
            return False
    separator = "," if ".csv" in path.suffixes else "\t"
    is_marked = first.lstrip().startswith("<") or "__label__" in first
    return has_only_labels(first.split(separator)) or not (separator in first or is_marked)


def in_order(gold: Sequence[LabelledText], predicted: Sequence[LabelledText]) -> list[LabelledText]:
    """Return the predictions in the order of the examples, by the same identifiers or by numbers from 0 or 1.

    Predictions, or examples, without identifiers are in the same order.
    """
    if len(gold) != len(predicted):
        longer, shorter = (gold, predicted) if len(gold) > len(predicted) else (predicted, gold)
        raise DataError(
            f"{longer[len(shorter)].file}, line {longer[len(shorter)].line}: {shorter[0].file} ends here, with "
            f"{len(shorter):,} instead of {len(longer):,} labels. Give one prediction per example."
        )
    own = {each.id: each for each in predicted}
    identifiers = [each.id for each in gold]
    orders: list[list[str | None]] = [identifiers]
    orders += [[str(number) for number in range(first, first + len(gold))] for first in (0, 1)]
    for wanted in orders:
        if len(own) == len(gold) and own.keys() == set(wanted):
            return [own[identifier] for identifier in wanted]
    if None not in own and None not in identifiers:
        odd = next((each for each in predicted if each.id not in set(identifiers)), predicted[0])
        raise DataError(
            f"{odd.file}, line {odd.line}: the identifier {odd.id} is not one of {gold[0].file}, or occurs twice. Give "
            "the predictions of the same examples, or leave out the identifiers."
        )
    return list(predicted)


def _recognise(gold: Sequence[LabelledText], predicted: Sequence[Sequence[LabelledText]]) -> ClassTask:
    """Return classification unless the labels are numbers, some of which are not whole."""
    for examples in (gold, [each for side in predicted for each in side]):
        labels = [each.label or "" for each in examples]
        if not all(map(_is_number, labels)):
            return "classification"
        if not all(map(_is_whole, labels)):
            return "regression"
    raise ConfigError(
        f"{gold[0].file}, line {gold[0].line}: all labels are whole numbers such as {gold[0].label}, which may be "
        "classes or values: give --task classification or --task regression"
    )


def _is_number(label: str) -> bool:
    try:
        return isfinite(float(label))
    except ValueError:
        return False


def _is_whole(label: str) -> bool:
    return label.strip().lstrip("+-").isdecimal()


def _number(example: LabelledText) -> float:
    label = example.label or ""
    if not _is_number(label):
        raise DataError(
            f"{example.file}, line {example.line}: {label!r} is not a number: correct it, or give --task classification"
        )
    return float(label)


def _check_classes(known: set[str], predicted: Sequence[LabelledText], test: Path) -> None:
    """Warn of predicted labels that no example has. Raises DataError if that is true of all predictions."""
    unknown = [each for each in predicted if each.label not in known]
    if not unknown:
        return
    first = unknown[0]
    location = f"{first.file}, line {first.line}"
    if len(unknown) == len(predicted):
        expected = ", ".join(_shortened(sorted(known)))
        raise DataError(
            f"{location}: {first.label!r}, like all other predictions, is not a label of {test}, which has {expected}. "
            "Use the same names."
        )
    warn(
        f"{len(unknown):,} of {len(predicted):,} predictions are not labels of {test} and count as wrong (the first is "
        f"{first.label!r}; {location})"
    )


def _shortened(names: Sequence[str], most: int = 5) -> Iterator[str]:
    yield from map(repr, names[:most])
    if len(names) > most:
        yield "…"
