"""The zip archive and the XML of a Word document, read with limits against hostile files."""

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any
from xml.parsers import expat

from dragoman.base.errors import DataError
from dragoman.base.packages import import_optional

MAX_BASE_BYTES = 1 << 26
"""The number of unpacked bytes that is allowed for every archive."""

MAX_BYTES_PER_PACKED_BYTE = 10
"""The number of additional unpacked bytes allowed per packed byte; images and fonts hardly compress."""

_OLE_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ARCHIVE_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, NotImplementedError, RuntimeError, ValueError, OSError),
)


class Package:
    """An archive's parts by name. Nothing is ever written to disk, and parts are unpacked one at a time."""

    def __init__(self, content: bytes) -> None:
        """Raises DataError for content that is not an archive, is damaged, or is malicious."""
        if content.startswith(_OLE_SIGNATURE):
            raise DataError(
                "this is a Word 97–2003 document (.doc) or has a password: save it as .docx without a password"
            )
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content))
        except _ARCHIVE_ERRORS as error:
            raise DataError(f"this is not a Word document (.docx), or it is damaged: {error}") from None
        self._members = {member.filename: member for member in self._archive.infolist()}
        if len({name.lower() for name in self._members}) < len(self._archive.infolist()):
            raise DataError("two parts of this document have the same name: it was not written by a word processor")
        allowed = MAX_BASE_BYTES + MAX_BYTES_PER_PACKED_BYTE * len(content)
        unpacked = sum(member.file_size for member in self._members.values())
        if unpacked > allowed:
            raise DataError(
                f"this document would unpack to {unpacked:,} bytes, but at most {allowed:,} are allowed for its size: "
                "save it again with a word processor, or divide it"
            )
        for name, member in self._members.items():
            if name.startswith("/") or "\\" in name or name[1:2] == ":" or ".." in name.split("/"):
                raise DataError(f"a part of this document has the unsafe name {name!r}")
            if member.flag_bits & 1:
                raise DataError("this document is encrypted: save it without a password")

    @property
    def sizes(self) -> dict[str, int]:
        """The uncompressed size of each part in bytes."""
        return {name: member.file_size for name, member in self._members.items()}

    def read(self, name: str) -> bytes:
        """Return a part. Raises DataError if it is damaged."""
        member = self._members[name]
        try:
            with self._archive.open(member) as file:
                return file.read(member.file_size + 1)  # bounded, since the declared size may be wrong
        except _ARCHIVE_ERRORS as error:
            raise DataError(f"the part {name} of this document is damaged: {error}") from None

    def replace_parts(self, replacements: Mapping[str, bytes]) -> bytes:
        """Return the archive with new bytes for some of its parts; order, names and times are kept."""
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w") as archive:
            archive.comment = self._archive.comment
            for name, member in self._members.items():
                entry = zipfile.ZipInfo(name, member.date_time)
                stored = member.compress_type == zipfile.ZIP_STORED
                entry.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
                entry.external_attr, entry.create_system = member.external_attr, member.create_system
                data = replacements.get(name)
                archive.writestr(entry, self.read(name) if data is None else data)
        return target.getvalue()


Element = Any
"""An element of lxml, which preserves prefixes and unknown content."""

_NAMESPACES = (
    "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}",
    "{http://purl.oclc.org/ooxml/wordprocessingml/main}",  # "Strict Open XML"
)


class _RootReached(Exception):
    """Raised at the root element, if no document type precedes it."""


def parse_xml(data: bytes, name: str) -> Element:
    """Parse a part and return its root. Raises DataError for malformed XML and for a document type.

    Office forbids document types; without one there are no entities and no external references (ECMA-376 part 2,
    section 9.1.4).
    """
    etree = import_optional("lxml.etree", "documents", "lxml")
    _reject_doctype(data, name)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise DataError(f"the part {name} of this document is not valid XML: {error}") from None


def serialise_xml(root: Element) -> bytes:
    """Return a part as bytes, given its root."""
    etree = import_optional("lxml.etree", "documents", "lxml")
    tree = root.getroottree()
    serialised: bytes = etree.tostring(tree, xml_declaration=True, encoding="UTF-8", standalone=tree.docinfo.standalone)
    return serialised


def local_name(element: Element) -> str:
    """Return the local name of a WordprocessingML element; empty for any other element."""
    if not isinstance(element.tag, str):  # a comment or a processing instruction
        return ""
    for namespace in _NAMESPACES:
        if element.tag.startswith(namespace):
            return str(element.tag[len(namespace) :])
    return ""


def attribute(element: Element, name: str) -> str | None:
    """Return an attribute in the element's own namespace."""
    value = element.get(element.tag[: element.tag.index("}") + 1] + name)
    return None if value is None else str(value)


def child(element: Element, name: str) -> Element | None:
    """Return the first child with a local name."""
    return next((each for each in element if local_name(each) == name), None)


def _reject_doctype(data: bytes, name: str) -> None:
    """Raise DataError for a document type, before it is interpreted."""
    parser = expat.ParserCreate()

    def on_doctype(*_: object) -> None:
        raise DataError(f"the part {name} of this document has a document type (DTD), which Word documents never have")

    def on_element(*_: object) -> None:
        raise _RootReached

    parser.StartDoctypeDeclHandler = on_doctype
    parser.StartElementHandler = on_element
    try:
        parser.Parse(data, True)
    except _RootReached:
        return
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise DataError(f"the part {name} of this document is not valid XML: {error}") from None
