"""Numbers, years, weekdays and dates in words."""

_ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve "
    "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
).split()
_ENGLISH_TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
_ENGLISH_ORDINALS = {
    1: "first",
    2: "second",
    3: "third",
    5: "fifth",
    8: "eighth",
    9: "ninth",
    12: "twelfth",
    20: "twentieth",
    30: "thirtieth",
}
_GERMAN = (
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf "
    "dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn"
).split()
_GERMAN_TENS = "_ _ zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
_GERMAN_ORDINALS = {1: "erst", 3: "dritt", 7: "siebt", 8: "acht"}
_FRENCH = (
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze "
    "treize quatorze quinze seize dix-sept dix-huit dix-neuf"
).split()
_FRENCH_TENS = {
    2: "vingt",
    3: "trente",
    4: "quarante",
    5: "cinquante",
    6: "soixante",
    7: "soixante",
    8: "quatre-vingt",
    9: "quatre-vingt",
}

MONTHS = (
    ("January", "Januar", "janvier"), ("February", "Februar", "février"), ("March", "März", "mars"),
    ("April", "April", "avril"),
    ("May", "Mai", "mai"), ("June", "Juni", "juin"), ("July", "Juli", "juillet"), ("August", "August", "août"),
    ("September", "September", "septembre"), ("October", "Oktober", "octobre"), ("November", "November", "novembre"),
    ("December", "Dezember", "décembre"),
)  # fmt: skip
DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
WEEKDAYS = (
    ("Monday", "Montag", "lundi"), ("Tuesday", "Dienstag", "mardi"), ("Wednesday", "Mittwoch", "mercredi"),
    ("Thursday", "Donnerstag", "jeudi"), ("Friday", "Freitag", "vendredi"), ("Saturday", "Samstag", "samedi"),
    ("Sunday", "Sonntag", "dimanche"),
)  # fmt: skip


def english_number(number: int) -> str:
    """Return the cardinal of 0 to 999: "two hundred and forty-one"."""
    if number < 20:
        return _ENGLISH[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _ENGLISH_TENS[tens] + (f"-{_ENGLISH[ones]}" if ones else "")
    hundreds, rest = divmod(number, 100)
    return f"{_ENGLISH[hundreds]} hundred" + (f" and {english_number(rest)}" if rest else "")


def english_ordinal(number: int) -> str:
    """Return the ordinal of 1 to 31: "twenty-first"."""
    if number in _ENGLISH_ORDINALS:
        return _ENGLISH_ORDINALS[number]
    if number < 20:
        return english_number(number) + "th"
    tens, ones = divmod(number, 10)
    return f"{_ENGLISH_TENS[tens]}-{english_ordinal(ones)}"


def english_year(year: int) -> str:
    """Return the year as spoken, from 1910 to 2099 except the first decade of a century: "nineteen eighty-five"."""
    century, rest = divmod(year, 100)
    return f"{english_number(century)} {english_number(rest)}"


def german_number(number: int) -> str:
    """Return the cardinal of 0 to 999 in one word: "zweihunderteinundvierzig"."""
    if number < 20:
        return _GERMAN[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return (f"{'ein' if ones == 1 else _GERMAN[ones]}und" if ones else "") + _GERMAN_TENS[tens]
    hundreds, rest = divmod(number, 100)
    return ("" if hundreds == 1 else _GERMAN[hundreds]) + "hundert" + (german_number(rest) if rest else "")


def german_ordinal(number: int) -> str:
    """Return the ordinal of 1 to 31 in the weak dative: "dritten"."""
    if number in _GERMAN_ORDINALS:
        return _GERMAN_ORDINALS[number] + "en"
    return german_number(number) + ("ten" if number < 20 else "sten")


def german_year(year: int) -> str:
    """Return the year in one word: "neunzehnhundertfünfundachtzig", "zweitausendzwölf"."""
    century, rest = divmod(year, 100)
    start = "zweitausend" if century == 20 else f"{german_number(century)}hundert"
    return start + (german_number(rest) if rest else "")


def french_number(number: int, gender: str = "m") -> str:
    """Return the cardinal of 0 to 999 before a noun, traditional spelling: "quatre-vingt-onze", "vingt et une"."""
    if number == 1:
        return "une" if gender == "f" else "un"
    if number < 20:
        return _FRENCH[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        ones += 10 if tens in (7, 9) else 0
        if ones == 0:
            return "quatre-vingts" if tens == 8 else _FRENCH_TENS[tens]
        link = " et " if ones in (1, 11) and tens < 8 else "-"
        return _FRENCH_TENS[tens] + link + french_number(ones, gender)
    hundreds, rest = divmod(number, 100)
    start = "cent" if hundreds == 1 else f"{_FRENCH[hundreds]} cent"
    if rest == 0:
        return start + ("s" if hundreds > 1 else "")
    return f"{start} {french_number(rest, gender)}"


def french_year(year: int) -> str:
    """Return the year: "mille neuf cent quatre-vingt-cinq", "deux mille douze"."""
    thousands, rest = divmod(year, 1000)
    start = "mille" if thousands == 1 else f"{_FRENCH[thousands]} mille"
    words = f"{start} {french_number(rest)}" if rest else start
    return words.removesuffix("s") if words.endswith(("vingts", "cents")) else words
