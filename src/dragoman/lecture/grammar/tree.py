"""The abstract syntax that the three languages share: the tree of a sentence is its derivation."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Pronoun:
    """A personal pronoun. `noun` names its antecedent, from which each language takes the gender."""

    person: int
    plural: bool = False
    gender: str = "m"
    formal: bool = False
    noun: str = ""


@dataclass(frozen=True, slots=True)
class Impersonal:
    """The subject of weather verbs."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The gap of the relative pronoun or question word in its clause; it agrees like `antecedent`."""

    antecedent: "Phrase | None" = None
    word: str = ""


@dataclass(frozen=True, slots=True)
class Name:
    """A first name ("Anna") or, if formal, a family name with its title."""

    name: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase. `determiner` is the, a, bare, this, every, number, of (see `possessor`), my, your, his, …"""

    noun: str
    plural: bool = False
    determiner: str = "the"
    adjective: str = ""
    superlative: bool = False
    number: int = 0
    possessor: "Phrase | Name | None" = None
    place: "Phrase | None" = None
    relative: "Clause | None" = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two coordinated noun phrases."""

    first: "Phrase | Name"
    second: "Phrase | Name"


Argument: TypeAlias = Pronoun | Impersonal | Gap | Name | Phrase | Pair


@dataclass(frozen=True, slots=True)
class Quality:
    """A predicate adjective, with the second member if it is compared: degree is positive, more or equal."""

    adjective: str
    degree: str = "positive"
    than: Argument | None = None


@dataclass(frozen=True, slots=True)
class Time:
    """A time expression: the key of an adverb, or a kind (date, year, weekday, clock, ago, in) with its numbers."""

    key: str
    number: int = 0
    month: int = 0


@dataclass(frozen=True, slots=True)
class Clause:
    """One predication; `verb` is a key of VERBS or be, exist, cost, rain, snow; `tense` is present, past or future."""

    subject: Argument
    verb: str
    object: Argument | None = None
    receiver: Argument | None = None
    quality: Quality | None = None
    place: Phrase | None = None
    tense: str = "present"
    modal: str = ""
    negation: str = ""
    frequency: str = ""
    manner: str = ""
    vehicle: str = ""
    time: Time | None = None
    complement: "Clause | None" = None


@dataclass(frozen=True, slots=True)
class Utterance:
    """A whole sentence.

    `fronted` puts the time (or, with `second`, the subordinate clause) first; `question` is "", yesno, where, when,
    why, who or what; `address` holds the names of the persons spoken to.
    """

    clause: Clause
    fronted: bool = False
    conjunction: str = ""
    second: Clause | None = None
    question: str = ""
    address: tuple[str, ...] = ()
