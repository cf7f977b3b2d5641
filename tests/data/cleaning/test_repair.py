"""Repair: control and invisible characters, and the escapes that other tools leave."""

import html
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.data.cleaning.repair import (
    character_name,
    find_control_characters,
    find_escapes,
    is_binary,
    repair_control_characters,
    unescape,
)


@pytest.mark.parametrize(
    ("text", "document", "line"),
    [
        ("one page\fthe next", "one page\nthe next", "one page the next"),
        ("end\n\f\nCHAPTER", "end\n\nCHAPTER", "end CHAPTER"),
        ("\fCHAPTER", "CHAPTER", "CHAPTER"),
        ("the end\f", "the end", "the end"),
        ("a\vb", "a\nb", "a b"),
        ("a\rb", "a\nb", "a b"),
        ("a\r\nb", "a\nb", "a b"),
        ("a\x85b", "a\nb", "a b"),
        ("a \x1f b", "a \n b", "a b"),
        ("a\0b", "ab", "ab"),
        ("\ufeffa\ufeffb", "ab", "ab"),
        ("soft\xadhyphen", "softhyphen", "softhyphen"),
        ("zero\u200bwidth", "zerowidth", "zerowidth"),
        ("word\u2060joiner\uffff", "wordjoiner", "wordjoiner"),
        ("\x1b[1;31mred\x1b[0m", "red", "red"),
        ("N\bNA\bAME", "NAME", "NAME"),
        ("Das \x96 ist \x93gut\x94", "Das – ist “gut”", "Das – ist “gut”"),
        ("StraÃ\x9fe hÃ¤tte donâ\x80\x99t", "Straße hätte don’t", "Straße hätte don’t"),
    ],
)
def test_each_character_costs_only_itself(text: str, document: str, line: str) -> None:
    assert repair_control_characters(text, newlines=True) == document
    assert repair_control_characters(text, newlines=False) == line


@pytest.mark.parametrize(
    "text",
    [
        "a\ttab and\u2028more",
        "می\u200cخواهم",  # Persian needs the zero-width non-joiner
        "ශ්\u200dරී ලංකා",  # and Sinhala the joiner
        "👨\u200d👩\u200d👧 👍🏽",
        "\u202bעברית\u202c \u200f(א)",
        "ភាសា\u200bខ្មែរ",  # in scripts without spaces, zero-width spaces divide words
        "ภาษา\u200bไทย",
        "café ÂŽ Ã¤",  # without a control character, these letters may be meant
    ],
)
def test_characters_with_a_meaning_stay(text: str) -> None:
    assert repair_control_characters(text, newlines=False) == text
    assert find_control_characters(text, newlines=False) == []


def test_a_passage_that_continues_a_document_keeps_its_page_break() -> None:
    assert repair_control_characters("\fnext", newlines=True, begins=False) == "\nnext"
    assert repair_control_characters("last\f", newlines=True, ends=False) == "last\n"


@pytest.mark.parametrize("code", [*range(9), *range(0xB, 0x20), *range(0x7F, 0xA0), 0xAD, 0xFEFF, 0x2060, 0xFFFE])
def test_every_character_is_named_and_none_stays(code: int) -> None:
    text = f"before{chr(code)}after"
    (found,) = find_control_characters(text, newlines=False)
    assert found == (character_name(chr(code)), 6)
    assert found.name.startswith(f"U+{code:04X} ")
    for newlines in (False, True):
        repaired = repair_control_characters(text, newlines)
        assert not any(
            unicodedata.category(character) in ("Cc", "Cf", "Cn") for character in repaired.replace("\n", "")
        )
        assert repaired.startswith("before") and repaired.endswith("after")


def test_names_are_those_of_unicode() -> None:
    for code in (*range(9), *range(0xB, 0x20), *range(0x7F, 0x86)):
        name = character_name(chr(code)).partition(" ")[2]
        if name != "control character":
            assert unicodedata.lookup(name.upper()) == chr(code)


@settings(deadline=None)
@given(
    st.text(st.sampled_from("aé人\u0e01 \t\n\r\f\v\0\x08\x1b[m\x80\x85\x9f\xc3\xe2\u200b\u200d\xad\ufeff"), max_size=30)
)
def test_repaired_text_needs_no_repair(text: str) -> None:
    for newlines in (False, True):
        repaired = repair_control_characters(text, newlines)
        assert repair_control_characters(repaired, newlines) == repaired
        assert find_control_characters(repaired, newlines) == []
        assert (repaired == text) or find_control_characters(text, newlines) or "\r\n" in text


def test_binary_data_are_no_text() -> None:
    assert is_binary("UTF-16 as bytes".encode("utf-16-le").decode("latin-1"))
    assert not is_binary("a\0b")
    assert not is_binary("N\bNA\bAM\bME\bE\x1b[0m")
    assert not is_binary("\f\n" * 20)
    assert not is_binary("A manual\b\b page with a few \x07 bells\x07 and one more \x1b[0m." * 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tom &amp; Jerry don&apos;t like &quot;it&quot;.", 'Tom & Jerry don\'t like "it".'),
        ("5 &lt; 6 &#8364; &#x20AC;", "5 < 6 € €"),
        ("a well @-@ known dog , 1 @,@ 000 @.@ 5", "a well-known dog , 1,000.5"),
        ("a &#124; b &#91; c &#93; &lbrack; &bar; &bra; &ket;", "a | b [ c ] [ | [ ]"),
        ("m&ouml;gen", "mögen"),
        ("&amp;quot;twice&amp;quot;", '"twice"'),
    ],
)
def test_escapes_of_moses_and_html(text: str, expected: str) -> None:
    assert unescape(text) == expected
    assert find_escapes(text)
    assert find_escapes(expected) == []


@pytest.mark.parametrize("text", ["AT&T; R&D", "a & b;", "me@-@home a@b.org", "&notaname;", "x&y", "a @ b @-"])
def test_other_text_is_no_escape(text: str) -> None:
    assert find_escapes(text) == []
    assert unescape(text) == text


@given(st.text(max_size=40))
def test_what_html_escapes_is_restored(text: str) -> None:
    escaped = html.escape(text)
    if not find_escapes(text):
        assert unescape(escaped) == text
