"""Scripts that are written without spaces between words, as character classes for regular expressions."""

UNSPACED_SCRIPTS = (
    *("Han", "Hiragana", "Katakana", "Bopomofo", "Yi", "Nushu", "Tangut"),
    *("Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Tai_Le", "New_Tai_Lue", "Tai_Tham", "Tai_Viet", "Ahom"),
    *("Javanese", "Balinese", "Cham", "Buginese", "Rejang", "Batak", "Brahmi"),
    *("Egyptian_Hieroglyphs", "Cuneiform"),
)
"""Names of the scripts in the Unicode Character Database, property Script.

These are the scripts whose lines may be broken within a run of letters (UAX #14: the classes ID, SA, AK and AS), except
Hangul, and Tibetan, which separates syllables by a mark. The boundaries of UAX #29 do not help in these scripts: they
separate either every character or, in Katakana, none.
"""

SHARED_LETTERS = "〆〱-〵〼ーｰﾞﾟ"
"""Letters of the script Common that occur only in Chinese and Japanese, as part of a character class. Source: the
property Script_Extensions."""


def script_class(property_format: str) -> str:
    """Return the content of a character class that contains the scripts.

    property_format: the notation of a script in the library of regular expressions, such as `\\p{{Script={}}}`.
    """
    return "".join(map(property_format.format, UNSPACED_SCRIPTS))
