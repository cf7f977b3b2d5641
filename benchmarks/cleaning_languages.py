"""Cleaning of parallel texts in all pairs of languages: true pairs that are dropped, and shuffled pairs that are found.

    python benchmarks/cleaning_languages.py --data $DRAGOMAN_DATA/udhr     # 2 minutes

The folder has files en-CODE.tsv.gz with English and another language. Texts with the same English side are paired, and
N files result in N · (N + 1) / 2 pairs of languages. Each pair of languages is cleaned three times with the default
rules and the names of its languages: as it is, with half of its targets shuffled among themselves, and with all of them
shuffled. A shuffled pair is of unlike length if its length ratio differs by more than --factor from the usual ratio of
the two languages, by `UsualRatio`.
"""

import argparse
import gzip
import random
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dragoman.data.cleaning.clean import report_cleaning
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.cleaning.length_ratio import UsualRatio
from dragoman.data.cleaning.rules import PairRules
from dragoman.data.corpora.items import Pair

Texts = dict[str, str]


class Result(NamedTuple):
    """Cleaning of one pair of languages.

    pairs: number of pairs. rules: number of dropped true pairs by rule. unlike, found: for each share of shuffled
    targets, the number of shuffled pairs of unlike length, and of those that were dropped.
    """

    languages: tuple[str, str]
    pairs: int
    rules: Counter[str]
    unlike: dict[float, int]
    found: dict[float, int]

    @property
    def lost(self) -> float:
        """Fraction of the true pairs that were dropped."""
        return self.rules.total() / self.pairs


def main() -> None:
    """Clean all pairs of languages and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with en-CODE.tsv.gz")
    parser.add_argument("--factor", type=float, default=2.5, help="minimum deviation of pairs of unlike length")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    texts = read_texts(options.data)
    results = [
        clean_languages(languages, texts, options.factor, options.seed) for languages in combinations(sorted(texts), 2)
    ]
    print(f"{len(results)} pairs of languages, {sum(result.pairs for result in results):,} true pairs")
    rules = sum((result.rules for result in results), Counter[str]())
    worst = max(results, key=lambda result: result.lost)
    print(
        f"true pairs dropped: {rules.total()} ({dict(rules)}), at most {worst.lost:.1%} ({'-'.join(worst.languages)})"
    )
    for share in SHARES:
        unlike, found = (sum(getattr(result, name)[share] for result in results) for name in ("unlike", "found"))
        least = min((result for result in results if result.unlike[share]), key=lambda each: found_share(each, share))
        print(
            f"{share:.0%} of the targets shuffled: {found:,} of {unlike:,} pairs of unlike length found "
            f"({found / unlike:.1%}), at least {found_share(least, share):.1%} ({'-'.join(least.languages)})"
        )


SHARES = (0.5, 1.0)


def read_texts(folder: Path) -> dict[str, Texts]:
    """Return the texts of each language by their English versions."""
    texts: dict[str, Texts] = {"en": {}}
    for path in sorted(folder.glob("en-*.tsv.gz")):
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
        texts[path.name.removeprefix("en-").partition(".")[0]] = {english: other for english, other, *_ in rows}
        texts["en"].update((english, english) for english, *_ in rows)
    return texts


def clean_languages(languages: tuple[str, str], texts: dict[str, Texts], factor: float, seed: int) -> Result:
    """Clean the true and the shuffled pairs of two languages."""
    first, second = (texts[language] for language in languages)
    sources, targets = zip(*((first[key], second[key]) for key in first if key in second), strict=True)
    lengths = np.array([[len(text.strip()) for text in side] for side in (sources, targets)])
    ratio = UsualRatio.estimate(lambda: [lengths])
    true = clean(languages, sources, targets)
    unlike, found = {}, {}
    for share in SHARES:
        shuffled, moved = shuffle(targets, share, seed)
        dropped = clean(languages, sources, shuffled)
        sides = np.array([lengths[0], [len(text.strip()) for text in shuffled]])
        wrong = [index for index in moved if ratio.deviations(sides)[index] > factor]
        unlike[share], found[share] = len(wrong), sum(index in dropped for index in wrong)
    return Result(languages, len(sources), Counter(true.values()), unlike, found)


def clean(languages: tuple[str, str], sources: Sequence[str], targets: Sequence[str]) -> dict[int, str]:
    """Return the rule that drops each dropped pair, by its index."""
    pairs = [Pair(line, *sides) for line, sides in enumerate(zip(sources, targets, strict=True), start=1)]
    report = report_cleaning(pairs, PairRules(CleaningConfig().with_languages(*languages)), workers=0)
    return {int(line) - 1: rule for rule, lines in report.dropped.items() for line in lines}


def shuffle(targets: Sequence[str], share: float, seed: int) -> tuple[list[str], list[int]]:
    """Return the targets, of which a share has been shuffled, and the indices of those that are at a wrong position."""
    draw = random.Random(seed)
    chosen = sorted(draw.sample(range(len(targets)), round(share * len(targets))))
    sources = draw.sample(chosen, len(chosen))
    shuffled = list(targets)
    for index, source in zip(chosen, sources, strict=True):
        shuffled[index] = targets[source]
    return shuffled, [index for index, source in zip(chosen, sources, strict=True) if index != source]


def found_share(result: Result, share: float) -> float:
    """Return the fraction of the shuffled pairs of unlike length that were found."""
    return result.found[share] / result.unlike[share]


if __name__ == "__main__":
    main()
