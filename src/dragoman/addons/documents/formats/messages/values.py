"""`parse_values`: files of messages as the values in them; everything between these is kept."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dragoman.addons.documents.formats.format import ParsedDocument
from dragoman.addons.documents.formats.messages.message import Message
from dragoman.addons.documents.languages import Languages
from dragoman.base.log import warn


class MessageValue(NamedTuple):
    """A message: text[begin:end] of a file. string: its decoded text; write: returns the form of a translation."""

    begin: int
    end: int
    string: str
    write: Callable[[str], str]


class Change(NamedTuple):
    """A change of a file, text[begin:end], that is made if any message is translated, such as that of its language."""

    begin: int
    end: int
    replacement: str


def parse_values(
    text: str, values: Sequence[MessageValue], languages: Languages, changes: Sequence[Change] = ()
) -> ParsedDocument[str]:
    """Return a file with its messages. Warns of messages whose plural forms or cases cannot be separated."""
    messages = [(value, Message(value.string, direction=languages.new_direction)) for value in values]
    if opaque := [value for value, message in messages if message.is_opaque]:
        warn(
            f"{len(opaque):,} message(s) remain untranslated, because their plural forms or cases are invalid or too "
            f"many; the first is in line {line_of(text, opaque[0].begin)}"
        )

    def write(texts: Sequence[str]) -> str:
        given = iter(texts)
        new = [(value, message, message.write([next(given) for _ in message.passages])) for value, message in messages]
        done = [Change(value.begin, value.end, value.write(string)) for value, old, string in new if string != old.text]
        pieces, at = [], 0
        for change in sorted([*done, *changes] if done else []):
            pieces += [text[at : change.begin], change.replacement]
            at = change.end
        return "".join([*pieces, text[at:]])

    return ParsedDocument([passage for _, message in messages for passage in message.passages], write)


def line_of(text: str, position: int) -> int:
    """Return the number of the line of a position, for messages."""
    return text.count("\n", 0, position) + 1
