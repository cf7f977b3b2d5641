"""Recognition of files that are not the text, JSON Lines or XML that is expected in their place."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from dragoman.base.errors import DataError
from dragoman.data.files.encoding import conversion_command, escaped_encoding, unmarked_encoding
from dragoman.data.files.signatures import Signature, binary_format

Form = Literal["text", "json", "xml", "any"]
"""Expected contents of a file: lines of text, JSON, XML, or any of these."""

DOCUMENTS = "Translate such a file with `dragoman translate-document`"

_DOWNLOAD = "Download the file again"
_REMEDIES = {
    "media": "Use a text file.",
    "table": "Export its texts as UTF-8 text, tab-separated values or JSON Lines.",
    "model": "Use a text file.",
    "catalogue": "Convert it first: msgunfmt.",
    "office": f"Save it as plain text in UTF-8. {DOCUMENTS}.",
    "pdf": "Extract its text, for example with pdftotext.",
    "empty": f"{_DOWNLOAD}.",
    "unknown": "Use a text file.",
}


class Recognised(NamedTuple):
    """What a file is. name: with an article. remedy: one or more sentences."""

    name: str
    remedy: str


def check_form(head: bytes, origin: Path | str, form: Form, is_whole: bool) -> None:
    """Raise DataError if a file is evidently something else than expected.

    head: the first bytes of the file, decompressed and converted to UTF-8 if it has a byte order mark, at most 64 KiB.
    is_whole: whether these are all bytes. origin: name of the file, for messages.
    """
    binary = binary_format(head)
    if (binary is None or binary.kind == "unknown") and (codec := unmarked_encoding(head)) is not None:
        raise DataError(
            f"{origin} is {codec[:6].upper()} without a byte order mark. Convert it: "
            f"{conversion_command(codec.replace('-le', 'le').replace('-be', 'be'), origin)}"
        )
    if binary is not None:
        raise reject(binary, origin, form)
    if (escaped := escaped_encoding(head)) is not None:
        raise DataError(f"{origin} is {escaped.upper()}, not UTF-8. Convert it: {conversion_command(escaped, origin)}")
    found = recognise_text(head, form, is_whole)
    if found is not None:
        raise _error(found, origin, form)


def reject(binary: Signature, origin: Path | str, form: Form = "text") -> DataError:
    """Return the error for a file in a binary format. form: expected contents."""
    if binary.kind in _REMEDIES:
        remedy = _REMEDIES[binary.kind]
    elif binary.kind == "tar":
        remedy = "Extract it, and use its files: tar -xf FILE"
    elif binary.name.startswith("an archive"):
        remedy = f"Extract it, and use its files: {binary.kind} FILE"
    else:
        remedy = f"Decompress it: {binary.kind} FILE"
    return _error(Recognised(binary.name, remedy), origin, form)


_EXPECTED = {"text": "a text file", "json": "JSON", "xml": "XML", "any": "a text file"}


def _error(found: Recognised, origin: Path | str, form: Form) -> DataError:
    file = shlex.quote(str(origin)) if isinstance(origin, Path) else "FILE"
    return DataError(f"{origin} is {found.name}, not {_EXPECTED[form]}. {found.remedy.replace('FILE', file)}")


def recognise_text(head: bytes, form: Form, is_whole: bool) -> Recognised | None:
    """Return what a file in a text format is; None if it may be what is expected. Arguments: as in `check_form`."""
    text = head.decode("utf-8", "replace").lstrip()
    found = recognise_pointer(text)
    if found is None and is_whole and len(head) <= _LONGEST_MESSAGE:
        found = _message(text)
    if found is not None:
        return found
    recognisers: dict[Form, tuple[Callable[[str], Recognised | None], ...]] = {
        "text": (_web_page, _markup, _catalogue),
        "json": (_web_page, _markup),
        "xml": (_web_page,),
        "any": (_web_page,),
    }
    for recogniser in recognisers[form]:
        if (found := recogniser(text)) is not None:
            return found
    return _json_document(text, is_whole) if form == "text" else None


_LONGEST_MESSAGE = 4096

_POINTERS = (
    (
        re.compile(r"version https://(?:git-lfs|hawser)\.github\.com/spec/v\d+\s(?:.*\s)?oid ", re.DOTALL),
        Recognised("a Git LFS pointer", "Fetch the file: git lfs pull"),
    ),
    (
        re.compile(r"(?:/annex/objects/|(?:\.\./)*\.git/annex/objects/)\S+\s*$"),
        Recognised("a git-annex pointer", "Fetch the file: git annex get"),
    ),
    (re.compile(r"# xet version \d"), Recognised("a Git Xet pointer", "Fetch the file: git xet checkout")),
    (re.compile(r"outs:\n- (?:md5|hash|etag|path): "), Recognised("a DVC pointer", "Fetch the file: dvc pull")),
)


def recognise_pointer(text: str) -> Recognised | None:
    """Return what a file is that stands for the contents of another file, such as a Git LFS pointer; else None."""
    return next((found for pattern, found in _POINTERS if pattern.match(text)), None)


_PROGRAM_MESSAGE = re.compile(
    r"(?:curl: \(\d+\)|rsync: |rsync error: |wget: |scp: |ssh: |fatal: (?:unable|repository|could not|remote|not a)|"
    r"fatal error: An error occurred \(|ERROR \d{3}: |404 page not found$)[^\n]*",
    re.MULTILINE,
)
_SERVER_MESSAGE = re.compile(
    r"(?:HTTP/\d\S* )?[45]\d\d:? (?:Bad Request|Unauthorized|Forbidden|Not Found|Gone|Too Many Requests|"
    r"Internal Server Error|Bad Gateway|Service Unavailable|Gateway Time-?out)|"
    r"(?:Entry|Repository) not found|Access Denied"
)
"""Bodies of answers of servers, which have no line end. With a line end, they may be sentences of a text."""

_MOST_LINES_OF_MESSAGE = 5


def _message(text: str) -> Recognised | None:
    """Recognise the message of a server or a program for downloads, which was saved in place of a file."""
    match = _SERVER_MESSAGE.fullmatch(text)
    if match is None and text.count("\n") <= _MOST_LINES_OF_MESSAGE:
        match = _PROGRAM_MESSAGE.match(text)
    return None if match is None else Recognised(f"an error message ({_shorten(match[0])})", f"{_DOWNLOAD}.")


_PROLOGUE = re.compile(
    r"(?:<\?.*?\?>\s*|<!--.*?-->\s*|<!doctype\b[^>\[]*(?:\[.*?\]\s*)?>\s*)*", re.DOTALL | re.IGNORECASE
)
_TITLE = re.compile(r"<title\b[^>]*>\s*(.*?)\s*</title>", re.DOTALL | re.IGNORECASE)
_HTML_ROOT = re.compile(r"<(?:html|head|body)\b[^<>]*>", re.IGNORECASE)
_HTML_PART = re.compile(r"<(?:head|body|title|meta|script|h1|/html|/head|/body)\b", re.IGNORECASE)


def _web_page(text: str) -> Recognised | None:
    """Recognise HTML by its first tag and at least one more tag of its frame."""
    prologue = _PROLOGUE.match(text)
    assert prologue is not None
    root = _HTML_ROOT.match(text, prologue.end())
    has_type = text[:15].lower().startswith("<!doctype html")
    if not (root or has_type) or not _HTML_PART.search(text, root.end() if root else prologue.end()):
        return None
    title = _TITLE.search(text)
    name = f"a web page (HTML, {_shorten(title[1])!r})" if title and title[1] else "a web page (HTML)"
    return Recognised(name, f"{_DOWNLOAD}, or extract the text of the page. {DOCUMENTS}.")


_ROOT = re.compile(r"<([A-Za-z][\w:.-]*)([^<>]*)>")
_XML_ERROR = re.compile(r"<Code>(.*?)</Code>", re.DOTALL)
_SEGMENTS = "sed -n 's/.*<seg[^>]*>\\(.*\\)<\\/seg>.*/\\1/p' FILE > FILE.txt"
_EXPORT = "Export it as TMX, tab-separated values or two text files."
_PAIRS = "Use it as a file of pairs: --pairs FILE, or data.train.pairs=FILE"
_ROOTS = {
    "tmx": Recognised("a translation memory (TMX)", f"{_PAIRS}."),
    "xliff": Recognised("an XLIFF file", f"{_PAIRS}. {DOCUMENTS}."),
    "ts": Recognised("a Qt catalogue (TS)", _EXPORT),
    "svg": Recognised("an SVG image", "Use a text file."),
    "cesalign": Recognised("a list of sentence alignments (XCES)", "Download the corpus in Moses or TMX format."),
}
_SEGMENT_ROOTS = frozenset("mteval srcset refset tstset docset dataset doc".split())
_SGML = {"chapter": r"<(?:speaker|p)\b", "speaker": r"<(?:p|/?speaker)\b", "url": r"<(?:keywords|talkid|speaker)>"}


def _markup(text: str) -> Recognised | None:
    """Recognise XML and SGML by a declaration or a known root element. A text may begin with any tag."""
    prologue = _PROLOGUE.match(text)
    assert prologue is not None
    root = _ROOT.match(text, prologue.end())
    if root is None:
        return None
    name, rest = root[1].rpartition(":")[2].lower(), text[root.end() :]
    if name in _SEGMENT_ROOTS and re.search(r"<seg\b", rest, re.IGNORECASE):
        return Recognised("a test set in SGML or XML (WMT)", f"Extract its segments: {_SEGMENTS}")
    if name in _SGML and re.search(_SGML[name], rest, re.IGNORECASE):
        return Recognised(
            "text with SGML markup", "Remove the tags from both sides, for example: grep -v '^<' FILE > FILE.txt"
        )
    if not (text.startswith("<?xml") or re.search(r"\bxmlns\b", root[2]) or (name in _ROOTS and "=" in root[2])):
        return None
    if name == "error":
        code = _XML_ERROR.search(rest)
        return Recognised(f"the error message of a server ({code[1] if code else 'XML'})", f"{_DOWNLOAD}.")
    return _ROOTS.get(name) or Recognised(f"an XML file (its root element is <{root[1]}>)", _EXPORT)


_PO_ENTRY = re.compile(r'^msgid ".*"\n(?:".*"\n)*(?:msgid_plural .*\n(?:".*"\n)*)?msgstr(?:\[0\])? "', re.MULTILINE)
_PO_START = re.compile(r'(?:#.*\n|\s*\n)*(?:msgctxt|msgid) "')
_SUBTITLES = re.compile(r"(?:WEBVTT\b.*|\d+[ \t]*)\n(?:.*\n){0,30}?\d*:?\d\d:\d\d[,.]\d{3} --> \d")


def _catalogue(text: str) -> Recognised | None:
    """Recognise gettext catalogues and subtitles."""
    lines = text.replace("\r\n", "\n")
    if _is_gettext(lines):
        return Recognised("a gettext catalogue (PO)", f"{_PAIRS}. {DOCUMENTS}.")
    if _SUBTITLES.match(lines):
        return Recognised("a subtitle file", f"Extract its text. {DOCUMENTS}.")
    return None


def _is_gettext(text: str) -> bool:
    return _PO_START.match(text) is not None and _PO_ENTRY.search(text) is not None


def recognise_pairs(head: bytes) -> Literal["tmx", "xliff", "po", "jsonl"] | None:
    """Return the format of a file of sentence pairs that is not a table. head: its first bytes, as UTF-8."""
    text = head.decode("utf-8", "replace").lstrip().replace("\r\n", "\n")
    prologue = _PROLOGUE.match(text)
    assert prologue is not None
    root = _ROOT.match(text, prologue.end())
    match root and root[1].rpartition(":")[2].lower():
        case "tmx":
            return "tmx"
        case "xliff":
            return "xliff"
    if _is_gettext(text):
        return "po"
    line, _, rest = text.partition("\n")
    is_object = isinstance(_parse(line), dict) or (not rest and re.match(r'\{\s*"', line))
    return "jsonl" if is_object or re.match(r"\[\s*\{", text) else None


_ERROR_KEYS = frozenset("error errors message detail title status statuscode code error_description".split())
_MIN_OBJECTS = 3


def _json_document(text: str, is_whole: bool) -> Recognised | None:
    """Recognise JSON: the error message of a server, a document of several lines, an array, or JSON Lines."""
    if not text.startswith(("{", "[")):
        return None
    content = _parse(text) if is_whole else None
    if isinstance(content, dict) and len(content) > 0:
        if any(str(key).lower() in _ERROR_KEYS for key in content) and len(text) <= _LONGEST_MESSAGE:
            return Recognised(f"an error message in JSON ({_shorten(text)})", f"{_DOWNLOAD}.")
        if "\n" in text.strip():
            return Recognised("a JSON document", f"Export its texts as JSON Lines. {DOCUMENTS}.")
        return None
    lines = [line for line in (text if is_whole else text.rpartition("\n")[0]).split("\n") if line.strip()]
    keys = [tuple(entry) if isinstance(entry := _parse(line), dict) else None for line in lines[:100]]
    if len(keys) >= _MIN_OBJECTS and keys[0] is not None and len(set(keys)) == 1:
        return Recognised("JSON Lines", f"{_PAIRS}.")
    is_array = isinstance(content, list) and len(content) > 0 and isinstance(content[0], dict)
    if is_array or (not is_whole and re.match(r"\[\s*\{\s*\"", text)):
        return Recognised("a JSON array", f"{_PAIRS}.")
    if not is_whole and re.match(r"\{\s*\n\s*\"", text):
        return Recognised("a JSON document", f"Export its texts as JSON Lines. {DOCUMENTS}.")
    return None


def _parse(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _shorten(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 80 else f"{words[:79]}…"
