"""Word documents: the translated parts, the positions of formats and other elements, and the unchanged parts."""

from pathlib import Path

import docx
import pytest
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from stand_in_translators import StandIn, Write, backwards, same, upper
from tiny_model import write_tiny_model
from word_documents import SPACES, document, field, formatted, opened, packed, paragraph, parts, run, saved

from dragoman.addons.documents.document import translate_document
from dragoman.base.errors import ConfigError
from dragoman.cli.main import main

pytest.importorskip("sentencex")


def translated(content: bytes, write: Write = upper) -> bytes:
    return translate_document(StandIn(write), content, format="docx").content  # type: ignore[arg-type]


def shown(*inner: str, write: Write = upper) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return one paragraph, translated."""
    (found,) = formatted(translated(document(paragraph(*inner)), write))
    return found


def report() -> bytes:
    made = docx.Document()
    made.add_heading("A big dog", 1)
    first = made.add_paragraph("It ")
    first.add_run("runs").bold = True
    first.add_run(" fast.\tTwo men")
    made.add_paragraph("one", style="List Bullet")
    table = made.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
    made.sections[0].header.paragraphs[0].text = "the top"
    made.sections[0].footer.paragraphs[0].text = "the end"
    return saved(made)


def test_paragraphs_tables_headers_and_footers() -> None:
    before, after = opened(report()), opened(translated(report()))
    assert [each.text for each in after.paragraphs] == ["A BIG DOG", "IT RUNS FAST.\tTWO MEN", "ONE"]
    assert [each.style.name for each in after.paragraphs] == [each.style.name for each in before.paragraphs]
    assert [run.text for run in after.paragraphs[1].runs if run.bold] == ["RUNS"]
    assert [cell.text for cell in after.tables[0].rows[0].cells] == ["LEFT", "RIGHT"]
    assert after.sections[0].header.paragraphs[0].text == "THE TOP"
    assert after.sections[0].footer.paragraphs[0].text == "THE END"


def test_parts_without_text_are_kept_byte_for_byte() -> None:
    given = report()  # compared once, because it contains the time of day
    before, after = parts(given), parts(translated(given))
    assert list(before) == list(after)
    changed = [name for name in before if before[name] != after[name]]
    with_text, with_languages = ("document", "footer1", "header1"), ("styles", "stylesWithEffects")
    assert sorted(changed) == [f"word/{name}.xml" for name in (*with_text, *with_languages)]
    for name in with_languages:
        found = after[f"word/{name}.xml"].replace(b"de-DE", b"en-US")
        assert found.count(b"en-US") == before[f"word/{name}.xml"].count(b"en-US") > 0
    assert translated(given, same) == given


def test_formats_move_with_their_words() -> None:
    inner = (
        run("A "),
        run("big", "<w:b/>"),
        run(" ", "<w:b/>"),
        run("dog", "<w:b/><w:lang w:val='en'/>"),
        run(" runs."),
    )
    assert shown(*inner, write=backwards) == [("RUNS. ", "", ()), ("DOG BIG", "b", ()), (" A", "", ())]
    whole = (run("A big ", "<w:b/>"), run("dog", "<w:b/><w:i/>"))
    assert shown(*whole) == [("A BIG ", "b", ()), ("DOG", "b i", ())]
    divided = (run("A d"), run("o", "<w:noProof/>"), run("g"))
    assert shown(*divided) == [("A DOG", "", ())]


def test_links_and_tracked_changes() -> None:
    text = run("the ", "<w:u/>") + run("big", "<w:u/><w:b/>") + run(" page", "<w:u/>")
    link = f"<w:hyperlink r:id='rId1'>{text}</w:hyperlink>"
    change = f"<w:ins w:id='1'>{run('now')}</w:ins><w:del w:id='2'><w:r><w:delText>then</w:delText></w:r></w:del>"
    assert shown(run("See "), link, run(" "), change, write=backwards) == [
        ("NOW", "", ("ins",)),
        (" ", "", ()),
        ("PAGE ", "u", ("hyperlink",)),
        ("BIG", "b u", ("hyperlink",)),
        (" THE", "u", ("hyperlink",)),
        (" SEE", "", ()),
        ("<delText>", "", ("del",)),
    ]


def test_fields_stay_and_links_in_fields_are_translated() -> None:
    begin, code, between, end = "<fldChar>", "<instrText>", "<fldChar>", "<fldChar>"
    number = shown(run("On page "), field("PAGEREF x", run("xii")), run(" here"), write=backwards)
    assert [text for text, _, _ in number] == ["HERE ", begin, code, between, "xii", end, " PAGE ON"]
    link = shown(run("A "), field('HYPERLINK "http://a.b"', run("big page", "<w:u/>")), write=backwards)
    assert [text for text, _, _ in link] == [begin, code, between, "PAGE BIG", end, " A"]
    lone = shown(run("A ") + field("TOC", run("dog")).replace('"end"', '"begin"'))
    assert [text for text, _, _ in lone] == ["A ", begin, code, between, "DOG", begin]
    simple = f"<w:fldSimple w:instr='PAGE'>{run('seven')}</w:fldSimple>"
    assert [text for text, _, _ in shown(run("a "), simple, run(" b"))] == ["A ", "seven", " B"]


def test_elements_between_words_are_kept() -> None:
    things = "<w:r><w:drawing/></w:r><w:bookmarkStart w:id='1' w:name='x'/><w:r><w:footnoteReference w:id='2'/></w:r>"
    found = shown(run("A "), things, run("dog"), "<w:r><w:br/><w:t>Two</w:t><w:tab/><w:noBreakHyphen/></w:r>")
    assert [text for text, _, _ in found] == [
        "A ",
        "<drawing>",
        "<footnoteReference>",
        "DOG",
        "<br>",
        "TWO",
        "<tab>",
        "<noBreakHyphen>",
    ]


def test_content_controls() -> None:
    free = f"<w:sdt><w:sdtPr><w:alias w:val='x'/></w:sdtPr><w:sdtContent>{run('dog')}</w:sdtContent></w:sdt>"
    chosen = free.replace("<w:alias w:val='x'/>", "<w:dropDownList/>")
    assert shown(run("A "), free) == [("A ", "", ()), ("DOG", "", ("sdtContent", "sdt"))]
    assert shown(run("A "), chosen) == [("A ", "", ()), ("dog", "", ("sdtContent", "sdt"))]


def test_text_boxes_and_descriptions_of_pictures() -> None:
    space = "xmlns:wp='http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing'"
    picture = f"<wp:inline {space}><wp:docPr id='1' name='Picture 1' descr='a cat'/></wp:inline>"
    box = (
        f"<w:r><w:drawing>{picture}</w:drawing></w:r>"
        f"<w:r><mc:AlternateContent><mc:Choice><w:txbxContent>{paragraph(run('in a box'))}</w:txbxContent></mc:Choice>"
        "</mc:AlternateContent></w:r>"
    )
    after = translated(document(paragraph(run("A dog "), box, run("runs"))), backwards)
    assert [text for text, _, _ in list(formatted(after))[1]] == ["BOX A IN"]
    found = parts(after)["word/document.xml"].decode()
    assert 'descr="CAT A"' in found and 'name="Picture 1"' in found and "RUNS" in found


def test_footnotes() -> None:
    whole = parts(document(paragraph(run("A dog"))))
    note = f"<w:footnotes {SPACES}><w:footnote w:id='1'>{paragraph(run('one two'))}</w:footnote></w:footnotes>"
    whole["word/footnotes.xml"] = note.encode()
    name = "wordprocessingml.footnotes+xml"
    override = (
        f'<Override PartName="/word/footnotes.xml" ContentType="application/vnd.openxmlformats-officedocument.{name}"/>'
    )
    whole["[Content_Types].xml"] = whole["[Content_Types].xml"].replace(b"</Types>", override.encode() + b"</Types>")
    assert b"TWO ONE" in parts(translated(packed(whole), backwards))["word/footnotes.xml"]


def test_strict_documents_and_types_declared_by_extension() -> None:
    whole = parts(document(paragraph(run("A big dog"))))
    body, types = whole["word/document.xml"], whole["[Content_Types].xml"]
    strict = body.replace(
        b"http://schemas.openxmlformats.org/wordprocessingml/2006", b"http://purl.oclc.org/ooxml/wordprocessingml"
    )
    found = parts(translated(packed({**whole, "word/document.xml": strict}), backwards))["word/document.xml"]
    assert b">DOG BIG A</w:t>" in found and b"ns0" not in found
    ending = types.replace(b'Override PartName="/word/document.xml"', b'Default Extension="XML"')
    found = parts(translated(packed({**whole, "[Content_Types].xml": ending}), backwards))["word/document.xml"]
    assert b"DOG BIG A" in found


def test_any_nesting_depth_is_accepted() -> None:
    link = ("HYPERLINK x", "<w:hyperlink r:id='r'>{}</w:hyperlink>")
    text = run("dog")
    for _ in range(50):
        text = field(link[0], link[1].format(text))
    found = translated(document(paragraph(run("A "), text)))
    assert parts(found)["word/document.xml"].count(b"<w:hyperlink") == 50
    fields = run("dog")
    for _ in range(2000):
        fields = field("HYPERLINK x", fields)
    assert parts(translated(document(paragraph(fields))))["word/document.xml"].count(b"fldChar ") == 6000


def test_characters_that_xml_forbids_are_replaced() -> None:
    found = shown(run("dog"), write=lambda _: [("a\x00\x01b\ttwo", 0)])
    assert found == [("a\ufffd\ufffdb two", "", ())]


def test_a_word_document_is_bytes_and_comes_from_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="pass its bytes"):
        translate_document(StandIn(upper), "A dog", format="docx")  # type: ignore[arg-type]
    write_tiny_model(tmp_path / "model")
    (tmp_path / "in.docx").write_bytes(report())
    command = ["translate-document", str(tmp_path / "model"), "--beam", "1", "search.maximum_length=5"]
    assert main([*command, "-i", str(tmp_path / "in.docx"), "-o", str(tmp_path / "out.docx")]) == 0
    assert "8 sentence(s) translated" in capsys.readouterr().err
    assert len(opened((tmp_path / "out.docx").read_bytes()).paragraphs) == 3
    (tmp_path / "in.docx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 old")
    assert main([*command, "-i", str(tmp_path / "in.docx")]) == 1
    said = capsys.readouterr().err
    assert f"{tmp_path / 'in.docx'}: " in said and "Word 97–2003 document (.doc)" in said


@pytest.mark.parametrize(
    ("target", "attribute", "tag"),
    [
        ("de", "val", "de-DE"),
        ("pt_BR", "val", "pt-BR"),
        ("ja", "eastAsia", "ja-JP"),
        ("ar", "bidi", "ar-EG"),
        ("eo", "val", "eo"),
    ],
)
def test_translated_text_gets_the_language_of_the_translation(target: str, attribute: str, tag: str) -> None:
    made = docx.Document()
    for text, language in (("a dog", "en-GB"), ("3.5", "en-GB"), ("a man", "fr-FR"), ("a cat", None)):
        run = made.add_paragraph().add_run(text)
        run.bold = True
        if language is not None:
            element = OxmlElement("w:lang")
            element.set(qn("w:val"), language)
            run._r.get_or_add_rPr().append(element)
    styled = made.styles.add_style("Quote 2", WD_STYLE_TYPE.CHARACTER).element.get_or_add_rPr()
    styled.append(OxmlElement("w:lang"))
    styled[-1].set(qn("w:val"), "fr-FR")
    after = opened(translate_document(StandIn(upper, target=target), saved(made), format="docx").content)  # type: ignore[arg-type]
    name = qn(f"w:{attribute}")
    languages = [[each.get(name) for each in paragraph._p.iter(qn("w:lang"))] for paragraph in after.paragraphs]
    kept = [["en-GB"]] if attribute == "val" else [[None]]
    assert languages == [[tag], *kept, [tag], []]
    assert after.styles["Quote 2"].element.rPr[-1].get(qn("w:val")) == "fr-FR"
    (default,) = after.styles.element.iter(qn("w:rPrDefault"))
    (found,) = default.iter(qn("w:lang"))
    assert found.get(name) == tag and (attribute == "val" or found.get(qn("w:val")) == "en-US")


def test_without_known_languages_the_spelling_languages_are_kept() -> None:
    for target, source in ((None, "en"), ("de", "fr")):
        translator = StandIn(upper, language=source, target=target)
        found = translate_document(translator, report(), format="docx").content  # type: ignore[arg-type]
        assert b'w:val="en-US"' in parts(found)["word/styles.xml"]
