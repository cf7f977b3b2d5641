"""Treebanks: files, patterns, archives, and sentences without trees."""

import gzip
import os
import zipfile
from pathlib import Path

import pytest

from dragoman.base.errors import DataError
from dragoman.data.labelled.corpus import TreebankCorpusConfig
from dragoman.data.labelled.read import read_parsed

DATA = os.environ.get("DRAGOMAN_DATA")
TREES = "( (S \n  (NP-SBJ (DT The) (NN end) )\n  (VP (VBD came) (NP (-NONE- *T*-1) ))))\n\n( (NP (NN Rain) ))\n"


def test_files_of_an_archive_are_read_in_order(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bank.zip", "w") as archive:
        for name in ("b/2.mrg", "b/1.mrg", "b/3.txt"):
            archive.writestr(name, f"( (NP (NN n{name[2]})))")
    sentences = read_parsed(TreebankCorpusConfig(path=tmp_path / "bank.zip/b/*.mrg", tag="wsj"))
    assert [(each.words, each.tag) for each in sentences] == [(("n1",), "wsj"), (("n2",), "wsj")]


def test_trees_are_reduced(tmp_path: Path) -> None:
    (tmp_path / "a.mrg.gz").write_bytes(gzip.compress(TREES.encode()))
    first, second = read_parsed(TreebankCorpusConfig(path=tmp_path / "a.mrg.gz"))
    assert str(first.tree) == "(S (NP (DT The) (NN end)) (VP (VBD came)))"
    assert first.words == ("The", "end", "came")
    assert second.words == ("Rain",)


def test_parts_side_by_side_become_one_tree(tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_text("( (S (NP (NN Rain)) (VP (VBD came))) (. .) )\n")
    (sentence,) = read_parsed(TreebankCorpusConfig(path=tmp_path / "a.mrg"))
    assert str(sentence.tree) == "(TOP (S (NP (NN Rain)) (VP (VBD came))) (. .))"


def test_several_treebanks_are_numbered(tmp_path: Path) -> None:
    path = tmp_path / "a.mrg"
    path.write_text(TREES)
    sentences = read_parsed([TreebankCorpusConfig(path=path), TreebankCorpusConfig(path=tmp_path / "?.mrg")])
    assert [each.part for each in sentences] == [0, 0, 1, 1]


def test_sentences_without_trees_have_one_line_each(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("( a )\n\nb c\n")
    assert [each.words for each in read_parsed(TreebankCorpusConfig(path=path), labelled=False)] == [
        ("(", "a", ")"),
        (),
        ("b", "c"),
    ]
    with pytest.raises(DataError, match=r"a\.txt, line 1: expected a tree such as .*, not \( a \)"):
        read_parsed(TreebankCorpusConfig(path=path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("( (S (NN a)\n", r"a\.mrg, line 1: 2 brackets are not closed"),
        ("( (S (NN a)))\n( (S (NN a) b))\n", r"a\.mrg, line 2: 'b' has no bracket"),
        ("\n\n", r"line 2: expected a tree"),
    ],
)
def test_an_unreadable_tree_is_an_error_with_file_and_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.mrg").write_text(content)
    with pytest.raises(DataError, match=message):
        read_parsed(TreebankCorpusConfig(path=tmp_path / "a.mrg"))


def test_a_pattern_without_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No file matches"):
        read_parsed(TreebankCorpusConfig(path=tmp_path / "*.mrg"))


@pytest.mark.skipif(not DATA, reason="needs the treebank in DRAGOMAN_DATA/treebank")
def test_the_files_of_the_penn_treebank_are_read() -> None:
    folder = Path(str(DATA)) / "treebank/treebank.zip/treebank/combined"
    sentences = read_parsed([TreebankCorpusConfig(path=folder / f"wsj_{name}.mrg") for name in ("018[5-9]", "019?")])
    assert len(sentences) == 196
    assert all(each.tree is not None and each.tree.constituents for each in sentences)
