"""Doubts about translations: words that a vocabulary does not know, and the probability compared with the quality."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_words import WORDS, known_words
from scipy.stats import linregress

from dragoman.checkpoint.confidence import Confidence, per_token
from dragoman.inference.translation.doubts import DoubtFinder, Doubts, spelled_out
from dragoman.inference.translation.result import Translation
from dragoman.text.tokenizer import Tokenizer

CONFIDENCE = Confidence(system="neural", intercept=90, slope=50, lowest=-1.5, correlation=0.6, sentences=200, mean=60)


def translation(target: Tokenizer, log_probability: float, tokens: int, patched: bool = False) -> Translation:
    return Translation("…", log_probability, log_probability, tuple(range(4, 4 + tokens)), target, patched=patched)


def unknown(kind: str, source: str) -> tuple[str, ...]:
    tokenizer = known_words(kind)
    confidence = CONFIDENCE.model_copy(update={"spelled_out": spelled_out(tokenizer, [" ".join(WORDS)] * 50)})
    return DoubtFinder(tokenizer, confidence, 30).doubts(source, translation(tokenizer, -1.0, 3)).unknown_words


def test_words_that_are_spelled_out_are_unknown() -> None:
    """Words of the training, short words and numbers are not; each unknown word is listed once."""
    assert unknown("bpe", "the small house stands behind another garden, 123456 as") == ()
    assert unknown("bpe", "the xqzvwk house, XQZVWK and xqzvwk children") == ("xqzvwk", "XQZVWK")
    assert unknown("bpe", "") == ()


def test_words_in_other_scripts_are_unknown_unless_they_have_no_blanks() -> None:
    assert unknown("bpe", "the дом house") == ("дом",)
    assert unknown("bpe", "the 日本語の文章 house") == ()


def test_word_vocabularies_know_their_words_only() -> None:
    assert unknown("word", "the strange house") == ("strange",)


def test_character_vocabularies_spell_out_all_words() -> None:
    assert unknown("character", "the grand house stands") == ()


def test_few_words_of_the_validation_set_are_spelled_out() -> None:
    """The limit is that of one word in 500; words of a vocabulary of words are never spelled out."""
    usual = ["interesting"] * 998
    assert spelled_out(known_words(), [*usual, "xqzvwk"]) == 1.5
    rare = spelled_out(known_words(), [*usual, *["xqzvwk"] * 10])
    assert rare == pytest.approx(6 / len(known_words().encode("xqzvwk")))
    assert unknown("bpe", "xqzvwk") == ("xqzvwk",)
    assert spelled_out(known_words(), []) == spelled_out(known_words(), ["a b c"]) == 0.0


def test_improbable_translations_are_doubted() -> None:
    """By the threshold of the expected chrF, and below what 99% of the validation set had; not if it is unknown."""

    def doubts(log_probability: float, tokens: int, threshold: float, patched: bool = False) -> Doubts:
        return DoubtFinder(known_words(), CONFIDENCE, threshold).doubts(
            "the house", translation(known_words(), log_probability, tokens, patched)
        )

    assert doubts(-4, 3, 30) == Doubts((), 40.0, False)
    assert doubts(-4, 3, 41) == Doubts((), 40.0, True)
    assert doubts(-6.4, 3, 0) == Doubts((), 10.0, True)
    assert doubts(-40, 3, 0) == Doubts((), 0.0, True)
    assert doubts(0, 3, 30).expected_chrf == 90
    assert doubts(-40, 3, 30, patched=True) == Doubts()
    assert DoubtFinder(known_words(), None, 30).doubts("the house", translation(known_words(), -40, 3)) == Doubts()


@given(st.integers(0, 2**32 - 1), st.floats(5, 80), st.floats(0.5, 20))
def test_expected_chrf_is_the_least_squares_line(seed: int, slope: float, noise: float) -> None:
    """Compared with scipy; more probable translations are never expected to be worse."""
    random = np.random.default_rng(seed)
    x = -random.gamma(2, 0.3, 150)
    y = 85 + slope * x + random.normal(0, noise, 150)
    found, expected = Confidence.fitted("neural", x.tolist(), y.tolist()), linregress(x, y)
    if found is None:
        assert expected.rvalue < 0.2
        return
    assert (found.slope, found.intercept, found.correlation) == pytest.approx(
        (expected.slope, expected.intercept, expected.rvalue)
    )
    assert (x < found.lowest).mean() == pytest.approx(0.01, abs=0.01)
    values = [found.expected(each) for each in (-9.0, -1.0, -0.5, 0.0)]
    assert values == sorted(values) and values[0] >= 0 and values[-1] <= 100


def test_nothing_is_concluded_from_few_sentences_or_from_no_correlation() -> None:
    x = np.linspace(-2, 0, 120)
    assert Confidence.fitted("neural", x[:99].tolist(), (90 + 10 * x[:99]).tolist()) is None
    assert Confidence.fitted("neural", x.tolist(), (90 - 10 * x).tolist()) is None
    assert Confidence.fitted("neural", x.tolist(), [50.0] * 120) is None
    assert Confidence.fitted("neural", [-1.0] * 120, x.tolist()) is None


def test_the_end_of_the_sentence_counts_as_a_token() -> None:
    assert per_token(-6.0, 2) == -2
    assert per_token(-6.0, 0) == -6
