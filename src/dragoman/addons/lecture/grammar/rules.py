"""Random sentences: statements, questions, reported speech, two-clause sentences, and address by name."""

from dataclasses import replace

from dragoman.addons.lecture.grammar.agreement import name_gender
from dragoman.addons.lecture.grammar.clauses import BY_FRAME, Clauses
from dragoman.addons.lecture.grammar.lexicon.function_words import FAMILY_NAMES, NAMES
from dragoman.addons.lecture.grammar.lexicon.nouns import NOUNS
from dragoman.addons.lecture.grammar.lexicon.verbs import VERBS
from dragoman.addons.lecture.grammar.phrases import QUALITIES
from dragoman.addons.lecture.grammar.tree import Clause, Gap, Name, Pair, Phrase, Pronoun, Quality, Utterance

_NAMES = tuple(NAMES)
_FAMILY_NAMES = tuple(FAMILY_NAMES)
_THING_VERBS = tuple(
    name for name in BY_FRAME["object"] if not {"person", "animal"} & set(VERBS[name].objects) and name != "have"
)
_WHERE_VERBS = ("sleep", "work", "sing", "dance", "play", "wait", "cook", "live", "stay", "go", "go", "go")


class Rules(Clauses):
    """Draws whole sentences."""

    def utterance(self) -> Utterance:
        """Draw a complete sentence."""
        kind = self.weighted(simple=10, question=4, complex=4, report=2, address=0.8)
        tense = self.weighted(present=5, past=4, future=1.6)
        if kind == "question":
            return self.question(tense)
        if kind == "address":
            verb = VERBS[self.pick(BY_FRAME[self.weighted(object=3, none=1, go=1)])]
            return self.addressed(Utterance(self.event(verb, tense)))
        if kind == "report":
            verb = VERBS[self.pick((*BY_FRAME["clause"], *BY_FRAME["clause"], *BY_FRAME["ask"]))]
            complement = self.clause(tense, rich=self.chance(0.7))
            return Utterance(Clause(self.person(rich=False), verb.name, complement=complement))
        if kind == "complex":
            return self.complex()
        clause = self.clause(tense)
        return Utterance(clause, fronted=clause.time is not None and self.chance(0.4))

    def complex(self) -> Utterance:
        """Draw a sentence with two clauses."""
        conjunction = self.weighted(because=5, when=2, **{"if": 2, "while": 1.5, "and": 2}, but=2)
        if conjunction in ("when", "while"):
            tense = "past" if conjunction == "when" else "present"
            fronted = self.chance(0.6)
            return Utterance(
                self.happening(tense), conjunction=conjunction, second=self.happening(tense), fronted=fronted
            )
        if conjunction == "if":
            main, other = self.happening("future"), self._second("present", None)
            return Utterance(main, conjunction=conjunction, second=other, fronted=self.chance(0.6))
        tense = self.weighted(present=1, past=1)
        main = replace(self.clause(tense, rich=self.chance(0.4)), time=None)
        return Utterance(main, conjunction=conjunction, second=self._second(main.tense, main))

    def _second(self, tense: str, main: Clause | None) -> Clause:
        clause = self.anaphor(main, tense) if main is not None else None
        return replace(clause or self.clause(tense, rich=self.chance(0.6)), time=None, frequency="")

    def happening(self, tense: str) -> Clause:
        """Draw a clause with a dynamic verb."""
        while True:
            verb = VERBS[self.pick(BY_FRAME[self.weighted(none=3, object=5, give=1, go=1)])]
            if not verb.stative:
                clause = self.event(verb, tense, rich=False)
                return clause if tense == "future" else replace(clause, negation="")

    def anaphor(self, main: Clause, tense: str) -> Clause | None:
        """Draw a second clause whose subject is a pronoun that refers to the subject of the first clause."""
        subject = main.subject
        # German Kind and Mädchen are neuter, but few speakers use a neuter pronoun in the next clause.
        if not isinstance(subject, Phrase) or subject.noun in ("girl", "child") or subject.determiner == "every":
            return None
        if self.chance(0.3):
            return None
        entry = NOUNS[subject.noun]
        gender = entry.french_gender if entry.kind == "person" else "n"
        pronoun = Pronoun(3, plural=subject.plural, gender=gender, noun=subject.noun)
        if entry.kind in ("person", "animal") and self.chance(0.5):
            names = [name for name in self.verbs_for(entry.kind, "none", "object") if name != main.verb]
            return self.event(VERBS[self.pick(names)], tense, rich=False, subject=pronoun)
        said = {subject.adjective, main.quality.adjective if main.quality else ""}
        options = [quality for quality in QUALITIES[entry.kind] if quality not in said]
        return Clause(pronoun, "be", quality=Quality(self.pick(options)), tense=tense) if options else None

    def question(self, tense: str) -> Utterance:
        """Draw a question. Half of the questions with a human subject address a person by name."""
        kind = self.weighted(yesno=6, who=1.5, what=1.5, where=1.5, when=1, why=1.5)
        if kind == "who":
            verb = VERBS[self.pick(BY_FRAME[self.weighted(object=4, none=2, go=1, give=1)])]
            while "person" not in verb.subjects:
                verb = VERBS[self.pick(BY_FRAME["none"])]
            clause = self.event(verb, tense, rich=False, subject=Gap(word="who"))
            return Utterance(replace(clause, negation=""), question="who")
        if kind == "what":
            clause = self.event(VERBS[self.pick(_THING_VERBS)], tense, rich=False)
            clause = replace(clause, object=Gap(word="what"), negation="")
        elif kind == "where":
            verb = VERBS[self.pick(_WHERE_VERBS)]
            clause = replace(self.event(verb, tense, rich=False), place=None, vehicle="", negation="")
            kind = "where to" if verb.frame == "go" else "where"
        elif kind == "when":
            clause = replace(self.happening("past" if tense == "past" else "future"), negation="")
        else:
            clause = self.clause(tense, rich=kind == "yesno")
            clause = clause if kind == "yesno" else replace(clause, time=None)
        if isinstance(clause.subject, Phrase) and clause.subject.determiner in ("bare", "a"):
            clause = replace(clause, subject=replace(clause.subject, determiner="the"))
        utterance = Utterance(clause, question=kind)
        return self.addressed(utterance) if self.chance(0.5) else utterance

    def addressed(self, utterance: Utterance) -> Utterance:
        """Turn the sentence into an address with the subject "you"."""
        clause = utterance.clause
        subject = clause.subject
        human = isinstance(subject, Phrase) and NOUNS[subject.noun].kind == "person"
        if not human and not isinstance(subject, Name | Pair | Pronoun):
            return utterance
        if clause.verb == "be" and clause.object is not None:
            return utterance
        kind = self.weighted(one=5, two=2, polite=3)
        if kind == "two":
            first, second = self.pick(_NAMES), self.pick(_NAMES)
            if first == second:
                return utterance
            gender = "f" if name_gender(first) == name_gender(second) == "f" else "m"
            you, address = Pronoun(2, plural=True, gender=gender), [first, second]
        else:
            name = self.pick(_FAMILY_NAMES if kind == "polite" else _NAMES)
            you, address = Pronoun(2, gender=name_gender(name), formal=kind == "polite"), [name]
        than = clause.quality.than if clause.quality is not None else None
        if than is not None:
            return utterance
        return replace(utterance, clause=replace(clause, subject=you), address=tuple(address))
