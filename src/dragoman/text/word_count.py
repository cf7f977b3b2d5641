"""Words of a text for counting, in any script: where there are no spaces, words of the usual length."""

import regex

_LETTERS_PER_WORD = {
    "Han": 2,
    r"Hiragana}\p{Script=Katakana": 3,
    "Thai": 5,
    "Lao": 6,
    "Khmer": 6,
    "Myanmar": 8,
    "Tibetan": 7,
}
"""Number of characters of a script without spaces that correspond to an English word, with vowel signs. In the
Universal Declaration of Human Rights these are 1.5 for Han in Chinese, 3.5 for kana, 5.2, 5.7, 5.8, 8.2 and 6.9."""

_SCRIPTS = "".join(rf"\p{{Script={script}}}" for script in _LETTERS_PER_WORD)
_WORD_SEPARATORS = r"\s\u1361"
"""Whitespace, and the separator of Ethiopic words."""

_SPECIAL = regex.compile(rf"[{_SCRIPTS}\u1361]")
_WORDS = regex.compile(
    "|".join(rf"[\p{{Script={script}}}]{{1,{length}}}" for script, length in _LETTERS_PER_WORD.items())
    + rf"|[^{_WORD_SEPARATORS}{_SCRIPTS}]+"
)


def countable_words(text: str) -> list[str]:
    """Return the words of a text, for counting. The boundaries are only real where whitespace separates words.

    Text of scripts without spaces is divided into pieces of the usual length of a word.
    """
    if text.isascii() or _SPECIAL.search(text) is None:
        return text.split()
    words: list[str] = _WORDS.findall(text)
    return words
