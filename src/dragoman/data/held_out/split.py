"""`select_pairs` chooses held-out pairs by sentence: none of their sentences is in another set.

The corpora are read twice, and memory depends on the number of candidates only. The first pass draws candidates at
random, from which cleaning drops the unsuitable ones. The second pass counts how many pairs share a sentence with each
candidate. Candidates that share none are preferred, because all pairs that share one are lost for training.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

from dragoman.base.errors import DataError
from dragoman.base.progress import Progress
from dragoman.data.cleaning.chunks import chunk_file, divide_into_chunks, read_chunk, read_texts
from dragoman.data.cleaning.clean import clean
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.cleaning.mismatches import PairScoring
from dragoman.data.cleaning.rules import PairRules
from dragoman.data.cleaning.sentence_keys import SentenceKeys, sentence_key
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.readers import read_pairs
from dragoman.data.files.lines import has_broken_utf8
from dragoman.data.held_out.config import HeldOutConfig, Sizes
from dragoman.data.workers import parallel_map

CANDIDATES = 20_000
"""Maximum number of candidates per corpus, unless more pairs are to be held out. Smaller corpora are read as a whole,
so that cleaning treats their pairs exactly as in training."""

_PER_PAIR = 4
_FEWEST_SCORED = 1000
"""Minimum number of candidates whose sides are compared by `cleaning.mismatched`."""

Cleaning = Callable[[CorpusConfig], CleaningConfig]
"""Returns the cleaning rules of a corpus, which depend on its languages."""


class _Candidate(NamedTuple):
    """A pair that may be held out, with the keys of its sentences."""

    pair: Pair
    source: int
    target: int


@dataclass(frozen=True)
class Selection:
    """The held-out pairs of each corpus, in the order of the corpus, and the numbers of pairs that were intended."""

    valid: tuple[list[Pair], ...]
    test: tuple[list[Pair], ...]
    sizes: Sizes


def select_pairs(
    corpora: Sequence[CorpusConfig],
    config: HeldOutConfig,
    cleaning: Cleaning,
    *,
    scoring: PairScoring | None = None,
    named: Sizes | None = None,
    known: SentenceKeys | None = None,
) -> Selection:
    """Choose the pairs of a validation and a test set from corpora.

    The selection depends on the corpora and the seed, not on the machine. Pairs that cleaning would drop and texts of
    several lines are not chosen. If many pairs share their sentences, fewer pairs than intended may be chosen.

    scoring: as in `clean`. named: 0 for a set that is not needed, because the recipe names it; None: both sets are
    needed. known: sentences of the named sets, which are not chosen. Raises DataError if the corpora cannot be read or
    are too small, and ConfigError as `HeldOutConfig.sizes` does.
    """
    most = max(CANDIDATES, _PER_PAIR * ((config.valid or 0) + (config.test or 0)))
    with Progress("Holding out pairs", "pairs") as progress:
        samples = [_sample(corpus, Random(f"{config.seed} {n}"), most, progress) for n, corpus in enumerate(corpora)]
        counts = [count for count, _ in samples]
        sizes = config.sizes(sum(counts), ", ".join(map(str, corpora)))
        if named is not None:
            sizes = Sizes(sizes.valid * named.valid, sizes.test * named.test)
        rules = [PairRules(cleaning(corpus), str(corpus), side_names=corpus.side_names) for corpus in corpora]
        candidates = [_suitable(pairs, each, scoring) for (_, pairs), each in zip(samples, rules, strict=True)]
        occurrences = _occurrences(corpora, rules, [each for group in candidates for each in group])
    ranked = [
        _ranked(group, occurrences, Random(f"order {config.seed} {number}")) for number, group in enumerate(candidates)
    ]
    chosen = _choose(ranked, _apportion(sum(sizes), counts), known)
    if sum(map(len, chosen)) < sum(size > 0 for size in sizes):
        raise DataError(
            f"{', '.join(map(str, corpora))}: too few pairs with sentences of their own are left after cleaning to "
            "hold out a validation set. See what `dragoman data check` drops, or give a validation set (data.valid)"
        )
    return _divide(chosen, sizes, config.seed)


def _sample(corpus: CorpusConfig, random: Random, most: int, progress: Progress) -> tuple[int, list[Pair]]:
    """Return the number of complete pairs, and a uniform random sample of those with one line per side.

    Source: Vitter 1985, "Random sampling with a reservoir", algorithm R.
    """
    count, sample = 0, list[Pair]()
    for pair in read_pairs(corpus):
        if not _is_line_pair(pair):
            continue
        if len(sample) < most:
            sample.append(pair)
        elif (position := int(random.random() * (count + 1))) < most:
            sample[position] = pair
        count += 1
        progress.update(progress.done + 1)
    return count, sorted(sample, key=lambda pair: pair.line)


def _is_line_pair(pair: Pair) -> bool:
    """Return whether both sides exist, are valid, and can be stored as lines."""
    return pair.complete and not any("\n" in text or has_broken_utf8(text) for text in pair.texts)


def _suitable(pairs: Sequence[Pair], rules: PairRules, scoring: PairScoring | None) -> list[_Candidate]:
    """Return the candidates that cleaning keeps, repaired."""
    if scoring is None or len(pairs) < _FEWEST_SCORED:
        scoring = None
        config = rules.config.model_copy(update={"mismatched": False, "aligner": None})
        rules = PairRules(config, rules.origin, side_names=rules.side_names)
    kept = list[Pair]()
    with TemporaryDirectory(prefix="dragoman-") as name:
        folder = Path(name)
        cleaned = clean(pairs, rules, folder, scoring=scoring)
        for number in range(len(cleaned)):
            chosen = cleaned.verdicts(number) == 0
            (lines,) = read_chunk(chunk_file(folder, number), "lines")
            sides = (read_texts(chunk_file(folder, number), side, chosen) for side in rules.sides)
            kept += [Pair(*row) for row in zip(lines[chosen].tolist(), *sides, strict=True)]
        del cleaned  # its files are memory-mapped
    return [_Candidate(pair, sentence_key(pair.source), sentence_key(pair.target)) for pair in kept]


@dataclass(frozen=True)
class _KeyCounter:
    """Counts the occurrences of the sentences of candidates in a chunk of pairs."""

    rules: Sequence[PairRules]
    keys: SentenceKeys

    def __call__(self, task: tuple[int, Sequence[Pair]]) -> tuple[Counter[int], Counter[int]]:
        """Return the counts of sources and targets by key. task: number of the corpus, and pairs."""
        number, pairs = task
        checked = map(self.rules[number].check, pairs)
        kept = [each.item for each in checked if each.rule is None]
        sources = Counter(key for pair in kept if (key := sentence_key(pair.source)) in self.keys.sources)
        return sources, Counter(key for pair in kept if (key := sentence_key(pair.target)) in self.keys.targets)


def _occurrences(
    corpora: Sequence[CorpusConfig], rules: Sequence[PairRules], candidates: Sequence[_Candidate]
) -> tuple[Counter[int], Counter[int]]:
    """Return how many pairs of the corpora have each source and each target of the candidates."""
    sources = frozenset(each.source for each in candidates)
    keys = SentenceKeys(sources, frozenset(each.target for each in candidates))
    totals = Counter[int](), Counter[int]()
    for counts in parallel_map(_KeyCounter(rules, keys), _chunks(corpora)):
        for total, count in zip(totals, counts, strict=True):
            total.update(count)
    return totals


def _chunks(corpora: Sequence[CorpusConfig]) -> Iterator[tuple[int, Sequence[Pair]]]:
    for number, corpus in enumerate(corpora):
        for chunk in divide_into_chunks(read_pairs(corpus)):
            yield number, chunk  # type: ignore[misc]


def _ranked(
    candidates: Sequence[_Candidate], occurrences: tuple[Counter[int], Counter[int]], random: Random
) -> list[_Candidate]:
    """Return candidates in random order, those first whose sentences occur in the fewest other pairs."""
    sources, targets = occurrences
    order = [(sources[each.source] + targets[each.target], random.random()) for each in candidates]
    return [candidates[row] for row in sorted(range(len(candidates)), key=order.__getitem__)]


def _choose(
    candidates: Sequence[Sequence[_Candidate]], quotas: Sequence[int], known: SentenceKeys | None
) -> list[list[Pair]]:
    """Return the first pairs of each corpus, no two of which share a sentence. quotas: number per corpus."""
    sources = set[int](() if known is None else known.sources)
    targets = set[int](() if known is None else known.targets)
    chosen = []
    for group, quota in zip(candidates, quotas, strict=True):
        pairs = list[Pair]()
        for candidate in group:
            if len(pairs) == quota:
                break
            if candidate.source not in sources and candidate.target not in targets:
                sources.add(candidate.source)
                targets.add(candidate.target)
                pairs.append(candidate.pair)
        chosen.append(pairs)
    return chosen


def _divide(chosen: Sequence[Sequence[Pair]], sizes: Sizes, seed: int) -> Selection:
    """Divide the chosen pairs of each corpus at random."""
    valid, test = list[list[Pair]](), list[list[Pair]]()
    wanted = sum(sizes)
    total = min(wanted, sum(map(len, chosen)))
    first = min(max(round(total * sizes.valid / wanted), sizes.valid > 0), total - (sizes.test > 0))
    for number, (pairs, count) in enumerate(zip(chosen, _apportion(first, list(map(len, chosen))), strict=True)):
        order = list(range(len(pairs)))
        random = Random(f"division {seed} {number}")
        order.sort(key=lambda _: random.random())
        for rows, part in ((order[:count], valid), (order[count:], test)):
            part.append(sorted((pairs[row] for row in rows), key=lambda pair: pair.line))
    return Selection(tuple(valid), tuple(test), sizes)


def _apportion(total: int, weights: Sequence[int]) -> list[int]:
    """Divide a number in proportion to weights, by the largest remainders."""
    exact = [total * weight / sum(weights) for weight in weights]
    shares = list(map(int, exact))
    remainders = sorted(range(len(weights)), key=lambda index: (shares[index] - exact[index], index))
    for index in remainders[: total - sum(shares)]:
        shares[index] += 1
    return shares
