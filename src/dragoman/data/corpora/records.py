"""Records of corpora from which templates make pairs of texts: JSON objects, labelled texts, and questions."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dragoman.base.errors import DataError
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.templates import Record, TemplateConfig, fill_templates
from dragoman.data.files.jsonl import field_value, read_objects
from dragoman.data.labelled.read import read_labelled, read_questions


def read_records(corpus: CorpusConfig) -> Iterator[Record]:
    """Yield the records of a corpus with templates, in file order.

    Raises DataError with file and line if a record cannot be read, or lacks a field of the templates.
    """
    assert corpus.records is not None
    if corpus.pairs is not None:
        yield from fill_objects(corpus.pairs, corpus.records)
    elif corpus.labelled is not None:
        for number, example in enumerate(read_labelled(corpus.labelled), 1):
            names = ("text", "pair")[: len(example.texts)]
            values = {**dict(zip(names, example.texts, strict=True)), "label": example.label}
            yield _fill(corpus.records, number, f"{corpus}, example {number}", values)
    else:
        assert corpus.questions is not None
        for number, question in enumerate(read_questions(corpus.questions), 1):
            answers = list(dict.fromkeys(answer.text for answer in question.answers))
            fields = {"question": question.question, "context": question.context, "answers": answers or [""]}
            yield _fill(corpus.records, number, f"{corpus}, question {question.id}", fields)


def fill_objects(path: Path, templates: TemplateConfig) -> Iterator[Record]:
    """Yield the texts of the objects of a JSON Lines file. A blank line yields blank texts."""
    for number, entry in read_objects(path):
        if entry is None:
            yield Record(number, "", ("",), "", ())
            continue
        location = f"{path}, line {number}"
        fields = entry

        def value(name: str, fields: dict[str, Any] = fields, location: str = location) -> Any:
            return field_value(fields, name, location, "`template`")

        yield fill_templates(templates, number, location, value)


def _fill(templates: TemplateConfig, number: int, location: str, fields: dict[str, Any]) -> Record:
    def value(name: str) -> Any:
        if name not in fields:
            raise DataError(
                f"{location}: there is no field {name!r}; the fields are {', '.join(fields)}. Fix `template`."
            )
        return fields[name]

    return fill_templates(templates, number, location, value)
