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
    "office": "save it without a password, as .docx, .xlsx or .pptx",
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
    **{
        f"{_OPEN_DOCUMENT}{type}{template}": Content(f"an OpenDocument {type} (.{format})", format)
        for type, format in (("spreadsheet", "ods"), ("presentation", "odp"))
        for template in ("", "-template")
    },
    _OPEN_DOCUMENT + "graphics": Content("an OpenDocument drawing (.odg)", None, "save it as .odp first"),
    "application/epub+zip": Content("an e-book (EPUB)", "epub"),
}
_OFFICE_FOLDERS = {
    "word": Content("a Word document (.docx)", "docx"),
    "xl": Content("an Excel workbook (.xlsx)", "xlsx"),
    "ppt": Content("a PowerPoint presentation (.pptx)", "pptx"),
}
_ARCHIVE_FORMATS = ("docx", "odt", "odp", "ods", "pptx", "xlsx", "epub")
_ARCHIVE = Content("an archive (ZIP)", None, _UNPACK)
_PDF_FILE = Content("a PDF", "pdf")
_RICH_TEXT = Content("a document in rich text format (.rtf)", None, "save it as .docx or .odt first")
_POSTSCRIPT_FILE = Content("a PostScript file", None, "extract its text first, for example with ps2ascii")
_E_BOOK = "an e-book of another format"
_EXTENSIONS = {
    ".rtf": _RICH_TEXT,
    ".ps": _POSTSCRIPT_FILE,
    ".doc": Content("a Word 97–2003 document (.doc)", None, "save it as .docx first"),
    ".xls": Content("an Excel 97–2003 workbook (.xls)", None, "save it as .xlsx first"),
    ".ppt": Content("a PowerPoint 97–2003 presentation (.ppt)", None, "save it as .pptx first"),
    **dict.fromkeys((".mobi", ".azw", ".azw3", ".fb2"), Content(_E_BOOK, None, "convert it first: ebook-convert")),
    ".pages": Content("a document of Pages", None, "export it as .docx first"),
    ".numbers": Content("a spreadsheet of Numbers", None, "export it as .xlsx first"),
    ".key": Content("a presentation of Keynote", None, "export it as .pptx first"),
    ".mo": Content("a compiled gettext catalogue (.mo)", None, "convert it first: msgunfmt"),
    ".ts": Content("a program, or messages of Qt (.ts)", None, "convert messages first: lconvert -of po"),
    **dict.fromkeys(
        (".tsv", ".csv"), Content("a table", None, "translate its columns as text, or save it as .xlsx first")
    ),
    **dict.fromkeys((".zip", ".7z", ".rar", ".tar", ".tgz"), Content("an archive", None, _UNPACK)),
    **dict.fromkeys(
        (".png", ".jpg", ".jpeg", ".gif", ".webp", ".tiff", ".bmp", ".mp3", ".ogg", ".wav", ".mp4", ".mkv", ".webm"),
        Content("an image, a sound or a video", None, _NO_TEXT),
    ),
}
"""What files are that no format translates, by the extension of their names."""


def recognise(data: bytes) -> Content | None:
    """Return what the bytes of a file are, or None if they may be text."""
    if _PDF.match(data):
        return _PDF_FILE
    if _RTF.match(data):
        return _RICH_TEXT
    if data.startswith(_POSTSCRIPT):
        return _POSTSCRIPT_FILE
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


def remedy_for(extension: str, data: bytes) -> str | None:
    """Return what a file is whose extension no format has, and what to do with it; None if that is unknown.

    extension: in lower case; data: the bytes of the file, which count more than its extension, or none. Those of an
    archive do not tell what is in it.
    """
    found = recognise(data)
    if found is None or (found is _ARCHIVE and extension in _EXTENSIONS):
        found = _EXTENSIONS.get(extension)
        if found is None:
            return None
        return f"{found.name} by its extension {extension}, which cannot be translated: {found.remedy}"
    if found.format is None:
        return f"{found.name}, which cannot be translated: {found.remedy}"
    return f"{found.name}: give it the file name extension .{found.format}, or choose the format {found.format}"


def check_content(data: bytes, format: str, origin: str) -> None:
    """Raise DataError for a file that is evidently not of a format. format: its name; origin: the file's, for messages.

    A damaged archive is left to the formats that are archives.
    """
    found = recognise(data)
    if found is None or found.format == format or (found is _ARCHIVE and format in _ARCHIVE_FORMATS):
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
