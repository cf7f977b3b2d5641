"""Detects letters of scripts that the target language does not use."""

from collections import Counter
from collections.abc import Iterable

from dragoman.text.scripts import character_scripts
from dragoman.text.tokenizer import Tokenizer

_SHARE = 0.01
_CHARACTERS, _ALPHABET = 0.9, 20
"""Minimum fraction of single characters in a vocabulary of characters, and number of characters of a script in it."""

_FEWEST_LETTERS = 10


def foreign_letters(source: str, output: str, usual: Iterable[str]) -> str | None:
    """Return the output's distinct letters of scripts that neither the source nor the target language uses.

    If there are no such letters, but the output is mainly in the source's script, the letters of this script are
    returned. Returns None if there is no fault. usual: the target language's scripts (`usual_scripts`); if empty, no
    fault is reported.
    """
    known = frozenset(usual)
    if not known or (output.isascii() and "Latn" in known):
        return None
    letters = [(letter, scripts) for letter in output if (scripts := character_scripts(letter))]
    foreign = [(letter, scripts) for letter, scripts in letters if scripts.isdisjoint(known)]
    if not foreign:
        return None
    elsewhere = frozenset[str]().union(*map(character_scripts, source))
    strange = [letter for letter, scripts in foreign if scripts.isdisjoint(elsewhere)]
    if not strange and len(foreign) >= _FEWEST_LETTERS and 2 * len(foreign) > len(letters):
        strange = [letter for letter, _ in foreign]
    return "".join(dict.fromkeys(strange)) or None


def usual_scripts(target: Tokenizer) -> frozenset[str]:
    """Return the target language's scripts, as ISO 15924 codes: those of at least 1% of its vocabulary's entries.

    A byte-level vocabulary contains all single bytes, which are ignored. In a vocabulary of characters, an alphabet may
    have fewer than 1% of the entries, so that scripts with at least 20 characters are returned too. For a vocabulary
    shared by both languages, the scripts of both are returned. The result is empty if no entry contains letters.
    """
    surfaces = [surface for number in range(target.size) if (surface := target.surface(number).strip())]
    if any(len(surface) == 1 and not surface.isascii() for surface in surfaces):
        surfaces = [surface for surface in surfaces if len(surface) > 1]
    texts = [surface.decode("utf-8", "ignore") for surface in surfaces]
    counts, total = Counter[str](), 0
    for text in texts:
        scripts = frozenset[str]().union(*map(character_scripts, text))
        counts.update(scripts)
        total += bool(scripts)
    fewest = _SHARE * total
    if sum(len(text) == 1 for text in texts) > _CHARACTERS * len(texts):
        fewest = min(fewest, _ALPHABET)
    return frozenset(script for script, count in counts.items() if count >= fewest)
