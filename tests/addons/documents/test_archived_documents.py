"""Presentations, workbooks and e-books: their texts are translated, and everything else in the archive is kept."""

import pytest
from office_archives import book, presentation, without_texts, workbook
from open_documents import MIMETYPE
from open_documents import packed as packed_open
from open_documents import part as open_part
from stand_in_translators import StandIn, Write, backwards, same, upper
from word_documents import packed, parts

from dragoman.addons.documents.document import translate_document
from dragoman.base.errors import DocumentError

pytest.importorskip("sentencex")


def translated(content: bytes, format: str, write: Write = backwards, target: str = "de") -> bytes:
    stand_in = StandIn(write, target=target)
    after = translate_document(stand_in, content, format=format).content  # type: ignore[arg-type]
    assert list(parts(after)) == list(parts(content))
    assert translate_document(StandIn(same), content, format=format).content == content  # type: ignore[arg-type]
    return after


def changed(before: bytes, after: bytes) -> dict[str, str]:
    old = parts(before)
    return {name: data.decode() for name, data in parts(after).items() if data != old[name]}


RUNS = (
    '<a:p><a:pPr algn="l"/><a:r><a:rPr lang="en-US" dirty="0"/><a:t>an </a:t></a:r><a:r><a:rPr lang="en-US" b="1"/>'
    '<a:t>old</a:t></a:r><a:r><a:rPr lang="en-US"/><a:t> cow &amp; hen</a:t></a:r><a:br/><a:r><a:t>7</a:t></a:r>'
    '<a:endParaRPr lang="en-US"/></a:p>'
)


def test_presentations() -> None:
    given = presentation(
        f'<p:cNvPr name="a b" descr="the &quot;big&quot; hen"/><p:x>{RUNS}<a:p/></p:x><p:y>no text</p:y>'
    )
    after = changed(given, translated(given, "pptx"))
    assert set(after) == {"ppt/slides/slide1.xml", "ppt/notes/n.xml"}
    slide = after["ppt/slides/slide1.xml"]
    assert '<p:cNvPr name="a b" descr="HEN &quot;BIG&quot; THE"/>' in slide and "<p:y>no text</p:y>" in slide
    assert (
        '<a:p><a:pPr algn="l"/><a:r><a:rPr lang="de-DE" dirty="0"/><a:t>HEN &amp; COW </a:t></a:r>'
        '<a:r><a:rPr lang="de-DE" b="1"/><a:t>OLD</a:t></a:r><a:r><a:rPr lang="de-DE" dirty="0"/><a:t> AN</a:t></a:r>'
        '<a:br/><a:r><a:t>7</a:t></a:r><a:endParaRPr lang="de-DE"/></a:p><a:p/>'
    ) in slide
    plain = presentation("<a:p><a:r><a:t>one cow.</a:t></a:r></a:p><a:p><a:fld><a:t>a date</a:t></a:fld></a:p>")
    assert without_texts(translated(plain, "pptx")) == without_texts(plain)


def test_presentations_from_right_to_left() -> None:
    given = presentation(f"{RUNS}<a:p><a:r><a:t>a hen</a:t></a:r></a:p>")
    slide = changed(given, translated(given, "pptx", target="fa"))["ppt/slides/slide1.xml"]
    assert '<a:p><a:pPr algn="r" rtl="1"/><a:r>' in slide
    assert '<a:p><a:pPr rtl="1"/><a:r><a:t>HEN A</a:t></a:r></a:p>' in slide


def test_workbooks() -> None:
    strings = (
        "<si><t>a cow</t><rPh><t>x</t></rPh></si><si><t>7</t></si><si><t>the price</t></si>"
        '<si><r><t xml:space="preserve">one </t></r><r><rPr><b/></rPr><t>hen</t></r></si>'
    )
    cells = (
        '<c t="s"><v>0</v></c><c t="inlineStr"><is><t>an ox</t></is></c><c t="str"><f>A1&amp;"x y"</f><v>a b</v></c>'
    )
    given = workbook(strings, cells, '<tableColumn name="the price"/>')
    after = changed(given, translated(given, "xlsx"))
    assert set(after) == {"xl/sharedStrings.xml", "xl/worksheets/a.xml"}
    assert after["xl/sharedStrings.xml"] == (
        "<sst><si><t>COW A</t></si><si><t>7</t></si><si><t>the price</t></si>"
        '<si><r><rPr><b/></rPr><t>HEN</t></r><r><t xml:space="preserve"> ONE</t></r></si></sst>'
    )
    assert after["xl/worksheets/a.xml"] == parts(given)["xl/worksheets/a.xml"].decode().replace("an ox", "OX AN")
    sheet = changed(given, translated(given, "xlsx", target="he"))["xl/worksheets/a.xml"]
    assert '<sheetView workbookViewId="0" rightToLeft="1"/>' in sheet


PAGE = (
    '<html xmlns="http://www.w3.org/1999/xhtml" lang="en"><head><title/></head><body><p>A <i>cow</i>.</p></body></html>'
)


def test_e_books() -> None:
    metadata = "<dc:title>Cows &amp; hens</dc:title><dc:language>en-GB</dc:language><dc:creator>A B</dc:creator>"
    given = book(PAGE, metadata + "<dc:language>fr</dc:language>")
    after = translated(given, "epub", upper)
    assert parts(after)["mimetype"] == b"application/epub+zip" and b"mimetypeapplication/epub+zip" in after[:80]
    new = changed(given, after)
    assert set(new) == {"OPS/a.opf", "OPS/a page.xhtml", "OPS/toc.ncx"}
    assert new["OPS/a page.xhtml"] == PAGE.replace('"en"', '"de"').replace("A <i>cow</i>", "A <i>COW</i>")
    package = parts(given)["OPS/a.opf"].decode().replace("Cows &amp; hens", "COWS &amp; HENS")
    assert new["OPS/a.opf"] == package.replace("en-GB", "de").replace('xml:lang="en"', 'xml:lang="de"')
    assert '<ncx xml:lang="de"><docTitle><text>THE FARM</text>' in new["OPS/toc.ncx"]
    right = changed(given, translated(given, "epub", target="ar"))
    assert '<spine toc="x" page-progression-direction="rtl"/>' in right["OPS/a.opf"]
    assert '<html dir="rtl" xmlns' in right["OPS/a page.xhtml"]


def open_document(type: str, body: str) -> bytes:
    content = f"<office:body><office:{type}>{body}</office:{type}></office:body>"
    return packed_open({"content.xml": open_part("content", content), "a.png": b"PNG"}, MIMETYPE[: -len("text")] + type)


def test_open_spreadsheets_and_presentations() -> None:
    cell = "<table:table-cell {}><text:p>a cow</text:p></table:table-cell>"
    types = ('office:value-type="string"', "", 'table:formula="of:=A1"', 'office:value-type="date"')
    table = '<table:table table:name="a cow">' + "".join(map(cell.format, types)) + "</table:table>"
    given = open_document("spreadsheet", table)
    after = parts(translated(given, "ods"))["content.xml"].decode()
    assert after == parts(given)["content.xml"].decode().replace(">a cow<", ">COW A<", 2)
    box = "<draw:frame><draw:text-box><text:p>a hen</text:p></draw:text-box></draw:frame>"
    slide = f'<draw:page draw:name="a b">{box}</draw:page>'
    given = open_document("presentation", slide)
    after = parts(translated(given, "odp"))["content.xml"].decode()
    assert after == parts(given)["content.xml"].decode().replace("a hen", "HEN A")


LOCKED = '<encryption><CipherReference URI="OPS/{}"/></encryption>'


@pytest.mark.parametrize(
    ("format", "content", "error"),
    [
        ("epub", book(PAGE, encryption=LOCKED.format("a%20page.xhtml")), "is encrypted"),
        ("epub", packed({"mimetype": b"application/epub+zip"}), "it has no META-INF/container.xml"),
        ("epub", book(PAGE).replace(b"OPS/a.opf", b"OPS/b.opf", 1), "the part|damaged|no package document"),
        ("epub", book(PAGE)[:300], "not an e-book|damaged"),
        ("pptx", presentation("<a:p>"), "the part ppt/slides/slide1.xml of this document, line 1"),
        ("pptx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "save it without a password"),
        ("pptx", workbook("<si/>"), "an Excel workbook"),
        ("xlsx", workbook("<si>" * 300), "nested more than 200 deep"),
        ("xlsx", packed({"[Content_Types].xml": b"<Types/>", "xl/a.xml": b"<a/>"}), "it has no main part"),
        ("ods", open_document("presentation", ""), "an OpenDocument presentation"),
    ],
)
def test_encrypted_and_damaged_files_are_refused(format: str, content: bytes, error: str) -> None:
    with pytest.raises(DocumentError, match=error):
        translate_document(StandIn(upper), content, format=format)  # type: ignore[arg-type]


def test_encrypted_fonts_do_not_matter() -> None:
    given = book(PAGE, encryption=LOCKED.format("a.otf"))
    assert b"<i>COW</i>" in parts(translated(given, "epub", upper))["OPS/a page.xhtml"]
