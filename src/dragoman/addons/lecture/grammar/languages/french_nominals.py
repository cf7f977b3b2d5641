"""French noun phrases: articles, partitives, adjectives, contraction, clitic and strong pronouns."""

from collections.abc import Callable

from dragoman.addons.lecture.grammar.agreement import features
from dragoman.addons.lecture.grammar.lexicon.adjectives import ADJECTIVES
from dragoman.addons.lecture.grammar.lexicon.function_words import TITLES
from dragoman.addons.lecture.grammar.lexicon.nouns import ASPIRATED, NOUNS
from dragoman.addons.lecture.grammar.lexicon.numerals import french_number
from dragoman.addons.lecture.grammar.lexicon.places import PLACES
from dragoman.addons.lecture.grammar.tree import Argument, Clause, Gap, Impersonal, Name, Pair, Phrase, Pronoun

_POSSESSIVES = {
    "my": ("mon", "ma", "mes"), "your": ("ton", "ta", "tes"), "his": ("son", "sa", "ses"), "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"), "their": ("leur", "leur", "leurs"),
}  # fmt: skip
_SUBJECTS = {(1, False): "je", (2, False): "tu", (1, True): "nous", (2, True): "vous"}
_STRONG = {(1, False): "moi", (2, False): "toi", (1, True): "nous", (2, True): "vous"}
_CLITICS = {(1, False): "me", (2, False): "te", (1, True): "nous", (2, True): "vous"}
_CONTRACTIONS = {("à", "le"): "au", ("à", "les"): "aux", ("de", "le"): "du", ("de", "les"): "des"}
_VOWELS = "aeiouyhéèêâîôûœ"

Relative = Callable[[Phrase, Clause], list[str]]


def starts_with_vowel(word: str, aspirated: bool = False) -> bool:
    """Return whether the word starts with a vowel sound."""
    return word[0].lower() in _VOWELS and not aspirated


def adjective_form(adjective: str, gender: str, plural: bool, before_vowel: bool = False) -> str:
    """Return the adjective with agreement. Special forms before a vowel are bel, nouvel and vieil."""
    masculine, feminine, masculine_plural, feminine_plural, liaison = ADJECTIVES[adjective].french
    if gender == "f":
        return feminine_plural if plural else feminine
    if plural:
        return masculine_plural
    return liaison if before_vowel else masculine


def contract(preposition: str, words: list[str]) -> list[str]:
    """Contract a preposition and an article: à + le → au, de + les → des. The form l' is not contracted."""
    first = words[0]
    joined = _CONTRACTIONS.get((preposition, first))
    if joined is None or (first == "le" and starts_with_vowel(words[1], words[1].startswith(ASPIRATED))):
        return [preposition, *words]
    return [joined, *words[1:]]


def better(gender: str, plural: bool) -> str:
    """Return the irregular comparative of bon."""
    return "meilleur" + ("e" if gender == "f" else "") + ("s" if plural else "")


def address(name: str) -> str:
    """Return a name with its title."""
    title, _, family = name.partition(" ")
    return f"{TITLES[title][2]} {family}" if family else name


def clitic(pronoun: Pronoun, dative: bool) -> str:
    """Return the form of a pronoun before the verb."""
    agree = features(pronoun, "fr")
    if agree.person < 3:
        return _CLITICS[agree.person, agree.plural]
    if dative:
        return "leur" if agree.plural else "lui"
    return "les" if agree.plural else "la" if agree.gender == "f" else "le"


def strong_pronoun(pronoun: Argument) -> str:
    """Return the form of a pronoun after a preposition or que."""
    agree = features(pronoun, "fr")
    if agree.person < 3:
        return _STRONG[agree.person, agree.plural]
    if agree.plural:
        return "elles" if agree.gender == "f" else "eux"
    return "elle" if agree.gender == "f" else "lui"


def noun_phrase(argument: Argument, relative: Relative, negative: bool = False) -> list[str]:
    """Return the words of an argument. Pronouns are in the subject form.

    negative: replace an indefinite or partitive article by de.
    """
    match argument:
        case Name():
            return [address(argument.name)]
        case Pair():
            return [*noun_phrase(argument.first, relative), "et", *noun_phrase(argument.second, relative)]
        case Impersonal():
            return ["il"]
        case Gap():
            return []
        case Pronoun():
            agree = features(argument, "fr")
            if agree.person < 3:
                return [_SUBJECTS[agree.person, agree.plural]]
            return [("elle" if agree.gender == "f" else "il") + ("s" if agree.plural else "")]
        case Phrase():
            return _phrase(argument, relative, negative)


def _article(phrase: Phrase, gender: str, following_vowel: bool, adjective_first: bool, negative: bool) -> list[str]:
    kind, plural = phrase.determiner, phrase.plural
    if kind == "number":
        return [french_number(phrase.number, gender)]
    if kind in ("the", "of"):
        return ["les" if plural else "la" if gender == "f" else "le"]
    if kind == "this":
        return ["ces" if plural else "cette" if gender == "f" else "cet" if following_vowel else "ce"]
    if kind == "every":
        return ["chaque"]
    if kind in _POSSESSIVES:
        masculine, feminine, many = _POSSESSIVES[kind]
        return [many if plural else masculine if gender == "m" or following_vowel else feminine]
    if negative:
        return ["de"]
    if kind == "a":
        return ["une" if gender == "f" else "un"]
    if plural:
        return ["de" if adjective_first else "des"]
    if NOUNS[phrase.noun].mass:
        return ["de", "l'"] if following_vowel else ["de", "la"] if gender == "f" else ["du"]
    raise ValueError(f"{phrase.noun}: a countable singular noun requires an article")


def _phrase(phrase: Phrase, relative: Relative, negative: bool) -> list[str]:
    entry = NOUNS[phrase.noun]
    gender, noun = entry.french_gender, entry.french[phrase.plural]
    noun_vowel = starts_with_vowel(noun, entry.aspirated)
    adjective = ADJECTIVES[phrase.adjective] if phrase.adjective else None
    first = adjective is not None and adjective.precedes
    form = adjective_form(phrase.adjective, gender, phrase.plural, first and noun_vowel) if phrase.adjective else ""
    if phrase.superlative and phrase.adjective == "good":
        form = better(gender, phrase.plural)
    elif phrase.superlative:
        form = f"plus {form}"
    head = [form, noun] if first else [noun]
    following_vowel = starts_with_vowel(head[0], entry.aspirated and not first)
    article = _article(phrase, gender, following_vowel, first, negative)
    words = [*article, *head]
    if adjective is not None and not first:
        words += [article[-1], form] if phrase.superlative else [form]
    if phrase.determiner == "of" and phrase.possessor is not None:
        words += contract("de", noun_phrase(phrase.possessor, relative))
    if phrase.place is not None:
        place = noun_phrase(phrase.place, relative)
        words += contract("de" if phrase.superlative else PLACES[phrase.place.noun].french[0], place)
    if phrase.relative is not None:
        words += relative(phrase, phrase.relative)
    if "l'" in words:
        index = words.index("l'")
        words[index : index + 2] = ["l'" + words[index + 1]]
    return words
