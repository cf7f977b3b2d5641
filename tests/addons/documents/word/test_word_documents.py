"""Word documents with random runs, links, fields and changes: no text is lost, elements stay, the result opens."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from stand_in_translators import StandIn, Write, anyhow, backwards, same, upper
from word_documents import document, field, formatted, opened, paragraph, parts, run

from dragoman.addons.documents.document import translate_document

pytest.importorskip("sentencex")

WORDS = st.lists(
    st.sampled_from(["dog", "runs", "Two", "men.", "park,", "é日", "(big)", "a&lt;b"]), min_size=1, max_size=5
)
FORMATS = st.sampled_from(
    ["", "", "<w:b/>", "<w:i/>", "<w:b/><w:i/>", '<w:color w:val="FF0000"/>', '<w:lang w:val="en"/>']
)
RUNS = st.builds(
    lambda words, format, blank: run(" ".join(words) + blank, format),
    WORDS,
    FORMATS,
    st.sampled_from(["", " ", " ", "  ", "    "]),
)
THINGS = st.sampled_from(
    [
        "<w:r><w:tab/></w:r>",
        "<w:r><w:br/></w:r>",
        "<w:r><w:drawing/></w:r>",
        '<w:bookmarkStart w:id="1" w:name="x"/>',
        '<w:r><w:footnoteReference w:id="2"/></w:r>',
        '<w:r><w:fldChar w:fldCharType="end"/></w:r>',
        '<w:del w:id="1"><w:r><w:delText>old</w:delText></w:r></w:del>',
        "<w:r><w:rPr><w:b/></w:rPr><w:t xml:space='preserve'> </w:t><w:softHyphen/></w:r>",
        "<!-- a remark -->",
        field("PAGE", run("17")),
    ]
)


def around(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    text = st.lists(inner, max_size=3).map("".join)
    return st.one_of(
        text.map('<w:hyperlink r:id="rId1">{}</w:hyperlink>'.format),
        text.map('<w:ins w:id="3" w:author="x">{}</w:ins>'.format),
        text.map("<w:sdt><w:sdtPr/><w:sdtContent>{}</w:sdtContent></w:sdt>".format),
        text.map(lambda text: field("HYPERLINK x", text)),
    )


PARAGRAPHS = st.lists(st.recursive(RUNS | RUNS | THINGS, around, max_leaves=8), max_size=6).map(
    lambda inner: paragraph(*inner)
)
_FEW = settings(max_examples=60, deadline=None)


def translated(content: bytes, write: Write, **of_translator: bool) -> bytes:
    translator = StandIn(write, **of_translator)
    return translate_document(translator, content, format="docx").content  # type: ignore[arg-type]


def body(content: bytes) -> etree._Element:
    return etree.fromstring(parts(content)["word/document.xml"])


def things(content: bytes) -> Counter[str]:
    """Return all elements that are neither text nor formatting."""
    names = (each.tag.rpartition("}")[2] for each in body(content).iter() if isinstance(each.tag, str))
    return Counter(name for name in names if name not in ("r", "rPr", "t", "b", "i", "lang", "color"))


def words(content: bytes) -> list[list[str]]:
    """Return the visible text of each paragraph."""
    found = []
    for pieces in formatted(content):
        texts = [" " if text in ("<tab>", "<br>") else text for text, _, _ in pieces]
        found.append("".join(text for text in texts if not text.startswith("<")).split())
    return found


@_FEW
@given(
    paragraphs=st.lists(PARAGRAPHS, min_size=1, max_size=2),
    write=st.sampled_from([upper, backwards, anyhow]),
    aligns=st.booleans(),
)
def test_each_element_is_kept_once(paragraphs: list[str], write: Write, aligns: bool) -> None:
    before = document(*paragraphs)
    after = translated(before, write, aligns=aligns)
    assert things(after) == things(before)
    assert len(opened(after).paragraphs) == len(paragraphs)


@_FEW
@given(paragraphs=st.lists(PARAGRAPHS, min_size=1, max_size=2))
def test_no_text_is_lost(paragraphs: list[str]) -> None:
    before = document(*paragraphs)
    assert translated(before, same) == before
    upper_case = [[word.upper() for word in each] for each in words(before)]
    assert [[word.upper() for word in each] for each in words(translated(before, upper))] == upper_case
