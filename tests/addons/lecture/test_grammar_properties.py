"""Properties of the embedded grammar for all seeds and sizes."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.addons.lecture.grammar.corpus import realise
from dragoman.addons.lecture.grammar.held_out import combinations, held_out
from dragoman.addons.lecture.grammar.lexicon.numerals import english_number, french_number, german_number
from dragoman.addons.lecture.grammar.rules import Rules


@settings(deadline=None, max_examples=150)
@given(seed=st.integers(0, 2**63))
def test_every_tree_is_expressed_in_three_languages_deterministically(seed: int) -> None:
    utterance, again = Rules(Random(seed)).utterance(), Rules(Random(seed)).utterance()
    assert utterance == again
    sentence = realise(utterance)
    assert sentence == realise(again)
    for text in sentence:
        assert text[0].isupper()
        assert text.endswith(("?",) if utterance.question else (".",))
        assert "  " not in text
        assert "_" not in text


@settings(deadline=None, max_examples=150)
@given(seed=st.integers(0, 2**63))
def test_held_out_combinations_are_among_those_of_the_tree(seed: int) -> None:
    utterance = Rules(Random(seed)).utterance()
    assert held_out(utterance) <= combinations(utterance)


@given(first=st.integers(0, 999), second=st.integers(0, 999))
def test_no_two_numbers_are_written_alike(first: int, second: int) -> None:
    for words in (english_number, german_number, french_number):
        assert (words(first) == words(second)) == (first == second)
