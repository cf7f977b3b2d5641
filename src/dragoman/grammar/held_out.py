"""The combinations that the training set never shows, found in a sentence's tree."""

import dataclasses
import zlib
from collections.abc import Iterator

from dragoman.grammar.function_words import SUBORDINATING
from dragoman.grammar.tree import Clause, Name, Pair, Phrase, Pronoun, Utterance

# One in so many combinations of two words is held out.
_WORD_SHARE = 9
STRUCTURES = (
    "relative clause inside a subordinate clause",
    "relative clause in a reported clause",
    "dative pronoun in the past",
    "modal in a reported clause",
    "superlative in a question",
    "negated future",
    "polite address in the past",
    "possessor as an indirect object's neighbour",
)
KINDS = ("adjective and noun", "verb and object", "subject and verb", *STRUCTURES)


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Combination:
    """`kind` is one of KINDS; `words` are the concepts, empty for structures."""

    kind: str
    words: tuple[str, ...] = ()

    @property
    def held_out(self) -> bool:
        """True if training must not show it. The choice hangs on the words alone, not on a seed."""
        return not self.words or zlib.crc32(" ".join(self.words).encode()) % _WORD_SHARE == 0


def clauses(utterance: Utterance) -> Iterator[Clause]:
    """Every clause of the sentence, relative and reported ones too."""
    yield from _inside(utterance)


def _inside(value: object) -> Iterator[Clause]:
    if isinstance(value, Clause):
        yield value
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if field.name != "antecedent":
                yield from _inside(getattr(value, field.name))


def _phrases(value: object) -> Iterator[Phrase]:
    if isinstance(value, Phrase):
        yield value
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if field.name != "antecedent":
                yield from _phrases(getattr(value, field.name))


def _relative(clause: Clause | None) -> bool:
    return clause is not None and any(phrase.relative is not None for phrase in _phrases(clause))


def combinations(utterance: Utterance) -> frozenset[Combination]:
    """All combinations that could be held out: word pairs, and the structures of STRUCTURES."""
    found: set[Combination] = set()
    for phrase in _phrases(utterance):
        if phrase.adjective:
            found.add(Combination("adjective and noun", (phrase.adjective, phrase.noun)))
    for clause in _inside(utterance):
        if clause.quality is not None and isinstance(clause.subject, Phrase):
            found.add(Combination("adjective and noun", (clause.quality.adjective, clause.subject.noun)))
        if isinstance(clause.object, Phrase) and clause.verb not in ("be", "exist", "cost"):
            found.add(Combination("verb and object", (clause.verb, clause.object.noun)))
        if isinstance(clause.subject, Phrase) and clause.verb not in ("be", "exist", "cost"):
            found.add(Combination("subject and verb", (clause.subject.noun, clause.verb)))
        if clause.tense == "past" and not clause.modal and isinstance(clause.receiver, Pronoun):
            found.add(Combination("dative pronoun in the past"))
        if clause.tense == "future" and clause.negation:
            found.add(Combination("negated future"))
        if clause.complement is not None:
            if _relative(clause.complement):
                found.add(Combination("relative clause in a reported clause"))
            if clause.complement.modal:
                found.add(Combination("modal in a reported clause"))
        if isinstance(clause.receiver, Phrase | Name | Pair) and isinstance(clause.object, Phrase) and clause.object.determiner == "of":
            found.add(Combination("possessor as an indirect object's neighbour"))
    if utterance.conjunction in SUBORDINATING and _relative(utterance.second):
        found.add(Combination("relative clause inside a subordinate clause"))
    if utterance.question and any(phrase.superlative for phrase in _phrases(utterance)):
        found.add(Combination("superlative in a question"))
    subject = utterance.clause.subject
    if isinstance(subject, Pronoun) and subject.formal and utterance.clause.tense == "past":
        found.add(Combination("polite address in the past"))
    return frozenset(found)


def held_out(utterance: Utterance) -> frozenset[Combination]:
    """The held-out combinations that the sentence shows; empty for a training sentence."""
    return frozenset(combination for combination in combinations(utterance) if combination.held_out)
