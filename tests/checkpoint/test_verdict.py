"""The rules of the verdict, by a table: what is said of a model that is better or worse than simple systems."""

import pytest

from dragoman.checkpoint.meta import Meta, dump_meta, parse_meta
from dragoman.checkpoint.verdict import COPYING, DICTIONARY, ScoreRange, SeenWords, SystemRanges, Verdict

BOTH, BLEU, CHRF, NONE = ("BLEU", "chrF2"), ("BLEU",), ("chrF2",), ()


def ranges(system: str, better: tuple[str, ...] = (), worse: tuple[str, ...] = ()) -> SystemRanges:
    scores = tuple(ScoreRange(metric=name, value=9.96, low=9, high=11, signature="") for name in BOTH)
    return SystemRanges(system=system, scores=scores, better=better, worse=worse)


def seen(fraction: float) -> SeenWords:
    words = round(1000 * fraction)
    return SeenWords(types=100, seen_types=80, words=1000, seen_words=words, lines=100, seen_lines=60)


def verdict(
    copying: tuple[tuple[str, ...], tuple[str, ...]],
    dictionary: tuple[tuple[str, ...], tuple[str, ...]] | None,
    sentences: int = 1000,
    known: float = 0.99,
) -> Verdict:
    others = [ranges(COPYING, *copying), *([] if dictionary is None else [ranges(DICTIONARY, *dictionary)])]
    return Verdict(
        data="test.tsv",
        sentences=sentences,
        pairs=4000,
        model=ranges("runs/a"),
        others=tuple(others),
        source=None if dictionary is None else seen(known),
        missing="" if dictionary is not None else "the corpus does not exist any more",
    )


@pytest.mark.parametrize(
    ("copying", "dictionary", "known", "is_poor", "words"),
    [
        ((NONE, BOTH), (NONE, BOTH), 0.99, True, "worse than copying the source and the word-by-word dictionary"),
        ((BOTH, NONE), (NONE, BOTH), 0.99, True, "Not usable: it is worse than the word-by-word dictionary, by BLEU"),
        ((BOTH, NONE), (NONE, CHRF), 0.99, True, "worse than the word-by-word dictionary, by chrF2."),
        ((NONE, NONE), (NONE, NONE), 0.99, True, "not significantly better than copying the source and the word-by"),
        ((BOTH, NONE), (NONE, NONE), 0.99, True, "not significantly better than the word-by-word dictionary;"),
        ((BOTH, NONE), (BLEU, CHRF), 0.99, False, "than the word-by-word dictionary by BLEU, but worse by chrF2"),
        ((BOTH, NONE), (CHRF, BLEU), 0.99, False, "than the word-by-word dictionary by chrF2, but worse by BLEU"),
        ((BOTH, NONE), (BLEU, NONE), 0.90, False, "but 1 word in 10 was never seen in training."),
        ((BOTH, NONE), (BOTH, NONE), 0.99, False, "significantly better than copying the source and the word-by-word"),
        ((BOTH, NONE), None, 0.99, False, "significantly better than copying the source. "),
        ((NONE, BLEU), None, 0.99, True, "worse than copying the source, by BLEU."),
    ],
)
def test_sentence(
    copying: tuple[tuple[str, ...], tuple[str, ...]],
    dictionary: tuple[tuple[str, ...], tuple[str, ...]] | None,
    known: float,
    is_poor: bool,
    words: str,
) -> None:
    found = verdict(copying, dictionary, known=known)
    assert words in found.sentence and found.is_poor == is_poor and found.sentence in str(found)


def test_few_sentences_have_no_verdict() -> None:
    found = verdict((NONE, BOTH), (NONE, BOTH), sentences=9)
    assert "9 sentences are too few" in found.sentence and not found.is_poor


def test_reasons_state_pairs_words_and_what_is_missing() -> None:
    first, second = verdict((BOTH, NONE), (BOTH, NONE), known=0.95).reasons()
    assert first == "It was trained on 4,000 sentence pairs."
    assert second == (
        "In the source, 95.0% of the words (80 of 100 different ones) occur in training; 60% of the lines have no "
        "unseen word."
    )
    assert "the corpus does not exist any more" in list(verdict((BOTH, NONE), None).reasons())[1]
    sample = verdict((BOTH, NONE), (BOTH, NONE)).model_copy(update={"pairs": 90_000, "sampled": 50_000})
    assert "use 50,000 of them" in next(sample.reasons())


def test_table_has_intervals() -> None:
    header, *rows = verdict((BOTH, NONE), (BOTH, NONE)).table().rows
    assert header == ("system", "BLEU", "chrF2")
    assert rows[0] == ("runs/a", "10.0 (9.0–11.0)", "10.0 (9.0–11.0)")


def test_verdict_is_stored_in_the_metadata() -> None:
    meta = Meta(step=3, verdict=verdict((NONE, BOTH), (NONE, BOTH)))
    assert parse_meta(dump_meta(meta), "meta.json") == meta
