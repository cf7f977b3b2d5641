"""`score_trees` compares constituency trees that any program has written with those of a treebank, as EVALB does."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dragoman.base.errors import DataError
from dragoman.base.settings.load import Overrides, all_overrides, load_settings
from dragoman.data.files.jsonl import read_object
from dragoman.data.labelled.corpus import Encoding, TreebankCorpusConfig
from dragoman.data.labelled.rows import Line, read_lines
from dragoman.data.labelled.treebank import treebank_files
from dragoman.metrics.labels.brackets import COLLINS, BracketRules
from dragoman.metrics.labels.parsing import parsing_report
from dragoman.metrics.labels.report import Report
from dragoman.text.trees.brackets import parse_tree, read_trees
from dragoman.text.trees.tree import Tree

NO_TREE = Tree(())
"""The tree of a blank line or of empty brackets, with which parsers state that they have found none."""


class TreeLine(NamedTuple):
    """A predicted tree, or `NO_TREE`, with its file and line."""

    tree: Tree
    location: str


def score_trees(
    test: Path, hypotheses: Sequence[Path], settings: Overrides, parameters: Path | None = None
) -> list[Report]:
    """Return the report on each file of predicted trees.

    test: a treebank. settings: of the treebank. parameters: a parameter file of EVALB, whose rules hold for the trees
    as they are; None: those of COLLINS.prm for trees without wrappers, as in the evaluation of parsers. Raises
    DataError with file and line for broken trees, and if the numbers of trees differ.
    """
    rules = COLLINS if parameters is None else read_rules(parameters)
    reports = []
    for path in hypotheses:
        gold, predicted = read_tree_pairs(test, path, settings, is_raw=parameters is not None)
        reports.append(parsing_report(gold, predicted, rules=rules))
    return reports


def read_rules(path: Path) -> BracketRules:
    """Return the rules of a parameter file of EVALB. Raises DataError with file and line if it cannot be read."""
    return BracketRules.parse([line for _, line in read_lines(path, "utf-8")], path)


def read_tree_pairs(
    test: Path, hypothesis: Path, settings: Overrides = (), *, is_raw: bool = False
) -> tuple[list[Tree], list[Tree]]:
    """Return the correct and the predicted trees, in order. is_raw: whether wrappers, such as TOP, are kept."""
    corpus = load_settings(None, all_overrides({"path": str(test)}, settings), TreebankCorpusConfig)
    gold = [row for path in treebank_files(corpus.path) for row in _read(path, corpus.encoding)]
    predicted = list(_read(hypothesis, corpus.encoding, expected=len(gold)))
    if len(predicted) > len(gold):  # blank lines at the end, or between the trees
        predicted = predicted[: len(gold)] + [row for row in predicted[len(gold) :] if row.tree.words]
    if len(predicted) != len(gold):
        gold, predicted = ([row for row in side if row.tree.words] for side in (gold, predicted))
    if len(predicted) != len(gold):
        longer, shorter = (gold, predicted) if len(gold) > len(predicted) else (predicted, gold)
        name = hypothesis if shorter is predicted else test
        raise DataError(
            f"{longer[len(shorter)].location}: {name} has no such tree: the numbers of trees are {len(gold):,} in "
            f"{test} and {len(predicted):,} in {hypothesis}. Leave a line blank where there is no tree."
        )
    pairs = [pair for pair in zip(gold, predicted, strict=True) if pair[0].tree.words or pair[1].tree.words]
    if extra := next((other for correct, other in pairs if not correct.tree.words), None):
        raise DataError(f"{extra.location}: {test} has no tree for this sentence. Remove the tree.")
    reduce: Callable[[Tree], Tree] = _without_empty_labels if is_raw else Tree.reduced
    return [reduce(correct.tree) for correct, _ in pairs], [reduce(other.tree) for _, other in pairs]


def _read(path: Path, encoding: Encoding, expected: int = 0) -> Iterator[TreeLine]:
    """Yield the trees of a file: one per line, also none in a blank line, or over several lines.

    expected: number of trees; a file with no more lines has one tree per line, even if its brackets are not balanced.
    """
    lines = list(read_lines(path, encoding))
    while lines and len(lines) > expected and not lines[-1][1].strip():
        lines.pop()
    if not lines:
        raise DataError(f"{path} has no trees. Use a file with one tree per line.")
    if len(lines) > expected and any(line.count("(") != line.count(")") for _, line in lines):
        try:
            for number, tree in read_trees(lines):
                yield TreeLine(tree, f"{path}, line {number}")
        except DataError as error:
            raise DataError(f"{path}, {error}. Correct the file.") from None
        return
    for number, line in lines:
        location = f"{path}, line {number}"
        try:
            yield TreeLine(_parse((number, line), location), location)
        except DataError as error:
            remedy = "Correct the tree, or leave the line blank if the parser found no tree."
            raise DataError(f"{location}: {str(error).removeprefix(f'{location}: ')}. {remedy}") from None


def _parse(line: Line, location: str) -> Tree:
    text = line[1]
    if text.lstrip().startswith("{"):
        text = str(read_object(text, location).get("tree", ""))
    return parse_tree(text) if text.strip("() \t") else NO_TREE


def _without_empty_labels(tree: Tree) -> Tree:
    """Return a tree without the outer bracket of the Penn Treebank, as in ( (S …))."""
    return Tree(tree.words, tuple(each for each in tree.constituents if each.label))
