"""The English stemmer of Porter 1980, with the extensions of NLTK, as ROUGE uses it."""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

_IRREGULAR = {
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "news": "news",
    "innings": "inning",
    "inning": "inning",
    "outings": "outing",
    "outing": "outing",
    "cannings": "canning",
    "canning": "canning",
    "howe": "howe",
    "proceed": "proceed",
    "exceed": "exceed",
    "succeed": "succeed",
    "sky": "sky",
}
_STEP_2 = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("fulli", "ful"),
    ("logi", "log"),
)
_STEP_3 = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
)
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate"),
    *("iti", "ous", "ive", "ize"),
)


@cache
def stem(word: str) -> str:
    """Return the stem of a lower-case word."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    word = _remove_plural(word)
    word = _remove_participle(word)
    if word.endswith("y") and len(word) > 2 and _is_consonant(word, len(word) - 2):
        word = word[:-1] + "i"
    word = _replace_double_suffix(word)
    word = _replace_suffix(word, _STEP_3)
    return _remove_final_letter(_remove_suffix(word))


def _remove_plural(word: str) -> str:
    """Step 1a."""
    if word.endswith("ies") and len(word) == 4:
        return word[:-1]
    for suffix, replacement in (("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")):
        if word.endswith(suffix):
            return word.removesuffix(suffix) + replacement
    return word


def _remove_participle(word: str) -> str:
    """Step 1b."""
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for suffix in ("ed", "ing"):
        short = word.removesuffix(suffix)
        if short != word and _has_vowel(short):
            break
    else:
        return word
    if short.endswith(("at", "bl", "iz")):
        return short + "e"
    if _ends_with_double_consonant(short):
        return short if short[-1] in "lsz" else short[:-1]
    return short + "e" if _measure(short) == 1 and _ends_with_short_syllable(short) else short


def _replace_double_suffix(word: str) -> str:
    """Step 2."""
    if word.endswith("alli") and _measure(word[:-4]):
        return _replace_double_suffix(word[:-2])
    for suffix, replacement in _STEP_2:
        if word.endswith(suffix):
            rest = word.removesuffix(suffix)
            # The l of -logi belongs to the measured part.
            return rest + replacement if _measure(rest + "l" if suffix == "logi" else rest) else word
    return word


def _replace_suffix(word: str, rules: Sequence[tuple[str, str]]) -> str:
    """Step 3."""
    for suffix, replacement in rules:
        if word.endswith(suffix):
            rest = word.removesuffix(suffix)
            return rest + replacement if _measure(rest) else word
    return word


def _remove_suffix(word: str) -> str:
    """Step 4."""
    for suffix in _STEP_4:
        if word.endswith(suffix):
            rest = word.removesuffix(suffix)
            removes = _measure(rest) > 1 and (suffix != "ion" or rest[-1] in "st")
            return rest if removes else word
    return word


def _remove_final_letter(word: str) -> str:
    """Step 5: a final e, and the second l of a final ll."""
    if word.endswith("e"):
        rest = word[:-1]
        if _measure(rest) > 1 or (_measure(rest) == 1 and not _ends_with_short_syllable(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _is_consonant(word: str, position: int) -> bool:
    """Return whether a letter is a consonant. A y is a consonant at the start of a word and after a vowel."""
    if word[position] != "y":
        return word[position] not in "aeiou"
    return position == 0 or not _is_consonant(word, position - 1)


def _measure(word: str) -> int:
    """Return m, the number of consonant sequences that follow a vowel: [C](VC)^m[V]."""
    consonants = [_is_consonant(word, position) for position in range(len(word))]
    return sum(after and not before for before, after in pairwise(consonants))


def _has_vowel(word: str) -> bool:
    return not all(_is_consonant(word, position) for position in range(len(word)))


def _ends_with_double_consonant(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _is_consonant(word, len(word) - 1)


def _ends_with_short_syllable(word: str) -> bool:
    """Return whether a word ends with consonant, vowel and a consonant other than w, x, y, or is a vowel and one."""
    last = len(word) - 1
    if last == 1:
        return not _is_consonant(word, 0) and _is_consonant(word, 1)
    return (
        last >= 2
        and _is_consonant(word, last - 2)
        and not _is_consonant(word, last - 1)
        and _is_consonant(word, last)
        and word[-1] not in "wxy"
    )
