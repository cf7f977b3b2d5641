"""`score_superglue` compares predictions for COPA, MultiRC and ReCoRD as SuperGLUE does (Wang et al. 2019).

The unit of these metrics is a question with several choices, each of which is one example of a classifier.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.base.errors import DataError
from dragoman.data.files.jsonl import read_object, read_objects
from dragoman.data.labelled.examples import LabelledText
from dragoman.data.labelled.predictions import read_label_file
from dragoman.data.labelled.rows import read_lines
from dragoman.data.labelled.superglue import TaskWithChoices, distinct_entities, task_with_choices
from dragoman.evaluation.label_files.classes import in_order
from dragoman.metrics.labels.choices import choice_report
from dragoman.metrics.labels.report import Report
from dragoman.metrics.labels.scoring import answer_report, classification_report

_MARK = "1"
"""The label of a correct choice."""


@dataclass(frozen=True)
class _Question:
    """A question. choices: what a submission calls each choice. correct: the correct ones, or the answers of ReCoRD."""

    id: str
    choices: tuple[str, ...]
    correct: tuple[str, ...]
    line: int


def score_superglue(test: Path, hypotheses: Sequence[Path]) -> list[Report]:
    """Return the report on each file of predictions for COPA, MultiRC or ReCoRD.

    A hypothesis has one prediction per question, as in a submission to SuperGLUE, or one per choice, with the label 0
    or 1. Of COPA and ReCoRD, the choice with the highest probability of label 1 is selected. Raises DataError with file
    and line if a prediction is missing, or does not say which choice is selected.
    """
    objects = [(number, entry) for number, entry in read_objects(test) if entry is not None]
    task = task_with_choices(objects[0][1])
    assert task is not None, "`has_choices` recognises the tasks"
    questions = [question for number, entry in objects for question in _questions(entry, task, test, number)]
    if task == "MultiRC":
        gold = [[choice in each.correct for choice in each.choices] for each in questions]
        return [choice_report(gold, _read_marks(path, questions, test)) for path in hypotheses]
    sides = [_read_selected(path, questions, test) for path in hypotheses]
    if task == "ReCoRD":
        return [answer_report([each.correct for each in questions], side) for side in sides]
    correct = [each.correct[0] for each in questions]
    return [classification_report(correct, side, labels=["0", "1"], unit="questions") for side in sides]


def _questions(entry: dict[str, Any], task: TaskWithChoices, test: Path, line: int) -> Iterator[_Question]:
    """Yield the questions of an object. Raises DataError if it is not valid, or has no correct choices."""
    try:
        if task == "COPA":
            yield _Question(str(entry["idx"]), ("0", "1"), (str(int(entry["label"])),), line)
        elif task == "MultiRC":
            for question in entry["passage"]["questions"]:
                labels = {str(answer["idx"]): int(answer["label"]) for answer in question["answers"]}
                correct = tuple(name for name, label in labels.items() if label)
                yield _Question(f"{entry['idx']}-{question['idx']}", tuple(labels), correct, line)
        else:
            entities = tuple(distinct_entities(entry["passage"]))
            for question in entry["qas"]:
                answers = tuple(str(answer["text"]) for answer in question["answers"])
                yield _Question(str(question["idx"]), entities, answers, line)
    except (KeyError, TypeError, ValueError) as error:
        reason = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise DataError(f"{test}, line {line}: not an object of {task} with correct answers: {reason}.") from None


def _read_selected(path: Path, questions: Sequence[_Question], test: Path) -> list[str]:
    """Return the choice that is selected for each question."""
    labels = read_label_file(path)
    if len(labels) == sum(len(each.choices) for each in questions) != len(questions):
        return list(_select(labels, _read_probabilities(path), questions))
    ordered = in_order([LabelledText((), None, each.id, str(test), each.line) for each in questions], labels)
    for question, label in zip(questions, ordered, strict=True):
        if label.label not in question.choices:
            raise DataError(
                f"{label.file}, line {label.line}: {label.label!r} is not a choice of question {question.id}. Write "
                f"one of its choices, such as {question.choices[0]!r}."
            )
    return [each.label or "" for each in ordered]


def _select(
    labels: Sequence[LabelledText], probabilities: Sequence[float], questions: Sequence[_Question]
) -> Iterator[str]:
    """Yield the choice of each question.

    labels, probabilities: those of all choices in order; no probabilities if they are unknown.
    """
    start = 0
    for question in questions:
        numbers = range(start, start + len(question.choices))
        start = numbers.stop
        if probabilities:
            selected = max(numbers, key=probabilities.__getitem__)
        else:
            marked = [number for number in numbers if _is_marked(labels[number])]
            if len(marked) != 1:
                first = labels[numbers[0]]
                raise DataError(
                    f"{first.file}, line {first.line}: {len(marked)} choices of question {question.id} have the label "
                    "1 instead of one. Write objects with `label` and `probabilities`, as `dragoman predict` does, or "
                    "the selected choice of each question."
                )
            selected = marked[0]
        yield question.choices[selected - numbers[0]]


def _read_marks(path: Path, questions: Sequence[_Question], test: Path) -> list[list[bool]]:
    """Return whether each choice of each question is predicted to be correct."""
    objects = _objects(path)
    if not objects or "passage" not in objects[0]:
        wanted = [
            LabelledText((), None, f"{each.id}-{choice}", str(test), each.line)
            for each in questions
            for choice in each.choices
        ]
        marks = iter(list(map(_is_marked, in_order(wanted, read_label_file(path)))))
        return [[next(marks) for _ in each.choices] for each in questions]
    found: dict[str, dict[str, bool]] = {}
    for number, entry in enumerate(objects, 1):
        try:
            for question in entry["passage"]["questions"]:
                labels = {str(answer["idx"]): bool(int(answer["label"])) for answer in question["answers"]}
                found[f"{entry['idx']}-{question['idx']}"] = labels
        except (KeyError, TypeError, ValueError):
            raise DataError(
                f"{path}, object {number}: not a line of a submission to MultiRC, with idx and label of each answer."
            ) from None
    missing = [each.id for each in questions if found.get(each.id, {}).keys() != set(each.choices)]
    if missing:
        raise DataError(
            f"{path} has not all answers of {len(missing):,} of {len(questions):,} questions, such as that with idx "
            f"{missing[0].partition('-')[2]} of passage {missing[0].partition('-')[0]}. Write a label for each answer."
        )
    return [[found[each.id][choice] for choice in each.choices] for each in questions]


def _read_probabilities(path: Path) -> list[float]:
    """Return the probability of label 1 of each object; none if an object has no probability."""
    values = [
        each["probabilities"].get(_MARK) for each in _objects(path) if isinstance(each.get("probabilities"), dict)
    ]
    return [] if any(value is None for value in values) else values


def _objects(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file in JSON Lines; none for another form."""
    lines = [(number, line) for number, line in read_lines(path, "utf-8") if line.strip()]
    if not lines or not lines[0][1].lstrip().startswith("{"):
        return []
    return [read_object(line, f"{path}, line {number}") for number, line in lines]


def _is_marked(label: LabelledText) -> bool:
    """Return whether the label is that of a correct choice. Raises DataError if it is neither 0 nor 1."""
    if label.label not in ("0", _MARK):
        raise DataError(f"{label.file}, line {label.line}: the label of a choice is 0 or 1, not {label.label!r}.")
    return label.label == _MARK
