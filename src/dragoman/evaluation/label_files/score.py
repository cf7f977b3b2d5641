"""`score_label_files` compares the predictions that any program has written to files with the labels of a test set."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from dragoman.base.errors import ConfigError, reject_options
from dragoman.base.settings.load import Overrides, all_overrides
from dragoman.data.labelled.conll import DOCUMENT_START
from dragoman.data.labelled.rows import read_lines
from dragoman.data.labelled.superglue import task_with_choices
from dragoman.data.labelled.treebank import begins_tree, treebank_files
from dragoman.evaluation.label_files.answers import score_answers
from dragoman.evaluation.label_files.classes import score_labels
from dragoman.evaluation.label_files.superglue import score_superglue
from dragoman.evaluation.label_files.tags import score_tags
from dragoman.evaluation.label_files.trees import score_trees
from dragoman.metrics.labels.report import Report
from dragoman.metrics.labels.spans import has_span_tags

LabelTask = Literal["tagging", "classification", "regression", "parsing", "question_answering"]
LABEL_TASKS: tuple[LabelTask, ...] = get_args(LabelTask)

_SQUAD = re.compile(r'\s*\{\s*(?:"version"\s*:\s*"[^"]*"\s*,\s*)?"data"\s*:\s*\[')
_TAGGED_SUFFIXES = {".conll", ".conllu", ".iob", ".bio"}


def score_label_files(
    test: Path | None,
    hypotheses: Sequence[Path],
    settings: Overrides = (),
    task: str | None = None,
    parameters: Path | None = None,
) -> list[Report]:
    """Return the report on each file of predictions.

    test: the correct labels; None if they are in the files of the predictions, which only tagging allows. settings: of
    the test set. task: one of `LABEL_TASKS`; None to recognise it from the files. parameters: a parameter file of
    EVALB, for trees. Raises ConfigError if the task cannot be recognised, and DataError with file and line if the files
    do not belong together.
    """
    if task is not None and task not in LABEL_TASKS:
        raise ConfigError(f"--task {task}: with --hypothesis, the task is one of {', '.join(LABEL_TASKS)}")
    for path in (*([] if test is None else [test]), *hypotheses):
        if path.is_fifo():
            raise ConfigError(f"{path} is a pipe, and the file is read twice: write it to a file first")
    chosen = task or _recognise(test or hypotheses[0])
    if chosen != "parsing":
        reject_options({"--prm": parameters}, "with trees")
    if chosen == "tagging":
        return score_tags(test, hypotheses, settings)
    if test is None:
        raise ConfigError("there are no correct labels: give --test FILE")
    if chosen == "parsing":
        return score_trees(test, hypotheses, settings, parameters)
    if chosen == "question_answering":
        return score_answers(test, hypotheses, settings)
    if chosen in (None, "classification") and not all_overrides(settings) and _has_choices(test):
        return score_superglue(test, hypotheses)
    return score_labels(test, hypotheses, settings, chosen)


def _recognise(path: Path) -> LabelTask | None:
    """Return the task of a file with correct labels; None for classes or numbers."""
    path = treebank_files(path)[0]  # the name may be a pattern
    lines = [line for _, line in read_lines(path, "utf-8")]
    content = [line for line in lines if line.strip()]
    if not content:
        return None
    if content[0].lstrip().startswith("{"):
        return _recognise_json(content)
    if begins_tree(content[0]):
        return "parsing"
    return "tagging" if _is_tagged(path, lines) else None


def _has_choices(path: Path) -> bool:
    """Return whether the questions of a file have several choices, as in three tasks of SuperGLUE."""
    first = next((line for _, line in read_lines(path, "utf-8") if line.strip()), "")
    try:
        entry = json.loads(first) if first.lstrip().startswith("{") else {}
    except ValueError:  # reported when the labels are read
        return False
    return task_with_choices(entry) is not None


def _recognise_json(content: Sequence[str]) -> LabelTask | None:
    """Return the task of a file of JSON: one object per line, or the whole format of SQuAD."""
    try:
        entry = json.loads(content[0])
    except ValueError:  # the object continues in the next line
        entry = {}
    if {"question", "context", "answers"} <= entry.keys() or _SQUAD.match("".join(content[:5])):
        return "question_answering"
    return "tagging" if {"tokens", "words"} & entry.keys() else None


def _is_tagged(path: Path, lines: Sequence[str]) -> bool:
    """Return whether lines are words with tags: by the name, blank lines between sentences, or tags of spans."""
    if _TAGGED_SUFFIXES & set(path.suffixes) or lines[0].startswith(DOCUMENT_START):
        return True
    words = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    if not words or len({len(cells) for cells in words}) > 1:
        return False
    has_sentences = any(not line.strip() for line in "\n".join(lines).strip().split("\n"))
    return has_sentences or (len(words[0]) > 1 and has_span_tags(cells[-1] for cells in words))
