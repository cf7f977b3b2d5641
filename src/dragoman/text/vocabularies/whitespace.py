"""Vocabularies of text that is already tokenised: words are separated by spaces."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from dragoman.base.errors import ModelError
from dragoman.text.symbols import SPECIAL_SYMBOLS, UNK
from dragoman.text.tokenizer import Tokenizer, check_unicode
from dragoman.text.vocabularies.config import VocabularyConfig, count_words

_WORD = re.compile(r"[^ \t\n\f\r]+")
"""A word. Other white space, such as a no-break space or a vertical tab, is part of a word, as in KenLM."""


class WhitespaceTokenizer(Tokenizer):
    """Splits texts at spaces, tabs and line ends only. Decoding separates all words by one space."""

    kind = "whitespace"

    def __init__(self, words: Sequence[str]) -> None:
        """words: the entries after the special symbols, distinct."""
        super().__init__(
            [*SPECIAL_SYMBOLS, *words], [b""] * len(SPECIAL_SYMBOLS) + [b" " + word.encode() for word in words]
        )
        self._ids = {word: number for number, word in enumerate(words, start=len(SPECIAL_SYMBOLS))}

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        check_unicode(texts)
        ids = self._ids
        return [[ids.get(word, UNK) for word in _WORD.findall(text)] for text in texts]

    def _encode_continuation(self, texts: Sequence[str]) -> list[list[int]]:
        return self._encode(texts)

    def _words(self, text: str) -> tuple[list[int], list[str]]:
        words = [f" {word}" for word in _WORD.findall(text)]
        return list(range(len(words))), words

    def _document(self) -> str:
        words = self._symbols[len(SPECIAL_SYMBOLS) : self._first_tag]
        return json.dumps({"kind": self.kind, "words": words}, ensure_ascii=False, indent=1)

    @classmethod
    def read(cls, document: dict[str, Any], path: Path) -> Self:
        """Create a tokenizer from a parsed document."""
        words = document.get("words")
        if (
            not isinstance(words, list)
            or not all(isinstance(word, str) and _WORD.fullmatch(word) for word in words)
            or len({*words, *SPECIAL_SYMBOLS}) != len(words) + len(SPECIAL_SYMBOLS)
        ):
            raise ModelError(f"The tokenizer {path} is damaged (words). Restore it from a copy.")
        return cls(words)


class WhitespaceConfig(VocabularyConfig):
    """Words separated by spaces, for text that another program has tokenised, and for n-gram models of other programs.

    Punctuation marks are words only if spaces surround them. Words that are not entries become UNK, and so do the words
    `<unk>`, `<s>`, `</s>` and `<pad>`, which are never entries of their own.
    """

    tokenizer: ClassVar[type[Tokenizer]] = WhitespaceTokenizer
    kind: Literal["whitespace"] = "whitespace"
    size: int | None = Field(
        default=None,
        gt=len(SPECIAL_SYMBOLS),
        description="Maximum vocabulary size, including the 4 special symbols; null: all words that occur at least "
        "`min_frequency` times.",
    )
    min_frequency: int = Field(default=1, ge=1, description="Minimum number of occurrences of a word in the corpus.")

    def learn(self, texts: Iterable[str], divide_unspaced: bool = True) -> WhitespaceTokenizer:
        """Learn the most frequent words. Ties are broken by code point."""
        counts = count_words(texts, _WORD.findall)
        words = [word for word, count in counts.items() if count >= self.min_frequency and word not in SPECIAL_SYMBOLS]
        words.sort(key=lambda word: (-counts[word], word))
        return WhitespaceTokenizer(words[: None if self.size is None else self.size - len(SPECIAL_SYMBOLS)])
