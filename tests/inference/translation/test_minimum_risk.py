"""Minimum-risk choice: sacrebleu's scores from counted n-grams, and the choice compared with brute force."""

from math import exp

import numpy as np
import pytest
from closeness import close_to
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from scripted_engine import ScriptedEngine
from tiny_model import tiny_tokenizers

from dragoman import Translator
from dragoman.base.errors import ConfigError, DataError
from dragoman.decode.search import SearchConfig
from dragoman.inference.translation.line_division import DividedLine
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.reranking.minimum_risk import MinimumRisk
from dragoman.inference.translation.result import Translation
from dragoman.inference.translation.stream import StreamSettings, Window
from dragoman.metrics.registry import ngram_metrics
from dragoman.models.interface import LengthLimit, LengthLimits

SENTENCE = {
    "bleu": BLEU(effective_order=True),
    "bleu-lc": BLEU(lowercase=True, effective_order=True),
    "chrf": CHRF(),
    "chrf++": CHRF(word_order=2),
}
CORPUS = {"bleu": BLEU(), "bleu-lc": BLEU(lowercase=True), "chrf": CHRF(), "chrf++": CHRF(word_order=2)}
TOKENIZER = tiny_tokenizers().target
words = st.lists(st.sampled_from("the a dog , . dogs runs ran park Park 犬 é".split()), max_size=9).map(" ".join)
texts = st.lists(words | st.text(max_size=6), min_size=1, max_size=5)


def translation(text: str, log_probability: float) -> Translation:
    return Translation(text, 0.0, log_probability, (), TOKENIZER)


@pytest.mark.parametrize("name", ngram_metrics())
@given(texts=texts)
def test_pairwise_scores_equal_sacrebleus(name: str, texts: list[str]) -> None:
    found = ngram_metrics()[name].pairwise(texts)
    expected = [[SENTENCE[name].sentence_score(one, [other]).score for other in texts] for one in texts]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ngram_metrics())
@given(pairs=st.lists(st.tuples(words, words.filter(bool)), min_size=1, max_size=6))
def test_scores_of_summed_statistics_equal_sacrebleus(name: str, pairs: list[tuple[str, str]]) -> None:
    metric = ngram_metrics()[name]
    hypotheses, references = ([pair[side] for pair in pairs] for side in (0, 1))
    statistics = metric.statistics(hypotheses, references)
    expected = CORPUS[name].corpus_score(hypotheses, [references]).score
    assert float(metric.corpus(statistics.sum(0))) == pytest.approx(expected, abs=1e-9)
    each = [SENTENCE[name].sentence_score(*pair[:1], [pair[1]]).score for pair in pairs]
    np.testing.assert_allclose(metric.sentences(statistics), each, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("utility", ngram_metrics())
@pytest.mark.parametrize("weights", ["uniform", "probability"])
@settings(max_examples=25, deadline=None)
@given(drawn=st.lists(st.tuples(words, st.floats(-9, 0)), min_size=1, max_size=7))
def test_the_choice_equals_brute_force(utility: str, weights: str, drawn: list[tuple[str, float]]) -> None:
    hypotheses = [translation(*each) for each in drawn]
    shares = [exp(each.log_probability) if weights == "probability" else 1.0 for each in hypotheses]
    score = SENTENCE[utility].sentence_score
    expected = [
        sum(w * score(one.text, [other.text]).score for w, other in zip(shares, hypotheses, strict=True)) / sum(shares)
        for one in hypotheses
    ]
    (chosen,) = MinimumRisk(utility, weights).choose([""], [hypotheses])  # type: ignore[arg-type]
    assert chosen[0].score == close_to(max(expected))
    by_text = dict(zip([each.text for each in hypotheses], expected, strict=True))
    assert by_text[chosen[0].text] == close_to(max(expected))
    assert sorted(each.text for each in chosen) == sorted(each.text for each in hypotheses)
    assert [each.score for each in chosen] == close_to(sorted(expected, reverse=True))


def test_there_are_two_utilities() -> None:
    with pytest.raises(ConfigError, match="chrf"):
        MinimumRisk("ter")


@pytest.mark.parametrize("size", [1, 3, 4, 9])
def test_lists_are_processed_in_order(size: int) -> None:
    lists = [[translation(text, -1.0), translation("a dog", -2.0)] for text in ("the dog", "a dog .", "dogs", "park")]
    choice = MinimumRisk()
    lines = [DividedLine("", Request(SearchConfig()))] * len(lists)
    window = Window(lines, StreamSettings(batch_size=size, choice=choice))
    found = []
    for index in (1, 0, 3, 2):
        window.complete(index, lists[index])
        found += window.lines()
        assert len(found) % size == 0
    assert [*found, *window.lines(is_end=True)] == choice.choose([""] * len(lists), lists)
    window.check_complete()


def test_an_error_follows_the_results_of_earlier_lines() -> None:
    """Also of those that wait for a batch of the choice."""
    tokenizers = tiny_tokenizers()
    engine = ScriptedEngine(tokenizers, lambda row: [row.text, "a dog"])
    engine.limits = LengthLimits(LengthLimit("source", 5, "positions"), LengthLimit("target", None, ""))
    translator = Translator(engine, tokenizers)
    request = translator.request(beam=2, nbest=2, divide=False)
    stream = translator.translate_window(["a", "b", "c", "dog " * 9, "d"], request, 2, choice=MinimumRisk())
    assert [{each.text for each in next(stream)} for _ in range(3)] == [{text, "a dog"} for text in "abc"]
    with pytest.raises(DataError, match="positions"):
        next(stream)
