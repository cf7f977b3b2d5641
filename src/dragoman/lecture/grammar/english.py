"""Realisation of syntax trees as English sentences."""

from dataclasses import replace

from dragoman.lecture.grammar.adjectives import ADJECTIVES
from dragoman.lecture.grammar.agreement import Features, features
from dragoman.lecture.grammar.function_words import (
    COMPLEMENTIZERS,
    CONJUNCTIONS,
    FREQUENCIES,
    HABIT,
    MANNERS,
    QUESTION_WORDS,
    SUBORDINATING,
    TIMES,
    VEHICLES,
)
from dragoman.lecture.grammar.nouns import NOUNS
from dragoman.lecture.grammar.numerals import MONTHS, WEEKDAYS, english_number, english_ordinal, english_year
from dragoman.lecture.grammar.places import PLACES
from dragoman.lecture.grammar.tree import (
    Argument,
    Clause,
    Gap,
    Impersonal,
    Name,
    Pair,
    Phrase,
    Pronoun,
    Quality,
    Time,
    Utterance,
)
from dragoman.lecture.grammar.typography import sentence
from dragoman.lecture.grammar.verbs import VERBS

_SUBJECTS = {(1, False): "I", (1, True): "we", (2, False): "you", (2, True): "you", (3, True): "they"}
_OBJECTS = {(1, False): "me", (1, True): "us", (2, False): "you", (2, True): "you", (3, True): "them"}
# Verbs whose receiver always follows the object: "describes the house to me".
_ALWAYS_TO = ("describe", "give_back")
_THIRD = {"m": ("he", "him"), "f": ("she", "her"), "n": ("it", "it")}
_DO = {"present": ("do", "does"), "past": ("did", "did")}
_PASTS = {"cost": "cost", "rain": "rained", "snow": "snowed"}
_MODALS = {"can": ("can", "could"), "should": ("should", "should")}
_NO_VOWEL = ("uni", "use", "euro")


def realise(utterance: Utterance) -> str:
    """Return the English sentence of an utterance."""
    clause = utterance.clause
    if utterance.question:
        words = _question(clause, utterance.question)
    else:
        words = statement(clause, fronted=utterance.fronted and utterance.second is None)
    if utterance.second is not None:
        simple = utterance.conjunction in ("if", "when")
        second = [CONJUNCTIONS[utterance.conjunction][0], *statement(utterance.second, simple=simple)]
        if utterance.fronted:
            words = [*second, ",", *words]
        else:
            comma = [","] if utterance.conjunction not in SUBORDINATING else []
            words = [*words, *comma, *second]
    if utterance.address:
        words = [*words, ",", " and ".join(utterance.address)]
    return sentence(_articles(words), "?" if utterance.question else ".")


def _articles(words: list[str]) -> list[str]:
    fixed = " ".join(words).replace("can not ", "cannot ").split(" ")
    for index, word in enumerate(fixed[:-1]):
        following = fixed[index + 1]
        if (word == "a" and following[0] in "aeiou" and not following.startswith(_NO_VOWEL)) or (
            word == "a" and following.startswith("hon")
        ):
            fixed[index] = "an"
    return fixed


def noun_phrase(argument: Argument, subject: bool = False) -> list[str]:
    """Return the words of an argument."""
    match argument:
        case Name():
            return [argument.name]
        case Pair():
            return [*noun_phrase(argument.first), "and", *noun_phrase(argument.second)]
        case Impersonal():
            return ["it"]
        case Gap():
            return []
        case Pronoun():
            return [_pronoun(argument, subject)]
        case Phrase():
            return _phrase(argument)


def _pronoun(pronoun: Pronoun, subject: bool) -> str:
    if pronoun.person == 3 and not pronoun.plural:
        gender = pronoun.gender
        return _THIRD[gender][0 if subject else 1]
    return (_SUBJECTS if subject else _OBJECTS)[pronoun.person, pronoun.plural]


def _phrase(phrase: Phrase) -> list[str]:
    noun = NOUNS[phrase.noun].english[phrase.plural]
    if phrase.determiner == "of" and phrase.possessor is not None:
        owner = noun_phrase(phrase.possessor)
        determiner = [*owner[:-1], owner[-1] + "'s"]
    elif phrase.determiner == "number":
        determiner = [english_number(phrase.number)]
    elif phrase.determiner == "this":
        determiner = ["these" if phrase.plural else "this"]
    else:
        determiner = [] if phrase.determiner == "bare" else [phrase.determiner]
    adjective = []
    if phrase.adjective:
        adjective = [ADJECTIVES[phrase.adjective].english[2 if phrase.superlative else 0]]
    words = [*determiner, *adjective, noun]
    if phrase.place is not None:
        words += place_phrase(phrase.place, goal=False)
    if phrase.relative is not None:
        words += _relative(phrase, phrase.relative)
    return words


def _relative(phrase: Phrase, clause: Clause) -> list[str]:
    person = NOUNS[phrase.noun].kind == "person"
    if isinstance(clause.subject, Gap):
        return ["who" if person else "that", *statement(clause)]
    return ["that", *statement(clause)]


def place_phrase(place: Phrase, goal: bool) -> list[str]:
    """Return a place with its preposition."""
    return [PLACES[place.noun].english[goal], *noun_phrase(place)]


def time_phrase(time: Time) -> str:
    """Return the words of a time expression."""
    match time.key:
        case "date":
            return f"on the {english_ordinal(time.number)} of {MONTHS[time.month][0]}"
        case "year":
            return f"in {english_year(time.number)}"
        case "weekday":
            return f"on {WEEKDAYS[time.number][0]}"
        case "weekdays":
            return f"on {WEEKDAYS[time.number][0]}s"
        case "clock":
            return f"at {english_number(time.number)} o'clock"
        case "ago":
            return f"{english_number(time.number)} {('days', 'weeks', 'months', 'years')[time.month]} ago"
        case "in":
            return f"in {english_number(time.number)} {('days', 'weeks', 'months', 'years')[time.month]}"
        case _:
            return TIMES[time.key][0]


def statement(clause: Clause, fronted: bool = False, simple: bool = False) -> list[str]:
    """Return a clause in declarative word order.

    fronted: put the time expression first. simple: use the simple instead of the progressive form.
    """
    front = [time_phrase(clause.time)] if fronted and clause.time else []
    agree = features(clause.subject, "en")
    subject = ["there"] if clause.verb == "exist" else noun_phrase(clause.subject, subject=True)
    if clause.verb == "exist" and clause.object is not None:
        agree = features(clause.object, "en")
    auxiliary, main = _verbs(clause, agree, simple=simple)
    negation = [clause.negation] if clause.negation and not _none(clause) else []
    adverb = [FREQUENCIES[clause.frequency][0]] if clause.frequency else []
    words = [*subject, *auxiliary, *negation, *adverb, *main] if auxiliary else [*subject, *negation, *adverb, *main]
    return [*front, *words, *_complements(clause, time=not fronted)]


def _none(clause: Clause) -> bool:
    """Return whether the negation is expressed by "no", as in "there is no …"."""
    return clause.verb == "exist" and clause.negation == "not" and isinstance(clause.object, Phrase)


def _question(clause: Clause, question: str) -> list[str]:
    if question == "who":
        return ["who", *statement(clause)]
    agree = features(clause.object if clause.verb == "exist" and clause.object else clause.subject, "en")
    subject = ["there"] if clause.verb == "exist" else noun_phrase(clause.subject, subject=True)
    auxiliary, main = _verbs(clause, agree, support=True)
    head = [] if question == "yesno" else ["what" if question == "what" else QUESTION_WORDS[question][0]]
    negation = [clause.negation] if clause.negation else []
    adverb = [FREQUENCIES[clause.frequency][0]] if clause.frequency else []
    return [*head, *auxiliary, *subject, *negation, *adverb, *main, *_complements(clause, time=True)]


def _be(agree: Features, past: bool) -> str:
    if past:
        return "were" if agree.plural or agree.person == 2 else "was"
    if agree.plural or agree.person == 2:
        return "are"
    return "am" if agree.person == 1 else "is"


def _verbs(clause: Clause, agree: Features, support: bool = False, simple: bool = False) -> tuple[list[str], list[str]]:
    """Return (auxiliary, main verb).

    Without an auxiliary, questions and negation with "not" require do-support. support: whether the clause is a
    question. simple: use the simple instead of the progressive form.
    """
    third = agree.person == 3 and not agree.plural
    be = clause.verb in ("be", "exist")
    lemma = "be" if be else VERBS[clause.verb].english[0] if clause.verb in VERBS else clause.verb
    support = support or clause.negation == "not"
    if clause.modal in _MODALS:
        auxiliary = _MODALS[clause.modal][clause.tense == "past"]
        return [auxiliary], [lemma]
    if clause.modal:
        bare, past, present = ("have", "had", "has") if clause.modal == "must" else ("want", "wanted", "wants")
        if support:
            return [_DO[clause.tense][third]], [bare, "to", lemma]
        return [], [past if clause.tense == "past" else present if third else bare, "to", lemma]
    if clause.tense == "future":
        return ["will"], [lemma]
    if be:
        return [_be(agree, clause.tense == "past")], []
    if clause.tense == "present" and not simple and progressive(clause):
        return [_be(agree, False)], [VERBS[clause.verb].english[2] if clause.verb in VERBS else lemma + "ing"]
    if support:
        return [_DO[clause.tense][third]], [lemma]
    if clause.tense == "past":
        return [], [VERBS[clause.verb].english[1] if clause.verb in VERBS else _PASTS[clause.verb]]
    return [], [third_person(lemma) if third else lemma]


def progressive(clause: Clause) -> bool:
    """Return whether the clause describes an action in progress, neither a habit nor a state."""
    if clause.verb == "cost" or (clause.verb in VERBS and VERBS[clause.verb].stative):
        return False
    habit = clause.time is not None and (clause.time.key in HABIT or clause.time.key in ("weekdays", "clock"))
    return not (clause.frequency or habit or clause.negation == "never")


def third_person(lemma: str) -> str:
    """Return the third person singular of a verb in the present tense."""
    verb, _, particle = lemma.partition(" ")
    if verb == "have":
        verb = "has"
    elif verb.endswith(("s", "sh", "ch", "x", "o")):
        verb += "es"
    elif verb.endswith("y") and verb[-2] not in "aeiou":
        verb = verb[:-1] + "ies"
    else:
        verb += "s"
    return f"{verb} {particle}".strip()


def quality_phrase(quality: Quality) -> list[str]:
    """Return a predicate adjective with its comparison."""
    adjective = ADJECTIVES[quality.adjective].english
    if quality.degree == "positive" or quality.than is None:
        return [adjective[0]]
    than = noun_phrase(quality.than)
    if quality.degree == "more":
        return [adjective[1], "than", *than]
    return ["as", adjective[0], "as", *than]


def _complements(clause: Clause, time: bool) -> list[str]:
    words: list[str] = []
    verb = VERBS.get(clause.verb)
    frame = verb.frame if verb else ""
    early = isinstance(clause.receiver, Pronoun) and clause.verb not in _ALWAYS_TO
    if early and clause.receiver is not None:
        words += noun_phrase(clause.receiver)
    if _none(clause) and isinstance(clause.object, Phrase):
        words += noun_phrase(replace(clause.object, determiner="no"))
    elif clause.object is not None:
        words += noun_phrase(clause.object)
    if clause.receiver is not None and not early:
        words += ["to", *noun_phrase(clause.receiver)]
    if clause.quality is not None:
        words += quality_phrase(clause.quality)
    if clause.manner:
        words.append(MANNERS[clause.manner][0])
    if clause.place is not None:
        words += place_phrase(clause.place, goal=frame == "go")
    if clause.vehicle:
        words.append(VEHICLES[clause.vehicle][0])
    if clause.time is not None and time:
        words.append(time_phrase(clause.time))
    if clause.complement is not None:
        words += [COMPLEMENTIZERS[frame][0], *statement(clause.complement)]
    return words
