"""ROUGE equals that of the package rouge-score, with and without stemming, and its stemmer equals NLTK's."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.errors import DataError
from dragoman.metrics.bootstrap import compare_statistics
from dragoman.metrics.porter_stemmer import stem
from dragoman.metrics.registry import METRICS, computable_metrics, summed_metric
from dragoman.metrics.rouge import longest_common_subsequence

PLAIN = ("rouge1", "rouge2", "rougeL")
ENDINGS = (
    *("ational", "tional", "enci", "anci", "izer", "abli", "alli", "entli", "eli", "ousli", "ization", "ation"),
    *("ator", "alism", "iveness", "fulness", "ousness", "aliti", "iviti", "biliti", "fulli", "logi", "icate", "ative"),
    *("alize", "iciti", "ical", "ful", "ness", "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement"),
    *("ment", "ent", "ion", "sion", "tion", "ou", "ism", "ate", "iti", "ous", "ive", "ize", "ies", "sses", "s", "ss"),
    *("ed", "ied", "eed", "ing", "ying", "y", "e", "ll", "le", "lle", "at", "bl", "iz", "ling", "tting", "zzed", ""),
)
WORDS = st.sampled_from(
    "the a model models modelling learned learning is, not well-known état 3.5 Networks network's".split()
)
TEXTS = st.lists(WORDS, max_size=12).map(" ".join)


@given(st.text("abeilnorstuvwxyz", max_size=6), st.sampled_from(ENDINGS), st.sampled_from(["", "s", "ed", "ing", "ly"]))
def test_stems_equal_nltks(start: str, ending: str, more: str) -> None:
    porter = pytest.importorskip("nltk.stem.porter")
    word = start + ending + more
    assert stem(word) == porter.PorterStemmer().stem(word)


def test_stems_of_irregular_and_short_words_equal_nltks() -> None:
    porter = pytest.importorskip("nltk.stem.porter")
    words = "sky skies dying lying tying news innings outings cannings howe proceed exceed succeed dies flies by as yes"
    words += " conditionally radically fully generically rationally enjoyed owed saw apply sing bled fizzed hopping"
    for word in words.split():
        assert stem(word) == porter.PorterStemmer().stem(word), word


@pytest.mark.parametrize("stemmed", [False, True])
@given(pairs=st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=4))
def test_scores_equal_those_of_rouge_score(stemmed: bool, pairs: list[tuple[str, str, str]]) -> None:
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(list(PLAIN), use_stemmer=stemmed)
    hypotheses, *references = ([row[side] for row in pairs] for side in range(3))
    references = [["a model", *reference] for reference in references]
    hypotheses = ["the model", *hypotheses]
    for key in PLAIN:
        expected = [
            scorer.score_multi(list(targets), hypothesis)[key].fmeasure
            for hypothesis, *targets in zip(hypotheses, *references, strict=True)
        ]
        score = METRICS[f"{key}_stemmed" if stemmed else key].score(hypotheses, *references)
        assert score.value == pytest.approx(100 * sum(expected) / len(expected), abs=1e-9)
        assert score.signature == f"F1, maximum of 2 references, {'stemmed' if stemmed else 'not stemmed'}"


@given(st.lists(st.integers(0, 3), max_size=8), st.lists(st.integers(0, 3), max_size=8))
def test_the_longest_common_subsequence_is_that_of_the_recursion(one: list[int], other: list[int]) -> None:
    def length(first: Sequence[int], second: Sequence[int]) -> int:
        if not first or not second:
            return 0
        if first[-1] == second[-1]:
            return 1 + length(first[:-1], second[:-1])
        return max(length(first[:-1], second), length(first, second[:-1]))

    assert longest_common_subsequence(one, other) == length(one, other)


def test_systems_are_compared_by_paired_bootstrap() -> None:
    draw = random.Random(1)
    references = [" ".join(draw.choices("one two three four five".split(), k=6)) for _ in range(50)]
    worse = [" ".join(text.split()[:3]) for text in references]
    metric = summed_metric("rougeL")
    rows = [metric.statistics(lines, references) for lines in (references, worse)]
    comparison = compare_statistics(rows[0], rows[1], metric, 1)
    assert comparison.first.value == 100 and comparison.p_value < 0.01


def test_rouge_is_computed_for_translations_only_if_it_is_named() -> None:
    assert {"bleu", "chrf", "ter"} <= computable_metrics({"references"}).keys()
    assert not any(key.startswith("rouge") for key in computable_metrics({"references"}))


def test_texts_without_latin_letters_are_rejected() -> None:
    with pytest.raises(DataError, match="words of the letters a to z and digits, but the references have none"):
        METRICS["rouge1"].score(["犬"], ["犬が"])


def test_labels_and_answers_as_text_are_scored() -> None:
    outputs, labels = ["pos", "neg ", "positive", "neg"], ["pos", "neg", "pos", "pos"]
    assert METRICS["accuracy"].score(outputs, labels).value == 50
    assert METRICS["other_outputs"].score(outputs, labels).value == 25
    answers = ["the red house", "a dog", "blue", "in 1990"], ["a house", "dogs", "blue", "1990"]
    found = ["House.", "dog", "green", "1990"]
    assert METRICS["exact_match"].score(found, *answers).value == 75
    assert METRICS["answer_f1"].score(found, answers[0]).value == pytest.approx(100 * (2 / 3 + 1 + 0 + 2 / 3) / 4)
