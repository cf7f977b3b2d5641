"""Readers of labelled texts: GLUE's tables, CSV, JSON Lines, SuperGLUE, RTE and TREC, and the errors of each."""

import gzip
import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from dragoman.base.errors import DataError
from dragoman.data.labelled.corpus import LabelledCorpora, LabelledCorpusConfig
from dragoman.data.labelled.examples import LabelledText
from dragoman.data.labelled.read import read_labelled


def corpus(folder: Path, text: str | bytes, name: str = "data.tsv", **settings: Any) -> LabelledCorpusConfig:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return LabelledCorpusConfig(path=path, **settings)


def read(folder: Path, text: str | bytes, name: str = "data.tsv", labelled: bool = True, **settings: Any) -> list[Any]:
    examples = read_labelled(corpus(folder, text, name, **settings), labelled)
    return [(*example.texts, example.label) for example in examples]


def lines(*objects: Any) -> str:
    return "".join(json.dumps(each) + "\n" for each in objects)


def test_a_lone_quote_is_a_character_in_tsv_and_texts_are_untouched(tmp_path: Path) -> None:
    text = 'he said "no\t1\n " a\u2028b\x85c "\t0\n\u00a0x\r\t1\r\n'
    assert read(tmp_path, text) == [('he said "no', "1"), (' " a\u2028b\x85c "', "0"), ("\u00a0x\r", "1")]


@pytest.mark.parametrize(
    ("header", "row", "expected"),
    [
        ("sentence\tlabel", "a\t1", ("a", "1")),
        ("index\tsentence1\tsentence2\tlabel", "0\ta\tb\tentailment", ("a", "b", "entailment")),
        ("index\tquestion\tsentence\tlabel", "0\ta\tb\tx", ("a", "b", "x")),
        (
            "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
            "0\tg\tf\t2012\t1\tx\ty\ta\tb\t3.80",
            ("a", "b", "3.80"),
        ),
        ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", "1\t2\t3\ta\tb\t0", ("a", "b", "0")),
        ("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", "1\t7\t8\ta\tb", ("a", "b", "1")),
        (
            "index\tsentence1\tsentence2\tlabel1\tgold_label",
            "0\ta\tb\tneutral\tcontradiction",
            ("a", "b", "contradiction"),
        ),
        ("Satz\tKlasse", "a\tsehr gut", ("a", "sehr gut")),
    ],
)
def test_the_columns_of_glue_are_known(tmp_path: Path, header: str, row: str, expected: tuple[str, ...]) -> None:
    assert read(tmp_path, f"{header}\n{row}\n") == [expected]


def test_tables_without_a_header(tmp_path: Path) -> None:
    assert read(tmp_path, "a b\tgut\n") == [("a b", "gut")]
    assert read(tmp_path, "a\tb\t2.5\n") == [("a", "b", "2.5")]
    assert read(tmp_path, "gj04\t1\t\tA sentence.\ngj04\t0\t*\tAnother one.\n") == [
        ("A sentence.", "1"),
        ("Another one.", "0"),
    ]
    assert read(tmp_path, "a\tx\ty\t1\t9\n", columns={"text": 2, "pair": 3, "label": 4}) == [("x", "y", "1")]
    assert read(tmp_path, "1\tgood film\n", columns={"label": 1}) == [("good film", "1")]
    assert read(tmp_path, "text\tlabel\n", header=False) == [("text", "label")]
    with pytest.raises(DataError, match="line 1: the columns of a table with 5 columns"):
        read(tmp_path, "a\tb\tc\td\te\n")


def test_columns_are_named_in_any_table_and_keep_blanks_in_labels(tmp_path: Path) -> None:
    table = "Nr\tMeldung\tWohin\n1\tDie Lampe flackert\tTechnik vor Ort\n2\t\tRechnung & Vertrag\n"
    columns = {"text": "Meldung", "label": "Wohin", "id": "Nr"}
    config = corpus(tmp_path, table, columns=columns)
    assert read_labelled(config) == [
        LabelledText(("Die Lampe flackert",), "Technik vor Ort", "1"),
        LabelledText(("",), "Rechnung & Vertrag", "2"),
    ]
    with pytest.raises(DataError, match=r"line 1: there is no column 'Text'.*The columns are 'Nr', 'Meldung', 'Wohin'"):
        read(tmp_path, table, columns={"text": "Text", "label": "Wohin"})
    with pytest.raises(DataError, match="several columns 'x'"):
        read(tmp_path, "x\tx\n1\t2\n", columns={"text": "x", "label": 2})


def test_the_label_is_asked_for_if_two_columns_may_be_it(tmp_path: Path) -> None:
    table = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n4\ta\tb\t3.6\tNEUTRAL\n"
    with pytest.raises(DataError, match="relatedness_score and entailment_judgment may each be the label"):
        read(tmp_path, table)
    assert read(tmp_path, table, columns={"label": "relatedness_score"}) == [("a", "b", "3.6")]
    assert read(tmp_path, table, labelled=False) == [("a", "b", None)]


def test_csv_has_quotes_and_newlines_inside_them(tmp_path: Path) -> None:
    text = 'text,label\r\n"a ""b"", c\r\nd",1\n"",0\nplain,\u2028\n'
    with pytest.raises(DataError, match="line 5: the label is missing"):
        read(tmp_path, text, "data.csv")
    assert read(tmp_path, text, "data.csv", labelled=False) == [('a "b", c\nd', "1"), ("", "0"), ("plain", None)]
    assert read(tmp_path, "Text;Klasse\nZu teuer, leider;nein\n", "data.csv", separator=";") == [
        ("Zu teuer, leider", "nein")
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('text,label\na,1\n"b,1\nc,0\n', r"line 3: not valid CSV \(unexpected end of data\)"),
        ('text,label\n"a"b,1\n', "line 2: not valid CSV"),
        ("text,label\na,1\nb\n", "line 3: the number of columns is 1, but should be 2"),
        ("text,label\na,1\nb,c,1\n", "line 3: the number of columns is 3, but should be 2"),
        ("text,label\na,1\n\nb,1\n", "line 3: .*The line is blank"),
        ("text;label\na;1\n", "line 1: there is only one column.*semicolon"),
        ("text\na\n", "line 1: the label cannot be determined, because there is only one column"),
        ("text,id\na,1\n", "line 1: none of the columns is known to be the label.*'text', 'id'"),
        ("", "is empty"),
        ("text,label\n", "is empty"),
    ],
)
def test_errors_of_tables_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text, "data.csv")


def test_columns_that_are_chosen_by_number_allow_longer_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read(tmp_path, "1\ta\tx\n0\tb\tx\ty\n", columns={"text": 2, "label": 1}) == [("a", "1"), ("b", "0")]
    assert "1 lines have more than 3 columns (the first is line 2)" in capsys.readouterr().err


@pytest.mark.parametrize("rows", [["gut", "schlecht", "gut", "schlecht"], ["1", "2.5", "3", "0"]])
def test_an_unknown_header_that_is_read_as_an_example_is_reported(
    tmp_path: Path, rows: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = "Meldung\tUrteil\n" + "".join(f"x\t{label}\n" for label in rows)
    assert len(read(tmp_path, text)) == 5
    assert "line 1 looks like the names of the columns, because its label 'Urteil'" in capsys.readouterr().err
    assert len(read(tmp_path, text, header=True, columns={"text": 1, "label": 2})) == 4
    assert not capsys.readouterr().err


def test_labels_of_json_remain_as_written(tmp_path: Path) -> None:
    objects = '{"text": "a", "label": 3}\n\n{"text": "b", "label": 3.0}\n{"text": "c", "label": 1e3, "x": 1}\n'
    objects += '{"text": "d", "label": true}\n{"text": "e", "label": "3"}\n'
    labels = [row[-1] for row in read(tmp_path, objects, "data.jsonl")]
    assert labels == ["3", "3.0", "1e3", "true", "3"]


def test_nested_keys_and_renamed_labels(tmp_path: Path) -> None:
    text = lines({"doc": {"body": "a"}, "meta": {"y": 0}, "a.b": "z"}, {"doc": {"body": "b"}, "meta": {"y": 2}})
    columns = {"text": "doc.body", "label": "meta.y"}
    renamed = {"0": "negative", "1": "positive"}
    assert read(tmp_path, text, "data.jsonl", columns=columns, labels=renamed) == [("a", "negative"), ("b", "2")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"text": "a", "label": 1}\n{"text": "b"}\n', "line 2: the label is missing"),
        ('{"text": "a", "label": null}\n', "line 1: the label is missing"),
        ('{"text": "a", "label": [1]}\n', "line 1: the value of 'label' is not a string, number or boolean: a list"),
        ('{"text": 5, "label": 1}\n', "line 1: the value of 'text' is not a string, but the number 5"),
        ('{"text": "a", "label": 1}\n{"txt": "b", "label": 1}\n', "line 2: there is no field 'text'"),
        ('{"text": "a", "label": 1}\n{"text": \n', "line 2: not valid JSON"),
        ("[1]\n", "line 1: not a JSON object"),
        ('{"text": "\\ud800", "label": 1}\n', "line 1: an unpaired surrogate"),
        ('{"a": "x", "label": 1}\n', r"line 1: none of the columns is known to be a text.*'a', 'label'"),
    ],
)
def test_errors_of_json_lines_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text, "data.jsonl")


def test_the_tasks_of_superglue(tmp_path: Path) -> None:
    copa = {
        "premise": "It broke.",
        "choice1": "It fell.",
        "choice2": "It sang.",
        "question": "cause",
        "label": 1,
        "idx": 5,
    }
    assert read(tmp_path, lines(copa), "x.jsonl") == [
        ("It broke. What was the cause of this?", "It fell.", "0"),
        ("It broke. What was the cause of this?", "It sang.", "1"),
    ]
    answers = [{"text": "Bo", "idx": 0, "label": 1}, {"text": "Cy", "idx": 1, "label": 0}]
    multirc = {
        "idx": 6,
        "passage": {"text": "Bo ran.", "questions": [{"question": "Who?", "idx": 2, "answers": answers}]},
    }
    examples = read_labelled(corpus(tmp_path, lines(multirc), "x.jsonl"))
    assert examples[0] == LabelledText(("Bo ran.", "Who? Bo"), "1", "6-2-0")
    assert [example.label for example in examples] == ["1", "0"]
    entities = [{"start": 0, "end": 1}, {"start": 7, "end": 8}, {"start": 11, "end": 12}]
    query = {"query": "@placeholder won.", "idx": 1, "answers": [{"text": "Bo", "start": 0, "end": 1}]}
    record = {"idx": 3, "passage": {"text": "Bo met Cy; Bo won.", "entities": entities}, "qas": [query]}
    assert read(tmp_path, lines(record), "x.jsonl") == [
        ("Bo met Cy; Bo won.", "Bo won.", "1"),
        ("Bo met Cy; Bo won.", "Cy won.", "0"),
    ]
    wic = {
        "word": "run",
        "sentence1": "I ran.",
        "sentence2": "Runs end.",
        "start1": 2,
        "end1": 5,
        "start2": 0,
        "end2": 4,
    }
    assert read(tmp_path, lines({**wic, "label": False}), "x.jsonl") == [("I *ran*.", "*Runs* end.", "false")]
    target = {"span1_index": 0, "span1_text": "the old man", "span2_index": 5, "span2_text": "he"}
    wsc = {"text": "The old man sat because he, tired, stopped.", "target": target, "label": True}
    assert read(tmp_path, lines(wsc), "x.jsonl") == [("*The old man* sat because #he#, tired, stopped.", "true")]
    assert read(tmp_path, lines({**wsc, "label": None}), "x.jsonl", labelled=False)[0][-1] is None


def test_russian_superglue_is_read_as_superglue(tmp_path: Path) -> None:
    """Objects with the keys of its files (Shavrina et al. 2020), and the readers that they choose."""

    def text(task: str, **entry: Any) -> list[Any]:
        return read(tmp_path, lines({"idx": 0, **entry}), f"{task}.jsonl")

    terra = {"premise": "Дождь идёт.", "hypothesis": "Сухо.", "label": "not_entailment"}
    assert text("TERRa", **terra) == [("Дождь идёт.", "Сухо.", "not_entailment")]
    rcb = {"verb": "знать", "negation": "no_negation", "genre": "kp"}
    assert text("RCB", **terra, **rcb) == [("Дождь идёт.", "Сухо.", "not_entailment")]
    boolq = {"question": "Мокро ли?", "passage": "Дождь идёт.", "label": True}
    assert text("DaNetQA", **boolq) == [("Мокро ли?", "Дождь идёт.", "true")]
    choices = {"choice1": "Шёл дождь.", "choice2": "Было сухо.", "question": "cause", "label": 0}
    assert [each[1:] for each in text("PARus", premise="Мокро.", **choices)] == [
        ("Шёл дождь.", "1"),
        ("Было сухо.", "0"),
    ]
    senses = {"start1": 0, "end1": 7, "start2": 3, "end2": 10, "gold_sense1": 1, "gold_sense2": 2}
    pair = {"word": "дорожка", "sentence1": "Дорожка тут.", "sentence2": "На дорожку!"}
    assert text("RUSSE", **pair, **senses, label=False) == [("*Дорожка* тут.", "На *дорожку*!", "false")]
    spans = {"span1_text": "Женя", "span1_index": 0, "span2_text": "она", "span2_index": 2}
    rwsd = {"text": "Женя спит, она устала.", "target": spans, "label": True}
    assert text("RWSD", **rwsd) == [("*Женя* спит, #она# устала.", "true")]
    answers = [{"idx": 0, "text": "Женя", "label": 1}, {"idx": 1, "text": "Саша", "label": 0}]
    passage = {"text": "(1) Женя спит.", "questions": [{"idx": 0, "question": "Кто спит?", "answers": answers}]}
    assert text("MuSeRC", passage=passage) == [
        ("(1) Женя спит.", "Кто спит? Женя", "1"),
        ("(1) Женя спит.", "Кто спит? Саша", "0"),
    ]
    entities = [{"start": 0, "end": 4, "text": "Женя"}, {"start": 11, "end": 15, "text": "Саша"}]
    query = {"query": "@placeholder спит.", "idx": 0, "answers": [{"start": 0, "end": 4, "text": "Женя"}]}
    rucos = {"source": "Lenta", "passage": {"text": "Женя спит, Саша нет.", "entities": entities}, "qas": [query]}
    assert [each[1:] for each in text("RuCoS", **rucos)] == [("Женя спит.", "1"), ("Саша спит.", "0")]


def test_errors_of_superglue_name_the_line(tmp_path: Path) -> None:
    wic = {
        "word": "x",
        "sentence1": "I ran.",
        "sentence2": "I",
        "start1": 2,
        "end1": 9,
        "start2": 0,
        "end2": 1,
        "label": 1,
    }
    with pytest.raises(DataError, match="line 1: .*start1 and end1 are not a part of sentence1"):
        read(tmp_path, lines(wic), "x.jsonl")
    wsc = {"text": "a b", "target": {"span1_index": 1, "span1_text": "z", "span2_index": 0, "span2_text": "a"}}
    with pytest.raises(DataError, match="line 1: .*'z' is not at word 1"):
        read(tmp_path, lines({**wsc, "label": True}), "x.jsonl")
    copa = {"premise": "a", "choice1": "b", "choice2": "c", "question": "why", "label": 0}
    with pytest.raises(DataError, match="line 2: .*the key 'why' is missing"):
        read(tmp_path, "\n" + lines(copa), "x.jsonl")


RTE = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE entailment-corpus SYSTEM "rte.dtd">
<entailment-corpus>
<pair id="8" {attribute} task="IE"><t>
 Tom &amp; Bo &#x2019;s</t>
<h>It is so.</h></pair>
</entailment-corpus>
"""


@pytest.mark.parametrize(("attribute", "label"), [('value="TRUE"', "TRUE"), ('entailment="NO"', "NO"), ("", None)])
def test_rte_of_all_challenges(tmp_path: Path, attribute: str, label: str | None) -> None:
    config = corpus(tmp_path, RTE.replace("{attribute}", attribute), "x.xml")
    assert read_labelled(config, labelled=False) == [LabelledText(("Tom & Bo ’s", "It is so."), label, "8")]
    if label is None:
        with pytest.raises(DataError, match="line 4: the label is missing"):
            read_labelled(config)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RTE.replace('SYSTEM "rte.dtd"', '[<!ENTITY a "aaaa">]'), "line 2: (a DTD inside|entity declarations)"),
        (RTE.replace("Tom", "&bomb;"), "line 5: unknown entity &bomb;"),
        (RTE.replace("<h>It is so.</h>", ""), "line 6: a <pair> lacks <t> or <h>"),
        (RTE.replace("entailment-corpus", "corpus"), "line 3: this is not an RTE file"),
        (RTE.replace("</h>", "</x>"), "line 6: broken XML"),
    ],
)
def test_errors_of_rte_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text.replace("{attribute} ", ""), "x.xml")


def test_trec_has_two_levels_and_is_recognised(tmp_path: Path) -> None:
    text = "NUM:dist How far ?\nLOC:city Sister city ð ?\n".encode("latin-1")
    with pytest.raises(DataError, match="line 2: broken UTF-8. Set `encoding`"):
        read(tmp_path, text, "train_5500.label")
    assert read(tmp_path, text, "train_5500.label", encoding="latin-1") == [
        ("How far ?", "NUM"),
        ("Sister city ð ?", "LOC"),
    ]
    assert read(tmp_path, text, "x.txt", encoding="latin-1", level="fine")[1][-1] == "LOC:city"
    with pytest.raises(DataError, match="line 2: not of the form"):
        read(tmp_path, "NUM:dist a\nb\n", "x.txt", format="trec")


def test_plain_text_keeps_blank_lines_and_order(tmp_path: Path) -> None:
    text = "\ufeffeins\n\n  \nzwei\u2028drei\n{\n"
    assert read(tmp_path, text, "x.txt", labelled=False) == [
        ("eins", None), ("", None), ("  ", None), ("zwei\u2028drei", None), ("{", None)
    ]  # fmt: skip
    with pytest.raises(DataError, match="line 1: the label is missing"):
        read(tmp_path, text, "x.txt")


def test_windows_1252_and_byte_order_marks(tmp_path: Path) -> None:
    assert read(tmp_path, "Stra\xdfe\x80\t1\n".encode("latin-1"), encoding="windows-1252") == [("Straße€", "1")]
    with pytest.raises(DataError, match=r"line 1: not valid windows-1252 \(byte 1\)"):
        read(tmp_path, b"\x81\t1\n", encoding="windows-1252")
    assert read(tmp_path, "\ufefftext\tlabel\na\t1\n") == [("a", "1")]


def test_single_texts_and_pairs_are_not_mixed(tmp_path: Path) -> None:
    single, pair = corpus(tmp_path, "a\t1\n", "a.tsv"), corpus(tmp_path, "a\tb\t1\n", "b.tsv")
    assert Counter(example.label for example in read_labelled([single, single])) == {"1": 2}
    with pytest.raises(DataError, match=r"b.tsv, line 1: the number of texts is 2, but 1 in previous lines"):
        read_labelled([single, pair])


def test_labels_that_differ_only_in_blanks_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert read(tmp_path, "a\tsehr gut\nb\tsehr gut \n") == [("a", "sehr gut"), ("b", "sehr gut ")]
    assert "The labels 'sehr gut ' and 'sehr gut' are different classes" in capsys.readouterr().err


def test_the_only_column_is_never_a_header_by_itself(tmp_path: Path) -> None:
    assert read(tmp_path, "Review\nb\n", labelled=False) == [("Review", None), ("b", None)]
    assert read(tmp_path, "Review\nb\n", labelled=False, header=True) == [("b", None)]


def test_settings(tmp_path: Path) -> None:
    corpora = TypeAdapter(LabelledCorpora)
    assert corpora.validate_python("a.tsv") == LabelledCorpusConfig(path=Path("a.tsv"))
    assert len(corpora.validate_python(["a.tsv", {"path": "b.csv", "name": "b"}])) == 2
    assert str(LabelledCorpusConfig(path=Path("b.csv"), name="b")) == "b"
    assert corpora.validate_python("a.tsv").selection != LabelledCorpusConfig(path=Path("a.tsv"), header=True).selection
    for wrong in (
        {"columns": {"text": "a", "label": "a"}},
        {"columns": {"text": 0}},
        {"header": False, "columns": {"text": "a"}},
        {"format": "text", "columns": {"text": 1}},
        {"separator": "ab"},
    ):
        with pytest.raises(ValidationError):
            LabelledCorpusConfig(path=Path("a.tsv"), **wrong)  # type: ignore[arg-type]


def test_compressed_files_and_archives_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"a\t1\n"))
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("deep/b.csv", 'text,label\n"b, c",2\n')
    paths = [tmp_path / "a.tsv.gz", tmp_path / "b.zip" / "deep" / "b.csv"]
    examples = read_labelled([LabelledCorpusConfig(path=path) for path in paths])
    assert [(example.texts[0], example.label) for example in examples] == [("a", "1"), ("b, c", "2")]
