"""Agreement features of arguments: person, number and gender."""

from typing import Literal, NamedTuple

from dragoman.addons.lecture.grammar.lexicon.function_words import FAMILY_NAMES, NAMES
from dragoman.addons.lecture.grammar.lexicon.nouns import NOUNS
from dragoman.addons.lecture.grammar.tree import Argument, Gap, Impersonal, Name, Pair, Phrase, Pronoun

Language = Literal["en", "de", "fr"]


class Features(NamedTuple):
    """The features with which verbs, adjectives and participles agree.

    plural: number of the verb. many: number of adjectives and participles, which differs from that of the verb in
    polite address ("vous êtes patient").
    """

    person: int
    plural: bool
    gender: str
    many: bool


def noun_gender(noun: str, language: Language) -> str:
    """Return the gender, m, f or n. English nouns have no gender, so the result is always "n"."""
    if language == "en":
        return "n"
    return NOUNS[noun].german_gender if language == "de" else NOUNS[noun].french_gender


def name_gender(name: str) -> str:
    """Return the gender of a name, m or f."""
    return NAMES[name] if name in NAMES else FAMILY_NAMES[name]


def features(argument: Argument, language: Language) -> Features:
    """Return the agreement features of `argument` in `language`."""
    match argument:
        case Phrase():
            return Features(3, argument.plural, noun_gender(argument.noun, language), argument.plural)
        case Name():
            return Features(3, False, name_gender(argument.name), False)
        case Pair():
            genders = {features(argument.first, language).gender, features(argument.second, language).gender}
            return Features(3, True, "f" if genders == {"f"} else "m", True)
        case Pronoun():
            gender = noun_gender(argument.noun, language) if argument.noun else argument.gender
            if argument.formal:
                return Features(3 if language == "de" else 2, True, gender, False)
            return Features(argument.person, argument.plural, gender, argument.plural)
        case Gap():
            if argument.antecedent is None:
                return Features(3, False, "m", False)
            return features(argument.antecedent, language)
        case Impersonal():
            return Features(3, False, "n" if language == "de" else "m", False)
