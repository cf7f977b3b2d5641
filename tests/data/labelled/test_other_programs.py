"""Labelled data as other programs write it: fastText's labels, JSON with lists of words and tags."""

from pathlib import Path

import pytest

from dragoman.base.errors import DataError
from dragoman.data.labelled.corpus import LabelledCorpusConfig, TaggedCorpusConfig
from dragoman.data.labelled.examples import LabelledText
from dragoman.data.labelled.read import read_labelled, read_tagged


def labelled(path: Path, content: str) -> list[LabelledText]:
    path.write_text(content)
    return read_labelled(LabelledCorpusConfig(path=path))


def test_labels_of_fasttext(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    found = labelled(path, "__label__pos A clever film.\n\n__label__neg\tDull, __label__ or not.\n")
    assert found == [LabelledText(("A clever film.",), "pos"), LabelledText(("Dull, __label__ or not.",), "neg")]
    with pytest.raises(DataError, match="line 1: several labels for one text are not supported"):
        labelled(path, "__label__pos __label__funny A clever film.\n")
    assert labelled(path, "A clever film. __label__pos\n") == [LabelledText(("A clever film.",), "pos")]
    assert labelled(path, "A __label__pos clever film.\n") == [LabelledText(("A clever film.",), "pos")]
    rest = "__label__pos A clever film.\n" * 30
    with pytest.raises(DataError, match="line 31: not of the form `__label__NAME text`"):
        labelled(path, f"{rest}A film without a label.\n")


def test_joined_labels_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labelled(tmp_path / "a.csv", 'text,label\nA film.,"pos, funny"\nA book.,pos\n')
    assert "1 label(s) seem to be several labels of one text, such as 'pos, funny'" in capsys.readouterr().err
    labelled(tmp_path / "b.csv", 'text,label\nA film.,"rock, other"\nA book.,"pop, other"\n')
    assert "several labels" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "id,word,tag\n1,Ada,B-PER\n,sleeps,O\n", "line 1: this is CSV"),
        (
            "a.txt",
            "Ada/B-PER sleeps/O\nBob/B-PER runs/O\n",
            "line 1: this is a sentence with a tag joined to each word",
        ),
        ("a.txt", "Ada|NNP sleeps|VBZ .|O\n", "tag joined to each word"),
    ],
)
def test_other_forms_of_tagged_text_are_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        read_tagged(TaggedCorpusConfig(path=tmp_path / name))


def test_a_list_of_labels_in_json(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a list. Several labels for one text are not supported"):
        labelled(tmp_path / "a.jsonl", '{"text": "A clever film.", "label": ["pos", "funny"]}\n')


@pytest.mark.parametrize("keys", [("tokens", "ner_tags"), ("words", "tags")])
def test_tagged_sentences_in_json_lines(tmp_path: Path, keys: tuple[str, str]) -> None:
    path = tmp_path / "train.json"
    path.write_text(
        f'{{"id": "1", "{keys[0]}": ["Ada", "sleeps"], "{keys[1]}": ["B-PER", "O"]}}\n\n'
        f'{{"{keys[0]}": ["Oh"], "{keys[1]}": ["O"]}}\n'
    )
    found = read_tagged(TaggedCorpusConfig(path=path))
    assert [(each.words, each.tags) for each in found] == [(("Ada", "sleeps"), ("B-PER", "O")), (("Oh",), ("O",))]
    path.write_text(f'{{"{keys[0]}": ["Ada", "sleeps"]}}\n')
    assert read_tagged(TaggedCorpusConfig(path=path), labelled=False)[0].tags is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"tokens": ["Ada", "sleeps"], "ner_tags": ["O"]}\n', "line 1: there are 2 words, but 1 tags"),
        ('{"tokens": ["Ada"], "ner_tags": [3]}\n', "'ner_tags' contains numbers. Replace them by the names"),
        ('{"text": "Ada", "spans": []}\n', "none of the keys tokens, words"),
        (
            '[["Ada sleeps", {"entities": [[0, 3, "PER"]]}],\n["Bob", {}]]\n',
            "line 1: this is JSON, and taggers read one",
        ),
        ('[\n  {"tokens": ["Ada"]}\n]\n', "line 1: this is JSON, and taggers read one"),
    ],
)
def test_other_json_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "train.json"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        read_tagged(TaggedCorpusConfig(path=path))


@pytest.mark.parametrize("first", ["[ O", "{ O", '" O', "[\tO", "3 O", "null O"])
def test_words_that_look_like_json_are_words(tmp_path: Path, first: str) -> None:
    path = tmp_path / "train.conll"
    path.write_text(f"{first}\nAda B-PER\n".replace(" ", "\t" if "\t" in first else " "))
    assert read_tagged(TaggedCorpusConfig(path=path))[0].words == (first.split()[0], "Ada")


def test_a_column_is_not_used_twice(tmp_path: Path) -> None:
    path = tmp_path / "train.conll"
    path.write_text("Ada NNP B-PER\n")
    with pytest.raises(
        DataError, match="column 1 is one of `features`, but also the word or the tag. Columns are counted"
    ):
        read_tagged(TaggedCorpusConfig(path=path, tag=3, features=(1,)))
