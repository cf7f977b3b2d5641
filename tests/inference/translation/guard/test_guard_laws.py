"""Laws of the guard's detectors that hold for any text."""

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.inference.translation.guard.copied import is_copied
from dragoman.inference.translation.guard.guard import Guard, is_empty
from dragoman.inference.translation.guard.numbers import changed_numbers
from dragoman.inference.translation.guard.repetition import repeated_phrase
from dragoman.inference.translation.guard.wrong_script import foreign_letters

TEXTS = st.text(max_size=40) | st.text("ab 1,.", max_size=40)
LATIN = Guard(frozenset({"Latn"}))


@given(TEXTS)
def test_a_text_as_its_own_translation_is_only_a_copy(text: str) -> None:
    assert {finding.kind for finding in Guard(two_languages=False).findings(text, text)} == set()
    assert {finding.kind for finding in LATIN.findings(text, text)} <= {"copy", "script"}


@given(TEXTS, TEXTS)
def test_any_pair_can_be_checked(source: str, output: str) -> None:
    found = LATIN.findings(source, output)
    assert len({finding.kind for finding in found}) == len(found)
    assert found == () or source.strip()
    assert found == LATIN.findings(source, output)


@given(st.lists(st.text("bcd", min_size=2, max_size=5), min_size=1, max_size=5), st.integers(3, 6))
def test_repetitions_are_a_loop_unless_the_source_repeats_as_often(phrase: list[str], times: int) -> None:
    looped = " ".join(["so", *phrase * times, "on"])
    assert repeated_phrase("one text", looped) is not None
    assert repeated_phrase(looped, looped) is None
    assert repeated_phrase(" ".join(["x", *["yes"] * times]), looped) is None or len(set(phrase)) < len(phrase)


@given(st.lists(st.text("bcdefgh", min_size=1, max_size=9), max_size=20, unique=True))
def test_distinct_words_are_not_a_loop(words: list[str]) -> None:
    text = " ".join(word[:7] for word in words)
    if len({word[:7] for word in words}) == len(words):
        assert repeated_phrase("", text) is None


@given(st.lists(st.integers(0, 10**7), max_size=6), st.permutations(list(range(6))))
def test_numbers_may_be_written_differently_and_moved(numbers: list[int], order: list[int]) -> None:
    english = " and ".join(f"{number:,}" for number in numbers)
    moved = [numbers[place] for place in order if place < len(numbers)]
    for separator in (".", " ", "\u202f", "’", ""):
        german = " und ".join(f"{number:,}".replace(",", separator) for number in moved)
        assert changed_numbers(english, german) is None


@given(st.integers(1000, 10**6), st.integers(1000, 10**6))
def test_another_number_is_found(number: int, other: int) -> None:
    zeros = str(number).rstrip("0") == str(other).rstrip("0")
    hours = number % 100 == other % 100
    if number != other and not zeros and not hours:
        assert changed_numbers(f"in {number} ways", f"auf {other} Arten") is not None
    assert changed_numbers(f"in {number} ways", "auf viele Arten") is not None


@given(st.text(max_size=30))
def test_a_blank_translation_of_any_text_is_empty(source: str) -> None:
    assert is_empty(source, " \u3000") == bool(source.strip())


@given(st.text("абвгд ", min_size=1, max_size=20))
def test_letters_of_a_foreign_script_are_found(letters: str) -> None:
    assert (foreign_letters("a dog", f"ein {letters}", {"Latn"}) is not None) == bool(letters.strip())
    assert foreign_letters("a dog", f"ein {letters}", {"Latn", "Cyrl"}) is None
    assert foreign_letters("a dog", f"ein {letters}", ()) is None


@given(st.lists(st.text("bcdfg", min_size=1, max_size=6), min_size=4, max_size=12))
def test_a_copy_is_found_in_any_case_unless_it_has_other_words(words: list[str]) -> None:
    source = " ".join(words)
    assert is_copied(source, source)
    assert is_copied(source, " ".join([*words, "."]))
    assert not is_copied(source, " ".join(f"ä{word}" for word in words))
    assert not is_copied(" ".join(word.title() for word in words), source.title())


REFERENCES = {
    "multi30k": ("multi30k/val.en.gz", "multi30k/val.de.gz"),
    "newstest": ("newstest/newstest2013.en.gz", "newstest/newstest2013.de.gz"),
    "french": ("newstest/newstest2014.en-fr.en.gz", "newstest/newstest2014.en-fr.fr.gz"),
}


@pytest.mark.skipif("DRAGOMAN_DATA" not in os.environ, reason="DRAGOMAN_DATA does not name the folder of corpora")
@pytest.mark.parametrize(
    "name", ["multi30k", *(pytest.param(each, marks=pytest.mark.slow) for each in ("newstest", "french"))]
)
def test_human_translations_rarely_cause_alarms(name: str) -> None:
    """Each kind reports fewer than 1% of the references, which contain no loops, copies or empty lines."""
    sides = []
    for side in REFERENCES[name]:
        with gzip.open(Path(os.environ["DRAGOMAN_DATA"]) / side, "rt", encoding="utf-8", newline="\n") as file:
            sides.append(file.read().split("\n")[:1500])
    found = [finding.kind for pair in zip(*sides, strict=True) for finding in LATIN.findings(*pair)]
    assert set(found) <= {"numbers"}
    assert len(found) < 0.01 * len(sides[0])
