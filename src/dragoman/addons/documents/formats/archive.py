"""`Archive`: the parts of a document that is a ZIP archive, read with limits against hostile files."""

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Mapping

from dragoman.base.errors import DataError

MAX_BASE_BYTES = 1 << 26
"""The number of unpacked bytes that is allowed for every archive."""

MAX_BYTES_PER_PACKED_BYTE = 10
"""The number of additional unpacked bytes allowed per packed byte; images and fonts hardly compress."""

MAX_XML_BYTES = 1 << 24
"""The maximum number of bytes of XML with text; a book of a thousand pages has fewer."""

_ARCHIVE_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, NotImplementedError, RuntimeError, ValueError, OSError),
)


class Archive:
    """An archive's parts by name. Nothing is ever written to disk, and parts are unpacked one at a time."""

    def __init__(self, content: bytes, kind: str) -> None:
        """kind: what the archive should be, for messages, such as `a Word document (.docx)`.

        Raises DataError for content that is not an archive, is damaged, or is malicious.
        """
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content))
        except _ARCHIVE_ERRORS as error:
            raise DataError(f"this is not {kind}, or it is damaged: {error}") from None
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


def check_text_size(size: int) -> None:
    """Raise DataError if the parts with text have too many bytes. size: of all of them, unpacked."""
    if size > MAX_XML_BYTES:
        raise DataError(
            f"this document has {size:,} bytes of unpacked text and formatting, but at most {MAX_XML_BYTES:,} are read:"
            " divide it"
        )
