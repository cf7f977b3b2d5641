"""First bytes of binary file formats."""

import io
import re
import tarfile
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.data.files.encoding import control_fraction, is_utf8

_MIN_CONTROLS, _MIN_CONTROL_FRACTION = 16, 0.1
"""Minimum number and fraction of control characters in data that are not text."""


class Signature(NamedTuple):
    """A binary file format. start: its first bytes. name: with an article. kind: group of formats with one remedy."""

    start: bytes
    name: str
    kind: str


SIGNATURES = (
    Signature(b"\x89PNG\r\n", "a PNG image", "media"),
    Signature(b"\xff\xd8\xff", "a JPEG image", "media"),
    Signature(b"GIF87a", "a GIF image", "media"),
    Signature(b"GIF89a", "a GIF image", "media"),
    Signature(b"II*\0", "a TIFF image", "media"),
    Signature(b"MM\0*", "a TIFF image", "media"),
    Signature(b"\0\0\1\0", "an icon", "media"),
    Signature(b"RIFF", "an image, a sound or a video (RIFF)", "media"),
    Signature(b"OggS", "a sound or a video (Ogg)", "media"),
    Signature(b"ID3", "a sound (MP3)", "media"),
    Signature(b"fLaC", "a sound (FLAC)", "media"),
    Signature(b"\x1aE\xdf\xa3", "a video (Matroska)", "media"),
    Signature(b"\x7fELF", "a program", "media"),
    Signature(b"MZ", "a program", "media"),
    Signature(b"wOFF", "a font", "media"),
    Signature(b"wOF2", "a font", "media"),
    Signature(b"SQLite format 3\0", "a database (SQLite)", "table"),
    Signature(b"PAR1", "a Parquet file", "table"),
    Signature(b"ARROW1\0\0", "an Arrow file", "table"),
    Signature(b"ORC\n", "an ORC file", "table"),
    Signature(b"Obj\x01", "an Avro file", "table"),
    Signature(b"\x89HDF\r\n\x1a\n", "an HDF5 file", "table"),
    Signature(b"\x93NUMPY", "a NumPy array", "table"),
    Signature(b"GGUF", "a model (GGUF)", "model"),
    Signature(b"\xde\x12\x04\x95", "a compiled gettext catalogue (.mo)", "catalogue"),
    Signature(b"\x95\x04\x12\xde", "a compiled gettext catalogue (.mo)", "catalogue"),
    Signature(b"\x1f\x8b", "a compressed file (gzip)", "gzip -d"),
    Signature(b"BZh", "a compressed file (bzip2)", "bzip2 -d"),
    Signature(b"\xfd7zXZ\0", "a compressed file (xz)", "xz -d"),
    Signature(b"\x28\xb5\x2f\xfd", "a compressed file (zstd)", "zstd -d"),
    Signature(b"\x04\x22\x4d\x18", "a compressed file (LZ4)", "lz4 -d"),
    Signature(b"LZIP\x01", "a compressed file (lzip)", "lzip -d"),
    Signature(b"\x1f\x9d", "a compressed file (compress)", "uncompress"),
    Signature(b"\x5d\0\0", "a compressed file (LZMA)", "unlzma"),
    Signature(b"7z\xbc\xaf\x27\x1c", "an archive (7z)", "7z x"),
    Signature(b"Rar!\x1a\x07", "an archive (RAR)", "unrar x"),
    Signature(b"PK\x05\x06", "an archive (ZIP) without files", "empty"),
    Signature(b"PK\x03\x04", "an archive (ZIP)", "unzip"),
    Signature(
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "a Word 97–2003 document (.doc), another old Office file, or a document with a password",
        "office",
    ),
)
_PICKLE = re.compile(rb"\x80[\x02-\x05](?:\x95.{6}\0\0|[c}\](Xq\x8c\x94])", re.DOTALL)
_PDF = re.compile(rb"%PDF-[0-9]\.[0-9]")
_RTF = re.compile(rb"\{\\rtf[0-9]")
_POSTSCRIPT = b"%!PS-Adobe"
_ISO_MEDIA = re.compile(rb"\0\0\0[\x08-\x60]ftyp[a-zA-Z0-9 ]{4}")
_BITMAP = re.compile(rb"BM.{4}\0\0\0\0.\0\0\0.\0\0\0", re.DOTALL)
_OFFICE_FOLDERS = {
    "word": Signature(b"", "a Word document (.docx)", "office"),
    "xl": Signature(b"", "an Excel workbook (.xlsx)", "table"),
    "ppt": Signature(b"", "a PowerPoint presentation (.pptx)", "office"),
}


def binary_format(head: bytes) -> Signature | None:
    """Return the binary format of a file; None if the file may be text. head: its first bytes, at most 64 KiB.

    Short signatures that are also text, such as MZ, count only if the following bytes are not text.
    """
    if not head:
        return None
    for pattern, name, kind in (
        (_PDF, "a PDF", "pdf"),
        (_RTF, "a document in rich text format (.rtf)", "office"),
        (_PICKLE, "a Python pickle", "table"),
        (_ISO_MEDIA, "a video or an image (ISO media)", "media"),
        (_BITMAP, "a bitmap image", "media"),
    ):
        if pattern.match(head):
            return Signature(b"", name, kind)
    if head.startswith(_POSTSCRIPT):
        return Signature(_POSTSCRIPT, "a PostScript file", "pdf")
    if (member := _tar_member(head)) is not None:
        return Signature(b"", f"a tar archive (its first file is {member})", "tar")
    if not may_be_text(head[:4096]):
        for signature in SIGNATURES:
            if head.startswith(signature.start):
                return signature
    if not head.strip(b"\0"):
        return Signature(b"", "a file of zero bytes", "empty")
    controls = control_fraction(head)
    if controls > _MIN_CONTROL_FRACTION and controls * len(head) > _MIN_CONTROLS and not is_utf8(head):
        return Signature(b"", "a binary file", "unknown")
    return None


def may_be_text(start: bytes) -> bool:
    """Return whether bytes are ASCII or UTF-8 without control characters. A character may be incomplete at the end."""
    if control_fraction(start):
        return False
    try:
        start.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(start) - 3 > 0 and error.reason == "unexpected end of data"
    return True


def zip_document(names: Sequence[str]) -> Signature | None:
    """Return the format of a .zip archive that is a document or another single object. names: of the files in it."""
    folders = {name.partition("/")[0].lower() for name in names}
    if "[Content_Types].xml" in names:
        found = [document for folder, document in _OFFICE_FOLDERS.items() if folder in folders]
        return found[0] if found else Signature(b"", "an Office document", "office")
    if "mimetype" in names:
        return Signature(b"", "an OpenDocument file or an e-book", "office")
    if any(name.endswith((".npy", "/data.pkl")) for name in names):
        return Signature(b"", "an archive of arrays (NumPy or PyTorch)", "table")
    return None


def _tar_member(head: bytes) -> str | None:
    """Return the name of the first member of a tar archive; None for another file."""
    if len(head) < tarfile.BLOCKSIZE or head[:1] in (b"", b"\0"):
        return None
    try:
        first = tarfile.TarInfo.frombuf(head[: tarfile.BLOCKSIZE], "utf-8", "replace")
    except tarfile.HeaderError:
        return None
    try:  # the first block may contain attributes of the first file (POSIX.1-2001, pax)
        with tarfile.open(fileobj=io.BytesIO(head), mode="r:") as archive:
            member = archive.next()
    except tarfile.TarError:
        member = None
    return (member or first).name
