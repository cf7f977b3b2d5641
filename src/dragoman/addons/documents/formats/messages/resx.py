"""Resources of .NET (.resx): the strings are translated; other values, names and comments are kept."""

from collections.abc import Iterator

from dragoman.addons.documents.formats.format import ParsedDocument
from dragoman.addons.documents.formats.messages.values import MessageValue, parse_values
from dragoman.addons.documents.formats.xml_tree import Element, Text, escape_xml, parse_tree
from dragoman.addons.documents.languages import Languages
from dragoman.base.errors import DataError


def parse_resx(text: str, languages: Languages) -> ParsedDocument[str]:
    """Parse a file. Raises DataError for text that is not XML, and for XML that is not a resource file."""
    data = text.encode()
    root = parse_tree(data, "the document")
    if root.name != "root":
        raise DataError(f"the document is not a file of resources (.resx): its root is <{root.name}>")
    values, at, position = list[MessageValue](), 0, 0
    for element in _strings(root):
        begin, end = element.inner
        position += len(data[at:begin].decode())  # the tree knows positions in bytes
        length = len(data[begin:end].decode())
        values.append(MessageValue(position, position + length, "".join(element.texts()), escape_xml))
        position, at = position + length, end
    return parse_values(text, values, languages)


def _strings(root: Element) -> Iterator[Element]:
    """Yield the values that are strings for readers: names with `>>` describe the layout of a form."""
    for entry in root.elements():
        attributes = entry.attributes
        is_string = entry.name == "data" and not {"type", "mimetype"} & attributes.keys()
        value = entry.first("value") if is_string and not attributes.get("name", "").startswith(">>") else None
        if value is not None and all(isinstance(child, Text) for child in value.children) and value.children:
            yield value
