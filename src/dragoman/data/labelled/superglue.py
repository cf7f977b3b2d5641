"""The tasks of SuperGLUE (Wang et al. 2019) whose JSON objects are not simply a text or a pair with a label.

| task | texts | label | examples |
| --- | --- | --- | --- |
| COPA | premise and question; choice | 1 for the correct choice, otherwise 0 | one per choice |
| MultiRC | passage; question and answer | as in the file: 1 or 0 | one per answer |
| ReCoRD | passage; query with an entity | 1 if the entity is an answer, otherwise 0 | one per distinct entity |
| WiC | two sentences, the word between asterisks | true or false | one |
| WSC | a text, the noun between asterisks, the pronoun between number signs | true or false | one |

The tasks of Russian SuperGLUE (Shavrina et al. 2020) with the same keys are read alike: PARus, MuSeRC, RuCoS, RUSSE and
RWSD.

The identifier of an example is the `idx` of its parts, joined by hyphens. BoolQ, CB and RTE need no conversion.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

from dragoman.base.errors import DataError

_Example = tuple[tuple[str, ...], str | None, str | None]
_Convert = Callable[[dict[str, Any], str], Iterator[_Example]]

TaskWithChoices = Literal["COPA", "MultiRC", "ReCoRD"]
"""The tasks whose questions have several examples, one per choice."""

_COPA_QUESTIONS = {"cause": "What was the cause of this?", "effect": "What happened as a result?"}
_PLACEHOLDER = "@placeholder"


def task_of(entry: dict[str, Any]) -> _Convert | None:
    """Return the function that converts the objects of a task to examples; None if no conversion is needed.

    The function is called with an object and its file and line, for messages. It raises DataError for an invalid
    object.
    """
    if (task := task_with_choices(entry)) is not None:
        return _guarded({"COPA": _expand_copa, "MultiRC": _expand_multirc, "ReCoRD": _expand_record}[task])
    if {"word", "sentence1", "sentence2", "start1", "start2"} <= entry.keys():
        return _guarded(_expand_wic)
    if isinstance(entry.get("target"), dict) and "span1_text" in entry["target"]:
        return _guarded(_expand_wsc)
    return None


def task_with_choices(entry: dict[str, Any]) -> TaskWithChoices | None:
    """Return the task of an object whose questions have several choices; None for another object."""
    passage = entry.get("passage")
    if isinstance(passage, dict) and "questions" in passage:
        return "MultiRC"
    if isinstance(passage, dict) and "entities" in passage and "qas" in entry:
        return "ReCoRD"
    return "COPA" if {"premise", "choice1", "choice2", "question"} <= entry.keys() else None


def distinct_entities(passage: dict[str, Any]) -> list[str]:
    """Return the texts of the entities of a passage of ReCoRD or RuCoS, each once."""
    return list(dict.fromkeys(_entity(str(passage["text"]), span) for span in passage["entities"]))


def _guarded(expand: Callable[[dict[str, Any]], Iterator[_Example]]) -> _Convert:
    """Convert the errors that missing keys and values of the wrong type cause."""

    def convert(entry: dict[str, Any], location: str) -> Iterator[_Example]:
        try:
            yield from expand(entry)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            reason = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
            raise DataError(f"{location}: not a valid object of this SuperGLUE task: {reason}.") from None

    return convert


def _expand_copa(entry: dict[str, Any]) -> Iterator[_Example]:
    context = f"{entry['premise']} {_COPA_QUESTIONS[entry['question']]}"
    correct = entry.get("label")
    for number in (0, 1):
        label = None if correct is None else str(int(int(correct) == number))
        yield (context, str(entry[f"choice{number + 1}"])), label, _identify(entry.get("idx"), number)


def _expand_multirc(entry: dict[str, Any]) -> Iterator[_Example]:
    passage = str(entry["passage"]["text"])
    for question in entry["passage"]["questions"]:
        for answer in question["answers"]:
            identifier = _identify(entry.get("idx"), question.get("idx"), answer.get("idx"))
            yield (passage, f"{question['question']} {answer['text']}"), _to_label(answer.get("label")), identifier


def _expand_record(entry: dict[str, Any]) -> Iterator[_Example]:
    passage = str(entry["passage"]["text"])
    entities = distinct_entities(entry["passage"])
    for question in entry["qas"]:
        answers = None if question.get("answers") is None else {str(answer["text"]) for answer in question["answers"]}
        if answers is not None and not answers & set(entities):
            raise ValueError(f"no entity equals an answer of the query {question.get('idx')}")
        for number, entity in enumerate(entities):
            label = None if answers is None else str(int(entity in answers))
            query = str(question["query"]).replace(_PLACEHOLDER, entity)
            yield (passage, query), label, _identify(entry.get("idx"), question.get("idx"), number)


def _entity(passage: str, span: dict[str, Any]) -> str:
    """Return the text of an entity: its own in RuCoS; in ReCoRD, that of its positions, whose end is inclusive."""
    return str(span["text"]) if "text" in span else passage[int(span["start"]) : int(span["end"]) + 1]


def _expand_wic(entry: dict[str, Any]) -> Iterator[_Example]:
    texts = []
    for side in ("1", "2"):
        sentence, start, end = str(entry[f"sentence{side}"]), int(entry[f"start{side}"]), int(entry[f"end{side}"])
        if not 0 <= start < end <= len(sentence):
            raise ValueError(f"start{side} and end{side} are not a part of sentence{side}")
        texts.append(f"{sentence[:start]}*{sentence[start:end]}*{sentence[end:]}")
    yield tuple(texts), _to_label(entry.get("label")), _identify(entry.get("idx"))


def _expand_wsc(entry: dict[str, Any]) -> Iterator[_Example]:
    """Mark the two spans. Their indices count words that are separated by blanks."""
    words = str(entry["text"]).split(" ")
    target = entry["target"]
    for side, mark in (("1", "*"), ("2", "#")):
        start, span = int(target[f"span{side}_index"]), str(target[f"span{side}_text"])
        size = len(span.split(" "))
        text = " ".join(words[start : start + size])
        match = re.search(re.escape(span), text, re.IGNORECASE)
        if start < 0 or match is None:
            raise ValueError(f"span{side}_text {span!r} is not at word {start}")
        marked = f"{text[: match.start()]}{mark}{match[0]}{mark}{text[match.end() :]}"
        words[start : start + size] = marked.split(" ")
    yield (" ".join(words),), _to_label(entry.get("label")), _identify(entry.get("idx"))


def _to_label(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def _identify(*parts: object) -> str | None:
    return "-".join(str(part) for part in parts if part is not None) or None
