"""What may be said: random trees whose words go together, drawn from a stream of random numbers."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

from dragoman.grammar.adjectives import ADJECTIVES
from dragoman.grammar.agreement import name_gender
from dragoman.grammar.function_words import (
    FAMILY_NAMES,
    FREQUENCIES,
    FUTURE,
    HABIT,
    MANNER_VERBS,
    NAMES,
    ONGOING,
    PAST,
    VEHICLES,
)
from dragoman.grammar.nouns import NOUNS, PLACES, nouns_of
from dragoman.grammar.numerals import DAYS
from dragoman.grammar.tree import Argument, Clause, Gap, Impersonal, Name, Pair, Phrase, Pronoun, Quality, Time, Utterance
from dragoman.grammar.verbs import VERBS, Verb

T = TypeVar("T")
_KIN = frozenset("mother father brother sister son daughter uncle aunt grandfather grandmother friend neighbour boss colleague".split())
_OWNED = frozenset("thing text clothing vehicle animal".split())
_PLACED_VERBS = frozenset(
    "sleep work sing dance play wait rest cook eat drink read write meet paint draw repair talk_to play_with dance_with wait_for find lose".split()
)
_HOMES = ("house", "city", "village", "castle", "hotel", "farm", "island")
_RETURNS = tuple(PLACES)
_OUTDOORS = ("square", "street", "bridge", "lake", "beach", "mountain", "island", "farm", "park", "forest", "garden")
_PRESENT_ONLY = frozenset("love hate know admire live think believe know_that say hope wonder".split())
_MODAL_STATES = frozenset(("see", "understand", "recognize"))


def nouns_for(classes: Sequence[str]) -> tuple[str, ...]:
    """The nouns of selectional classes such as "food" or "thing.key"."""
    found: list[str] = []
    for entry in classes:
        kind, _, noun = entry.partition(".")
        found += [noun] if noun else nouns_of(kind)
    return tuple(found)


_OBJECTS = {verb.name: nouns_for(verb.objects) for verb in VERBS.values()}
_BY_FRAME = {
    frame: tuple(verb.name for verb in VERBS.values() if verb.frame == frame) for frame in dict.fromkeys(verb.frame for verb in VERBS.values())
}
_VERBS_OF_OBJECT = {
    noun: tuple(verb for verb in VERBS if noun in _OBJECTS[verb] and VERBS[verb].frame in ("object", "about")) for noun in NOUNS
}
_QUALITIES = {kind: tuple(name for name, entry in ADJECTIVES.items() if kind in entry.kinds) for kind in {noun.kind for noun in NOUNS.values()}}
_MANNERS_OF = {verb: tuple(manner for manner, group in MANNER_VERBS.items() if verb in group) for verb in VERBS}
_PREDICATES = tuple(nouns_of("person")[5:30])


class Rules:
    """Draws trees from `random`; only `Random.random` is used, whose sequence is the same on every platform and version."""

    def __init__(self, random: Random) -> None:
        self._random = random.random

    def chance(self, probability: float) -> bool:
        """True with `probability`."""
        return self._random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of `options`, all equally likely."""
        return options[int(self._random() * len(options))]

    def between(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return low + int(self._random() * (high - low + 1))

    def weighted(self, **weights: float) -> str:
        """A key, as likely as its weight."""
        point = self._random() * sum(weights.values())
        for key, weight in weights.items():
            point -= weight
            if point < 0:
                return key
        return key

    # Noun phrases

    def phrase(self, noun: str, *, subject: bool = False, rich: bool = True) -> Phrase:
        """A noun phrase around `noun`; a poor one takes no clause, no place and no possessor phrase."""
        entry = NOUNS[noun]
        person = entry.kind == "person"
        if entry.mass:
            kind = self.weighted(bare=5, the=3, this=1)
            result = Phrase(noun, determiner=kind)
        elif noun in _KIN:
            kind = self.weighted(my=4, his=2, her=2, our=2, their=1)
            result = Phrase(noun, plural=self.chance(0.15) and noun not in ("mother", "father", "boss"), determiner=kind)
        else:
            kind = self.weighted(the=10, a=3 if subject else 6, this=2, my=1.5, his=1, her=1, our=0.7, their=0.7, bare=1 if subject else 2, number=1.5, of=1.5, every=0.5 if person and subject else 0)
            if person and kind in ("my", "his", "her", "our", "their", "of"):
                kind = "the"
            if kind == "of" and entry.kind not in _OWNED and noun != "house":
                kind = "the"
            if entry.kind == "place" and kind in ("bare", "number", "my", "his", "her", "their") and noun != "house":
                kind = "the"
            plural = kind in ("bare", "number") or (kind not in ("a", "every", "of") and self.chance(0.22 if entry.kind != "place" else 0.08))
            result = Phrase(noun, plural=plural, determiner=kind)
            if kind == "number":
                result = replace(result, number=self.between(2, 12) if self.chance(0.8) else self.between(13, 100))
            if kind == "of":
                result = replace(result, possessor=self.owner())
        adjectives = _QUALITIES[entry.kind]
        if adjectives and self.chance(0.3):
            adjective = self.pick(adjectives)
            if not (adjective == "young" and noun in ("grandfather", "grandmother", "girl", "boy", "child")):
                result = replace(result, adjective=adjective)
        if rich and result.determiner == "the" and not entry.mass:
            if result.adjective and ADJECTIVES[result.adjective].gradable and not result.plural and self.chance(0.25):
                place = Phrase(self.pick(("city", "village", "street", "school", "museum", "shop", "park", "hotel")))
                return replace(result, superlative=True, place=place) if place.noun != noun else result
            if self.chance(0.16):
                return replace(result, relative=self.relative(result))
            if subject and self.chance(0.07) and entry.kind in ("person", "animal", "thing", "vehicle", "text"):
                return replace(result, place=Phrase(self.pick(tuple(PLACES))))
        return result

    def owner(self) -> Phrase | Name:
        """Who owns a thing."""
        if self.chance(0.4):
            return Name(self.pick(tuple(NAMES)))
        noun = self.pick(nouns_of("person"))
        return Phrase(noun, determiner=self.weighted(my=3, his=1, her=1, our=1) if noun in _KIN else "the")

    def person(self, *, rich: bool = True, pronoun: float = 0.3) -> Argument:
        """A human subject."""
        kind = self.weighted(pronoun=pronoun, name=0.14, pair=0.05, phrase=0.5)
        if kind == "pronoun":
            return self.pronoun()
        if kind == "name":
            return Name(self.pick(tuple(NAMES)))
        if kind == "pair":
            return Pair(self.plain_person(), self.plain_person())
        return self.phrase(self.pick(nouns_of("person")), subject=True, rich=rich)

    def plain_person(self) -> Phrase | Name:
        """A member of a pair."""
        return self.owner()

    def pronoun(self) -> Pronoun:
        """A personal pronoun that needs no antecedent."""
        return self.pick((Pronoun(1), Pronoun(1), Pronoun(1, plural=True), Pronoun(3), Pronoun(3, gender="f"), Pronoun(3, plural=True)))

    def subject(self, verb: Verb, rich: bool = True) -> Argument:
        """A subject that fits the verb."""
        kind = verb.subjects[0] if len(verb.subjects) == 1 else "person" if self.chance(0.75) else verb.subjects[1]
        if kind == "person":
            return self.person(rich=rich)
        return self.phrase(self.pick(nouns_of(kind)), subject=True, rich=rich)

    def object(self, verb: Verb, rich: bool = True) -> Argument:
        """An object that fits the verb."""
        noun = self.pick(_OBJECTS[verb.name])
        if NOUNS[noun].kind == "person":
            if self.chance(0.45):
                return self.pick((Pronoun(1), Pronoun(1, plural=True), Pronoun(3), Pronoun(3, gender="f"), Pronoun(3, plural=True)))
            if self.chance(0.2):
                return Name(self.pick(tuple(NAMES)))
        result = self.phrase(noun, rich=rich)
        if verb.name in ("love", "hate", "know", "admire", "call", "visit") and result.determiner in ("a", "bare"):
            result = replace(result, determiner="the")
        if verb.frame == "about" and result.determiner == "bare":
            result = replace(result, determiner="the")
        return result

    def location(self, nouns: Sequence[str] = tuple(PLACES)) -> Phrase:
        """A place."""
        place = Phrase(self.pick(nouns), determiner=self.weighted(the=8, a=1, this=1))
        if place.noun not in _OUTDOORS and self.chance(0.05):
            place = replace(place, determiner="our")
        if self.chance(0.12):
            place = replace(place, adjective=self.pick(_QUALITIES["place"]))
        return place

    def relative(self, head: Phrase) -> Clause:
        """A relative clause on `head`."""
        kind = NOUNS[head.noun].kind
        gap = Gap(antecedent=replace(head, relative=None))
        tense = self.weighted(present=5, past=5, future=1)
        if kind in ("person", "animal") and self.chance(0.6):
            names = [name for name in (*_BY_FRAME["none"], *_BY_FRAME["object"], *_BY_FRAME["go"], *_BY_FRAME["live"]) if kind in VERBS[name].subjects]
            clause = self.event(VERBS[self.pick(names)], tense, rich=False, subject=gap)
            return replace(clause, frequency="", manner="", time=None)
        if kind != "person" and (self.chance(0.3) or not _VERBS_OF_OBJECT[head.noun]) and _QUALITIES[kind]:
            return Clause(gap, "be", quality=Quality(self.pick(_QUALITIES[kind])), tense="past" if tense == "past" else "present")
        if kind == "person" and self.chance(0.2):
            verb = VERBS[self.pick(_BY_FRAME["give"])]
            clause = self.event(verb, "past", rich=False)
            return replace(clause, receiver=gap, time=None, subject=self.knower())
        options = [
            name for name in _VERBS_OF_OBJECT[head.noun]
            if kind == "person" or VERBS[name].french_preposition in ("", "de")
        ]  # fmt: skip
        if not options:
            return Clause(gap, "be", place=self.location())
        verb = VERBS[self.pick(options)]
        if verb.name in _PRESENT_ONLY or verb.name == "have":
            tense = "present"
        return Clause(self.knower(), verb.name, object=gap, tense=tense)

    def knower(self) -> Argument:
        """A short human subject inside a relative clause."""
        if self.chance(0.5):
            return self.pronoun()
        return self.owner()

    # Clauses

    def time(self, tense: str, ongoing: bool) -> Time:
        """A time that goes with the tense; `ongoing` tells the present of now from the present of habit."""
        if tense == "past":
            kind = self.weighted(word=6, date=1.5, year=1.2, weekday=1, clock=0.7, ago=1)
        elif tense == "future":
            kind = self.weighted(word=6, date=1.5, weekday=1, clock=0.7, **{"in": 1})
        else:
            kind = "word" if ongoing else self.weighted(word=5, weekdays=1, clock=0.7)
        match kind:
            case "date":
                month = self.between(0, 11)
                return Time("date", self.between(1, DAYS[month]), month)
            case "year":
                return Time("year", self.between(1910, 1999) if self.chance(0.7) else self.between(2010, 2029))
            case "weekday" | "weekdays":
                return Time(kind, self.between(0, 6))
            case "clock":
                return Time("clock", self.between(2, 11))
            case "ago" | "in":
                return Time(kind, self.between(2, 12), self.between(0, 3))
            case _:
                table = {"past": PAST, "future": FUTURE}.get(tense, ONGOING if ongoing else HABIT)
                return Time(self.pick(tuple(table)))

    def event(self, verb: Verb, tense: str, rich: bool = True, subject: Argument | None = None) -> Clause:
        """A clause with a full verb, its arguments and, if rich, its adverbials, modal and negation."""
        if verb.name in _PRESENT_ONLY:
            tense = "present"
        clause = Clause(subject or self.subject(verb, rich), verb.name, tense=tense)
        if verb.frame in ("object", "give", "about"):
            clause = replace(clause, object=self.object(verb, rich and not self.chance(0.3)))
        if verb.frame == "give":
            clause = replace(clause, receiver=self.receiver())
        if verb.frame == "go":
            clause = replace(clause, place=self.location())
            if verb.name == "go" and self.chance(0.3):
                clause = replace(clause, vehicle=self.pick(tuple(VEHICLES)))
        elif verb.frame == "live":
            clause = replace(clause, place=self.location(_HOMES))
        elif verb.name in _PLACED_VERBS and self.chance(0.2 if rich else 0.05):
            clause = replace(clause, place=self.location())
        if not rich:
            return replace(clause, negation="not") if self.chance(0.12) else clause
        stative = verb.stative
        if (not stative or verb.name in _MODAL_STATES) and self.chance(0.17) and tense != "future":
            modal = self.weighted(can=3, must=2, want=3, should=2)
            clause = replace(clause, modal=modal, tense="present" if modal == "should" else tense)
        if self.chance(0.16) and not (clause.modal == "must" and clause.tense == "present") and not self._every(clause):
            clause = replace(clause, negation="not" if clause.modal or stative or self.chance(0.7) else "never")
            if clause.negation == "never" and clause.tense == "future":
                clause = replace(clause, negation="not")
        habit = tense == "present" and not clause.modal and not stative and self.chance(0.35)
        if habit and not clause.negation and self.chance(0.6):
            clause = replace(clause, frequency=self.pick(tuple(FREQUENCIES)))
        elif self.chance(0.4) and not stative and clause.negation != "never":
            clause = replace(clause, time=self.time(tense, ongoing=not habit))
        manners = _MANNERS_OF[verb.name]
        if manners and self.chance(0.35) and not clause.negation:
            clause = replace(clause, manner=self.pick(manners))
        return clause

    @staticmethod
    def _every(clause: Clause) -> bool:
        return isinstance(clause.subject, Phrase) and clause.subject.determiner in ("every", "a", "bare", "number")

    def receiver(self) -> Argument:
        """To whom something is given."""
        if self.chance(0.5):
            return self.pick((Pronoun(1), Pronoun(1, plural=True), Pronoun(3), Pronoun(3, gender="f"), Pronoun(3, plural=True)))
        return self.owner()

    def state(self, tense: str, rich: bool = True) -> Clause:
        """A clause with to be: a quality, a comparison, a place, a profession."""
        tense = "past" if tense == "past" else "present" if self.chance(0.85) else "future"
        negation = "not" if self.chance(0.12) else ""
        kind = self.weighted(quality=5, compare=3, place=3, profession=1.5, exist=2, cost=1)
        if kind == "profession":
            noun = self.pick(_PREDICATES)
            feminine = NOUNS[noun].french_gender == "f"
            names = [name for name, gender in NAMES.items() if (gender == "f") == feminine]
            subject: Argument = Name(self.pick(names)) if self.chance(0.7) else Pronoun(3, gender="f" if feminine else "m")
            adjective = self.pick(_QUALITIES["person"]) if self.chance(0.4) else ""
            return Clause(subject, "be", object=Phrase(noun, determiner="a", adjective=adjective), tense=tense, negation=negation)
        if kind == "exist":
            noun = self.pick(nouns_of("person animal thing text part vehicle"))
            plural = self.chance(0.5)
            determiner = ("bare" if negation or self.chance(0.4) else "number") if plural else "a"
            target = Phrase(noun, plural=plural, determiner=determiner, number=self.between(2, 100) if determiner == "number" else 0)
            adjectives = _QUALITIES[NOUNS[noun].kind]
            if adjectives and self.chance(0.4):
                target = replace(target, adjective=self.pick(adjectives))
            return Clause(Impersonal(), "exist", object=target, place=self.location(), tense=tense, negation=negation)
        if kind == "cost":
            subject = replace(self.phrase(self.pick(nouns_of("thing clothing vehicle text food")), subject=True, rich=False), determiner=self.weighted(the=2, this=1), number=0, possessor=None)
            return Clause(subject, "cost", object=Phrase("euro", plural=True, determiner="number", number=self.between(2, 999)), tense=tense)
        noun = self.pick(nouns_of("person animal thing text clothing vehicle place food drink"))
        if kind == "place":
            noun = self.pick(nouns_of("person animal thing text clothing vehicle"))
        subject = self.phrase(noun, subject=True, rich=rich)
        if subject.determiner in ("bare", "number", "every", "a"):
            subject = replace(subject, determiner="the", number=0)
        if NOUNS[noun].kind == "person" and kind != "compare" and self.chance(0.4):
            subject_person = self.person(rich=rich)
            if kind == "place":
                return Clause(subject_person, "be", place=self.location(), tense=tense, negation=negation)
            return Clause(subject_person, "be", quality=Quality(self.pick(_QUALITIES["person"])), tense=tense, negation=negation)
        if kind == "place":
            return Clause(replace(subject, place=None, superlative=False), "be", place=self.location(), tense=tense, negation=negation)
        subject = replace(subject, adjective="", superlative=False, place=None)
        options = _QUALITIES[NOUNS[noun].kind]
        if kind == "compare":
            options = tuple(option for option in options if ADJECTIVES[option].gradable)
            others = [other for other in nouns_of(NOUNS[noun].kind) if other != noun and other not in _KIN]
            than = Phrase(self.pick(others), determiner="the" if subject.determiner != "this" else "this")
            quality = Quality(self.pick(options), degree=self.weighted(more=2, equal=1), than=than)
            return Clause(subject, "be", quality=quality, tense=tense, negation=negation)
        return Clause(subject, "be", quality=Quality(self.pick(options)), tense=tense, negation=negation)

    def clause(self, tense: str, rich: bool = True) -> Clause:
        """Any clause that is neither reported nor reporting."""
        frame = self.weighted(none=3.5, object=9, give=3, about=2, go=1.5, live=1, state=5, weather=0.4)
        if frame == "state":
            return self.state(tense, rich)
        if frame == "weather":
            time = self.time(tense, ongoing=self.chance(0.5)) if rich else None
            return Clause(Impersonal(), self.pick(("rain", "snow")), tense=tense, time=time)
        return self.event(VERBS[self.pick(_BY_FRAME[frame])], tense, rich)

    # Sentences

    def utterance(self) -> Utterance:
        """A whole sentence."""
        kind = self.weighted(simple=10, question=4, complex=4, report=2, address=0.8)
        tense = self.weighted(present=5, past=4, future=1.6)
        if kind == "question":
            return self.question(tense)
        if kind == "address":
            return self.addressed(Utterance(self.event(VERBS[self.pick(_BY_FRAME[self.weighted(object=3, none=1, go=1)])], tense)))
        if kind == "report":
            verb = VERBS[self.pick((*_BY_FRAME["clause"], *_BY_FRAME["clause"], *_BY_FRAME["ask"]))]
            complement = self.clause(tense, rich=self.chance(0.5))
            return Utterance(Clause(self.person(rich=False), verb.name, complement=complement))
        if kind == "complex":
            return self.complex()
        clause = self.clause(tense)
        return Utterance(clause, fronted=clause.time is not None and self.chance(0.4))

    def complex(self) -> Utterance:
        """Two clauses."""
        conjunction = self.weighted(because=5, **{"if": 2, "when": 2, "while": 1.5, "and": 2, "but": 2})
        first, second = {
            "if": ("future", "present"), "when": ("past", "past"), "while": ("present", "present"),
        }.get(conjunction) or self.pick((("present", "present"), ("past", "past")))  # fmt: skip
        if conjunction in ("when", "while"):
            main, other = self.happening(first), self.happening(second)
        else:
            main = replace(self.clause(first, rich=False), time=None)
            other = self.anaphor(main, second) or self.clause(second, rich=self.chance(0.4))
            other = replace(other, time=None, frequency="" if conjunction == "if" else other.frequency)
        if conjunction == "if" and main.tense != "future":
            main = replace(main, tense="future")
        if conjunction == "if" and other.tense != "present":
            other = replace(other, tense="present")
        fronted = conjunction in ("if", "when", "while") and self.chance(0.6)
        return Utterance(main, conjunction=conjunction, second=other, fronted=fronted)

    def happening(self, tense: str) -> Clause:
        """A dynamic clause."""
        while True:
            verb = VERBS[self.pick(_BY_FRAME[self.weighted(none=3, object=5, go=1)])]
            if not verb.stative:
                return replace(self.event(verb, tense, rich=False), negation="")

    def anaphor(self, main: Clause, tense: str) -> Clause | None:
        """A second clause about the subject of the first, as a pronoun."""
        subject = main.subject
        if not isinstance(subject, Phrase) or subject.noun in ("girl", "child") or subject.determiner == "every" or self.chance(0.3):
            return None
        entry = NOUNS[subject.noun]
        gender = entry.french_gender if entry.kind == "person" else "n"
        pronoun = Pronoun(3, plural=subject.plural, gender=gender, noun=subject.noun)
        if entry.kind in ("person", "animal") and self.chance(0.5):
            names = [name for name in (*_BY_FRAME["none"], *_BY_FRAME["object"]) if entry.kind in VERBS[name].subjects]
            return self.event(VERBS[self.pick(names)], tense, rich=False, subject=pronoun)
        return Clause(pronoun, "be", quality=Quality(self.pick(_QUALITIES[entry.kind])), tense="past" if tense == "past" else "present")

    def question(self, tense: str) -> Utterance:
        """A question; half of those with a human subject are put to somebody by name."""
        kind = self.weighted(yesno=6, who=1.5, what=1.5, where=1.5, when=1, why=1.5)
        if kind == "what":
            verb = VERBS[self.pick([name for name in _BY_FRAME["object"] if not {"person", "animal"} & {entry.split(".")[0] for entry in VERBS[name].objects}])]
            clause = replace(self.event(verb, tense, rich=False), object=Gap(word="what"), negation="")
        elif kind == "where":
            verb = VERBS[self.pick(("sleep", "work", "sing", "dance", "play", "wait", "cook", "live", "go", "go", "stay"))]
            clause = replace(self.event(verb, tense, rich=False), place=None, vehicle="", negation="")
            kind = "where to" if verb.frame == "go" else "where"
        else:
            clause = self.clause(tense, rich=kind == "yesno")
            if kind in ("when", "why"):
                clause = replace(clause, time=None)
            if kind == "when" and (clause.verb in ("be", "exist", "cost") or clause.verb in VERBS and VERBS[clause.verb].stative):
                kind = "yesno"
            if kind == "when":
                clause = replace(clause, tense="future" if clause.tense == "present" and not clause.modal else clause.tense, frequency="", negation="")
        if kind == "who":
            verb = VERBS[self.pick(_BY_FRAME[self.weighted(object=4, none=2, go=1, give=1)])]
            clause = self.event(verb, tense, rich=False, subject=Gap(word="who"))
            return Utterance(replace(clause, negation=""), question="who")
        if isinstance(clause.subject, Phrase) and clause.subject.determiner in ("bare", "a"):
            clause = replace(clause, subject=replace(clause.subject, determiner="the"))
        if clause.tense == "past" and clause.time is None and kind == "yesno" and self.chance(0.3) and clause.verb not in ("be", "cost", "exist", "have"):
            clause = replace(clause, time=self.time("past", ongoing=False)) if not clause.negation else clause
        return self.addressed(Utterance(clause, question=kind)) if self.chance(0.5) else Utterance(clause, question=kind)

    def addressed(self, utterance: Utterance) -> Utterance:
        """The same said to somebody: the subject becomes you."""
        subject = utterance.clause.subject
        person = isinstance(subject, Name | Pair | Pronoun) or (isinstance(subject, Phrase) and NOUNS[subject.noun].kind == "person")
        if not person:
            return utterance
        kind = self.weighted(one=5, two=2, polite=3)
        names = tuple(NAMES)
        if kind == "two":
            first, second = self.pick(names), self.pick(names)
            gender = "f" if name_gender(first) == name_gender(second) == "f" else "m"
            you, address = Pronoun(2, plural=True, gender=gender), (first, second)
        else:
            name = self.pick(tuple(FAMILY_NAMES) if kind == "polite" else names)
            you, address = Pronoun(2, gender=name_gender(name), formal=kind == "polite"), (name,)
        return replace(utterance, clause=replace(utterance.clause, subject=you), address=address)
