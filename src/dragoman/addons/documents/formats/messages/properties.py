"""Messages of Java (.properties) and of Apple's systems (.strings): values are translated, keys and comments are kept.

java.util.Properties.load, https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/util/Properties.html
"""

import re

from dragoman.addons.documents.formats.format import ParsedDocument
from dragoman.addons.documents.formats.messages.values import MessageValue, line_of, parse_values
from dragoman.addons.documents.languages import Languages
from dragoman.base.errors import DataError

_PROPERTY = re.compile(
    r"(?m)^[ \t\f]*(?:[#!][^\r\n]*|(?P<key>(?:\\(?:\r\n|[^\r])|[^\\\s:=])+)(?:[ \t\f]*[:=]|(?=[ \t\f]))?[ \t\f]*"
    r"(?P<value>(?:\\(?:\r\n?|[\s\S])|[^\\\r\n])*+))"
)
_ESCAPE = re.compile(r"\\(?:u(?P<code>[0-9A-Fa-f]{4})|(?P<line>\r\n?|\n)[ \t\f]*|(?P<character>[\s\S]))")
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_ESCAPED_LETTER = re.compile(r"\\u(?!00[0-7])")

_STRING = r'"(?:[^"\\]|\\[\s\S])*+"'
_ENTRY = re.compile(
    rf"\s++|/\*[\s\S]*?\*/|//[^\n]*|(?:{_STRING}|[\w.$/:-]++)\s*+(?:=\s*+(?P<value>{_STRING}|[\w.$/:-]++)\s*+)?;"
)
_APPLE_ESCAPE = re.compile(r"\\(?:[Uu](?P<code>[0-9A-Fa-f]{4})|(?P<character>[\s\S]))")


def parse_properties(text: str, languages: Languages) -> ParsedDocument[str]:
    """Parse a file of Java. Letters are escaped (`\\u00fc`) if all letters that are not ASCII are in the source."""
    ascii_only = text.isascii() and _ESCAPED_LETTER.search(text) is not None

    def write(string: str) -> str:
        written = string.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
        written = re.sub(r"\A ", r"\\ ", written)
        return _escaped(written) if ascii_only else written

    return parse_values(
        text,
        [
            MessageValue(*found.span("value"), _joined(_ESCAPE.sub(_property_character, found["value"])), write)
            for found in _PROPERTY.finditer(text)
            if found["value"]
        ],
        languages,
    )


def _property_character(found: "re.Match[str]") -> str:
    if found["code"]:
        return chr(int(found["code"], 16))
    return "" if found["line"] else _CONTROLS.get(found["character"], found["character"])


def _escaped(text: str) -> str:
    """Return a text whose letters that are not ASCII are escaped as UTF-16."""
    units = text.encode("utf-16-be", "surrogatepass")
    codes = [int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2)]
    return "".join(chr(code) if code < 128 else f"\\u{code:04X}" for code in codes)


def _joined(text: str) -> str:
    """Return a text whose pairs of surrogates, which are escaped singly, are characters."""
    return _SURROGATES.sub(lambda found: found[0].encode("utf-16-be", "surrogatepass").decode("utf-16-be"), text)


def parse_strings(text: str, languages: Languages) -> ParsedDocument[str]:
    """Parse a file of Apple's systems. Raises DataError for anything but comments and entries, with its line."""
    values: list[MessageValue] = []
    at = 0
    while at < len(text):
        found = _ENTRY.match(text, at)
        if found is None:
            raise DataError(
                f'the document, line {line_of(text, at)}: not an entry of a .strings file, such as "key" = "text";'
            )
        if found["value"]:
            string = found["value"]
            if string.startswith('"'):
                string = _joined(_APPLE_ESCAPE.sub(_apple_character, string[1:-1]))
            values.append(MessageValue(*found.span("value"), string, _apple_string))
        at = found.end()
    return parse_values(text, values, languages)


def _apple_character(found: "re.Match[str]") -> str:
    return chr(int(found["code"], 16)) if found["code"] else _CONTROLS.get(found["character"], found["character"])


def _apple_string(string: str) -> str:
    return '"' + string.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
