"""A probabilistic context-free grammar from a treebank: estimation and normal form by NLTK, and CKY."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from nltk import Nonterminal, Tree, induce_pcfg

from dragoman.text.trees.brackets import parse_tree
from dragoman.text.trees.tree import Constituent, Word
from dragoman.text.trees.tree import Tree as SpanTree

_START = "ROOT"
_RARE = 1
"""Number of occurrences up to which a word is replaced by the class of its shape."""
_LABELS = 40
"""Number of labels of a span that are kept."""

_Cell = dict[str, tuple[float, Any]]
"""The log-probability of each label of a span, and how it was derived: from another label, from a split and two labels,
or from the word (None)."""


class GrammarParser:
    """Estimates a grammar by relative frequency and parses with it.

    rules: number of rules. failures: number of sentences that the grammar did not cover so far.
    """

    def __init__(self, trees: Sequence[SpanTree]) -> None:
        """trees: the training trees."""
        counts = Counter(text for tree in trees for text in tree.texts)
        tags = Counter(word for tree in trees for word in tree.words)
        self._tags = {text: tag for (tag, text), _ in reversed(tags.most_common())}
        """The most frequent tag of each word."""
        self._known = {text for text, count in counts.items() if count > _RARE}
        productions = [each for tree in trees for each in self._normal_form(tree).productions()]
        grammar = induce_pcfg(Nonterminal(_START), productions)
        self.rules, self.failures = len(grammar.productions()), 0
        self._lexical: dict[str, list[tuple[str, float]]] = {}
        self._unary: dict[str, list[tuple[str, float]]] = {}
        self._binary: dict[tuple[str, str], list[tuple[str, float]]] = {}
        for rule in grammar.productions():
            right = tuple(map(str, rule.rhs()))
            left = str(rule.lhs()), rule.logprob()
            if rule.is_lexical():
                self._lexical.setdefault(right[0], []).append(left)
            elif len(right) == 1:
                self._unary.setdefault(right[0], []).append(left)
            else:
                self._binary.setdefault((right[0], right[1]), []).append(left)

    def parse(self, words: Sequence[str]) -> SpanTree:
        """Return the most probable tree of a sentence, or a right-branching tree if the grammar does not cover it."""
        found = self._best([self._token(text, position) for position, text in enumerate(words)])
        if found is None:
            self.failures += 1
            spans = (Constituent("VP" if start else "S", start, len(words)) for start in range(max(1, len(words) - 1)))
            return SpanTree(tuple(Word(self._tags.get(text, "NN"), text) for text in words), tuple(spans))
        found.un_chomsky_normal_form(unaryChar="+")
        for position, text in zip(found.treepositions("leaves"), words, strict=True):
            found[position] = text.replace("(", "-LRB-").replace(")", "-RRB-")
        return parse_tree(found.pformat(margin=10**9)).reduced()

    def _best(self, tokens: Sequence[str]) -> Tree | None:
        """Return the most probable tree of the tokens by CKY; None if the grammar does not cover them."""
        size = len(tokens)
        chart: dict[tuple[int, int], _Cell] = {}
        for start, token in enumerate(tokens):
            cell: _Cell = {}
            for label, score in self._lexical.get(token, ()):
                _improve(cell, label, score, None)
            chart[start, start + 1] = self._complete(cell, size == 1)
        for length in range(2, size + 1):
            for start in range(size - length + 1):
                end = start + length
                cell = {}
                for middle in range(start + 1, end):
                    right = chart[middle, end]
                    for one, (score, _) in chart[start, middle].items():
                        for other, (further, _) in right.items():
                            for label, rule in self._binary.get((one, other), ()):
                                _improve(cell, label, score + further + rule, (middle, one, other))
                chart[start, end] = self._complete(cell, length == size)
        return _build(chart, 0, size, _START) if _START in chart[0, size] else None

    def _complete(self, cell: _Cell, whole: bool) -> _Cell:
        """Apply unary rules, and keep the best labels. whole: whether the span is the sentence."""
        for label, (score, _) in list(cell.items()):
            for above, rule in self._unary.get(label, ()):
                _improve(cell, above, score + rule, label)
        if whole:  # the start symbol is above labels that a unary rule has just added
            for label, (score, _) in list(cell.items()):
                for above, rule in self._unary.get(label, ()):
                    if above == _START:
                        _improve(cell, above, score + rule, label)
            return cell
        return dict(sorted(cell.items(), key=lambda item: -item[1][0])[:_LABELS])

    def _normal_form(self, tree: SpanTree) -> Tree:
        """Return a tree in Chomsky normal form, below the start symbol, with classes of rare words."""
        other = Tree.fromstring(f"({_START} {tree})")
        for number, position in enumerate(other.treepositions("leaves")):
            other[position] = self._token(tree.texts[number], number)
        other.collapse_unary(collapsePOS=False, collapseRoot=False, joinChar="+")
        other.chomsky_normal_form(horzMarkov=2, vertMarkov=1)
        return other

    def _token(self, text: str, position: int) -> str:
        """Return a word, or the class of its shape if it is rare."""
        return text if text in self._known else "-".join(_shape(text, position))


def _improve(cell: _Cell, label: str, score: float, derivation: Any) -> None:
    if label not in cell or score > cell[label][0]:
        cell[label] = score, derivation


def _build(chart: dict[tuple[int, int], _Cell], start: int, end: int, label: str) -> Tree:
    """Return the derivation of a label over a span, with blank words."""
    derivation = chart[start, end][label][1]
    if isinstance(derivation, tuple):
        middle, one, other = derivation
        return Tree(label, [_build(chart, start, middle, one), _build(chart, middle, end, other)])
    return Tree(label, ["" if derivation is None else _build(chart, start, end, derivation)])


def _shape(text: str, position: int) -> Iterator[str]:
    """Yield the properties of a rare word: capitals, digits, hyphens and its ending."""
    yield "UNKNOWN"
    if text[:1].isupper():
        yield "INITIAL" if position == 0 else "CAPITAL"
    if any(map(str.isdigit, text)):
        yield "DIGIT"
    if "-" in text:
        yield "HYPHEN"
    ending = next((each for each in ("ing", "ed", "ly", "ion", "er", "est", "s", "y") if text.endswith(each)), None)
    if ending is not None:
        yield ending
