"""The embedded corpus: determinism, disjoint splits, held-out combinations, vocabulary coverage."""

import dataclasses
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.addons.lecture.grammar.corpus import LANGUAGES, EmbeddedCorpus, Sentence, generate, write
from dragoman.addons.lecture.grammar.held_out import KINDS, STRUCTURES, held_out
from dragoman.addons.lecture.grammar.lexicon.function_words import SUBORDINATING
from dragoman.addons.lecture.grammar.tree import Clause, Gap, Phrase, Pronoun, Utterance
from dragoman.base.errors import ConfigError

SIZES = {"train": 2000, "valid": 100, "test": 120}


@pytest.fixture(scope="module")
def corpus() -> EmbeddedCorpus:
    return generate(1, **SIZES)


def fingerprint(corpus: EmbeddedCorpus) -> str:
    lines = [text for sentence in (*corpus.train, *corpus.valid, *corpus.test) for text in sentence]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def tokens(text: str) -> set[str]:
    """Return the words of a sentence, found in another way than by the generator."""
    letters = "".join(c.lower() if c.isalnum() or c in "-œ" else " " for c in text)
    return set(letters.split())


def walk(value: object) -> Iterator[object]:
    """Yield every node of a tree, through the fields of the dataclasses; an antecedent is not part of the sentence."""
    yield value
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if field.name != "antecedent":
                yield from walk(getattr(value, field.name))


def clauses(utterance: object) -> list[Clause]:
    return [node for node in walk(utterance) if isinstance(node, Clause)]


def word_pairs(utterance: Utterance) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for node in walk(utterance):
        if isinstance(node, Phrase) and node.adjective:
            found.add(("adjective", node.adjective, node.noun))
    for clause in clauses(utterance):
        subject, target = clause.subject, clause.object
        if clause.quality and isinstance(subject, Phrase):
            found.add(("adjective", clause.quality.adjective, subject.noun))
        if clause.verb in ("be", "exist", "cost"):
            continue
        if isinstance(target, Phrase):
            found.add(("object", clause.verb, target.noun))
        if isinstance(subject, Phrase):
            found.add(("subject", clause.verb, subject.noun))
    return found


def has_relative(node: object) -> bool:
    return any(isinstance(inner, Phrase) and inner.relative is not None for inner in walk(node))


def structures(utterance: Utterance) -> set[str]:
    """Return the structure combinations of a tree, without the generator's own functions."""
    found = set()
    for clause in clauses(utterance):
        if clause.tense == "past" and not clause.modal and isinstance(clause.receiver, Pronoun):
            found.add("dative pronoun in the past")
        if clause.tense == "future" and clause.negation:
            found.add("negated future")
        if clause.complement and has_relative(clause.complement):
            found.add("relative clause in a reported clause")
        if clause.complement and clause.complement.modal:
            found.add("modal in a reported clause")
        receiver_is_noun = clause.receiver is not None and not isinstance(clause.receiver, Pronoun | Gap)
        if receiver_is_noun and isinstance(clause.object, Phrase) and clause.object.possessor is not None:
            found.add("possessor beside an indirect object")
    if utterance.second and utterance.conjunction in SUBORDINATING and has_relative(utterance.second):
        found.add("relative clause inside a subordinate clause")
    if utterance.question and any(isinstance(node, Phrase) and node.superlative for node in walk(utterance)):
        found.add("superlative in a question")
    subject = utterance.clause.subject
    if isinstance(subject, Pronoun) and subject.formal and utterance.clause.tense == "past":
        found.add("polite address in the past")
    return found


def test_sizes_are_the_requested_ones(corpus: EmbeddedCorpus) -> None:
    assert {name: len(getattr(corpus, name)) for name in SIZES} == SIZES


def test_same_seed_same_corpus_in_another_process_with_another_hash_seed(corpus: EmbeddedCorpus) -> None:
    program = (
        "from dragoman.addons.lecture.grammar.corpus import generate\n"
        "c = generate(7, 300, 10, 0)\nprint(repr([tuple(s) for s in c.train + c.valid]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONHASHSEED": "4711", "PYTHONPATH": ":".join(sys.path), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    here = generate(7, 300, 10, 0)
    assert run.stdout.strip() == repr([tuple(sentence) for sentence in here.train + here.valid])


@pytest.mark.parametrize(
    ("count", "recorded"),
    [
        (200, "2a7cf28996092b1e0ea24320f38ac625b6c29cc97a52aa468594270edff2cecd"),
        pytest.param(2000, "d1d0e63dfefdf98da6cd11f51d675b2cc28d5b7ce88eb51ffb3be8de728482ed", marks=pytest.mark.slow),
    ],
)
def test_corpus_is_the_recorded_one(count: int, recorded: str) -> None:
    """The same on every platform and Python version; changes of the grammar change these values intentionally."""
    assert fingerprint(generate(1, count, 50, 0)) == recorded


def test_another_seed_gives_another_corpus() -> None:
    first, second = generate(1, 200, 0, 0), generate(2, 200, 0, 0)
    assert len(set(first.train) & set(second.train)) < 20


def test_no_sentence_twice_in_any_language(corpus: EmbeddedCorpus) -> None:
    everything = [*corpus.train, *corpus.valid, *corpus.test]
    for language in LANGUAGES:
        texts = [getattr(sentence, language) for sentence in everything]
        assert len(set(texts)) == len(texts)


def test_every_sentence_has_its_derivation(corpus: EmbeddedCorpus) -> None:
    for sentence in (*corpus.train, *corpus.valid, *corpus.test):
        assert isinstance(corpus.derivations[sentence], Utterance)


def test_no_held_out_structure_occurs_in_training(corpus: EmbeddedCorpus) -> None:
    for sentence in (*corpus.train, *corpus.valid):
        assert not structures(corpus.derivations[sentence]), sentence


def test_every_test_sentence_contains_an_unseen_combination(corpus: EmbeddedCorpus) -> None:
    seen: set[tuple[str, ...]] = set()
    for sentence in (*corpus.train, *corpus.valid):
        seen |= word_pairs(corpus.derivations[sentence])
    for sentence in corpus.test:
        tree = corpus.derivations[sentence]
        pairs = {c.words for c in held_out(tree) if c.words}
        # A pair of the generator is (adjective, noun), (verb, noun) or (noun, verb), so compare without order.
        unseen = {frozenset(pair[1:]) for pair in word_pairs(tree) - seen}
        assert structures(tree) or {frozenset(pair) for pair in pairs} & unseen, sentence
        assert {frozenset(pair) for pair in pairs} <= unseen


def test_the_test_set_contains_every_kind_of_held_out_combination(corpus: EmbeddedCorpus) -> None:
    shown = {combination.kind for sentence in corpus.test for combination in held_out(corpus.derivations[sentence])}
    assert shown == set(KINDS)
    assert set().union(*(structures(corpus.derivations[sentence]) for sentence in corpus.test)) == set(STRUCTURES)


def test_each_part_of_a_held_out_structure_occurs_in_training(corpus: EmbeddedCorpus) -> None:
    trees = [corpus.derivations[sentence] for sentence in corpus.train]
    everything = [clause for tree in trees for clause in clauses(tree)]
    phrases = [node for tree in trees for node in walk(tree) if isinstance(node, Phrase)]
    parts = {
        "relative": sum(phrase.relative is not None for phrase in phrases),
        "superlative": sum(phrase.superlative for phrase in phrases),
        "possessor": sum(phrase.possessor is not None for phrase in phrases),
        "report": sum(clause.complement is not None for clause in everything),
        "modal": sum(bool(clause.modal) for clause in everything),
        "future": sum(clause.tense == "future" for clause in everything),
        "past": sum(clause.tense == "past" for clause in everything),
        "negation": sum(bool(clause.negation) for clause in everything),
        "dative pronoun": sum(isinstance(clause.receiver, Pronoun) for clause in everything),
        "dative noun": sum(isinstance(clause.receiver, Phrase) for clause in everything),
        "polite": sum(isinstance(t.clause.subject, Pronoun) and t.clause.subject.formal for t in trees),
        "question": sum(bool(tree.question) for tree in trees),
        "subordinate": sum(tree.conjunction in SUBORDINATING for tree in trees),
    }
    assert min(parts.values()) >= 30, parts


def test_every_word_of_test_and_valid_occurs_in_training(corpus: EmbeddedCorpus) -> None:
    for language in LANGUAGES:
        known = set().union(*(tokens(getattr(sentence, language)) for sentence in corpus.train))
        for sentence in (*corpus.valid, *corpus.test):
            assert tokens(getattr(sentence, language)) <= known, sentence


def test_vocabulary_is_a_few_hundred_words(corpus: EmbeddedCorpus) -> None:
    for language in LANGUAGES:
        assert len(set().union(*(tokens(getattr(sentence, language)) for sentence in corpus.train))) > 700


def test_sentences_are_short_complete_and_punctuated(corpus: EmbeddedCorpus) -> None:
    for sentence in (*corpus.train, *corpus.valid, *corpus.test):
        for text in sentence:
            assert 4 <= len(text.split()) <= 20
            assert text[0].isupper() and text[-1] in ".?"
            assert "  " not in text and text == text.strip()
            assert " ," not in text and ",," not in text and " ." not in text


def test_write_makes_nine_parallel_files(corpus: EmbeddedCorpus, tmp_path: Path) -> None:
    write(corpus, tmp_path / "embedded")
    assert len(list((tmp_path / "embedded").iterdir())) == 9
    for name, size in SIZES.items():
        sides = [(tmp_path / "embedded" / f"{name}.{code}").read_bytes().decode() for code in LANGUAGES]
        rows = [side.removesuffix("\n").split("\n") for side in sides]
        assert [Sentence(*row) for row in zip(*rows, strict=True)] == getattr(corpus, name)
        assert len(rows[0]) == size


@pytest.mark.slow
def test_impossible_sizes_are_an_error_with_advice() -> None:
    with pytest.raises(ConfigError, match="must not be negative"):
        generate(1, -1, 0, 0)
    with pytest.raises(ConfigError, match="increase train"):
        generate(1, 5, 20, 20)
