"""Detection of the combinations in a sentence's tree that are held out of the training set."""

import zlib
from dataclasses import dataclass
from functools import cache

from dragoman.addons.lecture.grammar.lexicon.function_words import SUBORDINATING
from dragoman.addons.lecture.grammar.tree import Argument, Clause, Name, Pair, Phrase, Pronoun, Utterance

# One in _WORD_SHARE word pairs is held out.
_WORD_SHARE = 9
_STATES = frozenset(("be", "exist", "cost"))
STRUCTURES = (
    "relative clause inside a subordinate clause",
    "relative clause in a reported clause",
    "dative pronoun in the past",
    "modal in a reported clause",
    "superlative in a question",
    "negated future",
    "polite address in the past",
    "possessor beside an indirect object",
)
KINDS = ("adjective and noun", "verb and object", "subject and verb", *STRUCTURES)


@dataclass(frozen=True, slots=True, order=True)
class Combination:
    """A combination of words, or a structure.

    kind: one of KINDS. words: the concepts; empty for structures.
    """

    kind: str
    words: tuple[str, ...] = ()

    @property
    def held_out(self) -> bool:
        """Whether the combination is held out of training. The result does not depend on a seed."""
        return _held_out(self.words)


@cache
def _held_out(words: tuple[str, ...]) -> bool:
    return not words or zlib.crc32(" ".join(words).encode()) % _WORD_SHARE == 0


def nodes(*roots: Clause | Argument | None) -> tuple[list[Clause], list[Phrase]]:
    """Return all clauses and noun phrases under `roots`, without the antecedents of gaps and pronouns."""
    clauses: list[Clause] = []
    phrases: list[Phrase] = []
    stack: list[Clause | Argument | None] = list(roots)
    while stack:
        match stack.pop():
            case Clause() as clause:
                clauses.append(clause)
                stack += (clause.subject, clause.object, clause.receiver, clause.place, clause.complement)
                stack.append(clause.quality.than if clause.quality is not None else None)
            case Phrase() as phrase:
                phrases.append(phrase)
                stack += (phrase.possessor, phrase.place, phrase.relative)
            case Pair() as pair:
                stack += (pair.first, pair.second)
            case _:
                pass
    return clauses, phrases


def combinations(utterance: Utterance) -> frozenset[Combination]:
    """Return all word pairs of the sentence, and all its structures in STRUCTURES."""
    clauses, phrases = nodes(utterance.clause, utterance.second)
    pairs = [("adjective and noun", (phrase.adjective, phrase.noun)) for phrase in phrases if phrase.adjective]
    structures: list[str] = []
    for clause in clauses:
        pairs += _word_pairs(clause)
        structures += _structures(clause)
    if utterance.conjunction in SUBORDINATING and _has_relative(utterance.second):
        structures.append("relative clause inside a subordinate clause")
    if utterance.question and any(phrase.superlative for phrase in phrases):
        structures.append("superlative in a question")
    subject = utterance.clause.subject
    if isinstance(subject, Pronoun) and subject.formal and utterance.clause.tense == "past":
        structures.append("polite address in the past")
    return frozenset([Combination(*pair) for pair in pairs] + [Combination(kind) for kind in structures])


def _word_pairs(clause: Clause) -> list[tuple[str, tuple[str, str]]]:
    subject, target = clause.subject, clause.object
    pairs: list[tuple[str, tuple[str, str]]] = []
    if clause.quality is not None and isinstance(subject, Phrase):
        pairs.append(("adjective and noun", (clause.quality.adjective, subject.noun)))
    if clause.verb not in _STATES:
        if isinstance(target, Phrase):
            pairs.append(("verb and object", (clause.verb, target.noun)))
        if isinstance(subject, Phrase):
            pairs.append(("subject and verb", (subject.noun, clause.verb)))
    return pairs


def _structures(clause: Clause) -> list[str]:
    structures: list[str] = []
    receiver, target = clause.receiver, clause.object
    if clause.tense == "past" and not clause.modal and isinstance(receiver, Pronoun):
        structures.append("dative pronoun in the past")
    if clause.tense == "future" and clause.negation:
        structures.append("negated future")
    if clause.complement is not None and _has_relative(clause.complement):
        structures.append("relative clause in a reported clause")
    if clause.complement is not None and clause.complement.modal:
        structures.append("modal in a reported clause")
    if isinstance(receiver, Phrase | Name | Pair) and isinstance(target, Phrase) and target.determiner == "of":
        structures.append("possessor beside an indirect object")
    return structures


def _has_relative(clause: Clause | None) -> bool:
    return any(phrase.relative is not None for phrase in nodes(clause)[1])


def held_out(utterance: Utterance) -> frozenset[Combination]:
    """Return the held-out combinations in the sentence. The set is empty for a training sentence."""
    return frozenset(combination for combination in combinations(utterance) if combination.held_out)
