"""Questions in the JSON format of SQuAD 1.1 (Rajpurkar et al. 2016) and 2.0 (Rajpurkar et al. 2018)."""

import json
import re
from collections.abc import Iterator
from typing import Any

from dragoman.base.errors import DataError
from dragoman.base.log import warn
from dragoman.data.files.jsonl import read_object
from dragoman.data.labelled.corpus import QuestionCorpusConfig
from dragoman.data.labelled.examples import Answer, Question
from dragoman.data.labelled.rows import check_unicode, read_lines

_MAX_SHIFT = 16
"""Maximum distance, in characters, from a wrong offset to the nearest of several occurrences of an answer."""


def read_squad(corpus: QuestionCorpusConfig, labelled: bool) -> list[Question]:
    """Return the questions of a file in order.

    The text of each answer must be in the context at its offset (in characters). If it is not, the answer is moved to
    its only occurrence, or to the nearest occurrence if that is at most 16 characters away and no other is as near. One
    warning reports the number of moved answers. `plausible_answers` of SQuAD 2.0 are not used. labelled: whether every
    question needs an answer or `is_impossible`. Raises DataError, with file and question, for invalid JSON, missing
    keys, repeated identifiers, and answers that are not in the context.
    """
    reader = _Reader(corpus, labelled)
    questions = list(reader.read())
    if reader.moved:
        warn(
            f"{corpus}: the offsets of {len(reader.moved):,} answers were wrong and have been corrected. The first is "
            f"the question {reader.moved[0]}."
        )
    return questions


class _Reader:
    def __init__(self, corpus: QuestionCorpusConfig, labelled: bool) -> None:
        self._corpus, self._labelled = corpus, labelled
        self._ids: set[str] = set()
        self.moved: list[str] = []

    def read(self) -> Iterator[Question]:
        """Yield all questions."""
        lines = list(read_lines(self._corpus.path, "utf-8"))
        first = next((line for _, line in lines if line.strip()), "")
        if _is_flat_object(first):
            for number, line in lines:
                if line.strip():
                    location = f"{self._corpus}, line {number}"
                    entry = read_object(line, location)
                    yield self._question(entry, self._get(entry, "context", str, location), _title(entry), location)
            return
        if not first:
            return
        try:
            document = json.loads("\n".join(line for _, line in lines))
        except json.JSONDecodeError as error:
            raise DataError(
                f"{self._corpus}, line {error.lineno}, column {error.colno}: not valid JSON ({error.msg})."
            ) from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self._corpus}: not valid JSON ({error}).") from None
        yield from self._document(document)

    def _document(self, document: Any) -> Iterator[Question]:
        if not isinstance(document, dict) or not isinstance(document.get("data"), list):
            raise DataError(f"{self._corpus}: not in the format of SQuAD, which is an object with a list `data`.")
        for article_number, article in enumerate(document["data"]):
            article_location = f"{self._corpus}, data[{article_number}]"
            title = _title(article)
            for number, paragraph in enumerate(self._get(article, "paragraphs", list, article_location)):
                location = f"{article_location}.paragraphs[{number}]"
                context = self._get(paragraph, "context", str, location)
                for index, entry in enumerate(self._get(paragraph, "qas", list, location)):
                    yield self._question(entry, context, title, f"{location}.qas[{index}]")

    def _question(self, entry: Any, context: str, title: str, location: str) -> Question:
        identifier = entry.get("id") if isinstance(entry, dict) else None
        if isinstance(identifier, int) and not isinstance(identifier, bool):
            identifier = str(identifier)
        if not isinstance(identifier, str):
            raise DataError(f"{location}: the question has no `id`.")
        location = f"{location} (question {identifier})"
        if identifier in self._ids:
            raise DataError(f"{location}: the `id` occurs twice. Predictions are stored by `id`, so it must be unique.")
        self._ids.add(identifier)
        text = check_unicode(self._get(entry, "question", str, location), location)
        check_unicode(context, location)
        answers = tuple(self._answer(*pair, context, identifier, location) for pair in _answers(entry, location))
        impossible = entry.get("is_impossible", False)
        if not isinstance(impossible, bool):
            raise DataError(f"{location}: `is_impossible` is not true or false.")
        if impossible and answers:
            raise DataError(f"{location}: `is_impossible` is true, but there are answers. Remove one of them.")
        if self._labelled and not answers and not impossible:
            raise DataError(
                f"{location}: there is no answer. Add one, or set `is_impossible` to true if the context has none."
            )
        return Question(identifier, text, context, answers, impossible, title)

    def _answer(self, text: Any, start: Any, context: str, identifier: str, location: str) -> Answer:
        if not isinstance(text, str) or not text:
            raise DataError(f"{location}: an answer has no `text`.")
        if isinstance(start, bool) or not isinstance(start, int):
            raise DataError(f"{location}: the `answer_start` of {text!r} is not a whole number.")
        if start >= 0 and context.startswith(text, start):
            return Answer(text, start)
        occurrences = [match.start() for match in re.finditer(f"(?={re.escape(text)})", context)]
        if not occurrences:
            raise DataError(f"{location}: the answer {text!r} does not occur in the context. Fix the answer.")
        distances = sorted((abs(position - start), position) for position in occurrences)
        is_near = distances[0][0] <= _MAX_SHIFT
        if len(distances) > 1 and (not is_near or distances[0][0] == distances[1][0]):
            raise DataError(
                f"{location}: the answer {text!r} is not at character {start} of the context, but occurs "
                f"{len(occurrences)} times elsewhere. Fix `answer_start`."
            )
        self.moved.append(identifier)
        return Answer(text, distances[0][1])

    def _get(self, entry: Any, key: str, kind: type, location: str) -> Any:
        if not isinstance(entry, dict) or not isinstance(entry.get(key), kind):
            expected = "text" if kind is str else "list"
            raise DataError(f"{location}: the {expected} `{key}` is missing.")
        return entry[key]


def _title(entry: Any) -> str:
    """Return the title of an article; it is only needed to hold out whole articles, so it may be missing."""
    title = entry.get("title") if isinstance(entry, dict) else None
    return title.strip() if isinstance(title, str) else ""


def _answers(entry: dict[str, Any], location: str) -> list[tuple[Any, Any]]:
    """Return the texts and offsets of the answers: a list of objects, or an object of two lists."""
    answers = entry.get("answers")
    if answers is None:
        return []
    if isinstance(answers, dict):
        texts, starts = answers.get("text"), answers.get("answer_start")
        if isinstance(texts, list) and isinstance(starts, list) and len(texts) == len(starts):
            return list(zip(texts, starts, strict=True))
    elif isinstance(answers, list) and all(isinstance(answer, dict) for answer in answers):
        return [(answer.get("text"), answer.get("answer_start")) for answer in answers]
    raise DataError(f"{location}: `answers` is neither a list of objects nor an object of two lists of equal length.")


def _is_flat_object(line: str) -> bool:
    """Return whether a line is a question with its context, as in JSON Lines."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(entry, dict) and "question" in entry and "data" not in entry
