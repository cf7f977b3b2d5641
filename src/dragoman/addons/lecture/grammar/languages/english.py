"""Realisation of syntax trees as English sentences."""

from dataclasses import replace

from dragoman.addons.lecture.grammar.agreement import Features, features
from dragoman.addons.lecture.grammar.languages.typography import sentence
from dragoman.addons.lecture.grammar.lexicon.adjectives import ADJECTIVES
from dragoman.addons.lecture.grammar.lexicon.function_words import (
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
from dragoman.addons.lecture.grammar.lexicon.nouns import NOUNS
from dragoman.addons.lecture.grammar.lexicon.numerals import (
    MONTHS,
    WEEKDAYS,
    english_number,
    english_ordinal,
    english_year,
)
from dragoman.addons.lecture.grammar.lexicon.places import PLACES
from dragoman.addons.lecture.grammar.lexicon.verbs import VERBS
from dragoman.addons.lecture.grammar.origins import Word, single_words, within
from dragoman.addons.lecture.grammar.tree import (
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
    return sentence(utterance_words(utterance), "?" if utterance.question else ".")


def utterance_words(utterance: Utterance) -> list[str]:
    """Return the words of an utterance with their origins, and commas."""
    clause = utterance.clause
    if utterance.question:
        words = _question(clause, utterance.question)
    else:
        words = statement(clause, fronted=utterance.fronted and utterance.second is None)
    words = within("clause", words)
    if utterance.second is not None:
        simple = utterance.conjunction in ("if", "when")
        conjunction = Word(CONJUNCTIONS[utterance.conjunction][0], "conjunction")
        second = [conjunction, *within("second", statement(utterance.second, simple=simple))]
        if utterance.fronted:
            words = [*second, ",", *words]
        else:
            comma = [","] if utterance.conjunction not in SUBORDINATING else []
            words = [*words, *comma, *second]
    if utterance.address:
        words = [*words, ",", Word(" and ".join(utterance.address), "address")]
    return _articles(words)


def _articles(words: list[str]) -> list[str]:
    fixed: list[str] = []
    for word in single_words(words):
        if word == "not" and fixed and fixed[-1] == "can":
            fixed[-1] += word
        else:
            fixed.append(word)
    for index, word in enumerate(fixed[:-1]):
        following = fixed[index + 1]
        if (word == "a" and following[0] in "aeiou" and not following.startswith(_NO_VOWEL)) or (
            word == "a" and following.startswith("hon")
        ):
            fixed[index] += "n"
    return fixed


def noun_phrase(argument: Argument, subject: bool = False) -> list[str]:
    """Return the words of an argument."""
    match argument:
        case Name():
            return [Word(argument.name, "name")]
        case Pair():
            first, second = noun_phrase(argument.first), noun_phrase(argument.second)
            return [*within("first", first), Word("and", "and"), *within("second", second)]
        case Impersonal():
            return [Word("it", "pronoun")]
        case Gap():
            return []
        case Pronoun():
            return [Word(_pronoun(argument, subject), "pronoun")]
        case Phrase():
            return _phrase(argument)


def _pronoun(pronoun: Pronoun, subject: bool) -> str:
    if pronoun.person == 3 and not pronoun.plural:
        gender = pronoun.gender
        return _THIRD[gender][0 if subject else 1]
    return (_SUBJECTS if subject else _OBJECTS)[pronoun.person, pronoun.plural]


def _phrase(phrase: Phrase) -> list[str]:
    noun = Word(NOUNS[phrase.noun].english[phrase.plural], "noun")
    if phrase.determiner == "of" and phrase.possessor is not None:
        owner = within("possessor", noun_phrase(phrase.possessor))
        determiner = [*owner[:-1], owner[-1] + "'s"]
    elif phrase.determiner == "number":
        determiner = [Word(english_number(phrase.number), "determiner")]
    elif phrase.determiner == "this":
        determiner = [Word("these" if phrase.plural else "this", "determiner")]
    else:
        determiner = [] if phrase.determiner == "bare" else [Word(phrase.determiner, "determiner")]
    adjective = []
    if phrase.adjective:
        form = ADJECTIVES[phrase.adjective].english[2 if phrase.superlative else 0]
        adjective = [Word(form, "adjective")]
    words = [*determiner, *adjective, noun]
    if phrase.place is not None:
        words += within("place", place_phrase(phrase.place, goal=False))
    if phrase.relative is not None:
        words += within("relative", _relative(phrase, phrase.relative))
    return words


def _relative(phrase: Phrase, clause: Clause) -> list[str]:
    person = NOUNS[phrase.noun].kind == "person"
    if isinstance(clause.subject, Gap):
        return [Word("who" if person else "that", "pronoun"), *statement(clause)]
    return [Word("that", "pronoun"), *statement(clause)]


def place_phrase(place: Phrase, goal: bool) -> list[str]:
    """Return a place with its preposition."""
    return [Word(PLACES[place.noun].english[goal], "preposition"), *noun_phrase(place)]


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
    front = [Word(time_phrase(clause.time), clause.time.origin)] if fronted and clause.time else []
    agree = features(clause.subject, "en")
    subject = _subject(clause)
    if clause.verb == "exist" and clause.object is not None:
        agree = features(clause.object, "en")
    auxiliary, main = _verbs(clause, agree, simple=simple)
    negation = [Word(clause.negation, "negation")] if clause.negation and not _none(clause) else []
    adverb = [Word(FREQUENCIES[clause.frequency][0], "frequency")] if clause.frequency else []
    words = [*subject, *auxiliary, *negation, *adverb, *main] if auxiliary else [*subject, *negation, *adverb, *main]
    return [*front, *words, *_complements(clause, time=not fronted)]


def _subject(clause: Clause) -> list[str]:
    if clause.verb == "exist":
        return [Word("there", "subject.pronoun")]
    return within("subject", noun_phrase(clause.subject, subject=True))


def _none(clause: Clause) -> bool:
    """Return whether the negation is expressed by "no", as in "there is no …"."""
    return clause.verb == "exist" and clause.negation == "not" and isinstance(clause.object, Phrase)


def _question(clause: Clause, question: str) -> list[str]:
    if question == "who":
        return [Word("who", "question"), *statement(clause)]
    agree = features(clause.object if clause.verb == "exist" and clause.object else clause.subject, "en")
    auxiliary, main = _verbs(clause, agree, support=True)
    head = "" if question == "yesno" else "what" if question == "what" else QUESTION_WORDS[question][0]
    negation = [Word(clause.negation, "negation")] if clause.negation else []
    adverb = [Word(FREQUENCIES[clause.frequency][0], "frequency")] if clause.frequency else []
    words = [*auxiliary, *_subject(clause), *negation, *adverb, *main]
    return [Word(head, "question"), *words, *_complements(clause, time=True)]


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
    main = _main_verb(lemma)
    if clause.modal in _MODALS:
        return [Word(_MODALS[clause.modal][clause.tense == "past"], "verb.modal")], main
    if clause.modal:
        bare, past, present = ("have", "had", "has") if clause.modal == "must" else ("want", "wanted", "wants")
        to = Word("to", "verb.to")
        if support:
            return [Word(_DO[clause.tense][third], "verb.auxiliary")], [Word(bare, "verb.modal"), to, *main]
        return [], [Word(past if clause.tense == "past" else present if third else bare, "verb.modal"), to, *main]
    if clause.tense == "future":
        return [Word("will", "verb.future")], main
    if be:
        return [Word(_be(agree, clause.tense == "past"), "verb.main")], []
    if clause.tense == "present" and not simple and progressive(clause):
        form = VERBS[clause.verb].english[2] if clause.verb in VERBS else lemma + "ing"
        return [Word(_be(agree, False), "verb.auxiliary")], _main_verb(form)
    if support:
        return [Word(_DO[clause.tense][third], "verb.auxiliary")], main
    if clause.tense == "past":
        form = VERBS[clause.verb].english[1] if clause.verb in VERBS else _PASTS[clause.verb]
        return [], _main_verb(form)
    return [], _main_verb(third_person(lemma)) if third else main


def _main_verb(form: str) -> list[str]:
    """Return the words of a verb and of its particle, as in `wakes up` or `waits for`."""
    verb, _, particle = form.partition(" ")
    return [Word(verb, "verb.main"), Word(particle, "verb.particle")]


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
        return [Word(adjective[0], "adjective")]
    than = within("standard", noun_phrase(quality.than))
    if quality.degree == "more":
        return [Word(adjective[1], "adjective"), Word("than", "than"), *than]
    return [Word("as", "degree"), Word(adjective[0], "adjective"), Word("as", "than"), *than]


def _complements(clause: Clause, time: bool) -> list[str]:
    words: list[str] = []
    verb = VERBS.get(clause.verb)
    frame = verb.frame if verb else ""
    early = isinstance(clause.receiver, Pronoun) and clause.verb not in _ALWAYS_TO
    if early and clause.receiver is not None:
        words += within("receiver", noun_phrase(clause.receiver))
    if _none(clause) and isinstance(clause.object, Phrase):
        words += within("object", noun_phrase(replace(clause.object, determiner="no")))
    elif clause.object is not None:
        words += within("object", noun_phrase(clause.object))
    if clause.receiver is not None and not early:
        words += within("receiver", [Word("to", "preposition"), *noun_phrase(clause.receiver)])
    if clause.quality is not None:
        words += within("quality", quality_phrase(clause.quality))
    if clause.manner:
        words.append(Word(MANNERS[clause.manner][0], "manner"))
    if clause.place is not None:
        words += within("place", place_phrase(clause.place, goal=frame == "go"))
    if clause.vehicle:
        words.append(Word(VEHICLES[clause.vehicle][0], "vehicle"))
    if clause.time is not None and time:
        words.append(Word(time_phrase(clause.time), clause.time.origin))
    if clause.complement is not None:
        complementizer = Word(COMPLEMENTIZERS[frame][0], "complementizer")
        words += [complementizer, *within("complement", statement(clause.complement))]
    return words
