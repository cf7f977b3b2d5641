"""Detects letters of scripts that the target language does not use."""

from collections import Counter
from collections.abc import Iterable

from dragoman.text.scripts import character_scripts
from dragoman.text.tokenizer import Tokenizer

_SHARE = 0.01
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
    """Return the target language's scripts: those of at least 1% of its vocabulary's entries, as ISO 15924 codes.

    Entries of a single byte are ignored, because byte-level vocabularies contain all of them. For a vocabulary shared
    by both languages, the scripts of both are returned. The result is empty if no entry of several bytes contains
    letters.
    """
    counts, total = Counter[str](), 0
    for number in range(target.size):
        surface = target.surface(number)
        if len(surface.strip()) > 1:
            scripts = frozenset[str]().union(*map(character_scripts, surface.decode("utf-8", "ignore")))
            counts.update(scripts)
            total += bool(scripts)
    return frozenset(script for script, count in counts.items() if count >= _SHARE * total)
