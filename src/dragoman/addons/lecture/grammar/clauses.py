"""Random clauses: events, states, relative clauses, and time expressions that fit the tense."""

from dataclasses import replace

from dragoman.addons.lecture.grammar.lexicon.adjectives import ADJECTIVES
from dragoman.addons.lecture.grammar.lexicon.function_words import (
    FREQUENCIES,
    FUTURE,
    HABIT,
    MANNER_VERBS,
    NAMES,
    ONGOING,
    PAST,
    VEHICLES,
)
from dragoman.addons.lecture.grammar.lexicon.nouns import NOUNS, nouns_for, nouns_of
from dragoman.addons.lecture.grammar.lexicon.numerals import DAYS
from dragoman.addons.lecture.grammar.lexicon.verbs import VERBS, Verb
from dragoman.addons.lecture.grammar.phrases import KIN, PLACE_NAMES, QUALITIES, Phrases
from dragoman.addons.lecture.grammar.tree import Argument, Clause, Gap, Impersonal, Name, Phrase, Pronoun, Quality, Time

BY_FRAME = {
    frame: tuple(verb.name for verb in VERBS.values() if verb.frame == frame)
    for frame in dict.fromkeys(verb.frame for verb in VERBS.values())
}
_PLACED_VERBS = frozenset(
    "sleep work sing dance play wait rest cook eat drink read write meet paint draw repair "
    "talk_to play_with dance_with wait_for find lose".split()
)
_HOMES = ("house", "city", "village", "castle", "hotel", "farm", "island")
_PRESENT_ONLY = frozenset("love hate know admire live think believe know_that say hope wonder".split())
_MODAL_STATES = frozenset(("see", "hear", "understand", "recognize"))
_INDEFINITE = frozenset(("every", "a", "bare", "number"))
_VERBS_OF_OBJECT = {
    noun: tuple(v.name for v in VERBS.values() if v.frame in ("object", "about") and noun in nouns_for(v.objects))
    for noun in NOUNS
}
_MANNERS_OF = {verb: tuple(manner for manner, verbs in MANNER_VERBS.items() if verb in verbs) for verb in VERBS}
_PROFESSIONS = tuple(noun for noun in nouns_of("person")[5:31] if noun not in ("friend", "neighbour"))
_COUNTED = tuple(n for n in nouns_of("person animal thing text vehicle plant") if n not in KIN)
_PRICED = nouns_of("thing clothing text food")
_PRICES = {"thing": 999, "clothing": 400, "text": 60, "food": 20}
_MOVED = nouns_of("person animal thing text clothing vehicle")
_DESCRIBED = nouns_of("person animal thing text clothing vehicle place food drink plant part")


class Clauses(Phrases):
    """Draws clauses."""

    def verbs_for(self, kind: str, *frames: str) -> list[str]:
        """Return the verbs of `frames` whose subject may belong to the semantic class `kind`."""
        return [name for frame in frames for name in BY_FRAME[frame] if kind in VERBS[name].subjects]

    def relative(self, head: Phrase) -> Clause:
        """Draw a relative clause that modifies `head`."""
        kind = NOUNS[head.noun].kind
        gap = Gap(antecedent=replace(head, relative=None))
        tense = self.weighted(present=5, past=5, future=1)
        if kind in ("person", "animal") and self.chance(0.6):
            names = self.verbs_for(kind, "none", "object", "go", "live")
            return self.event(VERBS[self.pick(names)], tense, rich=False, subject=gap)
        if kind == "person" and self.chance(0.2):
            verb = VERBS[self.pick(BY_FRAME["give"])]
            subject = self.knower(head)
            return Clause(subject, verb.name, object=self.object(verb, subject, rich=False), receiver=gap, tense="past")
        options = [
            name
            for name in _VERBS_OF_OBJECT[head.noun]
            if (kind == "person" or VERBS[name].french_preposition in ("", "de")) and name != "have"
        ]
        if options and (kind == "person" or self.chance(0.7)):
            verb = VERBS[self.pick(options)]
            return Clause(
                self.knower(head), verb.name, object=gap, tense="present" if verb.name in _PRESENT_ONLY else tense
            )
        qualities = [quality for quality in QUALITIES[kind] if quality != head.adjective]
        tense = "past" if tense == "past" else "present"
        if qualities and self.chance(0.6):
            return Clause(gap, "be", quality=Quality(self.pick(qualities)), tense=tense)
        return Clause(gap, "be", place=self.location(self.places_of(kind)), tense=tense)

    def knower(self, head: Phrase) -> Argument:
        """Draw a short human subject for a relative clause that modifies `head`."""
        owner = self.owner()
        same = isinstance(owner, Phrase) and owner.noun == head.noun
        return self.pronoun() if same or self.chance(0.5) else owner

    def time(self, tense: str, ongoing: bool) -> Time:
        """Draw a time expression that fits the tense. ongoing: whether a present tense is ongoing or habitual."""
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
                return Time("year", self.between(1910, 1999) if self.chance(0.7) else self.between(2010, 2025))
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
        """Draw a clause with a full verb and its arguments.

        rich: whether the clause may have adverbials and a modal. subject: the subject; None: drawn at random.
        """
        if verb.name in _PRESENT_ONLY:
            tense = "present"
        actor = subject or self.subject(verb, rich)
        clause = Clause(actor, verb.name, tense=tense)
        if verb.frame in ("object", "give", "about"):
            clause = replace(clause, object=self.object(verb, actor, rich and not self.chance(0.3)))
        if verb.frame == "give":
            clause = replace(clause, receiver=self.receiver(actor))
        if verb.frame == "go":
            clause = replace(clause, place=self.location())
            if verb.name == "go" and self.chance(0.3):
                clause = replace(clause, vehicle=self.pick(tuple(VEHICLES)))
        elif verb.frame == "live":
            clause = replace(clause, place=self.location(_HOMES))
        elif verb.name in _PLACED_VERBS and self.chance(0.2 if rich else 0.05):
            animal = isinstance(actor, Phrase) and NOUNS[actor.noun].kind == "animal"
            clause = replace(clause, place=self.location(self.places_of("animal" if animal else "person")))
        if rich:
            return self._enriched(clause, verb)
        negative = self.chance(0.12) and not self._vague(clause)
        return replace(clause, negation="not") if negative else clause

    def _enriched(self, clause: Clause, verb: Verb) -> Clause:
        """Add a modal, negation, frequency, time and manner if they fit the clause."""
        tense = clause.tense
        if (not verb.stative or verb.name in _MODAL_STATES) and tense != "future" and self.chance(0.17):
            vehicle = isinstance(clause.subject, Phrase) and NOUNS[clause.subject.noun].kind == "vehicle"
            modal = self.weighted(can=3, must=2, want=0 if vehicle else 3, should=2)
            tense = "present" if modal == "should" else tense
            clause = replace(clause, modal=modal, tense=tense)
        # "must not", "muss nicht" and "ne doit pas" have three different meanings.
        if self.chance(0.16) and clause.modal != "must" and not self._vague(clause):
            never = not clause.modal and not verb.stative and tense != "future" and self.chance(0.3)
            clause = replace(clause, negation="never" if never else "not")
        habit = tense == "present" and not clause.modal and not verb.stative and self.chance(0.35)
        if habit and not clause.negation and self.chance(0.6):
            clause = replace(clause, frequency=self.pick(tuple(FREQUENCIES)))
        elif self.chance(0.4) and not verb.stative and clause.negation != "never":
            when = "future" if clause.modal and tense == "present" else tense
            clause = replace(clause, time=self.time(when, ongoing=not habit))
        manners = _MANNERS_OF[verb.name]
        if (
            manners
            and self.chance(0.35)
            and not clause.negation
            and not clause.frequency
            and clause.time not in (Time("soon"), Time("now"))
        ):
            clause = replace(clause, manner=self.pick(manners))
        return clause

    @staticmethod
    def _vague(clause: Clause) -> bool:
        """Return whether the scope of a negation would be ambiguous, as with every, a or twelve."""
        subject, target = clause.subject, clause.object
        return (isinstance(subject, Phrase) and subject.determiner in _INDEFINITE) or (
            isinstance(target, Phrase) and target.determiner == "number"
        )

    def state(self, tense: str, rich: bool = True) -> Clause:
        """Draw a clause that states a quality, a comparison, a place, a profession, existence or a price."""
        negation = "not" if self.chance(0.12) else ""
        kind = self.weighted(quality=5, compare=3, place=3, profession=1.5, exist=2, cost=1)
        if kind == "profession":
            return self._profession(tense, negation)
        if kind == "exist":
            return self._existence(tense, negation)
        if kind == "cost":
            priced = Phrase(self.pick(_PRICED), determiner=self.weighted(the=2, this=1), plural=self.chance(0.2))
            price = Phrase(
                "euro", plural=True, determiner="number", number=self.between(2, _PRICES[NOUNS[priced.noun].kind])
            )
            return Clause(priced, "cost", object=price, tense=tense)
        noun = self.pick(_MOVED if kind == "place" else _DESCRIBED)
        if NOUNS[noun].kind == "person" and kind != "compare" and self.chance(0.4):
            person = self.person(rich=False)
            if kind == "place":
                return Clause(person, "be", place=self.location(), tense=tense, negation=negation)
            quality = Quality(self.pick(QUALITIES["person"]))
            return Clause(person, "be", quality=quality, tense=tense, negation=negation)
        subject = self.phrase(noun, subject=True, rich=rich)
        if subject.determiner in _INDEFINITE:
            subject = replace(subject, determiner="the", number=0)
        if kind == "place":
            subject = subject if subject.superlative else replace(subject, place=None)
            place = self.location(self.places_of(NOUNS[noun].kind))
            return Clause(subject, "be", place=place, tense=tense, negation=negation)
        if subject.relative is not None and subject.relative.quality is not None:
            subject = replace(subject, relative=None)
        subject = replace(subject, adjective="", superlative=False, place=None)
        options = QUALITIES[NOUNS[noun].kind]
        if kind == "quality":
            return Clause(subject, "be", quality=Quality(self.pick(options)), tense=tense, negation=negation)
        options = tuple(option for option in options if ADJECTIVES[option].gradable)
        others = [other for other in nouns_of(NOUNS[noun].kind) if other not in (noun, "country") and other not in KIN]
        determiner = "this" if subject.determiner == "this" else "the"
        than = Phrase(self.pick(others), plural=subject.plural, determiner=determiner)
        quality = Quality(self.pick(options), degree=self.weighted(more=2, equal=1), than=than)
        return Clause(subject, "be", quality=quality, tense=tense, negation=negation)

    def _profession(self, tense: str, negation: str) -> Clause:
        noun = self.pick(_PROFESSIONS)
        gender = NOUNS[noun].french_gender
        names = [name for name, name_gender in NAMES.items() if name_gender == gender]
        subject: Argument = Name(self.pick(names)) if self.chance(0.7) else Pronoun(3, gender=gender)
        adjective = self.pick(QUALITIES["person"]) if self.chance(0.4) else ""
        predicate = Phrase(noun, determiner="a", adjective=adjective)
        return Clause(subject, "be", object=predicate, tense=tense, negation=negation)

    def _existence(self, tense: str, negation: str) -> Clause:
        noun = self.pick(_COUNTED)
        kind = NOUNS[noun].kind
        determiner = self.weighted(a=3, bare=2, number=0 if negation else 3)
        number = self.between(2, 100) if determiner == "number" else 0
        adjective = self.pick(QUALITIES[kind]) if self.chance(0.4) else ""
        target = Phrase(noun, plural=determiner != "a", determiner=determiner, number=number, adjective=adjective)
        place = self.location(self.places_of(kind) if kind != "person" else PLACE_NAMES)
        return Clause(Impersonal(), "exist", object=target, place=place, tense=tense, negation=negation)

    def clause(self, tense: str, rich: bool = True) -> Clause:
        """Draw a main clause without reported speech."""
        frame = self.weighted(none=3.5, object=9, give=3, about=2, go=1.5, live=1, state=5, weather=0.4)
        if frame == "state":
            return self.state(tense, rich)
        if frame == "weather":
            time = self.time(tense, ongoing=self.chance(0.5)) if rich else None
            return Clause(Impersonal(), self.pick(("rain", "snow")), tense=tense, time=time)
        return self.event(VERBS[self.pick(BY_FRAME[frame])], tense, rich)
