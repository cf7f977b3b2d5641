"""Detects letters of scripts that the target language does not use."""

from collections import Counter
from collections.abc import Iterable

from dragoman.data.cleaning.rules import dominant_script, script
from dragoman.text.tokenizer import Tokenizer

_SHARE = 0.01
_FEWEST_LETTERS = 10


def foreign_letters(source: str, output: str, usual: Iterable[str]) -> str | None:
    """Return the output's distinct letters of scripts that neither the source nor the target language uses.

    If there are no such letters, but the output is mainly in the source's script, the letters of this script are
    returned. Returns None if there is no fault. usual: the target language's scripts (`usual_scripts`); if empty, no
    fault is reported. A script is the first word of a letter's Unicode name.
    """
    known = frozenset(usual)
    if not known or (output.isascii() and "LATIN" in known):
        return None
    letters = [(letter, name) for letter in output if (name := script(letter)) is not None and name not in known]
    if not letters:
        return None
    elsewhere = set(map(script, source))
    strange = [letter for letter, name in letters if name not in elsewhere]
    if not strange and len(letters) >= _FEWEST_LETTERS and dominant_script(output) not in known:
        strange = [letter for letter, _ in letters]
    return "".join(dict.fromkeys(strange)) or None


def usual_scripts(target: Tokenizer) -> frozenset[str]:
    """Return the target language's scripts: those of at least 1% of its vocabulary's entries.

    Entries of a single byte are ignored, because byte-level vocabularies contain all of them. For a vocabulary shared
    by both languages, the scripts of both are returned. The result is empty if no entry of several bytes contains
    letters.
    """
    counts = Counter[str]()
    for number in range(target.size):
        surface = target.surface(number)
        if len(surface.strip()) > 1 and (name := dominant_script(surface.decode("utf-8", "ignore"))) is not None:
            counts[name] += 1
    return frozenset(name for name, count in counts.items() if count >= _SHARE * counts.total())
