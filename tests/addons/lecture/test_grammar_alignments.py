"""Gold alignments of the embedded corpus: examples checked by hand, properties, and the aligners' error rates."""

from collections.abc import Iterator

import pytest

import dragoman
from dragoman.addons.lecture.grammar.alignments import GoldAlignment, align_english_german
from dragoman.addons.lecture.grammar.corpus import EmbeddedCorpus, Sentence, generate
from dragoman.addons.lecture.grammar.languages import english, german
from dragoman.addons.lecture.grammar.lexicon.function_words import NAMES
from dragoman.addons.lecture.grammar.origins import Word, origins_of, single_words, within
from dragoman.addons.lecture.grammar.tree import Clause, Gap, Name, Phrase, Pronoun, Quality, Time, Utterance
from dragoman.statistical.alignment.links import LinkFile


@pytest.fixture(scope="module")
def corpus() -> EmbeddedCorpus:
    return generate(seed=4, train=800, valid=0, test=200)


def sentences(corpus: EmbeddedCorpus) -> Iterator[tuple[Sentence, GoldAlignment]]:
    for sentence in (*corpus.train, *corpus.test):
        yield sentence, align_english_german(corpus.derivations[sentence])


def test_positions_are_those_of_the_sentences_and_every_word_is_linked(corpus: EmbeddedCorpus) -> None:
    unlinked = total = 0
    for sentence, gold in sentences(corpus):
        source, target = sentence.en.split(), sentence.de.split()
        assert gold.sure <= gold.possible
        assert all(i < len(source) and j < len(target) for i, j in gold.possible)
        assert gold.sure
        linked = [{i for i, _ in gold.possible}, {j for _, j in gold.possible}]
        unlinked += len(source) + len(target) - len(linked[0]) - len(linked[1])
        total += len(source) + len(target)
    assert unlinked <= 0.001 * total


def test_the_words_are_those_of_the_sentence(corpus: EmbeddedCorpus) -> None:
    for sentence in corpus.train[:300]:
        utterance = corpus.derivations[sentence]
        for module, text in ((english, sentence.en), (german, sentence.de)):
            words = [word for word in single_words(module.utterance_words(utterance)) if word != ","]
            assert [word.lower() for word in words] == [word.strip(",.?").lower() for word in text.split()]
            assert all(map(origins_of, words))


def test_names_are_linked_to_themselves(corpus: EmbeddedCorpus) -> None:
    """Words that are spelt the same in both languages are found without the trees."""
    same = linked = 0
    for sentence, gold in sentences(corpus):
        source, target = ([word.strip(",.?") for word in text.split()] for text in (sentence.en, sentence.de))
        for i, word in enumerate(source):
            if word in NAMES and source.count(word) == target.count(word) == 1:
                same += 1
                linked += (i, target.index(word)) in gold.sure
    assert same > 100
    assert linked == same


def phrase(noun: str, **settings: object) -> Phrase:
    return Phrase(noun, **settings)  # type: ignore[arg-type]


EXAMPLES = {
    "separable verb": (
        Utterance(Clause(Name("Paul"), "arrive", tense="present", frequency="often")),
        "Paul often arrives. | Paul kommt oft an.",
        "0-0 1-2 2-1 2?3",
    ),
    "governed preposition in a contraction": (
        Utterance(Clause(Name("Anna"), "wait_for", object=phrase("train"), tense="past")),
        "Anna waited for the train. | Anna hat auf den Zug gewartet.",
        "0-0 1?1 1-5 2?1 2-2 3-3 4-4",
    ),
    "place": (
        Utterance(Clause(phrase("writer", determiner="a"), "live", place=phrase("house"))),
        "A writer lives in the house. | Ein Schriftsteller wohnt im Haus.",
        "0-0 1-1 2-2 3-3 4-3 5-4",
    ),
    "progressive and negation": (
        Utterance(Clause(Pronoun(1), "sleep", negation="not")),
        "I am not sleeping. | Ich schlafe nicht.",
        "0-0 1?1 2-2 3-1",
    ),
    "negation in the article": (
        Utterance(Clause(Pronoun(1), "have", object=phrase("car", determiner="a"), negation="not")),
        "I do not have a car. | Ich habe kein Auto.",
        "0-0 1?1 2-2 3-1 4-2 5-3",
    ),
    "perfect and receiver": (
        Utterance(Clause(Pronoun(1), "give", object=phrase("book"), receiver=phrase("boy"), tense="past")),
        "I gave the book to the boy. | Ich habe dem Jungen das Buch gegeben.",
        "0-0 1?1 1-6 2-4 3-5 4?2 4?3 5-2 6-3",
    ),
    "cannot": (
        Utterance(Clause(Pronoun(1), "swim", modal="can", negation="not")),
        "I cannot swim. | Ich kann nicht schwimmen.",
        "0-0 1-1 1-2 2-3",
    ),
    "reordered time": (
        Utterance(Clause(Pronoun(1), "sleep", tense="past", time=Time("ago", number=2, month=0))),
        "I slept two days ago. | Ich habe vor zwei Tagen geschlafen.",
        "0-0 1?1 1-5 2?2 2?3 2?4 3?2 3?3 3?4 4?2 4?3 4?4",
    ),
    "comparison": (
        Utterance(Clause(phrase("car"), "be", quality=Quality("old", "equal", phrase("house")))),
        "The car is as old as the house. | Das Auto ist so alt wie das Haus.",
        "0-0 1-1 2-2 3-3 4-4 5-5 6-6 7-7",
    ),
    "question with address": (
        Utterance(Clause(Pronoun(2), "sleep", tense="past"), question="yesno", address=("Anna",)),
        "Did you sleep, Anna? | Hast du geschlafen, Anna?",
        "0-0 1-1 2-2 3-3",
    ),
    "relative clause": (
        Utterance(Clause(phrase("boy", relative=Clause(Gap(phrase("boy")), "sleep")), "laugh", tense="future")),
        "The boy who is sleeping will laugh. | Der Junge, der schläft, wird lachen.",
        "0-0 1-1 2-2 3?3 4-3 5-4 6-5",
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_alignments_checked_by_hand(name: str) -> None:
    utterance, texts, links = EXAMPLES[name]
    assert f"{english.realise(utterance)} | {german.realise(utterance)}" == texts
    assert align_english_german(utterance).pharaoh() == links


def test_origins_survive_concatenation_and_nesting() -> None:
    word = Word("im", "preposition", "determiner")
    assert origins_of(word + "mer") == ("preposition", "determiner")
    assert origins_of(Word("can", "verb") + Word("not", "negation")) == ("verb", "negation")
    assert [origins_of(each) for each in within("place", [word, ","])] == [
        ("place.preposition", "place.determiner"),
        (),
    ]
    assert [(each, origins_of(each)) for each in single_words([Word("at the", "time"), ""])] == [
        ("at", ("time",)),
        ("the", ("time",)),
    ]


def test_the_reversed_alignment_and_its_file(corpus: EmbeddedCorpus) -> None:
    gold = [gold for _, gold in sentences(corpus)]
    assert all(each.reversed().reversed() == each for each in gold)
    file = LinkFile.parse("gold", [each.pharaoh() for each in gold])
    assert len(file.lines) == len(gold)


def test_the_hidden_markov_model_agrees(corpus: EmbeddedCorpus) -> None:
    """An independent judge: an aligner that has seen only the texts. Wrong gold alignments raise its error rate."""
    pairs = list(sentences(corpus))
    found = dragoman.align([each.en for each, _ in pairs], [each.de for each, _ in pairs], quiet=True).alignments
    sure = sum(len(gold.sure) for _, gold in pairs)
    counts = [
        (len(links), len(set(links) & gold.possible), len(set(links) & gold.sure))
        for links, (_, gold) in zip(found, pairs, strict=True)
    ]
    links, possible, exact = map(sum, zip(*counts, strict=True))
    assert 1 - (possible + exact) / (links + sure) < 0.1
