"""The brackets that a predicted tree has in common with the correct one, as EVALB counts them.

EVALB is the scorer of the Penn Treebank (Sekine and Collins 1997). A bracket is a constituent with its label and its
span. Punctuation is removed by its tag, so that a word that only one of the trees tags as punctuation makes the
sentences differ in length; EVALB calls this an error and leaves the sentence out of all metrics.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from dragoman.base.errors import DataError
from dragoman.text.trees.tree import TRACE, Constituent, Tree, Word, category

_QUOTES = frozenset({"'", '"', "/"})
_PUNCTUATION = frozenset({",", ":", "``", "''", "."})

_PARAMETERS = {"DELETE_LABEL": 1, "QUOTE_LABEL": 1, "EQ_LABEL": 2, "EQ_WORD": 2}
"""The parameters that determine the rules, with their numbers of values."""
_UNUSED = ("DEBUG", "MAX_ERROR", "CUTOFF_LEN", "DELETE_LABEL_FOR_LENGTH")


class BracketRules(NamedTuple):
    """The parameters of EVALB, in its parameter files.

    deleted: labels of constituents that are not counted, and tags of words that are removed (DELETE_LABEL).
    equal_labels: pairs of labels that count as equal (EQ_LABEL). equal_words: pairs of words (EQ_WORD). quotes: tags of
    quotation marks (QUOTE_LABEL): a quotation mark that only one of the trees removes is removed from neither, if the
    lengths would otherwise differ. name: of the parameter file.
    """

    deleted: frozenset[str] = _PUNCTUATION | {"TOP", TRACE}
    equal_labels: frozenset[frozenset[str]] = frozenset({frozenset({"ADVP", "PRT"})})
    equal_words: frozenset[frozenset[str]] = frozenset()
    quotes: frozenset[str] = frozenset()
    name: str = "COLLINS.prm"

    @classmethod
    def parse(cls, lines: Sequence[str], path: Path) -> "BracketRules":
        """Return the rules of a parameter file. Raises DataError with its line for anything else, and LABELED 0."""
        rows: dict[str, list[list[str]]] = {name: [] for name in _PARAMETERS}
        for number, line in enumerate(lines, 1):
            name, *values = line.split() if line.strip() and not line.startswith("#") else ["#"]
            if name in rows and len(values) == _PARAMETERS[name]:
                rows[name].append(values)
            elif name not in ("#", *_UNUSED) and (name, values) != ("LABELED", ["1"]):
                raise DataError(
                    f"{path}, line {number}: {line.strip()!r} is not a parameter of EVALB that is supported: expected "
                    f"LABELED 1, {', '.join(_PARAMETERS)} with their values, or {', '.join(_UNUSED)}"
                )
        deleted, quotes = (frozenset(row[0] for row in rows[name]) for name in ("DELETE_LABEL", "QUOTE_LABEL"))
        labels, words = (frozenset(map(frozenset, rows[name])) for name in ("EQ_LABEL", "EQ_WORD"))
        return cls(deleted, labels, words, quotes, path.name)

    def same_label(self, first: str, second: str) -> bool:
        """Return whether two labels or tags count as equal."""
        return first == second or frozenset({first, second}) in self.equal_labels

    def same_word(self, first: str, second: str) -> bool:
        """Return whether two words count as equal."""
        return first == second or frozenset({first, second}) in self.equal_words


COLLINS = BracketRules()
"""The rules of COLLINS.prm, with which parsers are compared."""


@dataclass(frozen=True)
class BracketCounts:
    """The counts of one sentence.

    status: error: the trees have different words, of which none is counted. skipped: there is no predicted tree.
    length: number of words without traces, but with punctuation. gold, predicted, matched: numbers of brackets.
    crossing: number of predicted brackets that cross a correct one. words: number of correct words without punctuation.
    tags: number of these whose tags are equal.
    """

    status: Literal["valid", "error", "skipped"]
    length: int
    gold: int = 0
    predicted: int = 0
    matched: int = 0
    crossing: int = 0
    words: int = 0
    tags: int = 0

    @property
    def complete(self) -> bool:
        """Whether all brackets are correct."""
        return self.status == "valid" and self.gold == self.predicted == self.matched


def count_brackets(gold: Tree, predicted: Tree, rules: BracketRules = COLLINS) -> BracketCounts:
    """Compare a predicted tree with the correct one."""
    length = sum(word.tag != TRACE for word in gold.words)
    removed, other_removed = ([word.tag in rules.deleted for word in tree.words] for tree in (gold, predicted))
    if all(other_removed):
        return BracketCounts("skipped", length, words=removed.count(False))
    if removed.count(False) != other_removed.count(False):
        _keep_quotes(gold.words, predicted.words, removed, other_removed, rules)
    sides = _without(gold, removed, rules), _without(predicted, other_removed, rules)
    words = sides[0].words
    if len(words) != len(sides[1].words) or not all(map(rules.same_word, sides[0].texts, sides[1].texts)):
        return BracketCounts("error", length, words=len(words))
    own, others = (side.constituents for side in sides)
    return BracketCounts(
        "valid",
        length,
        gold=len(own),
        predicted=len(others),
        matched=_count_matches(own, others, rules),
        crossing=_count_crossing(own, others),
        words=len(words),
        tags=sum(map(rules.same_label, sides[0].tags, sides[1].tags)),
    )


def _without(tree: Tree, removed: Sequence[bool], rules: BracketRules) -> Tree:
    """Return a tree without removed words and deleted labels, and without the functions of labels."""
    flags = iter(removed)
    kept = tree.without_words(lambda _: next(flags))
    plain = (each._replace(label=category(each.label)) for each in kept.constituents)
    return Tree(
        kept.words,
        tuple(each for each in plain if not any(rules.same_label(each.label, deleted) for deleted in rules.deleted)),
    )


def _keep_quotes(
    gold: Sequence[Word],
    predicted: Sequence[Word],
    gold_removed: list[bool],
    predicted_removed: list[bool],
    rules: BracketRules,
) -> None:
    """Keep quotation marks that only one of the trees removes. Changes the flags of removed words in place.

    Two quotation marks correspond if as many words that are not removed precede them.
    """

    def quotes(words: Sequence[Word]) -> list[int]:
        return [number for number, word in enumerate(words) if word.tag in rules.quotes and word.text in _QUOTES]

    for other in quotes(predicted):
        for own in quotes(gold):
            before = gold_removed[:own].count(False), predicted_removed[:other].count(False)
            if before[0] == before[1] and gold_removed[own] != predicted_removed[other]:
                gold_removed[own] = predicted_removed[other] = False


def _count_matches(gold: Sequence[Constituent], predicted: Sequence[Constituent], rules: BracketRules) -> int:
    """Return the number of predicted brackets that are correct. Each correct bracket counts once."""
    if not rules.equal_labels:
        return (Counter(gold) & Counter(predicted)).total()
    unmatched = list(predicted)
    matched = 0
    for label, *span in gold:
        for position, (other, *other_span) in enumerate(unmatched):
            if span == other_span and rules.same_label(label, other):
                del unmatched[position]
                matched += 1
                break
    return matched


def _count_crossing(gold: Sequence[Constituent], predicted: Sequence[Constituent]) -> int:
    """Return the number of predicted brackets that overlap a correct one, neither of which contains the other."""
    spans = {(start, end) for _, start, end in gold}
    return sum(
        any(first < start < last < end or start < first < end < last for first, last in spans)
        for _, start, end in predicted
    )
