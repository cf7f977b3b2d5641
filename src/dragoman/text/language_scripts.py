"""The scripts of languages: CLDR's likely subtags, and a table of the languages that have several scripts."""

import re
from functools import lru_cache

from dragoman.text.scripts import scripts_of
from dragoman.text.writing_systems import writing_system

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

_CODE = re.compile(r"(?P<language>(?!q[a-t][a-z])[a-z]{2,3})(?P<others>(?:-[a-z0-9]+)*)")
_NO_LANGUAGE = frozenset(("mis", "mul", "und", "zxx"))
"""Codes of ISO 639 that do not denote a language."""

_SCRIPT, _REGION = re.compile("[a-z]{4}"), re.compile("[a-z]{2}")


@lru_cache(maxsize=1024)
def language_scripts(code: str) -> frozenset[str]:
    """Return the scripts in which a language is written, as ISO 15924 codes; an empty set for an unknown language.

    code: an ISO 639 code of two or three letters, which a script and a region may follow, in any case and separated by
    hyphens or underscores: `ja`, `jpn`, `sr-Latn`, `zho_Hans`, `pt_BR.UTF-8`. If the code contains a script, this is
    the only one.
    """
    import langcodes

    parsed = _CODE.fullmatch(re.split("[.@]", code.strip().lower())[0].replace("_", "-"))
    if (
        parsed is None
        or parsed["language"] in _NO_LANGUAGE
        or not langcodes.Language.get(parsed["language"]).is_valid()
    ):
        return frozenset()
    subtags = parsed["others"].split("-")[1:]
    script = next((subtag for subtag in subtags if _SCRIPT.fullmatch(subtag)), None)
    region = next((subtag for subtag in subtags if _REGION.fullmatch(subtag)), None)
    tag = langcodes.Language.get("-".join(filter(None, (parsed["language"], script, region))))
    if script == "hang":
        return scripts_of("Kore")
    if script is None:
        for language in (parsed["language"], tag.language, tag.prefer_macrolanguage().language):
            if language in _SCRIPTS:
                return frozenset(_SCRIPTS[language].split())
        system = writing_system(parsed["language"])
        if system is not None and system.language == "zh":
            return scripts_of("Hans")
    likely = tag.maximize().script
    return scripts_of(likely) if likely else frozenset()
