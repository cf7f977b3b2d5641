"""Encodings of files: what a file shows or names is read, and the translation is written so that it is read, too."""

import codecs
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from stand_in_translators import StandIn, same, upper

from dragoman.addons.documents.document import read_document, translate_document
from dragoman.addons.documents.formats.encoding import EncodingError, likely_encoding, unmarked_encoding
from dragoman.base.errors import ConfigError, DataError

pytest.importorskip("sentencex")

SRT = "1\r\n00:00:01,000 --> 00:00:02,000\r\nA dog in a café.\r\n"
META = '<html><head><meta charset="{}"><title>a café</title></head><p>a dog</p></html>'


def translated(data: bytes, format: str, to: str | None = None, encoding: str | None = None) -> bytes:
    """Return the translation in capitals, or the text `to`."""
    translator = StandIn(upper if to is None else lambda words: [(to, 0)])
    return translate_document(translator, data, format=format, encoding=encoding).content  # type: ignore[arg-type]


@pytest.mark.parametrize("format", ["text", "markdown", "html", "srt", "vtt"])
@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_unicode_encodings_are_recognised_and_kept(format: str, codec: str) -> None:
    for mark in (codec[-2:] in ("le", "be"), False):
        text = {"srt": SRT, "vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\nA dog in a café.\n"}.get(format, "A café.\n")
        data = ("\ufeff" * mark + text).encode(codec)
        found = translated(data, format)
        assert found.decode(codec) == ("\ufeff" * mark + text).replace("A dog in a café", "A DOG IN A CAFÉ").replace(
            "A café", "A CAFÉ"
        )
        assert translate_document(StandIn(same), data, format=format).content == data  # type: ignore[arg-type]


def test_json_in_utf_16() -> None:
    data = '{"a": "a café"}'.encode("utf-16")
    assert translated(data, "json").decode("utf-16") == '{"a": "A CAFÉ"}'


@pytest.mark.parametrize("text", ["犬が走る。\r\n", "Собака бежит по улице.\n", "A dog.\n"])
def test_utf_16_without_a_mark_is_recognised_in_any_script(text: str) -> None:
    for codec in ("utf-16-le", "utf-16-be"):
        found = unmarked_encoding((text * 30).encode(codec))
        assert found is not None and found.codec == codec


@pytest.mark.parametrize("data", [b"", b"a", b"a dog\0b", "犬が走る。".encode(), b"\0\0\0\0", b"ab\0cd\0\0"])
def test_other_bytes_are_not_utf_16(data: bytes) -> None:
    found = unmarked_encoding(data)
    assert found is not None and found.codec == "utf-8"


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("iso-8859-1", "cp1252"),
        ("ISO-8859-1 ", "cp1252"),
        ("us-ascii", "cp1252"),
        ("windows-1250", "cp1250"),
        ("utf-8", "utf-8"),
        ("utf-16", "utf-8"),
        ("gb2312", "gbk"),
        ("shift_jis", "cp932"),
        ("koi8-r", "koi8-r"),
        ("no-such-encoding", "utf-8"),
    ],
)
def test_the_encoding_that_a_page_names(label: str, codec: str) -> None:
    """Labels mean what they mean to browsers; other characters are references."""
    word = {"gbk": "狗", "cp932": "犬", "koi8-r": "пёс"}.get(codec, "é")
    page = META.format(label).replace("é", word)
    found = translated(page.encode(codec), "html", "ß犬я")
    expected = page.replace("a caf" + word, "ß犬я").replace("a dog", "ß犬я")
    if label == "no-such-encoding":
        expected = expected.replace(label, "utf-8")
    assert found == expected.encode(codec, "xmlcharrefreplace")
    assert translated(page.encode(codec), "html").decode(codec).count(word.upper()) == 1


@pytest.mark.parametrize(
    "declaration",
    [
        "<meta http-equiv='Content-Type' content='text/html; charset=windows-1251'>",
        "<meta content=text/html;charset=windows-1251 http-equiv=content-type>",
        "<META CHARSET=windows-1251>",
        "<!-- <meta charset=utf-8> --><meta charset=windows-1251><meta charset=koi8-r>",
        "<?xml version='1.0' encoding='windows-1251'?><html>",
    ],
)
def test_forms_of_the_declaration(declaration: str) -> None:
    page = declaration + "<p>пёс"
    assert translated(page.encode("cp1251"), "html").decode("cp1251") == declaration + "<p>ПЁС"


def test_precedence_of_declarations() -> None:
    page = META.format("koi8-r")
    marked = codecs.BOM_UTF8 + page.encode()
    assert (
        translated(marked, "html")
        == codecs.BOM_UTF8
        + page.replace("koi8-r", "utf-8").replace("a café", "A CAFÉ").replace("a dog", "A DOG").encode()
    )
    named = translated(page.encode("cp1250"), "html", encoding="cp1250")
    assert b'charset="windows-1250"' in named and "A CAFÉ".encode("cp1250") in named
    late = "<!--" + "x" * 1024 + "--><meta charset=koi8-r><p>"
    assert translated((late + "é").encode(), "html").decode() == late + "É"


def test_pages_without_a_declaration() -> None:
    # browsers guess the encoding of a whole page, and ASCII is read rightly in any case; fragments are parts of pages
    assert translated(b"<html><p>a dog", "html", "ß") == b"<html><p>&#223;"
    assert translated(b"<p>a dog", "html", "ß") == "<p>ß".encode()
    assert translated("<html><p>é dog".encode(), "html", "ß") == "<html><p>ß".encode()
    text = "<html><p>Zwei Männer spielen auf der Straße. Ein Mädchen läuft über die Brücke."
    assert translated(text.encode("latin-1"), "html") == b"<html><p>" + text[9:].upper().encode("latin-1")


def test_undefined_bytes_of_windows_encodings_are_kept() -> None:
    page = b"<meta charset=latin1><!-- \x81\x8d \x80 --><p>a dog"
    assert translated(page, "html") == page.replace(b"a dog", b"A DOG")
    assert translated(page, "html", "\x81\x80") == page.replace(b"a dog", b"\x81&#128;")


def test_a_named_encoding_of_text() -> None:
    assert translated(SRT.encode("cp1252"), "srt", encoding="cp1252") == SRT.replace(
        "A dog in a café", "A DOG IN A CAFÉ"
    ).encode("cp1252")
    assert translated("a café".encode("cp1252"), "text", "犬", encoding="latin1") == "犬".encode()


@pytest.mark.parametrize(
    ("format", "encoding", "message"),
    [
        ("text", "klingon", "unknown encoding 'klingon'"),
        ("text", "rot13", "unknown encoding 'rot13'"),
        ("text", "unicode_escape", "unknown encoding"),
        ("po", "latin1", "declare their encoding themselves"),
        ("docx", "latin1", "declare their encoding themselves"),
    ],
)
def test_invalid_names_of_encodings(format: str, encoding: str, message: str) -> None:
    data = (Path(__file__).parent / "none").name.encode()
    with pytest.raises(ConfigError, match=message):
        translated(data, format, encoding=encoding)
    with pytest.raises(ConfigError, match="only the bytes"):
        translate_document(StandIn(same), "a", encoding="utf-8")  # type: ignore[arg-type]


def test_broken_text_is_an_error_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = "A dog.\nZwei Männer spielen auf der Straße.\n".encode("latin-1")
    with pytest.raises(DataError) as raised:
        translated(data, "text")
    assert "line 2: broken UTF-8" in str(raised.value) and "--" not in str(raised.value)
    assert "iconv -f windows-1252 -t utf-8" in str(raised.value)
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(DataError, match="name its encoding: --encoding windows-1252"):
        read_document(tmp_path / "a.txt", "text")
    assert read_document(tmp_path / "a.txt", "text", "replace").content.count("\ufffd") == 2
    assert read_document(tmp_path / "a.txt", "text", encoding="latin1").content.count("ä") == 1
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(read=lambda: "a b".encode("utf-16")[:-1])))
    with pytest.raises(DataError, match="broken UTF-16"):
        read_document(None, "text")
    assert read_document(None, "text", "replace").content == "\ufeffa \ufffd"


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("Zwei Männer spielen auf der Straße.", "windows-1252"),
        ("Żółw i gęś szły ulicą, a pies ich gonił. Źdźbło trawy.", "windows-1250"),
        ("Собака бежит по улице, а кошка спит.", "windows-1251"),
        ("犬が走る。男の人が歩いている。", "shift_jis"),
    ],
)
def test_likely_encodings(text: str, codec: str) -> None:
    assert likely_encoding(text.encode(codec)) == codec
    error = EncodingError("line 1: broken UTF-8", codec).with_remedy("x=ENCODING")
    assert str(error) == f"line 1: broken UTF-8, or name its encoding: x={codec}"
