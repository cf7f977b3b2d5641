"""TER's edits equal sacrebleu's on any lines, and long lines take seconds."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.lib_ter import translation_edit_rate
from sacrebleu.metrics.ter import TER as SacreTER

from dragoman.metrics.edit_rate import count_edits
from dragoman.metrics.ter import TER

WORDS = st.lists(st.sampled_from("a b c d e".split()), max_size=9)


@given(WORDS, WORDS)
def test_the_edits_of_short_lines_equal_sacrebleus(hypothesis: list[str], reference: list[str]) -> None:
    assert count_edits(hypothesis, reference) == translation_edit_rate(hypothesis, reference)[0]


def _changed(reference: list[str], vocabulary: int, generator: random.Random) -> list[str]:
    """Replace a fifth of the words, drop a tenth, and move three blocks."""
    words = [word if generator.random() > 0.2 else str(generator.randrange(vocabulary)) for word in reference]
    for _ in range(3):
        start = generator.randrange(len(words) - 5)
        block = words[start : start + 5]
        del words[start : start + 5]
        target = generator.randrange(len(words))
        words[target:target] = block
    return [word for word in words if generator.random() > 0.1]


@pytest.mark.parametrize(
    ("length", "other", "vocabulary"),
    [(40, 40, 10), (60, 60, 500), (2, 70, 5), (70, 2, 5), (0, 4, 5), (4, 0, 5), (20, 20, 2)],
)
def test_the_edits_of_shifted_and_unequal_lines_equal_sacrebleus(length: int, other: int, vocabulary: int) -> None:
    generator = random.Random(length)
    reference = [str(generator.randrange(vocabulary)) for _ in range(length)]
    if length == other:
        hypothesis = _changed(reference, vocabulary, generator)
    else:
        hypothesis = [str(generator.randrange(vocabulary)) for _ in range(other)]
    assert count_edits(hypothesis, reference) == translation_edit_rate(hypothesis, reference)[0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_the_edits_of_random_lines_equal_sacrebleus(seed: int) -> None:
    generator = random.Random(seed)
    vocabulary = generator.choice([3, 10, 100, 1000])
    reference = [str(generator.randrange(vocabulary)) for _ in range(generator.choice([10, 50, 150, 300]))]
    hypothesis = _changed(reference, vocabulary, generator)
    assert count_edits(hypothesis, reference) == translation_edit_rate(hypothesis, reference)[0]


def test_a_shift_costs_one_edit() -> None:
    assert count_edits("d e f a b c".split(), "a b c d e f".split()) == 1
    assert count_edits("a b x d".split(), "a b c d".split()) == 1


@pytest.mark.parametrize("vocabulary", [pytest.param(200, marks=pytest.mark.slow), 100_000])
def test_a_line_of_3000_words_takes_seconds(vocabulary: int) -> None:
    generator = random.Random(3)
    reference = [str(generator.randrange(vocabulary)) for _ in range(3000)]
    started = time.process_time()
    edits = count_edits(_changed(reference, vocabulary, generator), reference)
    assert 0.2 * 3000 < edits < 3000
    assert time.process_time() - started < 10


def test_statistics_equal_sacrebleus_with_several_references() -> None:
    lines = ["the cat sat on a mat .", "", "a b c"]
    references = [["on the mat sat the cat .", "x", ""], ["a cat sat on the mat", "y z", "c a b"]]
    expected = SacreTER()._extract_corpus_statistics(lines, references)
    assert TER().statistics(lines, *references).tolist() == expected
    assert TER().score(lines, *references).value == SacreTER().corpus_score(lines, references).score


def test_chinese_and_japanese_are_separated_by_sacrebleus_own_options() -> None:
    lines, reference = ["猫在沙发上睡觉。", "ねこは上で寝ている。"], ["狗在沙发上睡觉。", "犬は上で寝ている。"]
    theirs = SacreTER(normalized=True, asian_support=True)
    expected = theirs.corpus_score(lines, [reference]).score
    for tokenizer in ("zh", "ja-mecab"):
        score = TER(tokenizer).score(lines, reference)
        assert score.value == expected < 30
        assert score.signature == str(theirs.get_signature())


def test_other_text_without_spaces_is_separated_into_characters() -> None:
    lines, reference = ["แมวนอนบนโซฟา"], ["หมานอนบนโซฟา"]
    theirs = SacreTER()
    expected = theirs.corpus_score([" ".join(line) for line in lines], [[" ".join(line) for line in reference]]).score
    score = TER("char").score(lines, reference)
    assert score.value == expected < 100
    assert score.signature == f"{theirs.get_signature()}|prepared:char"
