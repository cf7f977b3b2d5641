"""Files of sentence pairs: the same pairs in each format, header lines, languages, and errors in one line."""

import csv
import gzip
import io
import json
from pathlib import Path
from xml.sax.saxutils import escape

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.errors import DataError
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.readers import check_readable, read_pairs, read_sides
from dragoman.data.corpora.sentence_marks import remove_sentence_marks

PAIRS = [
    ("A dog runs on the beach.", "Ein Hund läuft am Strand."),
    ('He said: "Stop, please!"', "Er sagte: „Halt, bitte!“"),
    ("Fish & chips; 3 < 4", "Fisch & Pommes; 3 < 4"),
    ("It's raining.", "Es regnet."),
]


def table(delimiter: str, *header: str) -> str:
    output = io.StringIO()
    csv.writer(output, delimiter=delimiter, lineterminator="\r\n").writerows([header, *PAIRS] if header else PAIRS)
    return output.getvalue()


def tmx(**languages: str) -> str:
    units = "".join(
        f'<tu><tuv xml:lang="de-DE"><seg>{escape(target)}</seg></tuv><tuv xml:lang="{code}"><seg>{escape(source)}</seg>'
        "</tuv></tu>\n"
        for (source, target), code in zip(PAIRS, ["en-US", "en-GB", "en-US", "en"], strict=True)
    )
    return f'<tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>'


def xliff(version: int) -> str:
    old = '<trans-unit id="{}"><source>{}</source><target state="final">{}</target><alt-trans><source>x</source>' \
        '<target>y</target></alt-trans></trans-unit>\n'  # fmt: skip
    new = '<unit id="{}"><segment><source><pc id="1">{}</pc></source><target>{}<ph id="2"/></target></segment></unit>\n'
    template = old if version == 1 else new
    units = "".join(template.format(number, *map(escape, pair)) for number, pair in enumerate(PAIRS))
    if version == 1:
        head = '<xliff version="1.2"><file source-language="en" target-language="de" original="a"><body>'
        return f"{head}{units}</body></file></xliff>"
    head = '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de"><file id="f">'
    return f'<?xml version="1.0"?>\n{head}{units}</file></xliff>'


def po() -> str:
    catalogue = polib.POFile()
    catalogue.metadata = {"Content-Type": "text/plain; charset=utf-8", "Language": "de"}
    catalogue.extend(polib.POEntry(msgid=source, msgstr=target) for source, target in PAIRS)
    catalogue.append(polib.POEntry(msgid="Old", msgstr="Alt", obsolete=True))
    return str(catalogue)


def objects(source: str, target: str, inside: str | None = None) -> str:
    entries = ({source: one, target: other} for one, other in PAIRS)
    return "".join(json.dumps({inside: entry} if inside else entry) + "\n" for entry in entries)


FORMATS = {
    "tsv": "".join(f"{source}\t{target}\n" for source, target in PAIRS),
    "tsv with a header": "".join(f"{source}\t{target}\n" for source, target in [("English", "German"), *PAIRS]),
    "csv": table(","),
    "csv with a header": table(",", "en", "de"),
    "semicolons": table(";"),
    "semicolons with a header": table(";", "Source text", "Target text"),
    "tmx": tmx(),
    "xliff 1.2": xliff(1),
    "xliff 2.0": xliff(2),
    "json lines": objects("source", "target"),
    "languages": objects("en", "de"),
    "translation": objects("en", "de", inside="translation"),
    "json array": json.dumps([{"id": 1, "src": source, "tgt": target} for source, target in PAIRS]),
    "po": po(),
    "other columns": table(",", "target", "source").replace("target", "de").replace("source", "en"),
}


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("name", list(FORMATS)[:-1])
def test_the_same_pairs_in_every_format_are_equal(tmp_path: Path, name: str, compressed: bool) -> None:
    path = tmp_path / "corpus"  # the name does not matter
    content = FORMATS[name].encode()
    path.write_bytes(gzip.compress(content) if compressed else content)
    assert [pair.texts for pair in read_pairs(CorpusConfig(pairs=path))] == PAIRS


@pytest.mark.parametrize("name", ["csv with a header", "tmx", "xliff 1.2", "languages"])
def test_language_codes_choose_the_direction(tmp_path: Path, name: str) -> None:
    path = tmp_path / "corpus"
    path.write_text(FORMATS[name], encoding="utf-8")
    swapped = [(target, source) for source, target in PAIRS]
    for settings in ({"source_code": "de"}, {"target_code": "en"}, {"source_code": "de", "target_code": "en"}):
        assert [pair.texts for pair in read_pairs(CorpusConfig(pairs=path, **settings))] == swapped  # type: ignore[arg-type]


def test_headers_and_languages_are_reported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for name, lines in [
        ("semicolons with a header", "line 1 is a header (Source text, Target text) and is not a pair."),
        ("csv with a header", "line 1 is a header (English, German) and is not a pair."),
        ("tmx", "the source is English (en), the target German (de-DE)."),
    ]:
        path = tmp_path / name
        path.write_text(FORMATS[name], encoding="utf-8")
        for _ in range(2):
            list(read_pairs(CorpusConfig(pairs=path)))
        said.append(f"{path}: {lines}")
    assert [line for line in capsys.readouterr().err.splitlines() if line] == said


@pytest.mark.parametrize(
    ("content", "header"),
    [
        ("one dog ||| ein Hund\ntwo, dogs ||| zwei Hunde\n", 0),
        ('en|de\none dog|ein Hund\n"two, dogs"|zwei Hunde\n', 1),
        ("source_lang\ttarget_lang\none dog\tein Hund\ntwo, dogs\tzwei Hunde\n", 1),
        ("English sentence\tGerman sentence\none dog\tein Hund\ntwo, dogs\tzwei Hunde\n", 1),
    ],
)
def test_other_separators_and_names(
    tmp_path: Path, content: str, header: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "corpus"
    path.write_text(content)
    assert read_sides(CorpusConfig(pairs=path)) == (["one dog", "two, dogs"], ["ein Hund", "zwei Hunde"])
    assert capsys.readouterr().err.count("is a header") == header


def test_columns_are_chosen_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "corpus"
    path.write_text("id,de,en,score\n1,Hund,dog,0.5\n2,Katze,cat,0.25\n")
    assert read_sides(CorpusConfig(pairs=path)) == (["Hund", "Katze"], ["dog", "cat"])
    assert read_sides(CorpusConfig(pairs=path, source_code="en")) == (["dog", "cat"], ["Hund", "Katze"])
    named = CorpusConfig(pairs=path, source_column="score", target_column="id")
    assert read_sides(named) == (["0.5", "0.25"], ["1", "2"])
    numbered = CorpusConfig(pairs=path, source_column=4, target_column=1, header=False)
    assert read_sides(numbered) == (["score", "0.5", "0.25"], ["id", "1", "2"])
    with pytest.raises(DataError, match="there is no column 'fr'; the first line has id, de, en, score"):
        check_readable(CorpusConfig(pairs=path, source_column="fr"))


def test_untranslated_and_uncertain_messages_are_not_complete(tmp_path: Path) -> None:
    path = tmp_path / "corpus"
    path.write_text(
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "file"\nmsgid_plural "%d files"\n'
        'msgstr[0] "Datei"\nmsgstr[1] "%d Dateien"\n\nmsgid "open"\nmsgstr ""\n\n'
        '#, fuzzy\nmsgid "cut"\nmsgstr "Kopie"\n'
    )
    found = [(pair.source, pair.target, pair.complete) for pair in read_pairs(CorpusConfig(pairs=path))]
    assert found == [
        ("file", "Datei", True),
        ("%d files", "%d Dateien", True),
        ("open", "", False),
        ("cut", "Kopie", False),
    ]
    path.write_text(
        '<xliff version="1.2"><file source-language="en" target-language="de"><body><trans-unit id="1"><source>a'
        '</source><target state="needs-translation">a</target></trans-unit><trans-unit id="2"><source>b</source>'
        '</trans-unit><trans-unit id="3"><source>c <x id="1"/>d</source><target>e</target></trans-unit></body></file>'
        "</xliff>"
    )
    assert [pair.complete for pair in read_pairs(CorpusConfig(pairs=path))] == [False, False, True]


BAD = {
    "empty": (b"", "corpus is empty"),
    "one column": (b"A dog runs.\nHello, world.\nIt rains, today.\n", "line 1: only one column ('A dog runs.')"),
    "three columns": (
        b"12\tHello\tHallo\n13\tdog\tHund\n",
        "line 1: 3 tab-separated columns (1 '12', 2 'Hello', 3 'Hallo'). Choose two of them",
    ),
    "three columns of csv": (b"12,Hello,Hallo\n13,dog,Hund\n", "line 1: 3 comma-separated columns"),
    "header only": (b"source,target\n", "corpus contains only a header, and no pairs"),
    "comma without quotes": (b"a,b\n" * 20 + b"Hello, you,Hallo, du\n", "line 21: 4 comma-separated columns"),
    "an open quote": (b'a,b\n"c,d\n', "line 2: not valid CSV"),
    "pdf": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "corpus is a PDF"),
    "png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "corpus is a PNG image"),
    "page": (b"<!DOCTYPE html>\n<html>\n<head><title>404</title></head><body>\n", "corpus is a web page"),
    "three languages": (tmx().replace('"en-GB"', '"fr"').encode(), "more than two languages: de-DE (4), en-US (2)"),
    "one language": (tmx().replace("en-US", "de-DE").replace("en-GB", "de-DE").replace('"en"', '"de-DE"').encode(),
                     "only one language: de-DE (4)"),
    "other keys": (b'{"question": "a", "answer": "b"}', "line 1: there is no field 'source'; the fields are question"),
    "utf-16 without a mark": (("a\tb\n" * 20).encode("utf-16-le"), "corpus is UTF-16 without a byte order mark"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_explained(tmp_path: Path, name: str) -> None:
    path = tmp_path / "corpus"
    content, message = BAD[name]
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        list(read_pairs(CorpusConfig(pairs=path)))
    assert message in str(caught.value)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1).filter(
    lambda text: text.strip() and not text[0].isspace() and remove_sentence_marks(text) == text
)
LINES = st.lists(st.sampled_from(["\n", "\t", '"', ",", ";", "Hund", "ä b"]), min_size=1).map("".join)


@given(pairs=st.lists(st.tuples(TEXT | LINES, TEXT | LINES), min_size=1), separator=st.sampled_from(",;\t"))
def test_any_csv_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]], separator: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=separator, quoting=csv.QUOTE_ALL).writerows([("source", "target"), *pairs])
    expected = [(source, target) for source, target in pairs]
    assert [pair.texts for pair in read_pairs(CorpusConfig(pairs=path, format="csv"))] == expected
