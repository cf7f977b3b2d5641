"""Annotated links of the sentences of the embedded corpus."""

import pytest

from dragoman.addons.lecture.demo_links import grammar_gold, grammar_translation
from dragoman.addons.lecture.grammar.alignments import align_english_german
from dragoman.addons.lecture.grammar.corpus import EmbeddedCorpus, generate
from dragoman.base.errors import DataError


def test_gold_alignments_of_the_grammar_are_found_in_both_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus: EmbeddedCorpus = generate(train=600, valid=5, test=5)
    monkeypatch.setattr("dragoman.addons.lecture.demo_links.generate", lambda: corpus)
    sentence = corpus.test[0]
    expected = align_english_german(corpus.derivations[sentence])
    assert grammar_gold(sentence.en, sentence.de).sure == expected.sure
    assert grammar_gold(sentence.de, sentence.en).possible == expected.reversed().possible
    assert (grammar_translation(sentence.en), grammar_translation(sentence.de)) == (sentence.de, sentence.en)
    with pytest.raises(DataError, match="the embedded corpus does not contain the sentence pair 'a dog', 'ein Hund'"):
        grammar_gold("a dog", "ein Hund")
    with pytest.raises(DataError, match="does not contain the sentence 'a dog': give one of `dragoman demo`"):
        grammar_translation("a dog")
