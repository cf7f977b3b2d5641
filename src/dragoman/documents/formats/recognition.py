"""`recognise`: what a file is by its first bytes, if that is certain, whatever its name says."""

import io
import re
import zipfile
from typing import NamedTuple

from dragoman.base.errors import DataError

_SHORTEST_TEXT = 4096
"""The number of bytes that show whether a file is text."""


class Content(NamedTuple):
    """What a file is. name: with its article; format: the document format that translates it, or None.

    remedy: what to do with a file that no format translates.
    """

    name: str
    format: str | None
    remedy: str = ""


_NO_TEXT = "it has no text that could be translated"
_UNPACK = "unpack it, and translate the files in it"
_BINARY: tuple[tuple[bytes, Content], ...] = (
    (b"\x89PNG\r\n", Content("a PNG image", None, _NO_TEXT)),
    (b"\xff\xd8\xff", Content("a JPEG image", None, _NO_TEXT)),
    (b"GIF8", Content("a GIF image", None, _NO_TEXT)),
    (b"II*\0", Content("a TIFF image", None, _NO_TEXT)),
    (b"MM\0*", Content("a TIFF image", None, _NO_TEXT)),
    (b"\0\0\1\0", Content("an icon", None, _NO_TEXT)),
    (b"RIFF", Content("an image, a sound or a video (RIFF)", None, _NO_TEXT)),
    (b"OggS", Content("a sound or a video (Ogg)", None, _NO_TEXT)),
    (b"ID3", Content("a sound (MP3)", None, _NO_TEXT)),
    (b"fLaC", Content("a sound (FLAC)", None, _NO_TEXT)),
    (b"\x1aE\xdf\xa3", Content("a video (Matroska)", None, _NO_TEXT)),
    (b"\x7fELF", Content("a program", None, _NO_TEXT)),
    (b"MZ", Content("a program", None, _NO_TEXT)),
    (b"wOFF", Content("a font", None, _NO_TEXT)),
    (b"wOF2", Content("a font", None, _NO_TEXT)),
    (b"SQLite format 3\0", Content("a database (SQLite)", None, "export its texts first")),
    (b"\xde\x12\x04\x95", Content("a compiled gettext catalogue (.mo)", None, "convert it first: msgunfmt")),
    (b"\x95\x04\x12\xde", Content("a compiled gettext catalogue (.mo)", None, "convert it first: msgunfmt")),
    (b"\x1f\x8b", Content("a compressed file (gzip)", None, "unpack it first: gzip -d")),
    (b"BZh", Content("a compressed file (bzip2)", None, "unpack it first: bzip2 -d")),
    (b"\xfd7zXZ\0", Content("a compressed file (xz)", None, "unpack it first: xz -d")),
    (b"\x28\xb5\x2f\xfd", Content("a compressed file (zstd)", None, "unpack it first: zstd -d")),
    (b"7z\xbc\xaf\x27\x1c", Content("an archive (7z)", None, _UNPACK)),
    (b"Rar!\x1a\x07", Content("an archive (RAR)", None, _UNPACK)),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        Content(
            "a Word 97–2003 document (.doc), another old Office file, or a document with a password",
            None,
            "save it as .docx without a password",
        ),
    ),
)
_PDF = re.compile(rb"%PDF-[0-9]\.[0-9]")
_RTF = re.compile(rb"\{\\rtf[0-9]")
_POSTSCRIPT = b"%!PS-Adobe"
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument."
_MIMETYPES = {
    _OPEN_DOCUMENT + "text": Content("an OpenDocument text (.odt)", "odt"),
    _OPEN_DOCUMENT + "text-template": Content("an OpenDocument text template (.ott)", "odt"),
    _OPEN_DOCUMENT + "text-web": Content("an OpenDocument text (.odt)", "odt"),
    _OPEN_DOCUMENT + "spreadsheet": Content("an OpenDocument spreadsheet (.ods)", None, "export its texts first"),
    _OPEN_DOCUMENT + "presentation": Content(
        "an OpenDocument presentation (.odp)", None, "save it as .odt or HTML first"
    ),
    "application/epub+zip": Content(
        "an e-book (EPUB)", None, "unpack it, and translate its pages, which are .xhtml files"
    ),
}
_OFFICE_FOLDERS = {
    "word": Content("a Word document (.docx)", "docx"),
    "xl": Content("an Excel workbook (.xlsx)", None, "export its texts first"),
    "ppt": Content("a PowerPoint presentation (.pptx)", None, "save it as .docx or .odt first"),
}
_ARCHIVE = Content("an archive (ZIP)", None, _UNPACK)


def recognise(data: bytes) -> Content | None:
    """Return what the bytes of a file are, or None if they may be text."""
    if _PDF.match(data):
        return Content("a PDF", None, "extract its text first, for example with pdftotext")
    if _RTF.match(data):
        return Content("a document in rich text format (.rtf)", None, "save it as .docx or .odt first")
    if data.startswith(_POSTSCRIPT):
        return Content("a PostScript file", None, "extract its text first, for example with ps2ascii")
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _archive(data)
    if _may_be_text(data[:_SHORTEST_TEXT]):
        return None
    return next((content for start, content in _BINARY if data.startswith(start)), None)


def check_content(data: bytes, format: str, origin: str) -> None:
    """Raise DataError for a file that is evidently not of a format. format: its name; origin: the file's, for messages.

    A damaged archive is left to the formats that are archives.
    """
    found = recognise(data)
    if found is None or found.format == format or (found is _ARCHIVE and format in ("docx", "odt")):
        return
    if found.format is None:
        raise DataError(f"{origin}: this is {found.name}, which cannot be translated as {format}: {found.remedy}")
    raise DataError(
        f"{origin}: this is {found.name}, not {format}: give it the file name extension .{found.format}, or choose the "
        f"format {found.format}"
    )


def _may_be_text(start: bytes) -> bool:
    """Whether bytes are ASCII or UTF-8 without control characters; a character may be cut off at the end."""
    if any(byte < 9 or 13 < byte < 27 for byte in start):
        return False
    try:
        start.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(start) - 3 > 0 and len(start) == _SHORTEST_TEXT
    return True


def _archive(data: bytes) -> Content:
    """Return what a ZIP archive is, by its first parts' names and its declared type."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            if "mimetype" in names and archive.getinfo("mimetype").file_size < 200:
                with archive.open("mimetype") as file:
                    declared = file.read(200).decode("ascii", "replace").strip()
                return _MIMETYPES.get(declared, _ARCHIVE)
    except Exception:  # a damaged archive can raise anything
        return _ARCHIVE
    if "[Content_Types].xml" in names:
        folders = {name.partition("/")[0].lower() for name in names}
        return next((content for folder, content in _OFFICE_FOLDERS.items() if folder in folders), _ARCHIVE)
    return _ARCHIVE
