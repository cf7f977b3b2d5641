"""Templates that make texts from the fields of a record, such as `review: {text} sentiment:`."""

from collections.abc import Callable
from functools import cache
from string import Formatter
from typing import Any, NamedTuple

from pydantic import Field, field_validator

from dragoman.base.errors import DataError
from dragoman.base.settings.config import Config
from dragoman.data.corpora.sentence_marks import remove_sentence_marks


class TemplateConfig(Config):
    """Templates of a source and a target.

    `{name}` stands for a field, in which dots separate the keys of nested objects, and `{{` and `}}` for braces. A list
    of texts is joined by spaces in the source. In the target, each element of a list is an alternative, such as one of
    several summaries: training uses all of them, each with the same source, and metrics accept any of them.
    """

    source: str = Field(min_length=1, description="Template of the source, such as 'review: {text} sentiment:'.")
    target: str = Field(min_length=1, description="Template of the target, such as '{label}'.")

    @field_validator("source", "target")
    @classmethod
    def _check_fields(cls, value: str) -> str:
        parts = parse_template(value)
        if not any(part.field for part in parts):
            raise ValueError(f"the template {value!r} has no field: name one in braces, such as {{text}}")
        return value


class TemplatePart(NamedTuple):
    """A part of a template: a text, followed by a field. The last part may have no field, which is then empty."""

    text: str
    field: str


@cache
def parse_template(template: str) -> tuple[TemplatePart, ...]:
    """Divide a template at its fields. Raises ValueError for unbalanced braces, and for fields without a name."""
    try:
        parsed = list(Formatter().parse(template))
    except ValueError as error:
        raise ValueError(f"the template {template!r} is not valid ({error}): write {{{{ and }}}} for braces") from None
    for _, name, format_spec, conversion in parsed:
        if name is not None and (not name.strip() or format_spec or conversion):
            raise ValueError(f"the template {template!r} is not valid: a field is only a name in braces")
    return tuple(TemplatePart(text, name or "") for text, name, _, _ in parsed)


class Record(NamedTuple):
    """The texts of a record.

    line: line of the corpus, counted from 1. source: the source. targets: one target, or alternatives. content: the
    texts of the fields of the source, one per line, without the words of the template. sentences: the elements of the
    first field of the source that contains a list; empty if no field does. longest: the text of the longest field of
    the source, such as the context of a question.
    """

    line: int
    source: str
    targets: tuple[str, ...]
    content: str
    sentences: tuple[str, ...]
    longest: str = ""


def fill_templates(templates: TemplateConfig, line: int, location: str, value: Callable[[str], Any]) -> Record:
    """Return the texts of a record.

    location: file and line, for messages. value: returns the value of a field. Raises DataError if a value is an
    object, or if the target has several lists.
    """
    source, target = parse_template(templates.source), parse_template(templates.target)
    sentences: tuple[str, ...] = ()
    text, content = "", []
    for part in source:
        texts = _texts(value(part.field), part.field, location) if part.field else ("",)
        text += part.text + " ".join(texts)
        content.append(" ".join(texts))
        if part.field and isinstance(value(part.field), list) and not sentences:
            sentences = texts
    targets: tuple[str, ...] = ("",)
    for part in target:
        texts = _texts(value(part.field), part.field, location) if part.field else ("",)
        if not texts:
            raise DataError(f"{location}: the list {part.field!r} is empty. Add an element, or remove the line.")
        if len(texts) > 1 and len(targets) > 1:
            raise DataError(f"{location}: the target has several lists. Use one list in `template.target`.")
        targets = tuple(each + part.text + other for each in targets for other in texts)
    return Record(line, text, targets, "\n".join(filter(str.strip, content)), sentences, max(content, key=len))


def _texts(value: Any, field: str, location: str) -> tuple[str, ...]:
    """Return a value as text without marks of sentence boundaries, or the elements of a list. Null is an empty text."""
    if isinstance(value, list | tuple):
        return tuple(text for each in value for text in _texts(each, field, location))
    if value is None:
        return ("",)
    if isinstance(value, bool):
        return ("true" if value else "false",)
    if isinstance(value, str | int | float):
        return (remove_sentence_marks(str(value)),)
    raise DataError(f"{location}: the field {field!r} is an object. Name one of its keys, such as {field}.text.")
