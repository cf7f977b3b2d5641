"""Damaged, foreign or malicious Word documents are refused with a message, before more of them is read."""

import contextlib
import io
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from stand_in_translators import StandIn, upper
from word_documents import document, packed, paragraph, parts, run

from dragoman.addons.documents.document import translate_document
from dragoman.addons.documents.formats import archive
from dragoman.addons.documents.formats.word import word
from dragoman.base.errors import DataError

pytest.importorskip("sentencex")

GOOD = document(paragraph(run("A dog")))
MAIN = "word/document.xml"


def translated(content: bytes) -> bytes:
    return translate_document(StandIn(upper), content, format="docx").content  # type: ignore[arg-type]


def with_part(name: str, data: bytes) -> bytes:
    return packed({**parts(GOOD), name: data})


def with_type(declaration: str, text: str) -> bytes:
    body = parts(GOOD)[MAIN].replace(b"A dog", text.encode())
    return with_part(MAIN, body.replace(b"?>", b"?>" + declaration.encode(), 1))


@contextlib.contextmanager
def memory_limit() -> Iterator[None]:
    """Fail if much more memory was allocated than such a document contains."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


def test_a_zip_bomb_is_not_unpacked() -> None:
    target = io.BytesIO(GOOD)
    with zipfile.ZipFile(target, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("word/media/a.bmp", "w") as file:
        for _ in range(128):
            file.write(bytes(1 << 20))
    told = r"unpack to 134,[0-9,]+ bytes, but at most 68,[0-9,]+"
    with memory_limit(), pytest.raises(DataError, match=told):
        translated(target.getvalue())


def test_a_false_size_unpacks_no_more_than_declared() -> None:
    content = with_part(MAIN, bytes(1 << 26))
    size = (1 << 26).to_bytes(4, "little")
    assert content.count(size) == 2
    with memory_limit(), pytest.raises(DataError, match="damaged"):
        translated(content.replace(size, (1000).to_bytes(4, "little")))


def test_too_much_text_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_XML_BYTES", 10_000)
    with pytest.raises(DataError, match=r"bytes of unpacked text and formatting, but at most 10,000 are read"):
        translated(with_part(MAIN, b"<a/>" * 5_000))


@pytest.mark.parametrize(
    "pieces",
    [
        "<w:p><w:r><w:t>a</w:t></w:r></w:p>" * 50_000,
        "<w:p>" + "<w:r><w:t>a</w:t></w:r>" * 100_000 + "</w:p>",
        "<w:p>" + '<wp:docPr descr="a"/>' * 100_000 + "</w:p>",
    ],
    ids=["paragraphs", "runs", "descriptions"],
)
def test_too_many_pieces_are_not_read(pieces: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces are counted before any is created, so that a page of kilobytes does not cost seconds."""
    monkeypatch.setattr(word, "MAX_ELEMENTS", 90_000)
    monkeypatch.setattr(word, "Paragraph", None)
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:wp="x"'
    with pytest.raises(DataError, match=r"10\d,\d\d\d paragraphs, runs and images, but at most 90,000 are read"):
        translated(with_part(MAIN, f"<w:document {space}><w:body>{pieces}</w:body></w:document>".encode()))


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))


@pytest.mark.parametrize(
    ("declaration", "text"),
    [
        (f'<!DOCTYPE a [<!ENTITY l0 "ha">{LAUGHS}]>', "&l11;"),
        ('<!DOCTYPE a [<!ENTITY x SYSTEM "{secret}">]>', "&x;"),
        ('<!DOCTYPE a [<!ENTITY % x SYSTEM "{secret}"> %x;]>', "a"),
        ('<!DOCTYPE a SYSTEM "{secret}">', "a"),
    ],
)
def test_entity_declarations_are_refused(declaration: str, text: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a secret dog")
    for encoding in ("utf-8", "utf-16"):
        content = with_type(declaration.replace("{secret}", secret.as_uri()), text)
        if encoding == "utf-16":
            found = parts(content)[MAIN].decode().replace("UTF-8", "UTF-16").encode("utf-16")
            content = with_part(MAIN, found)
        told = r"word/document.xml of this document contains a document type"
        with memory_limit(), pytest.raises(DataError, match=told):
            translated(content)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/word/x.xml", "word\\..\\x.xml", "c:x.xml", "word/../../x"])
def test_unsafe_names(name: str) -> None:
    with pytest.raises(DataError, match="unsafe name"):
        translated(with_part(name, b""))


def test_files_that_are_not_documents() -> None:
    with pytest.raises(DataError, match="Word 97–2003"):
        translated(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    for content in (b"", b"a dog", b"PK\x03\x04", GOOD[: len(GOOD) // 2]):
        with pytest.raises(DataError, match="not a Word document"):
            translated(content)
    with pytest.raises(DataError, match="not a Word document"):
        translated(packed({"a.txt": b"dog"}))
    types = parts(GOOD)["[Content_Types].xml"].replace(b"wordprocessingml.document.main", b"spreadsheetml.sheet.main")
    with pytest.raises(DataError, match="no main document part"):
        translated(with_part("[Content_Types].xml", types))
    with pytest.raises(DataError, match="no main document part"):
        translated(packed({name: data for name, data in parts(GOOD).items() if name != MAIN}))
    for data in (b"", b"<a>", b"\xff\xfe", b"<a" + b" b='c'" * 9, b"<?xml version='1.0' encoding='none'?><a/>"):
        with pytest.raises(DataError, match=r"word/document.xml of this document is not valid XML"):
            translated(with_part(MAIN, data))
    deep = b"<a>" * 100_000
    with pytest.raises(DataError, match="not valid XML"):
        translated(with_part(MAIN, deep))


def test_duplicate_names_and_passwords() -> None:
    target = io.BytesIO(GOOD)
    with zipfile.ZipFile(target, "a") as archive:
        archive.writestr("WORD/document.xml", b"<a/>")
    with pytest.raises(DataError, match="same name"):
        translated(target.getvalue())
    locked = bytearray(GOOD)
    place = locked.index(b"PK\x01\x02")
    locked[place + 8] |= 1
    with pytest.raises(DataError, match="encrypted"):
        translated(bytes(locked))


def test_any_damage_is_reported_or_harmless() -> None:
    draw = Random(7)
    for _ in range(150):
        content = bytearray(GOOD)
        for _ in range(draw.randrange(1, 9)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        with contextlib.suppress(DataError):
            translated(bytes(content))


def test_limits_are_those_of_the_page() -> None:
    assert (archive.MAX_BASE_BYTES, archive.MAX_BYTES_PER_PACKED_BYTE) == (64 << 20, 10)
    assert (archive.MAX_XML_BYTES, word.MAX_ELEMENTS) == (16 << 20, 200_000)
