"""Loops in a text: the same few words over and over, as a decoder writes them that has lost its way."""

LONGEST_PHRASE = 4
"""Words of the longest phrase whose repetition is looked for."""

LONGEST_WORD = 40
"""Characters. A longer run without a blank is taken apart, for languages that write none."""


def most_repeats(text: str) -> int:
    """How many times in a row the most repeated phrase of one to four words stands; 1 where none is repeated."""
    units: list[str] = []
    for word in text.casefold().split():
        units.extend([word] if len(word) <= LONGEST_WORD else word)
    most = min(len(units), 1)
    for size in range(1, LONGEST_PHRASE + 1):
        same = 0  # units in a row that equal the one `size` places before
        for place in range(size, len(units)):
            same = same + 1 if units[place] == units[place - size] else 0
            most = max(most, same // size + 1)
    return most
