"""Annotations of sentences of the embedded corpus: numbers, tenses, parts of speech and constituents."""

import pytest

from dragoman.addons.lecture.grammar.tree import Clause, Phrase, Utterance
from lecture_code.annotations import annotate, constituents, token_positions
from lecture_code.models import short_corpus

SENTENCE = Utterance(
    Clause(
        Phrase("farmer", adjective="old"),
        "see",
        object=Phrase("cow", plural=True, relative=Clause(Phrase("child"), "love", tense="present")),
        tense="future",
    )
)


def test_words_of_a_sentence_by_hand() -> None:
    words = annotate(SENTENCE)
    assert [each.text for each in words[:4]] == ["the", "old", "farmer", "will"]
    assert [each.part_of_speech for each in words[:5]] == ["determiner", "adjective", "noun", "auxiliary", "verb"]
    assert [each.plural for each in words[:6]] == [False, False, False, None, None, True]
    assert words[0].constituent == "clause.subject" and words[0].tense == "future"
    assert constituents(words)["clause.subject"] == (0, 3)
    pieces = [*(each.text for each in words[:3]), ",", *(each.text for each in words[3:]), ".", "</s>"]
    assert token_positions(pieces, words) == [0, 1, 2, *range(4, len(words) + 1)]
    assert token_positions(["farm", *pieces], words) is None


@pytest.mark.slow
def test_every_word_of_the_corpus_is_annotated() -> None:
    corpus = short_corpus()
    for sentence in corpus.test:
        words = annotate(corpus.derivations[sentence])
        assert [each.text.lower() for each in words] == [each.strip(",.?").lower() for each in sentence.en.split()]
        assert all(each.tense in ("past", "present", "future") for each in words if each.part_of_speech == "verb")
        assert all(each.plural is not None for each in words if each.part_of_speech == "noun")
        assert all(0 <= start < end <= len(words) for start, end in constituents(words).values())
