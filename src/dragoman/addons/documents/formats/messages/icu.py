"""MessageFormat of ICU and Java: the branches of plural, select and choice arguments.

Syntax: https://unicode-org.github.io/icu/userguide/format_parse/messages/, with apostrophes in the default mode, and
https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/text/ChoiceFormat.html.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

DEEPEST = 5
"""The deepest nesting of arguments that is parsed."""

_COMPLEX = ("plural", "select", "selectordinal")
_HINT = re.compile(r"\{[^{},]*,\s*(?:plural|select|selectordinal|choice)\s*,")
_NAME = re.compile(r"\s*[^\s{},'#|<>]+\s*")
_OFFSET = re.compile(r"\s*offset\s*:\s*[0-9]+")
_SELECTOR = re.compile(r"\s*(?:=[0-9]+|[^\s{},'=]+)\s*(?=\{)")
_LIMIT = re.compile(r"\s*(?:[-+]?[0-9.]+|-?∞)\s*[#<≤]")
_QUOTED = re.compile(r"'[^']*(?:''[^']*)*(?:'|\Z)")


class Argument(NamedTuple):
    """A plural, select or choice argument: text[begin:end], with the ranges of the messages in its branches."""

    begin: int
    end: int
    branches: Sequence[tuple[int, int]]
    counts: bool
    """Whether `#` stands for the number in its branches."""


class _Invalid(Exception):
    """The text is not a valid message."""


def has_branches(text: str) -> bool:
    """Whether a text seems to be a message with branches."""
    return _HINT.search(text) is not None


def first_argument(text: str) -> Argument | None:
    """Return the first argument with branches of a message that is not within another one; None if it has none.

    Raises ValueError for an invalid message.
    """
    try:
        return next(iter([each for each in _message(text, 0, 0)[0] if each.branches]), None)
    except _Invalid:
        raise ValueError("not a valid ICU message") from None


def _message(text: str, at: int, depth: int, ends: str = "}") -> tuple[list[Argument], int]:
    """Parse a message up to the end, or a character that ends its branch; return its arguments and that position."""
    found = []
    while at < len(text):
        character = text[at]
        if character == "'":
            at = _after_apostrophe(text, at)
        elif character == "{":
            argument = _argument(text, at, depth)
            found.append(argument)
            at = argument.end
        elif depth and character in ends:
            return found, at
        elif character == "}":
            raise _Invalid
        else:
            at += 1
    if depth:
        raise _Invalid
    return found, at


def _after_apostrophe(text: str, at: int) -> int:
    """Return the position after a literal apostrophe, or after quoted text."""
    if text[at + 1 : at + 2] not in ("{", "}", "#", "|"):
        return at + (2 if text[at + 1 : at + 2] == "'" else 1)
    quoted = _QUOTED.match(text, at)
    assert quoted is not None
    return quoted.end()


def _argument(text: str, begin: int, depth: int) -> Argument:
    if depth >= DEEPEST:
        raise _Invalid
    name = _NAME.match(text, begin + 1)
    if name is None:
        raise _Invalid
    at = name.end()
    if text[at : at + 1] == "}":
        return Argument(begin, at + 1, (), False)
    type = _NAME.match(text, at + 1)
    if text[at : at + 1] != "," or type is None:
        raise _Invalid
    at = type.end()
    if text[at : at + 1] == "}":
        return Argument(begin, at + 1, (), False)
    if text[at : at + 1] != ",":
        raise _Invalid
    if type[0].strip() == "choice":
        choices = tuple(_choices(text, at + 1, depth))
        return Argument(begin, choices[-1][1] + 1, choices, False)
    if type[0].strip() not in _COMPLEX:
        return Argument(begin, _end_of_style(text, at + 1), (), False)
    branches = []
    offset = _OFFSET.match(text, at + 1)
    at = at + 1 if offset is None else offset.end()
    while selector := _SELECTOR.match(text, at):
        _, end = _message(text, selector.end() + 1, depth + 1)
        branches.append((selector.end() + 1, end))
        at = end + 1
    closing = re.compile(r"\s*\}").match(text, at)
    if closing is None or not branches:
        raise _Invalid
    return Argument(begin, closing.end(), tuple(branches), type[0].strip() != "select")


def _choices(text: str, at: int, depth: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the messages of a choice, each of which follows a limit: `0#none|1#one|1<many`."""
    while (limit := _LIMIT.match(text, at)) is not None:
        _, end = _message(text, limit.end(), depth + 1, "|}")
        yield limit.end(), end
        if text[end] == "}":
            return
        at = end + 1
    raise _Invalid


def _end_of_style(text: str, at: int) -> int:
    """Return the position after the brace that closes a simple argument."""
    depth = 1
    while at < len(text):
        if text[at] == "'":
            at = _after_apostrophe(text, at)
            continue
        depth += (text[at] == "{") - (text[at] == "}")
        at += 1
        if not depth:
            return at
    raise _Invalid


def pieces(text: str, argument: Argument) -> Iterator[tuple[str, bool]]:
    """Yield the text of an argument in pieces, each with whether it is the message of a branch."""
    at = argument.begin
    for begin, end in argument.branches:
        yield text[at:begin], False
        yield text[begin:end], True
        at = end
    yield text[at : argument.end], False
