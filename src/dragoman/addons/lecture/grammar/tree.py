"""The abstract syntax shared by the three languages. The tree of a sentence is its derivation."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Pronoun:
    """A personal pronoun. noun: the antecedent, which determines the gender in each language."""

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
    """The gap of a relative pronoun or question word in its clause. It agrees with `antecedent`."""

    antecedent: "Phrase | None" = None
    word: str = ""


@dataclass(frozen=True, slots=True)
class Name:
    """A first name ("Anna"), or a family name with its title ("Mr Weber")."""

    name: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase. determiner: the, a, bare, this, every, number, of (see `possessor`), my, your, his, …"""

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
    """A predicate adjective. degree: positive, more or equal. than: the standard of comparison."""

    adjective: str
    degree: str = "positive"
    than: Argument | None = None


@dataclass(frozen=True, slots=True)
class Time:
    """A time expression.

    key: the key of an adverb, or a kind with numbers: date, year, weekday, weekdays, clock, ago or in.
    """

    key: str
    number: int = 0
    month: int = 0

    @property
    def origin(self) -> str:
        """The origin of its words. The words of a `date` have different orders in different languages."""
        return "date" if self.key in ("date", "year", "ago") else "time"


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause. verb: a key of VERBS, or be, exist, cost, rain or snow. tense: present, past or future."""

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

    fronted: whether the subordinate clause `second`, or the time if there is no such clause, comes first. question: "",
    yesno, where, where to, when, why, who or what. address: names of the persons who are addressed.
    """

    clause: Clause
    fronted: bool = False
    conjunction: str = ""
    second: Clause | None = None
    question: str = ""
    address: tuple[str, ...] = ()
