"""Texts of PDF files, whose translations are plain text."""

import sys
from pathlib import Path

import pytest
from pdf_files import pdf
from stand_in_translators import StandIn, upper

from dragoman.addons.documents.document import read_document, translate_document, validate_paths
from dragoman.addons.documents.formats.pdf import PdfFormat, paragraphs
from dragoman.addons.documents.formats.union import WRITTEN_AS, is_available
from dragoman.base.errors import ConfigError, DataError, DocumentError

pytest.importorskip("sentencex")

PAGES = (["A dog runs in the green park. It is hap-", "py (today).", "Another paragraph of two", "lines."], ["- item"])


def test_the_text_of_a_pdf(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pypdf")
    done = translate_document(StandIn(upper), pdf(*PAGES), format="pdf")  # type: ignore[arg-type]
    expected = "A DOG RUNS IN THE GREEN PARK. IT IS HAPPY (TODAY).\n\nANOTHER PARAGRAPH OF TWO LINES.\n\n- ITEM\n"
    assert done.content == expected.encode() and done.sentences == 4
    assert "layout, pictures and tables are lost" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (pdf([]), "contains no text, only pictures"),
        (pdf(["12 - 34"]), "contains no text"),
        (b"%PDF-1.7\n1 0 obj\n", "it is damaged"),
        (pdf(["A dog"]).replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]"), "damaged|no text"),  # a page is its own parent
        (pdf(["A dog"]).replace(b"startxref", b"startxxxx").replace(b"endobj", b"endxxx"), "damaged|no text"),
    ],
)
def test_files_without_text_and_damaged_ones_are_refused(data: bytes, reason: str) -> None:
    pytest.importorskip("pypdf")
    with pytest.raises(DocumentError, match=reason):
        translate_document(StandIn(upper), data, format="pdf")  # type: ignore[arg-type]


def test_a_protected_file_is_refused() -> None:
    pypdf = pytest.importorskip("pypdf")
    import io

    for password, opens in (("", True), ("secret", False)):
        writer, written = pypdf.PdfWriter(io.BytesIO(pdf(["A dog runs."]))), io.BytesIO()
        writer.encrypt(password, "owner", algorithm="RC4-128")
        writer.write(written)
        if opens:
            assert PdfFormat().decode(written.getvalue(), "a.pdf").content == "A dog runs.\n"
        else:
            with pytest.raises(DataError, match=r"a\.pdf: the PDF is protected by a password"):
                PdfFormat().decode(written.getvalue(), "a.pdf")


def test_without_pypdf_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    (tmp_path / "a.pdf").write_bytes(pdf(*PAGES))
    with pytest.raises(ConfigError, match=r"requires the package pypdf .*pip install 'dragoman\[pdf\]'"):
        read_document(tmp_path / "a.pdf", "pdf")
    assert not is_available("pdf") and is_available("docx")


def test_the_translation_is_not_named_pdf(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7")
    with pytest.raises(DataError, match=r"b\.PDF: the translation is plain text: name it b\.txt"):
        validate_paths(tmp_path / "a.pdf", tmp_path / "b.PDF", "pdf")
    validate_paths(tmp_path / "a.pdf", tmp_path / "b.txt", "pdf")
    assert WRITTEN_AS["pdf"] == "txt"
    with pytest.raises(ConfigError, match="pass the bytes"):
        PdfFormat().parse(b"%PDF-1.7")  # type: ignore[arg-type]


def test_paragraphs() -> None:
    page = (
        "One  line of text that is long\nwith well-\nknown words and Hel-\nMet. End.\n"
        "Next one here, long enough to\ngo on.\n\n2. An item\n• dot"
    )
    assert paragraphs(page) == [
        "One line of text that is long with wellknown words and Hel- Met. End.",
        "Next one here, long enough to go on.",
        "2. An item",
        "• dot",
    ]
    assert paragraphs("") == [] and paragraphs("-\n\n-") == ["-", "-"]
