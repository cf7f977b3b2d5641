"""Numbers such as the HTTP status 429 are in the index of the site's search, from which Sphinx leaves out all numbers.

Sphinx drops them from queries as well; search_order.js keeps them there.
"""

import re
from typing import Any

from sphinx.search.en import SearchEnglish

_WORD = re.compile(r"\d+(?:[.,]\d+)+|\w+")
_NUMBER = re.compile(r"[\d.,]+")
_SHORTEST = 3
"""Digits of the shortest number in the index: most shorter ones are counts."""


class EnglishWithNumbers(SearchEnglish):
    """English, with whole numbers. The figures of measurements, such as 0.429 and 1,429, have no parts that match."""

    def split(self, input: str) -> list[str]:
        """Return the words of a text. A number with signs inside is one word."""
        return _WORD.findall(input)

    def word_filter(self, word: str) -> bool:
        """Return whether the index contains a word."""
        if _NUMBER.fullmatch(word):
            return word.isdecimal() and len(word) >= _SHORTEST
        return super().word_filter(word)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx, in place of its English."""
    app.add_search_language(EnglishWithNumbers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
