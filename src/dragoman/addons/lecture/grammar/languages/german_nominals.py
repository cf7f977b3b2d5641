"""German noun phrases: articles, adjective endings (strong, weak and mixed), the n-declension, and pronouns."""

from collections.abc import Callable

from dragoman.addons.lecture.grammar.lexicon.adjectives import ADJECTIVES
from dragoman.addons.lecture.grammar.lexicon.function_words import TITLES
from dragoman.addons.lecture.grammar.lexicon.nouns import NOUNS
from dragoman.addons.lecture.grammar.lexicon.numerals import german_number
from dragoman.addons.lecture.grammar.lexicon.places import PLACES
from dragoman.addons.lecture.grammar.origins import Word, origins_of, within
from dragoman.addons.lecture.grammar.tree import Argument, Clause, Gap, Impersonal, Name, Pair, Phrase, Pronoun

CASES = ("nom", "acc", "dat", "gen")
_DEFINITE = {
    "m": ("der", "den", "dem", "des"), "f": ("die", "die", "der", "der"),
    "n": ("das", "das", "dem", "des"), "p": ("die", "die", "den", "der"),
}  # fmt: skip
# The endings of dieser and of strong adjectives are equal, except in a genitive that this grammar does not use.
_STRONG = {
    "m": ("er", "en", "em", "es"),
    "f": ("e", "e", "er", "er"),
    "n": ("es", "es", "em", "es"),
    "p": ("e", "e", "en", "er"),
}
_WEAK = {
    "m": ("e", "en", "en", "en"),
    "f": ("e", "e", "en", "en"),
    "n": ("e", "e", "en", "en"),
    "p": ("en", "en", "en", "en"),
}
_MIXED = {
    "m": ("er", "en", "en", "en"),
    "f": ("e", "e", "en", "en"),
    "n": ("es", "es", "en", "en"),
    "p": ("en", "en", "en", "en"),
}
_EIN = {
    "m": ("", "en", "em", "es"),
    "f": ("e", "e", "er", "er"),
    "n": ("", "", "em", "es"),
    "p": ("e", "e", "en", "er"),
}
_POSSESSIVES = {"my": "mein", "your": "dein", "his": "sein", "her": "ihr", "our": "unser", "their": "ihr"}
_PRONOUNS = {
    (1, False): ("ich", "mich", "mir"), (2, False): ("du", "dich", "dir"), (1, True): ("wir", "uns", "uns"),
    (2, True): ("ihr", "euch", "euch"), (3, True): ("sie", "sie", "ihnen"),
}  # fmt: skip
_THIRD = {"m": ("er", "ihn", "ihm"), "f": ("sie", "sie", "ihr"), "n": ("es", "es", "ihm")}
_RELATIVE = {
    "m": ("der", "den", "dem", "dessen"), "f": ("die", "die", "der", "deren"),
    "n": ("das", "das", "dem", "dessen"), "p": ("die", "die", "denen", "deren"),
}  # fmt: skip

Declension = dict[str, tuple[str, str, str, str]]
Relative = Callable[[Phrase, Clause], list[str]]


def relative_pronoun(case: str, gender: str, plural: bool) -> str:
    """Return the relative pronoun: der, den, dem, denen, …"""
    return _RELATIVE["p" if plural else gender][CASES.index(case)]


def noun_form(noun: str, case: str, plural: bool) -> str:
    """Return the declined noun."""
    entry = NOUNS[noun]
    singular, many = entry.german
    if plural:
        return many + ("n" if case == "dat" and not many.endswith(("n", "s")) else "")
    if case == "gen":
        return entry.german_genitive
    return entry.german_genitive if entry.weak and case != "nom" else singular


def adjective_form(adjective: str, ending: str, superlative: bool = False) -> str:
    """Return the declined adjective. The e of teuer and müde is dropped."""
    stem = ADJECTIVES[adjective].german[2 if superlative else 0]
    if stem.endswith("euer"):
        stem = stem[:-2] + "r"
    return stem.removesuffix("e") + ending


def determiner(kind: str, case: str, gender: str) -> tuple[str, Declension]:
    """Return (declined determiner, declension of a following adjective). gender: m, f, n, or p for the plural."""
    index = CASES.index(case)
    if kind == "the":
        return _DEFINITE[gender][index], _WEAK
    if kind in ("this", "every"):
        return ("dies" if kind == "this" else "jed") + _STRONG[gender][index], _WEAK
    if kind == "a":
        return "ein" + _EIN[gender][index], _MIXED
    if kind == "no":
        return "kein" + _EIN[gender][index], _MIXED
    if kind in _POSSESSIVES:
        stem, ending = _POSSESSIVES[kind], _EIN[gender][index]
        return stem + ending, _MIXED
    return "", _STRONG


def noun_phrase(argument: Argument, case: str, relative: Relative, negative: bool = False) -> list[str]:
    """Return the words of an argument in `case`. negative: use kein instead of an indefinite article."""
    match argument:
        case Name():
            return [Word(_name(argument.name), "name")]
        case Pair():
            first, second = (noun_phrase(each, case, relative) for each in (argument.first, argument.second))
            return [*within("first", first), Word("und", "and"), *within("second", second)]
        case Impersonal():
            return [Word("es", "pronoun")]
        case Gap():
            return []
        case Pronoun():
            return [Word(_pronoun(argument, CASES.index(case)), "pronoun")]
        case Phrase():
            return _phrase(argument, case, relative, negative)


def _name(name: str) -> str:
    title, _, family = name.partition(" ")
    return f"{TITLES[title][1]} {family}" if family else name


def _pronoun(pronoun: Pronoun, index: int) -> str:
    if pronoun.formal:
        return ("Sie", "Sie", "Ihnen")[index]
    if pronoun.person == 3 and not pronoun.plural:
        gender = NOUNS[pronoun.noun].german_gender if pronoun.noun else pronoun.gender
        return _THIRD[gender][index]
    return _PRONOUNS[pronoun.person, pronoun.plural][index]


def _phrase(phrase: Phrase, case: str, relative: Relative, negative: bool) -> list[str]:
    gender = "p" if phrase.plural else NOUNS[phrase.noun].german_gender
    possessor, kind = phrase.possessor, phrase.determiner
    before: list[str] = []
    after: list[str] = []
    declension = _STRONG
    if kind == "of" and isinstance(possessor, Name):
        ending = "'" if possessor.name.endswith(("s", "x", "z")) else "s"
        before = [Word(possessor.name + ending, "possessor.name")]
    elif kind == "number":
        before = [Word(german_number(phrase.number), "determiner")]
    else:
        article, declension = determiner("no" if negative else "the" if kind == "of" else kind, case, gender)
        before = [Word(article, "determiner")] if article else []
        if kind == "of" and possessor is not None:
            after = within("possessor", noun_phrase(possessor, "gen", relative))
    words = [*before]
    if phrase.adjective:
        form = adjective_form(phrase.adjective, declension[gender][CASES.index(case)], phrase.superlative)
        words.append(Word(form, "adjective"))
    words += [Word(noun_form(phrase.noun, case, phrase.plural), "noun"), *after]
    if phrase.place is not None:
        place = phrase.place
        preposition = PLACES[place.noun].german[0]
        inner = noun_phrase(place, "dat", relative)
        if inner[0] == "dem" and preposition in ("in", "an"):
            joined = Word("im" if preposition == "in" else "am", "preposition", *origins_of(inner[0]))
            words += within("place", [joined, *inner[1:]])
        else:
            words += within("place", [Word(preposition, "preposition"), *inner])
    if phrase.relative is not None:
        words += within("relative", relative(phrase, phrase.relative))
    return words
