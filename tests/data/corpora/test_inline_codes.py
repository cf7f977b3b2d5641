"""Inline codes: a space where words would be glued, and nowhere else."""

import pytest

from dragoman.data.corpora.pairs.inline_codes import Code, join_inline

CASES = [
    ("Press", "ph", "<br/>", "Enter", "Press Enter"),
    ("Press", "it", "<tab/>", "Enter", "Press Enter"),
    ("Press", "ut", "", "Enter", "Press Enter"),
    ("Press", "x", "", "Enter", "Press Enter"),
    ("Press", "ph", "{1}", "Enter", "Press Enter"),
    ("Press ", "ph", "<br/>", "Enter", "Press Enter"),
    ("Press", "ph", "<br/>", " Enter", "Press Enter"),
    ("now", "ph", "{1}", ".", "now."),
    ("now", "ph", "<br/>", ", then", "now, then"),
    ("(", "ph", "{1}", "now", "(now"),
    ("Name:", "it", "<tab/>", "Smith", "Name: Smith"),
    ("End.", "ph", "<br/>", "Start", "End. Start"),
    ("End", "ph", r"\n", "(Start)", "End (Start)"),
    ("“", "ph", "<br/>", "Start", "“Start"),
    ("Title", "bpt", "<p>", "Text", "Title Text"),
    ("Title", "ept", "</td>", "Text", "Title Text"),
    ("un", "bpt", "<b>", "believable", "unbelievable"),
    ("un", "ept", "</i>", "believable", "unbelievable"),
    ("H", "ph", "<sub>", "2", "H2"),
    ("un", "ut", "{\\b ", "believable", "unbelievable"),
    ("un", "ph", "&shy;", "believable", "unbelievable"),
    ("un", "ph", "\u00ad", "believable", "unbelievable"),
    ("10", "ph", "{1}", "20", "10 20"),
    ("Straße", "ph", "\t", "Ärger", "Straße Ärger"),
    ("первая", "ph", "<br/>", "строка", "первая строка"),
    ("الأول", "ph", "<br/>", "الثاني", "الأول الثاني"),
    ("पहली", "ph", "<br/>", "पंक्ति", "पहली पंक्ति"),
    ("첫째", "ph", "<br/>", "줄", "첫째 줄"),
    ("cafe\u0301", "ph", "<br/>", "noir", "cafe\u0301 noir"),
    ("第一行", "ph", "<br/>", "第二行", "第一行第二行"),
    ("ひらがな", "ph", "<br/>", "カタカナ", "ひらがなカタカナ"),
    ("บรรทัด", "ph", "<br/>", "แรก", "บรรทัดแรก"),
    ("ပထမ", "it", "<br/>", "လိုင်း", "ပထမလိုင်း"),
    ("ជួរ", "x", "", "ទីមួយ", "ជួរទីមួយ"),
    ("按", "ph", "{1}", "Enter", "按Enter"),
    ("", "ph", "<br/>", "start", "start"),
    ("end", "ph", "<br/>", "", "end"),
]


@pytest.mark.parametrize(("left", "element", "content", "right", "expected"), CASES)
def test_a_code_becomes_a_space_only_between_words(
    left: str, element: str, content: str, right: str, expected: str
) -> None:
    assert join_inline([left, Code(element, content), right]) == expected


def test_the_type_of_a_code_decides_before_its_content() -> None:
    assert join_inline(["a", Code("ph", "{1}", "lb"), "b"]) == "a b"
    assert join_inline(["a", Code("it", "{1}", "bold"), "b"]) == "ab"


def test_several_codes_in_a_row_become_one_space() -> None:
    codes = [Code("ept", "</b>"), Code("ph", "<br/>"), Code("bpt", "<b>")]
    assert join_inline(["one", *codes, "two"]) == "one two"
    assert join_inline(["one", codes[0], codes[2], "two"]) == "onetwo"
