"""`recognise`: what a file is by its first bytes, if that is certain, whatever its name says."""

import io
import re
import zipfile
from typing import NamedTuple

from dragoman.base.errors import DataError
from dragoman.data.files.recognition import recognise_pointer
from dragoman.data.files.signatures import SIGNATURES, may_be_text

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
_REMEDIES = {
    "media": _NO_TEXT,
    "model": _NO_TEXT,
    "table": "export its texts first",
    "catalogue": "convert it first: msgunfmt",
    "office": "save it as .docx without a password",
}
"""What to do with files of a kind of binary format. The kinds of compressed files are the commands that unpack them."""
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
    start = data[:_SHORTEST_TEXT]
    if (pointer := recognise_pointer(start.decode("utf-8", "replace"))) is not None:
        return Content(pointer.name, None, pointer.remedy[0].lower() + pointer.remedy[1:])
    if may_be_text(start):
        return None
    found = next((signature for signature in SIGNATURES if data.startswith(signature.start)), None)
    if found is None:
        return None
    unpack = _UNPACK if found.name.startswith("an archive") else f"unpack it first: {found.kind}"
    return Content(found.name, None, _REMEDIES.get(found.kind, unpack))


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
