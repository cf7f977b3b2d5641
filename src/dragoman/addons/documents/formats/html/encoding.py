"""The encoding of HTML pages, as browsers find it.

Section 13.2.3 of the HTML standard, https://html.spec.whatwg.org/multipage/parsing.html#determining-the-character-encoding
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from dragoman.addons.documents.formats.encoding import (
    ASCII,
    UTF8,
    TextEncoding,
    find_encoding,
    is_utf8,
    likely_encoding,
    named_encoding,
    unmarked_encoding,
)
from dragoman.addons.documents.formats.html.attributes import Attributes
from dragoman.addons.documents.formats.html.tokenizer import begins_like_xhtml, tokenize
from dragoman.base.log import warn

_LENGTH = 1024
"""The number of bytes that browsers search for a declaration."""

_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([^\s\"';]+)", re.IGNORECASE)
_XML = re.compile(r"\ufeff?<\?xml\b[^>]*?\bencoding\s*=\s*[\"']([A-Za-z0-9._:-]+)")
_PAGE = re.compile(r"<!doctype\s+html|<html[\s>]", re.IGNORECASE)


class Declaration(NamedTuple):
    """An encoding that a page names. label: its name; begin, end: the position of the name in the page."""

    label: str
    begin: int
    end: int


def declarations(page: str) -> Iterator[Declaration]:
    """Yield the declarations at the start of a page in the order in which they count."""
    start = page[:_LENGTH]
    for token in tokenize(start):
        if token.kind != "start" or token.name != "meta":
            continue
        values = Attributes(start, token).values
        for each in token.attributes:
            raw = start[each.begin : each.end]
            is_content = each.name == "content" and values.get("http-equiv", "").lower() == "content-type"
            found = _CHARSET.search(raw) if is_content else None
            if found is not None:
                yield Declaration(found[1], each.begin + found.start(1), each.begin + found.end(1))
            elif each.name == "charset" and raw.strip():
                yield Declaration(raw.strip(), each.begin, each.end)
    found = _XML.match(start)
    if found is not None:
        yield Declaration(found[1], *found.span(1))


def page_encoding(data: bytes) -> TextEncoding:
    """Return the encoding of a page without a byte order mark: the one that it names, else the one of its bytes."""
    start = data[:_LENGTH].decode("latin-1")
    named = list(declarations(start))
    for each in named:
        declared = find_encoding(each.label)
        if declared is not None:
            if declared.codec not in ("utf-8", "utf-16-le", "utf-16-be") and not data.isascii() and is_utf8(data):
                warn(f"the page names the encoding {each.label}, but it seems to be UTF-8: --encoding utf-8")
            # a page whose declaration can be read as ASCII is not in UTF-16
            return UTF8 if declared.codec.startswith("utf-16") else declared
    if data.isascii() and not named and _PAGE.search(start) is not None and not begins_like_xhtml(start):
        return ASCII  # browsers guess the encoding, so that translations with other letters need references
    return unmarked_encoding(data) or _guess(data)


def _guess(data: bytes) -> TextEncoding:
    """Return the likely encoding of a page that names none, with a warning. If it is unclear, this is windows-1252."""
    found = find_encoding(likely_encoding(data) or "")
    if found is None or not found.preserves(data):
        found = named_encoding("windows-1252")
    warn(f"the page names no encoding and is not UTF-8: it is read as {found.name}")
    return found


def encode_page(page: str, encoding: TextEncoding) -> bytes:
    """Encode a page so that browsers display the right characters.

    Characters that the encoding does not have are written as references. A declaration of another encoding is
    corrected.
    """
    found = list(declarations(page))
    declared = next((known for each in found if (known := find_encoding(each.label)) is not None), None)
    # browsers ignore a declaration of or in UTF-16
    codecs = {encoding.codec} | ({declared.codec} if declared is not None else {""})
    if len(codecs) > 1 and not any(codec.startswith("utf-16") for codec in codecs):
        for each in sorted(found, key=lambda declaration: -declaration.begin):
            page = page[: each.begin] + encoding.name + page[each.end :]
    return encoding.encode(page, with_references=True)
