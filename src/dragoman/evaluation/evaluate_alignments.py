"""`evaluate_alignments` compares word alignments with annotated ones."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.log import quietly, warn
from dragoman.base.marks import Mark
from dragoman.data.corpora.inputs import Lines, load_lines, name_of
from dragoman.evaluation.evaluate import name_texts
from dragoman.evaluation.results import SystemComparison
from dragoman.evaluation.test_set import warn_of_size
from dragoman.figures.alignments import Alignments, alignment_figure, link_confusion
from dragoman.figures.confusion import Confusion
from dragoman.metrics.alignment_error_rate import (
    AlignmentMetric,
    GoldLinks,
    Link,
    alignment_metric,
    count_all,
    score_alignments,
)
from dragoman.metrics.score import Score
from dragoman.statistical.alignment.links import IndexBase, LinkFile

_Value = TypeVar("_Value")

_SUSPICIOUS_GAIN = 10
"""Decrease of AER, in points, above which the index base of a file is probably wrong."""
_GOLD_BASE, _HYPOTHESIS_BASE = "--gold-base", "--hypothesis-base"


@dataclass(frozen=True)
class AlignmentEvaluation:
    """The scores of the alignments of one or more systems, and comparisons of each system with the first.

    gold: name of the annotation, with its numbers of sentence pairs, sure links, and possible links, which include the
    sure ones. systems: the name of each system and its number of links. scores: in the order of `systems`. annotated:
    the annotated links of each sentence pair. aligned: the links of each sentence pair of each system. sentences: the
    source and the target sentences, if they are known.
    """

    gold: str
    pairs: int
    sure: int
    possible: int
    systems: tuple[tuple[str, int], ...]
    scores: tuple[Mapping[AlignmentMetric, Score], ...]
    comparisons: tuple[SystemComparison, ...]
    annotated: tuple[GoldLinks, ...] = field(repr=False)
    aligned: tuple[tuple[frozenset[Link], ...], ...] = field(repr=False)
    sentences: tuple[Sequence[str], Sequence[str]] | None = field(repr=False)

    def confusion(self) -> Confusion:
        """Return the numbers of right, possible, wrong and missed links of each system as a figure."""
        return link_confusion(self._named(self.aligned), self.annotated)

    def drawing(self, line: int) -> Alignments:
        """Return the links of all systems in a sentence pair, from 1, over the annotated ones, as a figure.

        Raises ConfigError if the sentences are unknown, or if there is no such pair.
        """
        if self.sentences is None:
            raise ConfigError("the words of the sentences are unknown: give --source FILE and --reference FILE")
        if not 1 <= line <= self.pairs:
            raise ConfigError(f"--draw-line {line}: there are {self.pairs:,} sentence pairs")
        source, target = (texts[line - 1].split() for texts in self.sentences)
        if not source or not target:
            raise ConfigError(f"--draw-line {line}: one side of this line is blank, so choose another line")
        links = [system[line - 1] for system in self.aligned]
        return alignment_figure(source, target, self._named(links), gold=self.annotated[line - 1])

    def _named(self, values: Sequence[_Value]) -> dict[str, _Value]:
        """Return values by the name of the system."""
        return {name: value for (name, _), value in zip(self.systems, values, strict=True)}

    def __getitem__(self, name: AlignmentMetric) -> float:
        """Return a metric of the first system in percent: aer, precision, recall or f1."""
        return self.scores[0][name].value

    def __str__(self) -> str:
        lines = [f"{self.gold}: {self.pairs:,} sentence pairs, {self.sure:,} sure and {self.possible:,} possible links"]
        for (name, links), scores in zip(self.systems, self.scores, strict=True):
            lines.append(f"{name}: {links:,} links")
            lines += [f"  {score}" for score in scores.values()]
        return "\n".join([*lines, *map(str, self.comparisons)])

    def marks(self) -> list[Mark]:
        """Return the significance of each comparison. See `Marked`."""
        return [mark for each in self.comparisons for mark in each.marks()]

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON types."""
        systems = [
            {
                "system": name,
                "links": links,
                "scores": [each.as_json() for each in scores.values()],
            }
            for (name, links), scores in zip(self.systems, self.scores, strict=True)
        ]
        return {
            "gold": self.gold,
            "pairs": self.pairs,
            "sure": self.sure,
            "possible": self.possible,
            "systems": systems,
            "comparisons": [each.as_json() for each in self.comparisons],
        }


def evaluate_alignments(
    gold: Lines,
    hypothesis: Lines | Sequence[Lines] | Mapping[str, Lines],
    *,
    gold_base: IndexBase | None = None,
    hypothesis_base: IndexBase | None = None,
    source: Lines | None = None,
    target: Lines | None = None,
    quiet: bool = False,
) -> AlignmentEvaluation:
    """Compute AER, precision, recall and F1 of word alignments, like `dragoman evaluate alignments`.

    gold: annotated links, sure and possible, in a format of `statistical.alignment.links`; a file or a list
    of lines. hypothesis: the links of a system or several systems, or a mapping from names to links. All links of a
    system count the same. Each system after the first is compared with the first by paired bootstrap. gold_base,
    hypothesis_base: the number of the first word of a sentence, 0 or 1; None: detected. source, target: the tokenised
    sentences, for checking that all links are inside them.

    A warning names a system whose AER would be much lower in another base or direction. Raises DataError
    for lines that are not links, links outside the sentences, and unequal numbers of lines, and ConfigError if a base
    cannot be detected.

    >>> from dragoman import evaluate_alignments
    >>> evaluation = evaluate_alignments(["0-0 1-1 1?2"], {"aligner": ["0-0 1-2"]})
    >>> print(evaluation)
    gold: 1 sentence pairs, 2 sure and 3 possible links
    aligner: 2 links
      AER = 25.00 ...
    """
    named = [(name_of(gold, "gold"), gold), *name_texts(hypothesis, "hypothesis")]
    if len(named) == 1:
        raise ConfigError("there is nothing to evaluate: give --hypothesis FILE with links")
    sides = {"source": source, "target": target}
    texts = {side: load_lines(text) for side, text in sides.items() if text is not None}
    files = _parse_files([(name, load_lines(lines)) for name, lines in named], texts)
    with quietly(quiet):
        bases = [_base_of(files[0], gold_base, _GOLD_BASE)]
        bases += [_base_of(file, hypothesis_base, _HYPOTHESIS_BASE) for file in files[1:]]
        options = [_GOLD_BASE, *[_HYPOTHESIS_BASE] * (len(files) - 1)]
        links = [file.zero_based(base, option) for file, base, option in zip(files, bases, options, strict=True)]
        for file, pairs, option in zip(files, links, options, strict=True):
            for side, lines in texts.items():
                _check_range(file, pairs, side, lines, option)
        annotated = [
            GoldLinks({link for link, is_possible in pair.items() if not is_possible}, pair.keys()) for pair in links[0]
        ]
        if not any(each.possible for each in annotated):
            raise DataError(f"{files[0].name} contains no links: give the file with the annotated links")
        systems = [[pair.keys() for pair in pairs] for pairs in links[1:]]
        for file, system in zip(files[1:], systems, strict=True):
            _warn_of_numbers(file.name, annotated, system)
        if len(systems) > 1:
            warn_of_size(len(annotated), "sentence pairs")
    counts = [count_all(annotated, system) for system in systems]
    signature = f"gold:{bases[0]}-based|links:{'/'.join(map(str, sorted(set(bases[1:]))))}-based"
    scores, compared = score_alignments(counts, signature)
    names = [file.name for file in files[1:]]
    return AlignmentEvaluation(
        files[0].name,
        len(annotated),
        sum(len(each.sure) for each in annotated),
        sum(len(each.possible) for each in annotated),
        tuple((name, sum(map(len, system))) for name, system in zip(names, systems, strict=True)),
        tuple(scores),
        tuple(
            SystemComparison(names[0], name, comparison, len(annotated))
            for name, comparison in zip(names[1:], compared, strict=True)
        ),
        tuple(annotated),
        tuple(tuple(frozenset(links) for links in system) for system in systems),
        (texts["source"], texts["target"]) if len(texts) == 2 else None,
    )


def _parse_files(files: Sequence[tuple[str, list[str]]], texts: Mapping[str, Sequence[str]]) -> list[LinkFile]:
    """Parse all files. Raises DataError if their numbers of sentence pairs differ from each other or from the texts."""
    parsed = [LinkFile.parse(name, lines) for name, lines in files]
    counted = [(side, len(lines)) for side, lines in texts.items()]
    counted += [(file.name, len(file.lines)) for file in parsed if not file.is_naacl]
    if not counted:
        counted = [(parsed[0].name, len(parsed[0].lines))]
    first, pairs = counted[0]
    for name, number in counted[1:]:
        if number != pairs:
            raise DataError(
                f"{first} has {pairs} lines and {name} has {number}: line n of one must correspond to line n of the "
                "other"
            )
    return [
        LinkFile.parse(name, lines, pairs) if file.is_naacl else file
        for file, (name, lines) in zip(parsed, files, strict=True)
    ]


def _base_of(file: LinkFile, base: IndexBase | None, option: str) -> IndexBase:
    if base not in (None, 0, 1):
        raise ConfigError(f"{option} is the number of the first word of a sentence, 0 or 1, but not {base}")
    return file.detect_base(option) if base is None else base


def _check_range(file: LinkFile, pairs: Sequence[Iterable[Link]], side: str, texts: Sequence[str], option: str) -> None:
    """Raise DataError for a link that is outside the sentences of one side."""
    for number, (links, text) in enumerate(zip(pairs, texts, strict=True), 1):
        words = len(text.split())
        for link in links:
            position = link[side == "target"]
            if position >= words:
                raise DataError(
                    f"{file.name}, sentence pair {number}: the link with word {position + 1} of the {side} is outside "
                    f"the sentence, which has {words} words. Check that the files correspond, and {option}"
                )


def _warn_of_numbers(name: str, gold: Sequence[GoldLinks], system: Sequence[Iterable[Link]]) -> None:
    """Warn if the links of a system agree much better with the annotation in another base or direction."""

    def error_rate(change: Callable[[int, int], Link]) -> float:
        changed = [{change(i, j) for i, j in links} for links in system]
        return float(alignment_metric(count_all(gold, changed).sum(0), "aer"))

    rate = error_rate(lambda i, j: (i, j))
    bases = f"Check whether words are numbered from 0 or from 1: {_HYPOTHESIS_BASE}, {_GOLD_BASE}"
    changes: list[tuple[Callable[[int, int], Link], str]] = [
        (lambda i, j: (i + 1, j + 1), f"the numbers of all words were larger by one. {bases}"),
        (lambda i, j: (i - 1, j - 1), f"the numbers of all words were smaller by one. {bases}"),
        (lambda i, j: (j, i), "source and target were exchanged. Check the direction of the links"),
    ]
    for change, description in changes:
        other = error_rate(change)
        if other < rate - _SUSPICIOUS_GAIN:
            warn(f"{name}: AER is {rate:.2f}, but would be {other:.2f} if {description}")
