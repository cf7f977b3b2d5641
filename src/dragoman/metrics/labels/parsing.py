"""The report on predicted trees: bracket scores as EVALB counts them, with intervals and a baseline."""

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np

from dragoman.metrics.labels.brackets import COLLINS, BracketCounts, BracketRules, count_brackets
from dragoman.metrics.labels.classification import check_equal_lengths
from dragoman.metrics.labels.report import Baseline, Floats, LabelMetric, Report, resample, score_all
from dragoman.metrics.labels.scoring import SAMPLES, SEED
from dragoman.text.trees.tree import Constituent, Tree


def _metrics(rules: BracketRules) -> tuple[LabelMetric, ...]:
    signature = f"EVALB|{rules.name}"
    return (
        LabelMetric("bracket_f1", "bracket F1", f"F1|{signature}"),
        LabelMetric("bracket_precision", "bracket precision", f"precision|{signature}"),
        LabelMetric("bracket_recall", "bracket recall", f"recall|{signature}"),
        LabelMetric("complete_match", "complete match", f"complete match|{signature}"),
        LabelMetric("crossing", "crossing brackets per sentence", f"crossing|{signature}", better="lower", digits=4),
        LabelMetric("no_crossing", "sentences without crossing", f"no crossing|{signature}"),
        LabelMetric("tagging_accuracy", "tagging accuracy", f"tags|{signature}"),
    )


class ResampledBrackets:
    """The bracket metrics of resampled sentences. Sentences with an error do not count."""

    def __init__(self, counts: Sequence[BracketCounts]) -> None:
        """counts: those of N sentences."""
        self._statistics = np.array(
            [
                (
                    each.matched,
                    each.predicted,
                    each.gold,
                    each.complete,
                    each.crossing,
                    each.crossing == 0,
                    each.tags,
                    each.words,
                    1,
                )
                if each.status == "valid"
                else (0,) * 9
                for each in counts
            ],
            np.float64,
        )

    def __call__(self, counts: Floats) -> dict[str, Floats]:
        """Return the values (S,), by key. counts: (S, N) number of times that each sentence was drawn."""
        matched, predicted, gold, complete, crossing, without, tags, words, valid = (counts @ self._statistics).T
        return {
            "bracket_f1": _ratio(200 * matched, predicted + gold),
            "bracket_precision": _ratio(100 * matched, predicted),
            "bracket_recall": _ratio(100 * matched, gold),
            "complete_match": _ratio(100 * complete, valid),
            "crossing": _ratio(crossing, valid),
            "no_crossing": _ratio(100 * without, valid),
            "tagging_accuracy": _ratio(100 * tags, words),
        }


def parsing_report(
    gold: Sequence[Tree],
    predicted: Sequence[Tree],
    *,
    rules: BracketRules = COLLINS,
    repairs: Sequence[int] = (),
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Report:
    """Report bracket precision, recall and F1, complete matches, crossing brackets and the accuracy of tags.

    All are counted as by EVALB, over sentences of all lengths. rules: its parameters. A warning reports the
    number of sentences that EVALB leaves out, because the trees have different words after the removal of punctuation.
    repairs: number of symbols that were left out or added to make a tree of each prediction. The baseline is a
    right-branching tree. samples: number of resampled test sets for the intervals; 0 for no intervals. Raises DataError
    if the numbers of trees differ or are 0.
    """
    check_equal_lengths(gold, predicted)
    counts = [count_brackets(*sides, rules) for sides in zip(gold, predicted, strict=True)]
    scorer = ResampledBrackets(counts)
    baseline = _right_branching(gold, rules)
    metrics = _metrics(rules)
    lines = "\n".join(map(str, gold))
    resampled = resample(scorer, len(gold), samples, seed)
    return Report(
        task="parsing",
        examples=len(gold),
        unit="sentences",
        scores=score_all(
            metrics,
            _values(scorer, len(gold)),
            resampled,
            {metric.key: "no sentence can be compared" for metric in metrics},
        ),
        samples=samples,
        seed=seed,
        baseline=Baseline(
            "right-branching",
            _values(
                ResampledBrackets([count_brackets(*sides, rules) for sides in zip(gold, baseline, strict=True)]),
                len(gold),
            ),
        ),
        warnings=_warnings(counts, repairs),
        resampled=resampled,
        gold_digest=hashlib.sha256(lines.encode()).hexdigest(),
    )


def _warnings(counts: Sequence[BracketCounts], repairs: Sequence[int]) -> dict[str, str]:
    warnings = {}
    errors = [number for number, each in enumerate(counts, 1) if each.status != "valid"]
    if errors:
        warnings["errors"] = (
            f"{len(errors):,} of {len(counts):,} sentences are left out of all metrics, as by EVALB, because their "
            "words differ after the removal of punctuation, which depends on the tags (first: sentence "
            f"{errors[0]:,})"
        )
    if repaired := sum(map(bool, repairs)):
        warnings["repairs"] = (
            f"the output for {repaired:,} of {len(counts):,} sentences was not a tree with their words and was "
            f"repaired: {sum(repairs):,} symbols were left out or added"
        )
    return warnings


def _right_branching(gold: Sequence[Tree], rules: BracketRules) -> list[Tree]:
    """Return trees in which each word but the last, punctuation aside, is the sister of all words that follow it.

    The labels of the whole sentence and of the other constituents are those that score best: the most frequent ones
    among the correct constituents with these spans.
    """
    plain = [tree.without_words(lambda word: word.tag in rules.deleted) for tree in gold]
    labels: list[Counter[str]] = [Counter(), Counter()]
    for tree in plain:
        for label, start, end in tree.constituents:
            if end == len(tree.words):
                labels[start > 0][label] += 1
    root, inner = (counter.most_common(1)[0][0] if counter else "S" for counter in labels)
    trees = []
    for tree in gold:
        size = len(tree.words)
        kept = [number for number, word in enumerate(tree.words) if word.tag not in rules.deleted]
        starts = [0, *kept[1:-1]] if kept else []
        trees.append(Tree(tree.words, tuple(Constituent(inner if start else root, start, size) for start in starts)))
    return trees


def _values(scorer: ResampledBrackets, examples: int) -> dict[str, float]:
    return {key: float(value[0]) for key, value in scorer(np.ones((1, examples))).items()}


def _ratio(numerators: Floats, denominators: Floats) -> Floats:
    return numerators / np.where(denominators > 0, denominators, np.nan)
