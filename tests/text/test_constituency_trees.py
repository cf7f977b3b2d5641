"""Trees: reading, writing, reduction and linearisation."""

from collections.abc import Sequence

import nltk
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.errors import DataError
from dragoman.text.trees.brackets import parse_tree, read_trees
from dragoman.text.trees.linearization import linearise, read_linearised
from dragoman.text.trees.tree import Tree, Word

LABELS = ("S", "NP", "VP-PRD", "PP=2", "ADVP|PRT")
TAGS = ("DT", "NN", ",", "-NONE-", "-LRB-")
PREORDER = st.recursive(
    st.tuples(st.sampled_from(TAGS), st.sampled_from(("a", "dog", "''", "/", "*T*-1", "-LRB-"))).map(
        lambda pair: f"({pair[0]} {pair[1]})"
    ),
    lambda inner: st.tuples(st.sampled_from(LABELS), st.lists(inner, min_size=1, max_size=4)).map(
        lambda parts: f"({parts[0]} {' '.join(parts[1])})"
    ),
    max_leaves=15,
)
TREES = PREORDER.filter(lambda text: text.count("(") > 1).map(parse_tree)


@given(PREORDER)
def test_trees_agree_with_nltk(text: str) -> None:
    tree, other = parse_tree(text), nltk.Tree.fromstring(text)
    assert str(tree) == " ".join(str(other).split()) == text
    assert [(word.text, word.tag) for word in tree.words] == other.pos()
    inner = [each for each in other.subtrees() if each.height() > 2]
    assert [label for label, *_ in tree.constituents] == [each.label() for each in inner]
    assert [end - start for _, start, end in tree.constituents] == [len(each.leaves()) for each in inner]


def test_empty_elements_functions_and_wrappers_are_removed() -> None:
    text = "(TOP (S (NP-SBJ-1 (DT The) (NN end)) (VP=2 (VBD came) (S (NP (-NONE- *-1)) (-NONE- 0)))))"
    assert str(parse_tree(text).reduced()) == "(S (NP (DT The) (NN end)) (VP (VBD came)))"
    assert str(parse_tree("( (S (-LRB- -LRB-) (TOP (NN x))) )").reduced()) == "(S (-LRB- -LRB-) (TOP (NN x)))"
    assert str(parse_tree("(ROOT (S1 (NN x)))").reduced()) == "(NN x)"


def test_a_tree_of_depth_5000_is_read_written_reduced_and_linearised() -> None:
    text = "(S (NN a) " * 5000 + "(NN b)" + ")" * 5000
    tree = parse_tree(text)
    assert max(tree.depths()) == 4999
    assert str(tree) == text
    assert tree == tree.reduced() == parse_tree(str(tree))
    assert read_linearised(linearise(tree), tree.texts).tree == tree
    assert hash(tree) == hash(parse_tree(text))


def test_several_trees_are_written_as_one() -> None:
    tree = parse_tree("(NP (NN a)) (NN b)")
    assert str(tree.rooted()) == "(TOP (NP (NN a)) (NN b))"
    assert tree.rooted().reduced() == tree
    for text in ("(NN a)", "(S (NP (NN a) (NN b)))", ""):
        assert str(parse_tree(text).rooted()) == text


def test_trees_extend_over_lines() -> None:
    lines = ["( (S (NN a)", "  (NN b)))", "", "((NP (NN c))) (NP (NN d))"]
    found = [(line, str(tree.reduced())) for line, tree in read_trees(enumerate(lines, 1))]
    assert found == [(1, "(S (NN a) (NN b))"), (4, "(NP (NN c))"), (4, "(NP (NN d))")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NN a)", "1 brackets are not closed"),
        ("(S (NN a)))", "outside of all brackets"),
        ("(S ())", "has no words"),
        ("(S (NN a) b)", "'b' has no bracket of its own"),
        ("(S a (NN b))", "'a' is followed by a bracket"),
        ("a", "outside of all brackets"),
    ],
)
def test_broken_brackets_are_errors_that_name_the_line(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_tree(text)
    with pytest.raises(DataError, match=f"line 2: .*{message}"):
        list(read_trees([(1, "(S (NN x))"), (2, text)]))


def test_brackets_within_words_are_escaped() -> None:
    tree = Tree((Word("NN", "f(x)"),))
    assert str(tree) == "(NN f-LRB-x-RRB-)"


@given(TREES)
def test_a_linearised_tree_is_read_back_without_repairs(tree: Tree) -> None:
    read = read_linearised(linearise(tree), tree.texts)
    assert (read.tree, read.repairs) == (tree, 0)
    plain = read_linearised(linearise(tree, tags=False), tree.texts)
    assert plain.tree.constituents == tree.constituents
    assert set(plain.tree.tags) == {"XX"}


SYMBOLS = st.lists(st.sampled_from(("(S", "(NP", ")S", ")NP", "NN", "DT", "XX", "(", ")")), max_size=20)


@given(SYMBOLS, st.lists(st.sampled_from(("a", "b")), min_size=1, max_size=6))
def test_any_sequence_becomes_a_tree_with_the_words_of_the_sentence(
    symbols: Sequence[str], words: Sequence[str]
) -> None:
    read = read_linearised(symbols, words)
    assert read.tree.texts == tuple(words)
    again = read_linearised(linearise(read.tree), words)
    assert (again.tree, again.repairs) == (read.tree, 0)
    assert (read.repairs == 0) == (linearise(read.tree) == list(symbols))


@pytest.mark.parametrize(
    ("symbols", "tree", "repairs"),
    [
        ("(S NN )S", "(S (NN a)) (XX b)", 1),
        ("(S NN", "(S (NN a) (XX b))", 2),
        ("(S NN NN NN )S", "(S (NN a) (NN b))", 1),
        ("(S (NP NN NN )S", "(S (NP (NN a) (NN b)))", 1),
        ("(S NN )NP NN )S", "(S (NN a) (NN b))", 1),
        ("(S (NP )NP NN NN )S", "(S (NN a) (NN b))", 2),
        ("", "(XX a) (XX b)", 2),
    ],
)
def test_repairs_are_counted(symbols: str, tree: str, repairs: int) -> None:
    read = read_linearised(symbols.split(), ["a", "b"])
    assert (str(read.tree), read.repairs) == (tree, repairs)
