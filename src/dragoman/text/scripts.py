"""Scripts of characters and texts, and the scripts without spaces between words, by Unicode's properties Script and
Script_Extensions (UAX #24).

Scripts are ISO 15924 codes, such as `Latn`. In the scripts of a text, Hiragana and Katakana, which are always used
together, count as one script, `Hrkt`.
"""

import difflib
import unicodedata
from collections import Counter
from functools import cache, lru_cache

_KANA = "Kana"
_FOLDED = {"Hira": "Hrkt", "Kana": "Hrkt"}
_NO_SCRIPT = frozenset(("Zyyy", "Zinh", "Zzzz"))
"""Codes of characters that are common to several scripts, are inherited from the previous character, or are unknown."""

_COMBINED = {
    "Hanb": ("Hani", "Bopo"),
    "Hans": ("Hani", "Bopo"),
    "Hant": ("Hani", "Bopo"),
    "Jpan": ("Hani", "Hrkt"),
    "Kore": ("Hang", "Hani"),
    "Aran": ("Arab",),
    "Cyrs": ("Cyrl",),
    "Geok": ("Geor",),
    "Jamo": ("Hang",),
    "Latf": ("Latn",),
    "Latg": ("Latn",),
    "Syre": ("Syrc",),
    "Syrj": ("Syrc",),
    "Syrn": ("Syrc",),
}
"""The scripts of ISO 15924 codes that stand for combinations or variants of scripts."""

_MAIN = {"Hanb": "Bopo", "Jpan": "Hrkt", "Kore": "Hang"}
"""The script that distinguishes a writing system from the others that have the same ideographs."""

_EAST_ASIAN = ("Hani", "Hrkt", "Hang", "Bopo")
_WEIGHTS = {"Hani": 3, "Hrkt": 2, "Hang": 2}
"""Number of Latin letters to which a character of a script corresponds in translations, where it is not about 1."""

_MIN_FRACTION = 0.05
"""Minimum weighted fraction of kana or Hangul in the East Asian characters of a text that is Japanese or Korean."""

_LONG = 20
"""Maximum number of ideographs of a text without kana and Hangul that may be a Japanese or Korean name or title."""

_UNSPACED = """
Hani:Han Hira:Hiragana Kana:Katakana Bopo:Bopomofo Yiii:Yi Nshu:Nushu Tang:Tangut Thai:Thai Laoo:Lao Khmr:Khmer
Mymr:Myanmar Tibt:Tibetan Tale:Tai_Le Talu:New_Tai_Lue Lana:Tai_Tham Tavt:Tai_Viet Ahom:Ahom Java:Javanese Bali:Balinese
Cham:Cham Bugi:Buginese Rjng:Rejang Batk:Batak Brah:Brahmi Egyp:Egyptian_Hieroglyphs Xsux:Cuneiform
"""
UNSPACED_SCRIPTS = {code: name for code, _, name in (each.partition(":") for each in _UNSPACED.split())}
"""Scripts that are written without spaces between words: ISO 15924 codes, and names in the Unicode Character Database.

These are the scripts whose lines may be broken within a run of letters (UAX #14: the classes ID, SA, AK and AS), except
Hangul, and Tibetan, which separates syllables by a mark. The boundaries of UAX #29 do not help in these scripts: they
separate either every character or, in Katakana, none.
"""

SHARED_LETTERS = "〆〱-〵〼ーｰﾞﾟ"
"""Letters of the script Common that occur only in Chinese and Japanese, as part of a character class. Source: the
property Script_Extensions."""

_ASCII_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


@lru_cache(maxsize=1 << 16)
def character_scripts(character: str) -> frozenset[str]:
    """Return the scripts of a letter, an ideograph or a vowel sign. The result is empty for other characters.

    A letter that is shared by several scripts, such as the prolonged sound mark of kana, has the scripts of its
    Script_Extensions. Accents, which any script may use, have no script.
    """
    from fontTools import unicodedata as properties

    category = unicodedata.category(character)
    if category[0] not in "LM" and category != "Nl":
        return frozenset()
    own = properties.script(character)
    if own not in _NO_SCRIPT:
        return frozenset((_FOLDED.get(own, own),))
    if category[0] == "M":
        return frozenset()
    return frozenset(_FOLDED.get(code, code) for code in properties.script_extension(character)) - _NO_SCRIPT


def dominant_system(text: str) -> str | None:
    """Return the ISO 15924 code of the scripts in which a text is mostly written; None for a text without letters.

    The scripts of Chinese, Japanese and Korean are counted together: a text of ideographs alone is `Hani`, one with
    kana `Jpan`, one with Hangul `Kore`. Text with Bopomofo, or with more ideographs than Japanese and Korean texts have
    without kana and Hangul, is Chinese: `Hanb`. An ideograph counts as three letters, a kana or a syllable of Hangul as
    two, as in translations.
    """
    if text.isascii():
        return "Latn" if not _ASCII_LETTERS.isdisjoint(text) else None
    counts = Counter[str]()
    for character, count in Counter(text).items():
        scripts = character_scripts(character)
        if len(scripts) == 1:
            (script,) = scripts
            counts[script] += count * _WEIGHTS.get(script, 1)
    if not counts:
        return None
    asian = {script: counts.pop(script, 0) for script in _EAST_ASIAN}
    best, most = max(counts.items(), key=lambda item: (item[1], item[0]), default=("", 0))
    total = sum(asian.values())
    if total < most or not total:
        return best
    if max(asian["Hang"], asian["Hrkt"]) >= _MIN_FRACTION * total:
        return "Kore" if asian["Hang"] > asian["Hrkt"] else "Jpan"
    return "Hanb" if asian["Bopo"] or asian["Hani"] > _LONG * _WEIGHTS["Hani"] else "Hani"


def unspaced_class(property_format: str) -> str:
    """Return the content of a character class that contains the letters of `UNSPACED_SCRIPTS`.

    property_format: the notation of a script in the library of regular expressions, such as `\\p{{Script={}}}`.
    """
    return "".join(map(property_format.format, UNSPACED_SCRIPTS.values())) + SHARED_LETTERS


def scripts_of(code: str) -> frozenset[str]:
    """Return the scripts of an ISO 15924 code: `Jpan` has Han and kana. Any other code is a script by itself."""
    return frozenset(_COMBINED.get(code, (_FOLDED.get(code, code),)))


def main_script(system: str) -> str:
    """Return the script by which a writing system differs from others: kana for `Jpan`, or the only script."""
    return _MAIN.get(system, system)


def script_name(code: str) -> str:
    """Return Unicode's name of a script, such as `Cyrillic` for `Cyrl`."""
    from fontTools import unicodedata as properties

    return _KANA if code == "Hrkt" else str(properties.script_name(code))


def parse_script(name: str) -> frozenset[str]:
    """Return the scripts of a name: an ISO 15924 code, such as Cyrl or Jpan, or Unicode's name, such as cyrillic.

    Case, blanks, hyphens and underscores do not matter. The first words of names denote all scripts whose names begin
    with them. Raises ValueError for an unknown name.
    """
    names = _script_names()
    key = _normalise(name)
    matches = {names[key]} if key in names else {code for other, code in names.items() if other.startswith(f"{key} ")}
    if key and matches:
        return frozenset[str]().union(*map(scripts_of, matches))
    similar = difflib.get_close_matches(key, names, n=1)
    hint = f": did you mean {similar[0]}?" if similar else "."
    raise ValueError(
        f"unknown script {name!r}{hint} Scripts are named by ISO 15924 codes, such as Cyrl and Jpan, or by Unicode's "
        "names, such as cyrillic"
    )


@cache
def _script_names() -> dict[str, str]:
    """Return the ISO 15924 codes of all scripts by their names and codes, in the form of `_normalise`."""
    from fontTools import unicodedata as properties

    codes = {code: name for code, name in properties.Scripts.NAMES.items() if code not in _NO_SCRIPT}
    names = {_normalise(name): code for code, name in codes.items()}
    names.update({code.lower(): code for code in (*codes, *_COMBINED)})
    return {**names, "cjk": "Hani", "kana": "Hrkt"}


def _normalise(name: str) -> str:
    return " ".join(name.lower().replace("_", " ").replace("-", " ").split())
