"""`score_answers` compares answers that any program has written with those of a file of questions, as for SQuAD."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dragoman.base.errors import DataError
from dragoman.base.log import warn
from dragoman.base.settings.load import Overrides, all_overrides, load_settings
from dragoman.data.files.jsonl import read_objects
from dragoman.data.labelled.corpus import QuestionCorpusConfig
from dragoman.data.labelled.examples import Question
from dragoman.data.labelled.read import read_questions
from dragoman.data.labelled.rows import read_lines
from dragoman.metrics.labels.report import Report
from dragoman.metrics.labels.scoring import answer_report

_ANSWERS = ("answer", "prediction_text")
_NO_ANSWERS = ("no_answer", "no_answer_probability")

_Answers = dict[str, tuple[str, float | None]]
"""The predicted answer to each question, and the score of having none, if it is known."""


def score_answers(test: Path, hypotheses: Sequence[Path], settings: Overrides) -> list[Report]:
    """Return the report on each file of predicted answers.

    test: questions with their answers. A hypothesis is a JSON object with the answer of each question by its
    identifier, as for the scripts of SQuAD, or has JSON objects with `id` and `answer`. Raises DataError if an answer
    is missing, or is not a text.
    """
    questions = read_questions(load_settings(None, all_overrides({"path": str(test)}, settings), QuestionCorpusConfig))
    answers = [[] if each.impossible else [answer.text for answer in each.answers] for each in questions]
    reports = []
    for path in hypotheses:
        found = _in_order(questions, read_answers(path), test, path)
        scores = [score for _, score in found if score is not None]
        reports.append(
            answer_report(
                answers, [text for text, _ in found], no_answer_scores=scores if len(scores) == len(found) else None
            )
        )
    return reports


def read_answers(path: Path) -> _Answers:
    """Return the answers of a file. Raises DataError with file and line if it cannot be read."""
    answers: _Answers = {}
    for location, identifier, text, score in _entries(path):
        if not isinstance(text, str):
            raise DataError(
                f"{location}: the answer to the question {identifier} is not a text, but {type(text).__name__}. Write "
                "one text for each question, which is empty for no answer."
            )
        if identifier in answers:
            raise DataError(f"{location}: the question {identifier} occurs twice. Write one answer for each question.")
        answers[identifier] = text, float(score) if isinstance(score, int | float) else None
    if not answers:
        raise DataError(f"{path} has no answers. Write one text for each question.")
    return answers


def _entries(path: Path) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield the location, the identifier, the answer and the score of no answer for each question."""
    try:
        document = json.loads("\n".join(line for _, line in read_lines(path, "utf-8")))
    except (ValueError, RecursionError):
        document = None  # several objects
    if isinstance(document, dict) and not (document.keys() & set(_ANSWERS) and "id" in document):
        yield from ((str(path), identifier, text, None) for identifier, text in document.items())
        return
    for number, entry in read_objects(path):
        if entry is None:
            continue
        location = f"{path}, line {number}"
        key = next((key for key in _ANSWERS if key in entry), None)
        if key is None or not isinstance(entry.get("id"), str | int):
            raise DataError(f"{location}: expected an object with `id` and `answer`. Write one for each question.")
        score = next((entry[name] for name in _NO_ANSWERS if name in entry), None)
        yield location, str(entry["id"]), entry[key], score


def _in_order(
    questions: Sequence[Question], answers: _Answers, test: Path, path: Path
) -> list[tuple[str, float | None]]:
    """Return the answers in the order of the questions."""
    missing = [each.id for each in questions if each.id not in answers]
    if missing:
        raise DataError(
            f"{path} has no answer to {len(missing):,} of the {len(questions):,} questions of {test}, such as "
            f"{missing[0]}. Write one text for each question, which is empty for no answer."
        )
    if extra := answers.keys() - {each.id for each in questions}:
        warn(
            f"{path}: {len(extra):,} answers to other questions than those of {test} are ignored, such as {min(extra)}"
        )
    return [answers[each.id] for each in questions]
