"""The scripts of languages: CLDR's likely subtags, and a table of the languages that have several scripts."""

from functools import lru_cache
from typing import NamedTuple

from dragoman.text.languages.codes import base_language, bcp47, parse_language_code
from dragoman.text.scripts import UNSPACED_SCRIPTS, scripts_of

_SEVERAL = {
    "ace": "Latn Arab",
    "az": "Latn Cyrl Arab",
    "ban": "Latn Bali",
    "ber": "Latn Tfng Arab",
    "bjn": "Latn Arab",
    "bs": "Latn Cyrl",
    "bug": "Latn Bugi",
    "ckb": "Arab Latn",
    "cnr": "Latn Cyrl",
    "cop": "Copt Grek",
    "cr": "Cans Latn",
    "crh": "Latn Cyrl",
    "doi": "Deva Arab Dogr",
    "ff": "Latn Adlm",
    "gag": "Latn Cyrl",
    "gez": "Ethi Latn",
    "ha": "Latn Arab",
    "hmn": "Latn Hmng Hmnp",
    "iu": "Cans Latn",
    "jv": "Latn Java Arab",
    "kaa": "Latn Cyrl",
    "kab": "Latn Tfng Arab",
    "kk": "Cyrl Latn Arab",
    "kmr": "Latn Cyrl Arab",
    "knc": "Latn Arab",
    "kok": "Deva Latn Knda Mlym",
    "kr": "Latn Arab",
    "ks": "Arab Deva Latn",
    "ku": "Latn Arab Cyrl",
    "ky": "Cyrl Arab Latn",
    "lad": "Latn Hebr",
    "mai": "Deva Tirh",
    "min": "Latn Arab",
    "mn": "Cyrl Mong Latn",
    "mni": "Beng Mtei",
    "ms": "Latn Arab",
    "oj": "Cans Latn",
    "pa": "Guru Arab",
    "pi": "Deva Sinh Thai Khmr Mymr Latn",
    "rif": "Latn Tfng Arab",
    "ro": "Latn Cyrl",
    "sa": "Deva Latn Sinh Beng Gran Knda Mlym Orya Taml Telu Gujr",
    "sat": "Olck Deva Beng Orya Latn",
    "sd": "Arab Deva",
    "sdh": "Arab Latn",
    "sh": "Latn Cyrl",
    "shi": "Latn Tfng Arab",
    "sr": "Cyrl Latn",
    "su": "Latn Sund",
    "taq": "Latn Tfng Arab",
    "tg": "Cyrl Arab Latn",
    "tk": "Latn Cyrl Arab",
    "tt": "Cyrl Latn Arab",
    "tzm": "Latn Tfng Arab",
    "ug": "Arab Cyrl Latn",
    "uz": "Latn Cyrl Arab",
    "vai": "Vaii Latn",
    "wo": "Latn Arab",
    "za": "Latn Hani",
    "zgh": "Tfng Latn Arab",
}
"""Scripts in which text of a language is commonly published, where there are several that are not combined."""

_ARABIC = "aao abh abv acm acq acw acx acy adf afb ajp apd auz avl ayh ayl ayn ayp azb pbt pbu pga pst shu ssh uzs"
"""Languages in Arabic script, mainly varieties of Arabic, that CLDR's table lacks."""

_SCRIPTS = {**_SEVERAL, **dict.fromkeys(_ARABIC.split(), "Arab")}

_CHINESE = frozenset("cdo cjy cmn cnp cpx csp czh czo gan hak hnm hsn lzh mnp nan wuu yue zh zho".split())
"""The members of the macrolanguage zho (ISO 639-3). CLDR has no script for some of them."""

_VARIANTS = {"Hans": "Hani", "Hant": "Hani", "Hanb": "Hani", "Hrkt": "Kana", "Jpan": "Jpan", "Hang": "Kore"}
"""ISO 15924 codes of variants and mixtures of scripts, with the code that represents them."""


class WritingSystem(NamedTuple):
    """A language and the script that it is written in.

    language: the shortest ISO 639 code, `zh` for all Chinese languages. script: an ISO 15924 code; `Hani` for Chinese
    characters of any kind, `Jpan` for Japanese, and `Kore` for Korean.
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

    code: as in `parse_language_code`: `ja`, `jpn`, `ja-JP`, `ja_JP.UTF-8`, `zh-Hant-HK`, `yue`, `cmn_Hans`.
    """
    parsed = parse_language_code(code)
    if not parsed.is_known:
        return None
    if parsed.language in _CHINESE:
        return WritingSystem("zh", "Hani" if parsed.script is None else _VARIANTS.get(parsed.script, parsed.script))
    script = parsed.likely_script or ""
    return WritingSystem(parsed.language, _VARIANTS.get(script, script))


def language_script(code: str) -> str:
    """Return the ISO 15924 code of the script of a language code, such as `Hans` or `Latn`, or "" if it is unknown.

    A code without a script has the likely one of CLDR.
    """
    parsed = parse_language_code(code)
    return (parsed.likely_script or "") if parsed.is_known else ""


def has_script(code: str) -> bool:
    """Return whether a code contains a script, as `sr-Latn` does."""
    return parse_language_code(code).stated_script is not None


@lru_cache(maxsize=1024)
def language_scripts(code: str) -> frozenset[str]:
    """Return the scripts in which a language is written, as ISO 15924 codes; an empty set for an unknown language.

    code: as in `parse_language_code`: `ja`, `jpn`, `sr-Latn`, `zho_Hans`, `pt_BR.UTF-8`. If the code contains a script,
    this is the only one.
    """
    parsed = parse_language_code(code)
    if not parsed.is_known:
        return frozenset()
    if parsed.stated_script == "Hang":
        return scripts_of("Kore")
    if parsed.stated_script is None:
        for language in (bcp47(code).partition("-")[0].lower(), base_language(code), parsed.language):
            if language in _SCRIPTS:
                return frozenset(_SCRIPTS[language].split())
        if parsed.language in _CHINESE:
            return scripts_of("Hans")
    return scripts_of(parsed.likely_script) if parsed.likely_script else frozenset()
