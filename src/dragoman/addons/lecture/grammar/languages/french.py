"""Realisation of syntax trees as French sentences."""

import re

from dragoman.addons.lecture.grammar.agreement import Features, features
from dragoman.addons.lecture.grammar.languages import french_verbs as verbs
from dragoman.addons.lecture.grammar.languages.french_nominals import (
    address,
    adjective_form,
    better,
    clitic,
    contract,
    noun_phrase,
    strong_pronoun,
)
from dragoman.addons.lecture.grammar.languages.typography import sentence
from dragoman.addons.lecture.grammar.lexicon.function_words import (
    COMPLEMENTIZERS,
    CONJUNCTIONS,
    FREQUENCIES,
    MANNERS,
    QUESTION_WORDS,
    TIMES,
    VEHICLES,
)
from dragoman.addons.lecture.grammar.lexicon.nouns import ASPIRATED
from dragoman.addons.lecture.grammar.lexicon.numerals import MONTHS, WEEKDAYS, french_number, french_year
from dragoman.addons.lecture.grammar.lexicon.places import PLACES
from dragoman.addons.lecture.grammar.lexicon.verbs import VERBS
from dragoman.addons.lecture.grammar.tree import Argument, Clause, Gap, Phrase, Pronoun, Quality, Time, Utterance

_VOWEL = re.compile(r"[aeiouyhéèêâîôûœàAEIOUÉÈÊÂÎÔÛŒÀ]")
_ELIDING = frozenset("le la je me te se ne de que".split())
_ASPIRATED = (*ASPIRATED, "huit", "onze")
_REFLEXIVE = {(1, False): "me", (2, False): "te", (1, True): "nous", (2, True): "vous"}
_ORDER = ("me", "te", "se", "nous", "vous", "le", "la", "les", "lui", "leur", "y")
_UNITS = ("jours", "semaines", "mois", "ans")


def realise(utterance: Utterance) -> str:
    """Return the French sentence of an utterance."""
    clause = utterance.clause
    if utterance.question:
        words = _question(clause, utterance.question)
    else:
        words = statement(clause, fronted=utterance.fronted and utterance.second is None)
    if utterance.second is not None:
        second = [CONJUNCTIONS[utterance.conjunction][2], *statement(utterance.second)]
        if utterance.fronted:
            words = [*second, ",", *words]
        else:
            words = [*words, *([","] if utterance.conjunction == "but" else []), *second]
    if utterance.address:
        words = [*words, ",", " et ".join(map(address, utterance.address))]
    return sentence(elide(words), "?" if utterance.question else ".", blank="\u00a0")


def starts_with_vowel(word: str) -> bool:
    """Return whether a word that precedes `word` is elided."""
    return bool(_VOWEL.match(word)) and not word.startswith(_ASPIRATED)


def elide(words: list[str]) -> list[str]:
    """Apply elision, except before an aspirated h: le ami → l'ami, que il → qu'il, si il → s'il."""
    split = " ".join(word for word in words if word).split(" ")
    result: list[str] = []
    for word, following in zip(split, [*split[1:], ","], strict=True):
        if word in _ELIDING and starts_with_vowel(following):
            result.append(word[:-1] + "'")
        elif word == "si" and following in ("il", "ils"):
            result.append("s'")
        else:
            result.append(word + " ")
    return "".join(result).strip().split(" ")


def prepositional(preposition: str, argument: Argument) -> list[str]:
    """Return a preposition with its argument, or only the argument if the preposition is empty."""
    words = [strong_pronoun(argument)] if isinstance(argument, Pronoun) else noun_phrase(argument, relative)
    return contract(preposition, words) if preposition else words


def place_phrase(place: Phrase, goal: bool) -> list[str]:
    """Return a place with its preposition."""
    return prepositional(PLACES[place.noun].french[goal], place)


def time_phrase(time: Time) -> str:
    """Return the words of a time expression."""
    match time.key:
        case "date":
            day = "premier" if time.number == 1 else french_number(time.number)
            return f"le {day} {MONTHS[time.month][2]}"
        case "year":
            return f"en {french_year(time.number)}"
        case "weekday":
            return WEEKDAYS[time.number][2]
        case "weekdays":
            return f"le {WEEKDAYS[time.number][2]}"
        case "clock":
            return f"à {french_number(time.number, 'f')} heures"
        case "ago":
            return f"il y a {french_number(time.number)} {_UNITS[time.month]}"
        case "in":
            return f"dans {french_number(time.number)} {_UNITS[time.month]}"
        case _:
            return TIMES[time.key][2]


def relative(phrase: Phrase, clause: Clause) -> list[str]:
    """Return a relative clause with its relative pronoun, such as qui, que, à qui or avec qui."""
    verb = VERBS.get(clause.verb)
    if isinstance(clause.subject, Gap):
        return ["qui", *statement(clause)]
    if isinstance(clause.receiver, Gap):
        return ["à qui", *statement(clause)]
    if verb is not None and verb.french_preposition:
        if verb.french_preposition == "de":
            return ["dont", *statement(clause)]
        return [verb.french_preposition, "qui", *statement(clause)]
    return ["que", *statement(clause)]


def _question(clause: Clause, question: str) -> list[str]:
    if question == "who":
        return ["qui", *statement(clause)]
    if question == "what":
        return ["qu'est-ce que", *statement(clause)]
    head = [] if question == "yesno" else [QUESTION_WORDS[question][2]]
    return [*head, "est-ce que", *statement(clause)]


def statement(clause: Clause, fronted: bool = False) -> list[str]:
    """Return a clause in declarative word order. fronted: put the time expression first."""
    front = [time_phrase(clause.time), ","] if fronted and clause.time else []
    subject = ["il"] if clause.verb == "exist" else noun_phrase(clause.subject, relative)
    return [*front, *subject, *_predicate(clause, not fronted), *_complements(clause, time=not fronted)]


def _clitics(clause: Clause, agree: Features) -> list[str]:
    verb = VERBS.get(clause.verb)
    clitics: list[str] = []
    if verb and verb.french_reflexive:
        clitics.append(_REFLEXIVE.get((agree.person, agree.plural), "se"))
    if isinstance(clause.object, Pronoun) and not (verb and verb.french_preposition):
        clitics.append(clitic(clause.object, dative=False))
    if isinstance(clause.receiver, Pronoun):
        clitics.append(clitic(clause.receiver, dative=True))
    if clause.verb == "exist":
        clitics.append("y")
    return sorted(clitics, key=_ORDER.index)


def _participle_agreement(clause: Clause, agree: Features) -> tuple[str, bool]:
    """Return (gender, plural) of a participle.

    It agrees with the subject after être, and with a preceding direct object after avoir.
    """
    verb = VERBS.get(clause.verb)
    if verb and verb.french_etre:
        return agree.gender, agree.many
    target = clause.object
    precedes = isinstance(target, Pronoun) or (isinstance(target, Gap) and target.antecedent is not None)
    if verb and not verb.french_preposition and target is not None and precedes:
        preceding = features(target, "fr")
        return preceding.gender, preceding.many
    return "m", False


def _early(clause: Clause) -> bool:
    """Return whether the time expression is a short adverb next to the verb, bientôt or maintenant."""
    return clause.time is not None and clause.time.key in ("soon", "now") and not clause.negation


def _predicate(clause: Clause, time: bool) -> list[str]:
    """Return negation, clitics, verb, adverb of frequency and participle in the right order."""
    agree = features(clause.subject, "fr")
    if clause.verb == "exist":
        agree = Features(3, False, "m", False)
    person, plural = agree.person, agree.plural
    key = {"be": "être", "exist": "avoir", "have": "have"}.get(clause.verb, clause.verb)
    clitics = _clitics(clause, agree)
    ne = ["ne"] if clause.negation else []
    adverb = {"": [], "not": ["pas"], "never": ["jamais"]}[clause.negation]
    adverb += [FREQUENCIES[clause.frequency][2]] if clause.frequency else []
    adverb += [time_phrase(clause.time)] if clause.time is not None and time and _early(clause) else []
    if clause.modal:
        if clause.modal == "should":
            finite = verbs.should(person, plural)
        else:
            finite = (verbs.imperfect if clause.tense == "past" else verbs.present)(clause.modal, person, plural)
        return [*ne, finite, *adverb, *clitics, verbs.infinitive(key)]
    if clause.tense == "future":
        return [*ne, *clitics, verbs.future(key, person, plural), *adverb]
    if clause.tense == "past":
        if clause.verb in ("be", "have", "exist", "cost"):
            return [*ne, *clitics, verbs.imperfect(key, person, plural), *adverb]
        verb = VERBS.get(clause.verb)
        auxiliary = "être" if verb and verb.french_etre else "avoir"
        gender, many = _participle_agreement(clause, agree)
        return [*ne, *clitics, verbs.present(auxiliary, person, plural), *adverb, verbs.participle(key, gender, many)]
    return [*ne, *clitics, verbs.present(key, person, plural), *adverb]


def quality_phrase(quality: Quality, agree: Features) -> list[str]:
    """Return a predicate adjective with its comparison."""
    form = adjective_form(quality.adjective, agree.gender, agree.many)
    if quality.degree == "positive" or quality.than is None:
        return [form]
    than = [strong_pronoun(quality.than)] if isinstance(quality.than, Pronoun) else noun_phrase(quality.than, relative)
    if quality.degree == "equal":
        return ["aussi", form, "que", *than]
    if quality.adjective == "good":
        return [better(agree.gender, agree.many), "que", *than]
    return ["plus", form, "que", *than]


def _complements(clause: Clause, time: bool) -> list[str]:
    words: list[str] = []
    verb = VERBS.get(clause.verb)
    frame = verb.frame if verb else ""
    target, receiver = clause.object, clause.receiver
    if clause.manner and frame != "about":
        words.append(MANNERS[clause.manner][2])
    if verb and verb.french_preposition and target is not None and not isinstance(target, Gap):
        words += prepositional(verb.french_preposition, target)
    elif target is not None and not isinstance(target, Gap | Pronoun):
        if clause.verb == "be" and isinstance(target, Phrase):
            predicate = noun_phrase(target, relative)
            words += predicate if target.adjective else predicate[1:]
        else:
            words += noun_phrase(target, relative, negative=bool(clause.negation) and clause.verb != "cost")
    if clause.manner and frame == "about":
        words.append(MANNERS[clause.manner][2])
    if receiver is not None and not isinstance(receiver, Gap | Pronoun):
        words += prepositional("à", receiver)
    if clause.quality is not None:
        words += quality_phrase(clause.quality, features(clause.subject, "fr"))
    if clause.vehicle:
        words.append(VEHICLES[clause.vehicle][2])
    if clause.place is not None:
        words += place_phrase(clause.place, goal=frame == "go")
    if clause.time is not None and time and not _early(clause):
        words.append(time_phrase(clause.time))
    if clause.complement is not None:
        words += [COMPLEMENTIZERS[frame][2], *statement(clause.complement)]
    return words
