"""The zip archive that a Word document is, and its XML; what it holds is looked at before any of it is unpacked."""

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

LARGEST = 1 << 26
"""Bytes unpacked that any archive may have."""

DENSEST = 10
"""Bytes unpacked that an archive may have beside for each of its own: pictures and fonts are hardly compressible."""

_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, NotImplementedError, RuntimeError, ValueError, OSError),
)


class Package:
    """Its parts by name. Nothing is ever written to a disk, and parts are unpacked one at a time."""

    def __init__(self, content: bytes) -> None:
        """Raises DataError for what is no archive, a damaged one, and one that only an attacker would make."""
        if content.startswith(_COMPOUND):
            raise DataError(
                "this is a document of Word 97 to 2003 (.doc), or one with a password: save it as .docx without one"
            )
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content))
        except _BROKEN as error:
            raise DataError(f"this is no Word document (.docx), or a damaged one: {error}") from None
        self._members = {member.filename: member for member in self._archive.infolist()}
        if len({name.lower() for name in self._members}) < len(self._archive.infolist()):
            raise DataError("two parts of this document have the same name: it was not written by a word processor")
        allowed = LARGEST + DENSEST * len(content)
        unpacked = sum(member.file_size for member in self._members.values())
        if unpacked > allowed:
            raise DataError(
                f"this document would have {unpacked:,} bytes unpacked, more than the {allowed:,} that one of its size "
                "may have: save it once more by a word processor, or divide it"
            )
        for name, member in self._members.items():
            if name.startswith("/") or "\\" in name or name[1:2] == ":" or ".." in name.split("/"):
                raise DataError(f"a part of this document has the name {name!r}, which leads elsewhere")
            if member.flag_bits & 1:
                raise DataError("this document is encrypted: save it without a password")

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes unpacked of each part."""
        return {name: member.file_size for name, member in self._members.items()}

    def read(self, name: str) -> bytes:
        """A part. Raises DataError where it is damaged."""
        member = self._members[name]
        try:
            with self._archive.open(member) as file:
                return file.read(member.file_size + 1)  # bounded: without a number it unpacks what there really is
        except _BROKEN as error:
            raise DataError(f"the part {name} of this document is damaged: {error}") from None

    def with_parts(self, changed: Mapping[str, bytes]) -> bytes:
        """The archive with other bytes for some of its parts; order, names and times stay."""
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w") as archive:
            archive.comment = self._archive.comment
            for name, member in self._members.items():
                entry = zipfile.ZipInfo(name, member.date_time)
                stored = member.compress_type == zipfile.ZIP_STORED
                entry.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
                entry.external_attr, entry.create_system = member.external_attr, member.create_system
                data = changed.get(name)
                archive.writestr(entry, self.read(name) if data is None else data)
        return target.getvalue()


Element = Any
"""Of lxml, which keeps names, prefixes and what is not understood as they are."""

_SPACES = (
    "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}",
    "{http://purl.oclc.org/ooxml/wordprocessingml/main}",  # "Strict Open XML"
)


class _Begun(Exception):
    """The root element was reached, and no document type stood before it."""


def parsed(data: bytes, name: str) -> Element:
    """The root of a part. Raises DataError for what is no XML, and for a document type, which Office forbids.

    Without a document type there are no entities, nor anything that is elsewhere (ECMA-376 part 2, section 9.1.4).
    """
    etree = import_optional("lxml.etree", "documents", "lxml")
    _check(data, name)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise DataError(f"the part {name} of this document is no XML that can be read: {error}") from None


def serialised(root: Element) -> bytes:
    """The whole part."""
    etree = import_optional("lxml.etree", "documents", "lxml")
    tree = root.getroottree()
    written: bytes = etree.tostring(tree, xml_declaration=True, encoding="UTF-8", standalone=tree.docinfo.standalone)
    return written


def kind(element: Element) -> str:
    """The name of an element of WordprocessingML, without its name space; empty for all others."""
    if not isinstance(element.tag, str):  # a comment or a processing instruction
        return ""
    for space in _SPACES:
        if element.tag.startswith(space):
            return str(element.tag[len(space) :])
    return ""


def attribute(element: Element, name: str) -> str | None:
    """That of the element's own name space."""
    value = element.get(element.tag[: element.tag.index("}") + 1] + name)
    return None if value is None else str(value)


def child(element: Element, name: str) -> Element | None:
    """The first of that kind."""
    return next((each for each in element if kind(each) == name), None)


def _check(data: bytes, name: str) -> None:
    """Raises DataError for a document type, before any of it is read."""
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise DataError(f"the part {name} of this document has a document type (DTD), which none of Word's has")

    def stop(*_: object) -> None:
        raise _Begun

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = stop
    try:
        parser.Parse(data, True)
    except _Begun:
        return
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise DataError(f"the part {name} of this document is no XML: {error}") from None
