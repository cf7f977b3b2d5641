"""Random noun phrases, subjects, objects and places that fit the context."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from dragoman.addons.lecture.grammar.choice import Choice
from dragoman.addons.lecture.grammar.lexicon.adjectives import ADJECTIVES
from dragoman.addons.lecture.grammar.lexicon.function_words import NAMES
from dragoman.addons.lecture.grammar.lexicon.nouns import NOUNS, nouns_for, nouns_of
from dragoman.addons.lecture.grammar.lexicon.places import PLACES
from dragoman.addons.lecture.grammar.lexicon.verbs import Verb
from dragoman.addons.lecture.grammar.tree import Argument, Clause, Name, Pair, Phrase, Pronoun

PLACE_NAMES = tuple(place for place in PLACES if place != "country")
OUTDOORS = ("garden", "park", "forest", "street", "square", "bridge", "lake", "beach", "mountain", "island", "farm")
QUALITIES = {
    kind: tuple(name for name, entry in ADJECTIVES.items() if kind in entry.kinds)
    for kind in {noun.kind for noun in NOUNS.values()}
}
KIN = frozenset("mother father brother sister son daughter uncle aunt grandfather grandmother boss".split())
_ONE_EACH = frozenset(("mother", "father", "boss"))
_ODD = frozenset(
    [("young", noun) for noun in ("grandfather", "grandmother")]
    + [("old", noun) for noun in ("girl", "boy", "child", "pupil")]
)
_OWNED = frozenset(("thing", "text", "clothing", "animal"))
_PRIVATE = frozenset(("car", "bicycle", "motorcycle", "house", "garden"))
_PUBLIC = frozenset(("vehicle", "place", "part"))
_LARGE = frozenset("city village country forest lake beach mountain island harbour airport farm street square".split())
_PEOPLE = nouns_of("person")
_NAMES = tuple(NAMES)
_SPEAKERS = (Pronoun(1), Pronoun(1, plural=True), Pronoun(3), Pronoun(3, gender="f"), Pronoun(3, plural=True))
_DEFINITE_OBJECTS = frozenset(("love", "hate", "know", "admire", "call", "visit", "recognize", "understand"))


class Phrases(Choice):
    """Draws arguments. Subclasses draw relative clauses."""

    @abstractmethod
    def relative(self, head: Phrase) -> Clause:
        """Draw a relative clause that modifies `head`."""

    def phrase(self, noun: str, *, subject: bool = False, rich: bool = True) -> Phrase:
        """Draw a noun phrase with the head `noun`.

        rich: whether the phrase may have a relative clause, a place or a superlative.
        """
        entry = NOUNS[noun]
        result = self._determined(noun, subject)
        if QUALITIES[entry.kind] and self.chance(0.3):
            adjective = self.pick(QUALITIES[entry.kind])
            if (adjective, noun) not in _ODD and adjective != "open":
                result = replace(result, adjective=adjective)
        if not rich or result.determiner != "the" or entry.mass:
            return result
        if result.adjective and ADJECTIVES[result.adjective].gradable and not result.plural and self.chance(0.6):
            place = Phrase("country" if noun in _LARGE or entry.kind == "drink" else self.pick(("city", "village")))
            return result if noun == "country" else replace(result, superlative=True, place=place)
        if self.chance(0.45):
            return replace(result, relative=self.relative(result))
        if subject and self.chance(0.07) and entry.kind in ("person", "animal", "thing", "vehicle", "text"):
            return replace(result, place=Phrase(self.pick(self.places_of(entry.kind))))
        return result

    def _determined(self, noun: str, subject: bool) -> Phrase:
        entry = NOUNS[noun]
        if entry.mass:
            return Phrase(noun, determiner=self.weighted(bare=5, the=3, this=1))
        if noun in KIN:
            kind = self.weighted(my=4, his=2, her=2, our=2, their=1)
            return Phrase(noun, plural=noun not in _ONE_EACH and self.chance(0.15), determiner=kind)
        mine = 0 if entry.kind in _PUBLIC and noun not in _PRIVATE else 0.3 if entry.kind == "person" else 1.2
        owned = 2.5 if entry.kind in _OWNED or noun in _PRIVATE else 0
        few = 0 if entry.kind == "place" else 1
        every = 0.5 if entry.kind == "person" and subject else 0
        # fmt: off
        kind = self.weighted(
            the=10, a=2 if subject else 6, this=2, my=mine, his=mine, her=mine, our=mine / 2, their=mine / 2,
            bare=few if subject else 2 * few, number=1.5 * few, of=owned, every=every,
        )
        # fmt: on
        plural = kind in ("bare", "number")
        if kind not in ("a", "every", "of", "bare", "number"):
            plural = self.chance(0.08 if entry.kind == "place" else 0.22)
        if kind == "number":
            number = self.between(2, 12) if self.chance(0.8) else self.between(13, 100)
            return Phrase(noun, plural=plural, determiner=kind, number=number)
        return Phrase(noun, plural=plural, determiner=kind, possessor=self.owner() if kind == "of" else None)

    def owner(self) -> Phrase | Name:
        """Draw a short human noun phrase for the owner of a thing."""
        if self.chance(0.4):
            return Name(self.pick(_NAMES))
        noun = self.pick(_PEOPLE)
        return Phrase(noun, determiner=self.weighted(my=3, his=1, her=1, our=1) if noun in KIN else "the")

    def pair(self) -> Pair:
        """Draw two different persons."""
        first, second = self.owner(), self.owner()
        while second == first:
            second = self.owner()
        return Pair(first, second)

    def person(self, *, rich: bool = True) -> Argument:
        """Draw a human subject."""
        kind = self.weighted(pronoun=0.3, name=0.14, pair=0.05, phrase=0.5)
        if kind == "pronoun":
            return self.pronoun()
        if kind == "name":
            return Name(self.pick(_NAMES))
        if kind == "pair":
            return self.pair()
        return self.phrase(self.pick(_PEOPLE), subject=True, rich=rich)

    def pronoun(self) -> Pronoun:
        """Draw a personal pronoun that needs no antecedent."""
        return self.pick(_SPEAKERS)

    def subject(self, verb: Verb, rich: bool = True) -> Argument:
        """Draw a subject that fits the verb."""
        kind = verb.subjects[0] if len(verb.subjects) == 1 or self.chance(0.75) else verb.subjects[1]
        if kind == "person":
            return self.person(rich=rich)
        return self.phrase(self.pick(nouns_for((kind,))), subject=True, rich=rich)

    def object(self, verb: Verb, subject: Argument, rich: bool = True) -> Argument:
        """Draw an object that fits the verb and differs from its subject."""
        noun = self.pick(nouns_for(verb.objects))
        if NOUNS[noun].kind == "person":
            if self.chance(0.45):
                return self.other(subject)
            name = Name(self.pick(_NAMES))
            if name != subject and self.chance(0.2):
                return name
        result = self.phrase(noun, rich=rich)
        if result.determiner in ("a", "bare") and (verb.name in _DEFINITE_OBJECTS or verb.frame == "about"):
            result = replace(result, determiner="the")
        if isinstance(subject, Phrase) and subject.noun == noun:
            return self.object(verb, subject, rich)
        return result

    def other(self, subject: Argument) -> Pronoun:
        """Draw an object pronoun for a person other than the subject."""
        while True:
            pronoun = self.pronoun()
            if not isinstance(subject, Pronoun) or subject.person == 3 or pronoun.person == 3:
                return pronoun

    def receiver(self, subject: Argument) -> Argument:
        """Draw the indirect object of a verb of giving, other than the subject."""
        if self.chance(0.5):
            return self.other(subject)
        receiver = self.owner()
        return receiver if receiver != subject else self.other(subject)

    @staticmethod
    def places_of(kind: str) -> tuple[str, ...]:
        """Return the places in which members of the semantic class `kind` can be."""
        return OUTDOORS if kind in ("animal", "vehicle") else PLACE_NAMES

    def location(self, nouns: Sequence[str] = PLACE_NAMES) -> Phrase:
        """Draw a place."""
        place = Phrase(self.pick(nouns), determiner=self.weighted(the=8, a=0.7, this=1))
        if place.noun in ("house", "garden", "kitchen", "room", "cellar") and self.chance(0.15):
            place = replace(place, determiner=self.weighted(our=1, my=1))
        return replace(place, adjective=self.pick(QUALITIES["place"])) if self.chance(0.12) else place
