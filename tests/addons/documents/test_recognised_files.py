"""Files of unknown formats, and files whose content is not what their name says, are refused with a remedy."""

import io
import zipfile
from pathlib import Path

import pytest
from open_documents import packed
from stand_in_translators import StandIn, upper
from word_documents import document, paragraph, run

from dragoman.addons.documents.document import read_document, translate_document
from dragoman.addons.documents.formats.recognition import recognise
from dragoman.addons.documents.formats.union import EXTENSIONS, detect_format, format_of_name
from dragoman.base.errors import ConfigError, DataError, DocumentError
from dragoman.cli.main import main

pytest.importorskip("sentencex")


def archive(parts: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        for name, text in parts.items():
            target.writestr(name, text)
    return file.getvalue()


@pytest.mark.parametrize("name", ["a.xyz", "a.gz.BAK", "a.cpp", "b.en.cc", "a.eng"])
def test_unknown_extensions_are_refused_by_name(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    path.write_text("A dog.\n")
    assert main(["translate-document", "model", "-i", str(path), "-o", str(tmp_path / "out")]) == 2
    message = capsys.readouterr().err
    assert f"{path}: " in message and ".md, " in message and ".docx" in message and "--format text" in message
    assert "\n" not in message.strip() and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("old.DOC", b"", "a Word 97–2003 document (.doc) by its extension .doc, which cannot be translated: save it"),
        ("a.csv.gz", b"a,b", "a table by its extension .csv, which cannot be translated"),
        ("a.xyz", b"%PDF-1.7", "a PDF: give it the file name extension .pdf, or choose the format pdf"),
        ("a.bin", document(paragraph(run("A dog"))), "a Word document (.docx): give it the file name extension .docx"),
        (
            "a.pages",
            packed({"Index/Document.iwa": b"x"}, mimetype="x"),
            "a document of Pages by its extension .pages, which cannot",
        ),
        ("a.mobi", b"", "an e-book of another format by its extension .mobi, which cannot be translated: convert it"),
    ],
)
def test_the_remedy_for_a_known_kind_of_file(
    name: str, content: bytes, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert main(["translate-document", "model", "-i", str(path), "-o", str(tmp_path / "out")]) == 2
    assert f"{path}: this is {told}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "a.txt",
        "A.TXT.gz",
        "news.en",
        "news.cs",
        "a.pt-BR",
        "a.zh_TW.xz",
        "dev.eng_Latn",
        "notes 1.2 final",
        ".a",
        "a.",
    ],
)
def test_files_without_an_extension_or_with_a_language_are_text(name: str) -> None:
    assert format_of_name(name) == detect_format(Path(name)) == "text"


def test_an_unknown_format_names_all() -> None:
    with pytest.raises(
        ConfigError, match=r"'yaml': use text, markdown, rst, asciidoc, latex, html, xhtml, srt, vtt, ass"
    ):
        translate_document(StandIn(upper), "a: b", format="yaml")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="unknown"):
        read_document(None, "yaml")


WORD = document(paragraph(run("A dog")))
OPEN = archive({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": "<a/>"})
CONTENTS = {
    "a PDF": b"%PDF-1.7\n1 0 obj\n",
    "a PNG image": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "a JPEG image": b"\xff\xd8\xff\xe0\0\x10JFIF\0",
    "a GIF image": b"GIF89a\1\0\1\0\x80",
    "a document in rich text format (.rtf)": rb"{\rtf1\ansi A dog.}",
    "a Word 97–2003 document": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99),
    "a compiled gettext catalogue": b"\xde\x12\x04\x95" + bytes(20),
    "an OpenDocument text (.odt)": OPEN,
    "an OpenDocument spreadsheet": archive({"mimetype": "application/vnd.oasis.opendocument.spreadsheet"}),
    "an e-book": archive({"mimetype": "application/epub+zip", "a.xhtml": ""}),
    "an Excel workbook": archive({"[Content_Types].xml": "", "xl/workbook.xml": ""}),
    "an archive (ZIP)": archive({"a.txt": "A dog"}),
    "a Word document (.docx)": WORD,
}


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("format", ["text", "html", "markdown"])
def test_content_that_is_no_text(name: str, format: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(CONTENTS[name])
    with pytest.raises(DataError) as error:
        read_document(path, format)
    assert str(error.value).startswith(f"{path}: this is {name}")
    assert str(error.value).partition(": this is ")[2].partition(": ")[2]


def test_archives_of_another_format() -> None:
    for content in (OPEN, CONTENTS["an Excel workbook"], CONTENTS["an e-book"]):
        with pytest.raises(DocumentError, match="the document: this is an .*docx"):
            translate_document(StandIn(upper), content, format="docx")  # type: ignore[arg-type]
    assert translate_document(StandIn(upper), WORD, format="docx").sentences == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    ["", "A dog", "GIF89a is a format", "RIFF and MZ", "BZh", "PK\n", "%PDF is", "é" * 3000, "Olaf\t\f\r\n", "\x1b[1m"],
)
def test_text_is_text(text: str) -> None:
    for shift in ("", "a"):
        assert recognise((shift + text).encode()) is None
    assert recognise(text.encode("latin-1")) is None
    assert recognise(text.encode("utf-16")) is None


def test_every_extension_has_its_format() -> None:
    assert all(format_of_name(f"a.b{extension.upper()}.gz") == format for extension, format in EXTENSIONS.items())
