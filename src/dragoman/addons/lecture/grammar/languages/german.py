"""Realisation of syntax trees as German sentences."""

from dataclasses import replace

from dragoman.addons.lecture.grammar.agreement import features, noun_gender
from dragoman.addons.lecture.grammar.languages import german_verbs as verbs
from dragoman.addons.lecture.grammar.languages.german_nominals import noun_phrase, relative_pronoun
from dragoman.addons.lecture.grammar.languages.typography import sentence
from dragoman.addons.lecture.grammar.lexicon.adjectives import ADJECTIVES
from dragoman.addons.lecture.grammar.lexicon.function_words import (
    COMPLEMENTIZERS,
    CONJUNCTIONS,
    FREQUENCIES,
    MANNERS,
    QUESTION_WORDS,
    SUBORDINATING,
    TIMES,
    TITLES,
    VEHICLES,
)
from dragoman.addons.lecture.grammar.lexicon.numerals import (
    MONTHS,
    WEEKDAYS,
    german_number,
    german_ordinal,
    german_year,
)
from dragoman.addons.lecture.grammar.lexicon.places import PLACES
from dragoman.addons.lecture.grammar.lexicon.verbs import VERBS
from dragoman.addons.lecture.grammar.origins import Word, origins_of, within
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

_CONTRACTIONS = {
    ("in", "dem"): "im", ("an", "dem"): "am", ("zu", "dem"): "zum", ("zu", "der"): "zur", ("von", "dem"): "vom",
    ("in", "das"): "ins", ("an", "das"): "ans",
}  # fmt: skip
_REFLEXIVE = {(1, False): "mich", (2, False): "dich", (1, True): "uns", (2, True): "euch"}
_UNMISTAKABLE = frozenset(("mich", "mir", "dich", "dir", "uns", "ihn", "ihm", "ihnen", "sich"))
_UNITS = ("Tagen", "Wochen", "Monaten", "Jahren")


def realise(utterance: Utterance) -> str:
    """Return the German sentence of an utterance."""
    return sentence(utterance_words(utterance), "?" if utterance.question else ".")


def utterance_words(utterance: Utterance) -> list[str]:
    """Return the words of an utterance with their origins, and commas."""
    clause = utterance.clause
    if utterance.question:
        words = _question(clause, utterance.question)
    elif utterance.second is None or utterance.conjunction not in SUBORDINATING or not utterance.fronted:
        words = _order(clause, "time" if utterance.fronted and utterance.second is None else "subject")
    else:
        words = _order(clause, "none")
    words = within("clause", words)
    if utterance.second is not None:
        conjunction = CONJUNCTIONS[utterance.conjunction][1]
        if utterance.conjunction == "when" and clause.tense == "past":
            conjunction = "als"
        conjunction = Word(conjunction, "conjunction")
        if utterance.conjunction in SUBORDINATING:
            second = [conjunction, *within("second", _order(utterance.second, "final"))]
            words = [*second, ",", *words] if utterance.fronted else [*words, ",", *second]
        else:
            comma = [","] if utterance.conjunction == "but" else []
            words = [*words, *comma, conjunction, *within("second", _order(utterance.second, "subject"))]
    if utterance.address:
        words = [*words, ",", Word(" und ".join(map(address, utterance.address)), "address")]
    return words


def address(name: str) -> str:
    """Return a name with its title."""
    title, _, family = name.partition(" ")
    return f"{TITLES[title][1]} {family}" if family else name


def _question(clause: Clause, question: str) -> list[str]:
    if question == "yesno":
        return _order(clause, "none")
    if question == "who":
        return [Word("wer", "question"), *_order(clause, "none", subject=False)]
    if question == "what":
        return [Word("was", "question"), *_order(clause, "none")]
    return [Word(QUESTION_WORDS[question][1], "question"), *_order(clause, "none")]


def _prepend(preposition: Word, words: list[str], contract: bool) -> list[str]:
    joined = _CONTRACTIONS.get((preposition, words[0])) if contract else None
    if joined:
        return [Word(joined, *origins_of(preposition), *origins_of(words[0])), *words[1:]]
    return [preposition, *words]


def prepositional(preposition: str, argument: Phrase, case: str) -> list[str]:
    """Return a preposition with its noun phrase. Only the definite article is contracted."""
    words = noun_phrase(argument, case, relative)
    return _prepend(Word(preposition, "preposition"), words, argument.determiner == "the")


def place_phrase(place: Phrase, goal: bool) -> list[str]:
    """Return a place with its preposition and case."""
    preposition = PLACES[place.noun].german[goal]
    return prepositional(preposition, place, "acc" if goal and preposition != "zu" else "dat")


def time_phrase(time: Time) -> str:
    """Return the words of a time expression."""
    match time.key:
        case "date":
            return f"am {german_ordinal(time.number)} {MONTHS[time.month][1]}"
        case "year":
            return f"im Jahr {german_year(time.number)}"
        case "weekday":
            return f"am {WEEKDAYS[time.number][1]}"
        case "weekdays":
            return f"{WEEKDAYS[time.number][1].lower()}s"
        case "clock":
            return f"um {'ein' if time.number == 1 else german_number(time.number)} Uhr"
        case "ago":
            return f"vor {german_number(time.number)} {_UNITS[time.month]}"
        case "in":
            return f"in {german_number(time.number)} {_UNITS[time.month]}"
        case _:
            return TIMES[time.key][1]


def relative(phrase: Phrase, clause: Clause) -> list[str]:
    """Return a relative clause between commas."""
    gap_case = "nom" if isinstance(clause.subject, Gap) else "dat" if isinstance(clause.receiver, Gap) else "acc"
    verb = VERBS.get(clause.verb)
    if gap_case == "acc" and verb is not None and (verb.german_dative or verb.german_case == "dat"):
        gap_case = "dat"
    pronoun = relative_pronoun(gap_case, noun_gender(phrase.noun, "de"), phrase.plural)
    governs = gap_case != "nom" and verb is not None and verb.german_preposition
    head = [Word(verb.german_preposition, "verb.particle")] if governs and verb is not None else []
    return [",", *head, Word(pronoun, "pronoun"), *_order(clause, "final", subject=gap_case != "nom"), ","]


def _predicate(clause: Clause) -> tuple[str, list[str]]:
    """Return (finite verb, clause-final words): a separable prefix, an infinitive or a participle."""
    finite, closing, part = _forms(clause)
    closing_part = "particle" if part == "main" else "main"
    return Word(finite, f"verb.{part}"), [Word(form, f"verb.{closing_part}") for form in closing]


def _forms(clause: Clause) -> tuple[str, list[str], str]:
    """Return (finite verb, clause-final words, the part of the predicate that the finite verb expresses)."""
    agree = features(Impersonal() if clause.verb == "exist" else clause.subject, "de")
    person, plural = agree.person, agree.plural
    key = "sein" if clause.verb == "be" else clause.verb
    nonfinite = verbs.infinitive(clause.verb)
    if clause.modal:
        past = clause.tense == "past" and clause.modal != "should"
        return (verbs.preterite if past else verbs.present)(clause.modal, person, plural), [nonfinite], "modal"
    if clause.tense == "future":
        return verbs.present("werden", person, plural), [nonfinite], "future"
    if clause.tense == "past":
        if clause.verb in ("be", "have", "exist", "cost"):
            return verbs.preterite(key, person, plural), [], "main"
        auxiliary = "sein" if clause.verb in VERBS and VERBS[clause.verb].german_sein else "haben"
        if clause.verb == "go" and clause.vehicle:
            return verbs.present("sein", person, plural), ["gefahren"], "auxiliary"
        return verbs.present(auxiliary, person, plural), [verbs.participle(clause.verb)], "auxiliary"
    prefix = verbs.prefix(clause.verb)
    return verbs.present(key, person, plural), [prefix] if prefix else [], "main"


def _order(clause: Clause, first: str, subject: bool = True) -> list[str]:
    """Return the words of a clause.

    first: the first constituent, subject or time, or the position of the verb, none (first) or final (last).
    """
    finite, closing = _predicate(clause)
    if clause.verb == "go" and clause.vehicle:
        agree = features(clause.subject, "de")
        if clause.tense == "present" and not clause.modal:
            finite = Word(verbs.present("drive", agree.person, agree.plural), "verb.main")
        elif closing == ["gehen"]:
            closing = [Word("fahren", "verb.main")]
    topic: list[str] = []
    if clause.verb == "exist":
        topic = [Word("es", "subject.pronoun")]
    elif subject:
        topic = within("subject", noun_phrase(clause.subject, "nom", relative))
    middle, after = _middle(clause, time=first != "time")
    match first:
        case "subject":
            return [*topic, finite, *middle, *closing, *after]
        case "time" | "none":
            time = [Word(time_phrase(clause.time), clause.time.origin)] if clause.time and first == "time" else []
            # An unstressed pronoun precedes a noun subject, unless it could be read as the subject itself.
            early = isinstance(clause.subject, Phrase | Name | Pair) and subject and bool(middle)
            if early and middle[0] in _UNMISTAKABLE:
                topic, middle = [middle[0], *topic], middle[1:]
            return [*time, finite, *topic, *middle, *closing, *after]
        case _:
            if clause.tense == "present" and not clause.modal and closing:
                return [*topic, *middle, closing[0] + finite, *after]
            return [*topic, *middle, *closing, finite, *after]


def quality_phrase(quality: Quality) -> tuple[list[str], list[str]]:
    """Return (predicate adjective, standard of comparison). The standard follows the clause-final verb."""
    adjective = ADJECTIVES[quality.adjective].german
    if quality.degree == "positive" or quality.than is None:
        return [Word(adjective[0], "adjective")], []
    than = within("standard", noun_phrase(quality.than, "nom", relative))
    if quality.degree == "more":
        return [Word(adjective[1], "adjective")], [Word("als", "than"), *than]
    return [Word("so", "degree"), Word(adjective[0], "adjective")], [Word("wie", "than"), *than]


def _extraposed(target: Argument, clause: Clause) -> tuple[Argument, list[str]]:
    """Return (object, relative clause after the clause-final verb).

    The relative clause is moved only if the result is unambiguous.
    """
    if not isinstance(target, Phrase) or target.relative is None or clause.place is not None or clause.manner:
        return target, []
    return replace(target, relative=None), within("object.relative", relative(target, target.relative))


def _indefinite(argument: object) -> bool:
    return isinstance(argument, Phrase) and argument.determiner in ("a", "bare")


def _middle(clause: Clause, time: bool) -> tuple[list[str], list[str]]:
    """Return (middle field, phrases after the clause-final verb)."""
    verb = VERBS.get(clause.verb)
    frame = verb.frame if verb else ""
    pronouns: list[str] = []
    nouns: list[str] = []
    datives: list[str] = []
    after: list[str] = []
    late: list[str] = []
    negation = {"": "", "not": "nicht", "never": "nie"}[clause.negation]
    agree = features(clause.subject, "de")
    if verb and verb.german_reflexive:
        pronouns.append(Word(_REFLEXIVE.get((agree.person, agree.plural), "sich"), "verb.reflexive"))
    target, case = clause.object, "dat" if verb and verb.german_dative else "acc"
    preposition = verb.german_preposition if verb else ""
    if target is not None and not isinstance(target, Gap) and not preposition:
        negative = clause.negation == "not" and _indefinite(target)
        if clause.verb == "be" and isinstance(target, Phrase):
            case = "nom"
            target = target if target.adjective or negative else replace(target, determiner="bare")
        target, after = _extraposed(target, clause)
        words = within("object", noun_phrase(target, case, relative, negative=negative))
        if negative:
            words[0] = Word(words[0], "negation", *origins_of(words[0]))
        negation = "" if negative else negation
        if isinstance(target, Pronoun):
            pronouns += words
        elif isinstance(target, Phrase) and target.determiner in ("a", "bare", "number"):
            late = words
        else:
            nouns = words
    if clause.receiver is not None and not isinstance(clause.receiver, Gap):
        words = within("receiver", noun_phrase(clause.receiver, "dat", relative))
        if isinstance(clause.receiver, Pronoun):
            pronouns += words
        else:
            datives = words
    adverbs = [Word(time_phrase(clause.time), clause.time.origin)] if clause.time and time else []
    frequency = Word(FREQUENCIES[clause.frequency][1] if clause.frequency else "", "frequency")
    manner = Word(MANNERS[clause.manner][1] if clause.manner else "", "manner")
    words = [*pronouns, *adverbs, *datives, frequency, *nouns, Word(negation, "negation"), manner, *late]
    if target is not None and not isinstance(target, Gap) and preposition and verb:
        contract = isinstance(target, Phrase) and target.determiner == "the"
        target, after = _extraposed(target, clause)
        governed = within("object", noun_phrase(target, verb.german_case, relative))
        words += _prepend(Word(preposition, "verb.particle"), governed, contract)
    if clause.vehicle:
        words.append(Word(VEHICLES[clause.vehicle][1], "vehicle"))
    if clause.place is not None:
        words += within("place", place_phrase(clause.place, goal=frame == "go"))
    if clause.quality is not None:
        quality, after = (within("quality", each) for each in quality_phrase(clause.quality))
        words += quality
    if clause.complement is not None:
        complementizer = Word(COMPLEMENTIZERS[frame][1], "complementizer")
        after = [",", complementizer, *within("complement", _order(clause.complement, "final"))]
    return words, after
