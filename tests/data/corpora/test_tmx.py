"""TMX: the same pairs as a tree parser, languages, inline codes, bounded memory, and rejected files."""

import gzip
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from dragoman.base.errors import DataError
from dragoman.cli.main import main
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.pairs import tmx
from dragoman.data.corpora.readers import check_readable, read_pairs, read_sides
from dragoman.data.files import xml

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><header/><body>\n'
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def unit(**sides: str) -> str:
    variants = (f'<tuv xml:lang="{code.replace("_", "-")}"><seg>{text}</seg></tuv>' for code, text in sides.items())
    return f"<tu>{''.join(variants)}</tu>\n"


def corpus(folder: Path, *units: str, head: str = HEAD, **settings: Any) -> CorpusConfig:
    path = folder / "memory.tmx"
    path.write_text(head + "".join(units) + "</body></tmx>\n", encoding="utf-8")
    return CorpusConfig(pairs=path, format="tmx", **{"source_code": "en", "target_code": "de", **settings})


def memory(path: Path) -> CorpusConfig:
    return CorpusConfig(pairs=path, format="tmx", source_code="en", target_code="de")


def test_the_pairs_are_those_of_a_tree_parser(tmp_path: Path) -> None:
    draw = random.Random(1)
    texts = [
        "dog",
        "a &amp; b",
        "&#x1F600;",
        "<![CDATA[x < y]]>",
        "grün",
        "<hi>warm</hi> red",
        "a<hi>b<hi>c</hi></hi>d",
    ]
    units = [
        unit(**{code: f"{number} {draw.choice(texts)}" for code in draw.sample(["en", "de", "fr"], 3)})
        for number in range(500)
    ]
    found = corpus(tmp_path, *units)
    expected = []
    for tree in ElementTree.parse(str(found.pairs)).iter("tu"):
        sides = {variant.get(XML_LANG): "".join(variant.find("seg").itertext()) for variant in tree.iter("tuv")}  # type: ignore[union-attr]
        expected.append((sides["en"], sides["de"]))
    assert [(pair.source, pair.target) for pair in read_pairs(found)] == expected
    assert [pair.line for pair in read_pairs(found)] == list(range(4, 504))


def test_languages_match_their_regions_and_the_best_variant_counts(tmp_path: Path) -> None:
    units = [unit(EN_us="colour", de_AT="Farbe", en="color", de="Farben"), '<tu><tuv lang="en"><seg>x</seg></tuv>'
             '<prop>y</prop><tuv lang="DE"><seg/></tuv></tu>']  # fmt: skip
    assert list(read_pairs(corpus(tmp_path, *units))) == [Pair(4, "color", "Farben"), Pair(5, "x", "")]
    region = corpus(tmp_path, *units, source_code="eng_us", target_code="deu_AT")
    assert list(read_pairs(region)) == [Pair(4, "colour", "Farbe"), Pair(5, "x", "")]
    first = corpus(tmp_path, unit(de_AT="Jänner", de_CH="Januar", en="January"), target_code="de")
    assert list(read_pairs(first)) == [Pair(4, "January", "Jänner")]


def test_the_codes_of_the_file_are_named_if_no_unit_has_both_languages(tmp_path: Path) -> None:
    units = [unit(en_GB="a", fr="b")] * 3 + [unit(de="c")]
    for settings in ({"source_code": "en-US"}, {"target_code": "de"}, {"source_code": "xx", "target_code": "yy"}):
        with pytest.raises(DataError) as caught:
            list(read_pairs(corpus(tmp_path, *units, **settings)))
        assert "The language codes of the file are: en-GB (3), fr (3), de (1)" in str(caught.value)
        with pytest.raises(DataError, match="no unit contains both"):
            check_readable(corpus(tmp_path, *units, **settings))


BROKEN_UNITS = {
    "ampersand": unit(en="AT&T", de="x"),
    "entity": unit(en="a&nbsp;b", de="x"),
    "control character": unit(en="a\x0bb", de="x"),
    "character reference": unit(en="a&#x1F;b", de="x"),
    "less-than sign": unit(en="a < b", de="x"),
    "overlap": '<tu><tuv xml:lang="en"><seg>a</tuv></seg></tu>\n',
    "not closed": '<tu><tuv xml:lang="en"><seg>a</seg></tuv>\n',
    "closed twice": unit(en="a", de="b").strip().removesuffix("</tu>") + "</tuv></tu>\n",
    "attribute": "<tu tuid=1>" + unit(en="a", de="b").removeprefix("<tu>"),
    "duplicate attribute": '<tu a="1" a="2">' + unit(en="a", de="b").removeprefix("<tu>"),
    "quote": '<tu note="abc><tuv xml:lang="en"><seg>a</seg></tuv></tu>\n',
}


@pytest.mark.parametrize("name", BROKEN_UNITS)
@pytest.mark.parametrize("chunk", [1, 7, 1 << 16])
def test_a_broken_unit_costs_only_itself(
    tmp_path: Path, name: str, chunk: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tmx, "read_xml", lambda path: divided(path.read_bytes(), chunk))
    found = corpus(
        tmp_path, unit(en="1", de="eins"), BROKEN_UNITS[name], unit(en="2", de="zwei"), unit(en="3", de="drei")
    )
    assert list(read_pairs(found)) == [Pair(4, "1", "eins"), Pair(6, "2", "zwei"), Pair(7, "3", "drei")]
    assert "1 of 4 units contain broken XML and are skipped (lines 5)" in capsys.readouterr().err


OPEN_MARKUP = {
    "comment": "<!-- checked by Anna\n",
    "comment with units": "<!-- " + unit(en="draft", de="Entwurf").strip() + "\n",
    "comment before another": "<!-- first\n<!-- second -->\n",
    "processing instruction": "<?note checked by Anna\n",
    "CDATA section": "<![CDATA[ checked by Anna\n",
}


@pytest.mark.parametrize("name", OPEN_MARKUP)
@pytest.mark.parametrize("chunk", [1, 7, 1 << 16])
def test_markup_without_an_end_costs_no_other_unit(
    tmp_path: Path, name: str, chunk: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tmx, "read_xml", lambda path: divided(path.read_bytes(), chunk))
    units = [unit(en=str(number), de=f"Nummer {number}") for number in range(9)]
    inside = unit(en="inside", de="x").replace("inside", "in" + OPEN_MARKUP[name].strip() + "side")
    complete = {pair.source for pair in read_pairs(corpus(tmp_path, *units[:3], OPEN_MARKUP[name], *units[3:]))}
    assert complete - {"draft"} == set(map(str, range(9)))
    warning = capsys.readouterr().err
    assert "comments or other markup without an end are ignored (lines 7)" in warning
    within = {pair.source for pair in read_pairs(corpus(tmp_path, *units[:3], inside, *units[3:]))}
    assert within - {"draft"} == set(map(str, range(9)))
    assert "units contain broken XML and are skipped (lines 7)" in capsys.readouterr().err


def test_a_long_comment_without_an_end_costs_no_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "_LONGEST_TAG", 1000)
    monkeypatch.setattr(tmx, "read_xml", lambda path: divided(path.read_bytes(), 256))
    units = [unit(en=str(number), de=f"Nummer {number}") for number in range(100)]
    for end in ("", "<!-- closed -->\n"):
        found = corpus(tmp_path, *units[:3], "<!-- open\n", *units[3:80], end, *units[80:])
        assert [pair.source for pair in read_pairs(found)] == list(map(str, range(100)))


def test_a_comment_before_the_units_must_have_an_end(tmp_path: Path) -> None:
    path = tmp_path / "memory.tmx"
    path.write_text(HEAD.replace("<body>", "<!-- open\n<body>") + unit(en="a", de="b") + "</body></tmx>\n")
    with pytest.raises(DataError, match=r"line \d: the comment that starts here is not closed. Close it with -->"):
        list(read_pairs(memory(path)))


def divided(content: bytes, size: int) -> Iterator[bytes]:
    return (content[start : start + size] for start in range(0, len(content), size))


def test_a_file_that_ends_in_a_broken_unit_is_truncated(tmp_path: Path) -> None:
    path = tmp_path / "memory.tmx"
    for end in (unit(en="a & b", de="x"), unit(en="a", de="x")[:-9]):
        path.write_text(HEAD + unit(en="a", de="b") * 3 + end, encoding="utf-8")
        with pytest.raises(DataError, match=r"line 7: broken XML|line 8: broken XML"):
            list(read_pairs(memory(path)))


def test_a_file_in_which_most_units_are_broken_is_rejected(tmp_path: Path) -> None:
    found = corpus(tmp_path, unit(en="1", de="eins"), *[unit(en="a & b", de="x")] * 2)
    with pytest.raises(DataError, match=r"line 5: broken XML"):
        list(read_pairs(found))


@pytest.mark.parametrize("encoding", ["shift_jis", "gb18030", "windows-1252", "utf-16-le"])
def test_declared_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "memory.tmx"
    name = encoding.removesuffix("-le")
    text = "größer" if encoding == "windows-1252" else "一人"
    path.write_bytes((HEAD.replace("UTF-8", name) + unit(en="a", de=text) + "</body></tmx>").encode(encoding))
    assert list(read_pairs(memory(path))) == [Pair(4, "a", text)]


def test_a_file_that_only_declares_utf16_is_read_as_utf8(tmp_path: Path) -> None:
    found = corpus(tmp_path, unit(en="a", de="grün"), head=HEAD.replace("UTF-8", "utf-16"))
    assert list(read_pairs(found)) == [Pair(4, "a", "grün")]


def test_a_file_in_another_encoding_than_declared_is_rejected_with_a_command(tmp_path: Path) -> None:
    path = tmp_path / "memory.tmx"
    path.write_bytes((HEAD + unit(en="a", de="größer") * 9 + "</body></tmx>").encode("cp1252"))
    with pytest.raises(DataError, match=r"is not UTF-8.*iconv -f windows-1252"):
        list(read_pairs(memory(path)))


def test_inline_codes_are_removed_and_text_is_kept(tmp_path: Path) -> None:
    text = (
        'Click <bpt i="1">&lt;b&gt;<sub>title</sub></bpt>here<ept i="1">&lt;/b&gt;</ept>,\n  <hi>now</hi><ph>{1}</ph>.'
    )
    assert list(read_pairs(corpus(tmp_path, unit(en=text, de=" <it>x</it>ja ")))) == [Pair(4, "Click here, now.", "ja")]


def test_units_that_lack_a_language_are_marked_and_skipped_in_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = corpus(tmp_path, unit(en="a", fr="b"), unit(en="c", de="d"), "<tu/>")
    assert [pair.complete for pair in read_pairs(found)] == [False, True, False]
    assert read_sides(found) == (["c"], ["d"])
    assert "2 units lack one of the languages" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "iso-8859-1"])
def test_encodings_and_compression(tmp_path: Path, encoding: str) -> None:
    head = HEAD.replace("UTF-8", "iso-8859-1" if encoding.startswith("iso") else encoding.removesuffix("-sig"))
    path = tmp_path / "memory.tmx.gz"
    path.write_bytes(gzip.compress((head + unit(en="a", de="grün") + "</body></tmx>").encode(encoding)))
    assert list(read_pairs(memory(path))) == [Pair(4, "a", "grün")]


BOMB = '<!DOCTYPE tmx [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>\n<tmx><body>'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (BOMB + unit(en="&b;", de="x") + "</body></tmx>", "line 1: a DTD inside the file is not allowed"),
        (HEAD + unit(en="&undefined;", de="x") + "</body></tmx>", "line 4: unknown entity &undefined;"),
        (HEAD + "<tu><tuv xml:lang='en'><seg>a</tuv></tu>", "line 4: broken XML .mismatched tag"),
        (HEAD + unit(en="a", de="b"), "line 5: broken XML .no element found"),
        ("<xliff><body/></xliff>", "line 1: this is not a TMX file: its root element is <xliff>"),
        ("dog\tHund\n", "line 1: broken XML"),
        (HEAD + "</body></tmx>", "is empty"),
        (HEAD + "<tu><tuv xml:lang='en'><seg>" + "a" * (17 << 20), "line 4: a unit of more than"),
        (HEAD + "<tu note='" + "a" * (5 << 20), "line 4: a tag of more than"),
    ],
)  # fmt: skip
def test_errors_name_the_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "memory.tmx"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        list(read_pairs(memory(path)))


def test_external_entities_are_never_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    head = f'<!DOCTYPE tmx SYSTEM "{secret}">\n<tmx><body>'
    assert list(read_pairs(corpus(tmp_path, unit(en="a", de="b"), head=head))) == [Pair(2, "a", "b")]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    def peak(units: int) -> int:
        found = corpus(tmp_path, *(unit(en=f"sentence {number}", de="Satz") for number in range(units)))
        tracemalloc.start()
        assert sum(1 for _ in read_pairs(found)) == units
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(10)
    assert peak(10_000) < 1.2 * peak(2_000)


def test_the_command_reports_units_that_lack_a_language(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = corpus(tmp_path, unit(en="a dog", de="ein Hund"), unit(en="c", fr="d"), unit(en="a dog", de="ein Hund"))
    arguments = ["data", "check", f"data.train.pairs={found.pairs}", "data.train.source_code=en"]
    assert main([*arguments, "data.train.target_code=de"]) == 0
    said = capsys.readouterr().out
    assert "3 pairs read, 1 kept" in said
    assert "a language missing" in said and "lines 5" in said
    assert "duplicate pair" in said and "lines 6" in said
    assert main(arguments) == 1
    assert "target_code" in capsys.readouterr().err
