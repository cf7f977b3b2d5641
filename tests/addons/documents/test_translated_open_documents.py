"""OpenDocument texts: the translated paragraphs, their markup, languages, and everything that is kept."""

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from open_documents import SPACES, body, document, outline, packed, part, parts
from stand_in_translators import StandIn, Write, anyhow, backwards, same, upper
from tiny_model import write_tiny_model

from dragoman.addons.documents.document import translate_document
from dragoman.addons.documents.formats import archive, xml_tree
from dragoman.base.errors import ConfigError, DocumentError
from dragoman.cli.main import main

pytest.importorskip("sentencex")


def translated(content: bytes, write: Write = upper, **of_translator: Any) -> bytes:
    return translate_document(StandIn(write, **of_translator), content, format="odt").content  # type: ignore[arg-type]


def shown(inner: str, write: Write = upper, automatic: str = "") -> str:
    """Return the content of one paragraph, translated."""
    found = body(translated(document(f"<text:p>{inner}</text:p>", automatic=automatic), write))
    return found.removeprefix("<text:p>").removesuffix("</text:p>")


FRAME = (
    "<draw:frame><draw:text-box><text:p>in a box</text:p></draw:text-box><svg:title>a picture</svg:title>"
    "<svg:desc>of a dog</svg:desc></draw:frame>"
)
WHOLE = (
    "<text:tracked-changes><text:p>was deleted</text:p></text:tracked-changes>"
    '<text:h text:outline-level="1">A big dog</text:h>\n'
    "<text:list><text:list-item><text:p>one item</text:p></text:list-item></text:list>"
    "<table:table><table:table-cell><text:p>a cell</text:p></table:table-cell></table:table>"
    "<text:table-of-content><text:table-of-content-source><text:index-title-template>the contents"
    "</text:index-title-template></text:table-of-content-source></text:table-of-content>"
    f"<text:p>with {FRAME} a note<text:note><text:note-citation>i</text:note-citation>"
    "<text:note-body><text:p>the note</text:p></text:note-body></text:note></text:p>"
    "<text:p>said<office:annotation><text:p>a comment</text:p></office:annotation></text:p><text:p/>"
)
HEADER = "<office:master-styles><style:header><text:p>the top</text:p></style:header></office:master-styles>"


def test_every_paragraph_is_translated() -> None:
    given = document(WHOLE, HEADER)
    after = translated(given)
    expected = WHOLE
    for text in ("A big dog", "one item", "a cell", "the contents", "with ", " a note", "in a box", "a picture"):
        expected = expected.replace(f">{text}<", f">{text.upper()}<")
    for text in ("of a dog", "the note", "said"):
        expected = expected.replace(f">{text}<", f">{text.upper()}<")
    assert body(after) == expected
    assert b"<text:p>THE TOP</text:p>" in parts(after)["styles.xml"]


def test_the_archive_is_kept() -> None:
    given = document(WHOLE, HEADER)
    before, after = parts(given), parts(translated(given))
    assert list(before) == list(after)
    assert [name for name in before if before[name] != after[name]] == ["content.xml", "styles.xml"]
    with zipfile.ZipFile(io.BytesIO(translated(given))) as file:
        first = file.infolist()[0]
    assert (first.filename, first.compress_type, first.extra) == ("mimetype", zipfile.ZIP_STORED, b"")
    assert translated(given)[30:77] == given[30:77]
    assert translated(given, same) == given


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        (
            'A <text:span text:style-name="B">big</text:span> dog.',
            'DOG. <text:span text:style-name="B">BIG</text:span> A',
        ),
        ('see <text:a xlink:href="u" xmlns:xlink="x">this page</text:a>', "PAGE THIS</text:a> SEE"),
        ("one<text:s/>two\n three", "THREE TWO ONE"),
        ('one<text:s text:c="3"/>two three', 'ONE<text:s text:c="3"/>THREE TWO'),
        ("one two<text:tab/>three<text:line-break/>four five", "TWO ONE<text:tab/>THREE<text:line-break/>FIVE FOUR"),
        ("on page <text:page-number>7</text:page-number> now", "NOW <text:page-number>7</text:page-number> PAGE ON"),
        (
            '<text:bookmark-start text:name="x"/>big dog<text:bookmark-end text:name="x"/> runs',
            'RUNS <text:bookmark-start text:name="x"/>DOG BIG<text:bookmark-end text:name="x"/>',
        ),
        ("a &lt;b&gt; &amp; c", "C &amp; &lt;b&gt; A"),
        ("Ab <text:soft-page-break/>cd", "<text:soft-page-break/>CD AB"),
    ],
)
def test_markup_moves_with_its_words(inner: str, expected: str) -> None:
    assert expected in shown(inner, backwards)
    assert shown(inner, same) == inner


def test_spans_that_nobody_sees_are_removed_from_translations_only() -> None:
    automatic = (
        '<style:style style:name="T1" style:family="text"><style:text-properties officeooo:rsid="1"/></style:style>'
        '<style:style style:name="T2" style:family="text"><style:text-properties fo:font-weight="bold"/></style:style>'
    )
    inner = 'He<text:span text:style-name="T1">llo</text:span> <text:span text:style-name="T2">dog</text:span>'
    assert shown(inner, automatic=automatic) == 'HELLO <text:span text:style-name="T2">DOG</text:span>'
    given = document(f"<text:p>{inner}</text:p><text:p>x</text:p>", automatic=automatic)
    assert translated(given, same) == given


STYLES = (
    '<office:styles><style:default-style><style:text-properties fo:language="en" fo:country="US" '
    'style:language-asian="zh"/></style:default-style></office:styles>'
)
FRENCH = '<style:style style:name="F"><style:text-properties fo:language="fr" fo:country="FR"/></style:style>'


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("de", 'fo:language="de" fo:country="DE" style:language-asian="zh"'),
        ("pt-BR", 'fo:language="pt" fo:country="BR" style:language-asian="zh"'),
        ("eo", 'fo:language="eo" fo:country="none"'),
        ("ja", 'fo:language="en" fo:country="US" style:language-asian="ja" style:country-asian="JP"'),
        ("ar", 'style:language-asian="zh" style:language-complex="ar" style:country-complex="EG"'),
        (None, 'fo:language="en" fo:country="US" style:language-asian="zh"'),
    ],
)
def test_the_language_of_the_text(target: str | None, expected: str) -> None:
    given = document("<text:p>a dog</text:p>", STYLES, FRENCH)
    after = parts(translated(given, target=target))
    assert expected in after["styles.xml"].decode()
    assert FRENCH in after["content.xml"].decode()
    unknown = parts(translated(given, target=target, language=None))
    assert expected in unknown["styles.xml"].decode() and FRENCH in unknown["content.xml"].decode()
    assert translated(given, same) == given


def test_a_document_of_odfpy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odf = pytest.importorskip("odf.opendocument")
    from odf import teletype
    from odf.text import H, P, Span

    made = odf.OpenDocumentText()
    made.text.addElement(H(outlinelevel=1, text="A dog"))
    paragraph = P(text="two ")
    paragraph.addElement(Span(text="big men"))
    made.text.addElement(paragraph)
    made.save(str(tmp_path / "in.odt"))
    after = odf.load(io.BytesIO(translated((tmp_path / "in.odt").read_bytes())))
    assert [teletype.extractText(each) for each in after.text.childNodes] == ["A DOG", "TWO BIG MEN"]
    write_tiny_model(tmp_path / "model")
    command = ["translate-document", str(tmp_path / "model"), "--beam", "1", "search.maximum_length=5"]
    assert main([*command, "-i", str(tmp_path / "in.odt"), "-o", str(tmp_path / "out.odt")]) == 0
    assert "2 sentence(s) translated" in capsys.readouterr().err
    assert len(odf.load(str(tmp_path / "out.odt")).text.childNodes) == 2


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ({"a.xml": "<a/>"}, "has no content.xml"),
        ({"content.xml": part("content", "<a>")}, "the part content.xml of this document, line 2"),
        ({"content.xml": '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'}, "document type"),
        ({"content.xml": "<a>" * 300}, "nested more than 200 deep"),
        ({"content.xml": part("content", "").encode("utf-16")}, "is not UTF-8"),
        ({"content.xml": "", "META-INF/manifest.xml": "<m:encryption-data/>"}, "encrypted"),
    ],
)
def test_invalid_and_malicious_documents(parts: dict[str, str | bytes], error: str) -> None:
    with pytest.raises(DocumentError, match=error):
        translated(packed(parts))


@pytest.mark.parametrize(("megabytes", "error"), [(65, "would unpack to"), (17, "bytes of unpacked text")])
def test_an_archive_bomb_is_not_unpacked(megabytes: int, error: str) -> None:
    with pytest.raises(DocumentError, match=error):
        translated(packed({"content.xml": b"<a>" + b" " * (megabytes << 20)}))


def test_other_files_are_refused() -> None:
    with pytest.raises(DocumentError, match="not an OpenDocument text"):
        translated(b"a dog")
    with pytest.raises(DocumentError, match="spreadsheet"):
        translated(packed({"content.xml": "<a/>"}, "application/vnd.oasis.opendocument.spreadsheet"))


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="pass its bytes"):
        translate_document(StandIn(upper), "a dog", format="odt")  # type: ignore[arg-type]
    assert (archive.MAX_XML_BYTES, xml_tree.MAX_NODES, xml_tree.MAX_DEPTH) == (16 << 20, 500_000, 200)
    monkeypatch.setattr(xml_tree, "MAX_NODES", 1000)
    with pytest.raises(DocumentError, match="more than 1,000 elements and pieces of text"):
        translated(document("<text:p>a</text:p>" * 600))


INLINE = st.recursive(
    st.sampled_from(
        ["a dog ", "Two men. ", "&amp;", "<text:s/>", "<text:tab/>", "<text:date>5</text:date>", FRAME, "é\n"]
    ),
    lambda inner: (
        st.builds('<text:span text:style-name="T">{}</text:span>'.format, inner)
        | st.builds("{}{}".format, inner, inner)
        | st.builds('<text:bookmark-start text:name="b"/>{}<text:bookmark-end text:name="b"/>'.format, inner)
    ),
    max_leaves=8,
)


@settings(max_examples=80, deadline=None)
@given(inner=INLINE, write=st.sampled_from([upper, backwards, anyhow]), aligns=st.booleans())
def test_elements_are_kept_with_their_attributes(inner: str, write: Write, aligns: bool) -> None:
    given = document(f"<text:p>{inner}</text:p>")
    blanks = f"{{{SPACES['text']}}}s"
    before, after = outline(given), outline(translated(given, write, aligns=aligns))
    assert [each for each in after if each[0] != blanks] == [each for each in before if each[0] != blanks]
    assert translated(given, same) == given
