"""TMX: the same pairs as a tree parser, languages, inline codes, bounded memory, and rejected files."""

import gzip
import random
import tracemalloc
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pydantic import ValidationError

from dragoman.base.errors import DataError
from dragoman.cli.main import main
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.readers import read_pairs, read_sides

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><header/><body>\n'
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def unit(**sides: str) -> str:
    variants = (f'<tuv xml:lang="{code.replace("_", "-")}"><seg>{text}</seg></tuv>' for code, text in sides.items())
    return f"<tu>{''.join(variants)}</tu>\n"


def corpus(folder: Path, *units: str, head: str = HEAD, **settings: Any) -> CorpusConfig:
    path = folder / "memory.tmx"
    path.write_text(head + "".join(units) + "</body></tmx>\n", encoding="utf-8")
    return CorpusConfig(tmx=path, **{"source_code": "en", "target_code": "de", **settings})


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
    for tree in ElementTree.parse(str(found.tmx)).iter("tu"):
        sides = {variant.get(XML_LANG): "".join(variant.find("seg").itertext()) for variant in tree.iter("tuv")}  # type: ignore[union-attr]
        expected.append((sides["en"], sides["de"]))
    assert [(pair.source, pair.target) for pair in read_pairs(found)] == expected
    assert [pair.line for pair in read_pairs(found)] == list(range(4, 504))


def test_languages_match_their_regions_and_the_first_variant_counts(tmp_path: Path) -> None:
    units = [unit(EN_us="colour", de_AT="Farbe", en="color", de="Farben"), '<tu><tuv lang="en"><seg>x</seg></tuv>'
             '<prop>y</prop><tuv lang="DE"><seg/></tuv></tu>']  # fmt: skip
    assert list(read_pairs(corpus(tmp_path, *units))) == [Pair(4, "colour", "Farbe"), Pair(5, "x", "")]
    exact = corpus(tmp_path, *units, source_code="en-US", target_code="de")
    assert [pair.complete for pair in read_pairs(exact)] == [True, False]


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
    assert list(read_pairs(CorpusConfig(tmx=path, source_code="en", target_code="de"))) == [Pair(4, "a", "grün")]


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
        list(read_pairs(CorpusConfig(tmx=path, source_code="en", target_code="de")))


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


def test_both_languages_must_be_named() -> None:
    with pytest.raises(ValidationError, match="requires the languages `source_code` and `target_code`"):
        CorpusConfig(tmx=Path("a"), source_code="en")


def test_the_command_reports_units_that_lack_a_language(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = corpus(tmp_path, unit(en="a dog", de="ein Hund"), unit(en="c", fr="d"), unit(en="a dog", de="ein Hund"))
    arguments = ["data", "check", "--tmx", str(found.tmx), "--source-code", "en"]
    assert main([*arguments, "--target-code", "de"]) == 0
    said = capsys.readouterr().out
    assert "3 pairs read, 1 kept" in said
    assert "a language missing" in said and "lines 5" in said
    assert "duplicate pair" in said and "lines 6" in said
    assert main(arguments) == 2
    assert "--target-code" in capsys.readouterr().err
