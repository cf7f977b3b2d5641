"""Documents state the direction of their translation if it is another one than that of their text."""

import re

import pytest
import word_documents
from open_documents import document, parts
from stand_in_translators import StandIn, backwards

from dragoman.addons.documents.document import translate_document
from dragoman.addons.documents.languages import Languages

pytest.importorskip("sentencex")


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("en", "ar", "rtl"),
        ("de", "he", "rtl"),
        ("en", "az-Arab", "rtl"),
        ("ur", "en", "ltr"),
        ("dv", "zh", "ltr"),
        (None, "fa", "rtl"),
        (None, "en", None),
        ("ar", "fa", None),
        ("en", "az", None),
        ("ar", None, None),
        ("ar", "xx-unknown", None),
    ],
)
def test_the_direction_of_a_translation(source: str | None, target: str | None, expected: str | None) -> None:
    assert Languages(source, target).new_direction == expected


@pytest.mark.parametrize(
    ("page", "languages", "expected"),
    [
        ("<html><p>a cow</html>", ("en", "fa"), '<html dir="rtl"><p>COW A</html>'),
        ("<body dir=LTR><p>a cow", ("en", "he"), "<body dir=rtl><p>COW A"),
        ('<p style="x:y;direction: ltr">a cow', ("en", "ar"), '<p style="x:y;direction: rtl">COW A'),
        ('<html dir="rtl" lang=ur><p>a cow', ("ur", "en"), '<html dir="ltr" lang=en><p>COW A'),
        ("<p>a cow <code dir=ltr>b</code> <bdo dir=ltr>c</bdo>", ("en", "ar"), "<bdo dir=ltr>C</bdo> <code dir=ltr>b"),
        ('<html dir="rtl"><p>a cow', ("ar", "fa"), '<html dir="rtl"><p>COW A'),
        ("<p dir=auto>a cow<input dir=ltr>", ("en", "ar"), "<p dir=auto>COW A<input dir=ltr>"),
    ],
)
def test_pages(page: str, languages: tuple[str, str], expected: str) -> None:
    stand_in = StandIn(backwards, language=languages[0], target=languages[1])
    assert expected in translate_document(stand_in, page, format="html").text  # type: ignore[arg-type]


def word(body: str, source: str, target: str) -> str:
    stand_in = StandIn(backwards, language=source, target=target)
    after = translate_document(stand_in, word_documents.document(body), format="docx").content  # type: ignore[arg-type]
    assert [each.text for each in word_documents.opened(after).paragraphs]
    return word_documents.parts(after)["word/document.xml"].decode().partition("<w:body>")[2]


def test_word_documents() -> None:
    paragraph = '<w:p><w:pPr><w:keepNext/>{}<w:jc w:val="left"/></w:pPr>{}</w:p><w:p/>'
    run = "<w:r><w:rPr>{}</w:rPr><w:t>{}</w:t></w:r>"
    table = "<w:tbl><w:tblPr>{}<w:tblW/></w:tblPr></w:tbl><w:sectPr><w:pgSz/>{}<w:docGrid/></w:sectPr>"
    body = paragraph + table
    left = body.format("", run.format("<w:b/><w:sz/>", "a cow"), "", "")
    right = body.format(
        "<w:bidi/>", run.format("<w:b/><w:bCs/><w:sz/><w:szCs/><w:rtl/>", "COW A"), "<w:bidiVisual/>", "<w:bidi/>"
    )
    assert word(left, "en", "ar").startswith(right)
    assert 'w:bidi w:val="0"/>' in word(right, "ar", "en") and 'w:rtl w:val="0"/>' in word(right, "ar", "en")
    assert "bidi" not in word(left, "en", "de") and "rtl" not in word(left, "en", "de")


def test_open_documents() -> None:
    layout = "<style:page-layout><style:page-layout-properties{}/></style:page-layout>"
    default = '<style:default-style style:family="paragraph"><style:paragraph-properties{}/></style:default-style>'
    own = '<style:style style:name="a" style:family="paragraph"><style:paragraph-properties {}/></style:style>'
    styles = (
        f"<office:styles>{default}{own}{own}</office:styles><office:automatic-styles>{layout}</office:automatic-styles>"
    )

    def written(*modes: str) -> str:
        return styles.format(*(f' style:writing-mode="{mode}"' if mode else "" for mode in modes))

    def after(inner: str, source: str, target: str) -> str:
        stand_in = StandIn(backwards, language=source, target=target)
        new = translate_document(stand_in, document("<text:p>a cow</text:p>", inner), format="odt").content  # type: ignore[arg-type]
        return re.sub(r"\A.*?(?=<office:styles>)", "", parts(new)["styles.xml"].decode(), flags=re.DOTALL)

    assert after(written("page", "lr-tb", "tb-rl", ""), "en", "ar").startswith(
        written("rl-tb", "rl-tb", "tb-rl", "rl-tb")
    )
    assert after(written("", "", "rl", "rl-tb"), "fa", "en").startswith(written("lr-tb", "", "lr", "lr-tb"))
    assert after(written("page", "", "", ""), "en", "de").startswith(written("page", "", "", ""))


@pytest.mark.parametrize(
    ("format", "text", "before", "after"),
    [
        ("json", '{{"dir": "{}", "a": "a cow"}}', "ltr", "rtl"),
        ("properties", "direction={}\na=a cow\n", "ltr", "rtl"),
        ("rails", "ar:\n  direction: {}\n  a: a cow\n", "ltr", "rtl"),
        ("po", '#, fuzzy\nmsgctxt "text direction"\nmsgid "ltr"\nmsgstr "{}"\n', "", "rtl"),
        ("po", '#, fuzzy\nmsgid "default:LTR"\nmsgstr "{}"\n', "", "default:RTL"),
    ],
)
def test_messages_that_state_a_direction(format: str, text: str, before: str, after: str) -> None:
    for target, expected in (("ar", after), ("de", after.replace("rtl", "ltr").replace("RTL", "LTR"))):
        stand_in = StandIn(backwards, language="en", target=target)
        source = text.format(before).replace("ar:", "en:")
        found = translate_document(stand_in, source, format=format).text  # type: ignore[arg-type]
        assert found == text.format(expected).replace("a cow", "COW A").replace("ar:", f"{target}:")
