"""`WritingSystem`: the language and the script that a language code names, and scripts without spaces between words."""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import regex

UNSPACED_SCRIPTS = ("Hani Bopo Hira Kana Thai Laoo Khmr Mymr Tibt Lana Talu Tale Tavt Java Bali Ahom Yiii").split()
"""ISO 15924 codes of scripts whose words are not separated by spaces.

They are the scripts of Unicode's line-breaking classes ID (ideographs and kana), SA (South East Asian scripts) and AK
(Brahmi scripts of Java, Bali and Assam), and Tibetan, whose syllables are separated by a dot.
"""

_SCRIPT_VARIANTS = {"Hans": "Hani", "Hant": "Hani", "Hanb": "Hani", "Hrkt": "Kana", "Jpan": "Jpan", "Hang": "Kore"}
"""ISO 15924 codes of variants and mixtures of scripts, with the code that represents them."""

_CHINESE = frozenset("cdo cjy cmn cnp cpx csp czh czo gan hak hnm hsn lzh mnp nan wuu yue zh zho".split())
"""The members of the macrolanguage zho (ISO 639-3). CLDR has no script for some of them."""

_CHARACTERS = "".join(rf"\p{{Script={script}}}" for script in UNSPACED_SCRIPTS) + "\u30fc\uff70"
# The prolonged sound marks of kana have no script of their own.

_UNSPACED_LETTER = regex.compile(rf"[{_CHARACTERS}--\p{{M}}]", regex.V1)
_LETTER = regex.compile(r"\p{L}", regex.V1)
_UNSPACED_WORD = regex.compile(rf"\p{{P}}*[{_CHARACTERS}]\p{{M}}*\p{{P}}*", regex.V1)

_UNSPACED_CHARACTER = regex.compile(rf"[{_CHARACTERS}]\p{{M}}*", regex.V1)

_SAMPLE = 1 << 16
"""Number of characters after which the share of scripts without spaces is not computed any further."""


class WritingSystem(NamedTuple):
    """A language and the script that it is written in.

    language: the shortest ISO 639 code, `zh` for Mandarin. script: an ISO 15924 code; `Hani` for Chinese characters of
    any kind, `Jpan` for Japanese, and `Kore` for Korean.
    """

    language: str
    script: str

    @property
    def is_spaced(self) -> bool:
        """Return whether words are separated by spaces."""
        return self.script != "Jpan" and self.script not in UNSPACED_SCRIPTS


@lru_cache(maxsize=1024)
def writing_system(code: str) -> WritingSystem | None:
    """Return the writing system of a language code, or None if the code names no language.

    Codes of two and three letters, BCP 47 codes, locales and codes with a script are supported: `ja`, `jpn`, `ja-JP`,
    `ja_JP.UTF-8`, `zh-Hant-HK`, `yue`, `cmn_Hans`.
    """
    import langcodes  # slow to import

    name = _tag(code)
    if not name or not langcodes.tag_is_valid(name):
        return None
    standard = langcodes.get(langcodes.standardize_tag(name, macro=True))
    language = "zh" if standard.language in _CHINESE else standard.language or ""
    script = "Hani" if language == "zh" and standard.script is None else language_script(code)
    return WritingSystem(language, _SCRIPT_VARIANTS.get(script, script))


@lru_cache(maxsize=1024)
def language_script(code: str) -> str:
    """Return the ISO 15924 code of the script of a language code, such as `Hans` or `Latn`, or "" if it is unknown.

    The script of a code without one is the likely script of CLDR. Codes are supported as in `writing_system`.
    """
    import langcodes

    name = _tag(code)
    return str(langcodes.get(name).maximize().script or "") if name and langcodes.tag_is_valid(name) else ""


def _tag(code: str) -> str:
    """Return a BCP 47 code for the code of a locale, such as `ja_JP.UTF-8`."""
    return code.partition(".")[0].partition("@")[0].strip().replace("_", "-")


def is_unspaced_text(lines: Iterable[str]) -> bool:
    """Return whether at least half of the letters belong to scripts without spaces between words."""
    unspaced = letters = 0
    for line in lines:
        if not line.isascii():
            unspaced += len(_UNSPACED_LETTER.findall(line))
        letters += len(_LETTER.findall(line))
        if letters > _SAMPLE:
            break
    return unspaced > 0 and 2 * unspaced >= letters


def count_words(text: str) -> int:
    """Return the number of words: blank-separated ones, and each character of scripts without spaces.

    Marks and punctuation belong to the character that they follow or precede.
    """
    if text.isascii():
        return len(text.split())
    rest, characters = _UNSPACED_WORD.subn(" ", text)
    return int(characters) + len(rest.split())


def split_words(text: str) -> list[str]:
    """Return the words of a text: blank-separated ones, and each character of scripts without spaces."""
    return text.split() if text.isascii() else _UNSPACED_CHARACTER.sub(r" \g<0> ", text).split()
