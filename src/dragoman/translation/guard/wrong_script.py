"""Letters of a script in which the target language is not written."""

from collections import Counter
from collections.abc import Iterable

from dragoman.data.cleaning.rules import dominant_script, script
from dragoman.text.tokenizer import Tokenizer
from dragoman.translation.guard.finding import Finding

_SHARE = 0.01
_LEAST_LETTERS = 10


def wrong_script(source: str, output: str, usual: Iterable[str]) -> Finding | None:
    """Letters of a script that neither the source has nor the target language; or the source's, where they prevail.

    usual: the target language's scripts (`usual_scripts`), none where they are not known: then nothing is found.
    Scripts are the first words of the letters' Unicode names.
    """
    known = frozenset(usual)
    if not known or (output.isascii() and "LATIN" in known):
        return None
    letters = [(letter, name) for letter in output if (name := script(letter)) is not None and name not in known]
    if not letters:
        return None
    elsewhere = set(map(script, source))
    strange = [letter for letter, name in letters if name not in elsewhere]
    if not strange and len(letters) >= _LEAST_LETTERS and dominant_script(output) not in known:
        strange = [letter for letter, _ in letters]
    return Finding("script", "".join(dict.fromkeys(strange))) if strange else None


def usual_scripts(target: Tokenizer) -> frozenset[str]:
    """The scripts of the target language, as its vocabulary shows them: each that at least 1% of the entries have.

    Entries of a single byte do not count, since vocabularies that can write any text have all of them.
    A vocabulary that both languages share shows the scripts of both. Empty where no longer entry has letters.
    """
    counts = Counter[str]()
    for number in range(target.size):
        surface = target.surface(number)
        if len(surface.strip()) > 1 and (name := dominant_script(surface.decode("utf-8", "ignore"))) is not None:
            counts[name] += 1
    return frozenset(name for name, count in counts.items() if count >= _SHARE * counts.total())
