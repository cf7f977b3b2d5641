"""The required translation of a term stands where the words aligned with its source words stood."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from dragoman.decode.search import Hypothesis
from dragoman.engines.engine import Pair, Row
from dragoman.inference.translation.rounds.term_placement import before_end
from dragoman.inference.translation.translator import Translator
from dragoman.models.interface import LengthLimit, LengthLimits
from dragoman.statistical.alignment.links import Alignment
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers

SOURCE = "The suitcase is red."
TEXTS = [SOURCE, "Der Koffer ist rot. Die Reisetasche ist rot. Reisetaschen Taschen"]


class Fixed:
    """An engine with fixed outputs of searches with and without constraints, which prefers given texts."""

    limits = LengthLimits(LengthLimit("source", None, "x"), LengthLimit("target", None, "x"))

    def __init__(self, tokenizers: Tokenizers, constrained: str, free: str, preferred: str = "") -> None:
        self.tokenizers, self.constrained, self.free, self.preferred = tokenizers, constrained, free, preferred

    def refusal(self, row: Row) -> str | None:
        return None

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        for index, row in enumerate(rows):
            text = self.constrained if row.constraints else self.free
            yield index, [Hypothesis(tuple(self.tokenizers.target.encode(text)), -1.0, -1.0, finished=True)]

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        texts = [self.tokenizers.target.decode(pair.target) for pair in pairs]
        return [
            len(pair.target) * (-1.0 if text == self.preferred else -2.0)
            for pair, text in zip(pairs, texts, strict=True)
        ]


class Linked:
    """An aligner with fixed links (source word, target word)."""

    def __init__(self, links: Alignment) -> None:
        self.links = links

    def align(self, sources: Sequence[str], targets: Sequence[str], batch_size: int) -> list[Alignment]:
        return [self.links for _ in sources]

    def settings(self) -> Mapping[str, Any]:
        return {}


@pytest.fixture(scope="module")
def tokenizers() -> Tokenizers:
    config = TextConfig.model_validate({"subword": {"kind": "character", "min_frequency": 1}, "shared": False})
    return train_tokenizers(config, TEXTS, TEXTS)


def translate(engine: Fixed, glossary: Mapping[str, Any], links: Alignment = ((0, 0), (1, 1), (2, 2), (3, 3))) -> str:
    (found,) = Translator(engine, engine.tokenizers, aligner=Linked(links)).translate([SOURCE], glossary=glossary)
    return found


GLOSSARY = {"suitcase": "Reisetasche"}
LATE, FREE = "Der Koffer ist rot. Reisetasche.", "Der Koffer ist rot."


@pytest.mark.parametrize("constrained", [LATE, "Der Koffer Reisetasche ist rot."])
def test_the_aligned_words_are_replaced(tokenizers: Tokenizers, constrained: str) -> None:
    """A term after the end of the sentence, or beside the usual translation, is in the wrong place."""
    assert translate(Fixed(tokenizers, constrained, FREE), GLOSSARY) == "Der Reisetasche ist rot."


def test_a_term_in_its_place_keeps_the_words_that_the_search_chose_around_it(tokenizers: Tokenizers) -> None:
    good = "Die Reisetasche ist rot."
    assert translate(Fixed(tokenizers, good, FREE), GLOSSARY) == good


def test_a_translation_that_has_the_term_anyway_is_that_without_a_glossary(tokenizers: Tokenizers) -> None:
    assert translate(Fixed(tokenizers, "Koffer", FREE), {"suitcase": "Koffer"}) == FREE


def test_the_model_chooses_among_the_forms(tokenizers: Tokenizers) -> None:
    forms = {"suitcase": ["Reisetasche", "Reisetaschen", "Taschen"]}
    for form in forms["suitcase"]:
        preferred = f"Der {form} ist rot."
        assert translate(Fixed(tokenizers, LATE, FREE, preferred), forms) == preferred


def test_punctuation_of_the_replaced_word_stays(tokenizers: Tokenizers) -> None:
    engine = Fixed(tokenizers, "rot ist der Koffer. Reisetasche", "Rot ist der Koffer.")
    assert translate(engine, GLOSSARY, ((1, 3), (3, 0))) == "Rot ist der Reisetasche."


def test_without_an_alignment_the_term_precedes_the_final_punctuation(tokenizers: Tokenizers) -> None:
    assert translate(Fixed(tokenizers, LATE, FREE), GLOSSARY, ()) == "Der Koffer ist rot Reisetasche."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Der Koffer ist rot.", "Der Koffer ist rot X."),
        ("Wirklich?!", "Wirklich X?!"),
        ("„Das ist rot.“", "„Das ist rot X.“"),
        ("ohne Punkt", "ohne Punkt X"),
        ("3.5 Liter", "3.5 Liter X"),
        ("", "X"),
        ("箱子是红的。", "箱子是红的 X。"),
    ],
)
def test_phrases_are_written_before_the_final_punctuation(text: str, expected: str) -> None:
    assert before_end(text, "X") == expected
