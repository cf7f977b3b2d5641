"""Cleaning rules for sentence pairs and documents, and their settings."""

import re
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from dragoman.base.errors import DataError
from dragoman.base.settings.config import Config
from dragoman.data.corpora.documents import broken_line
from dragoman.data.corpora.items import Pair, Passage
from dragoman.data.corpora.lines import has_broken_utf8

_MERGED = {"CJK": "HAN", "IDEOGRAPHIC": "HAN", "HIRAGANA": "KANA", "KATAKANA": "KANA", "FULLWIDTH": "LATIN"}
_NO_SCRIPT = frozenset({"", "MODIFIER", "MICRO", "FEMININE", "MASCULINE", "MATHEMATICAL", "SCRIPT", "DOUBLE-STRUCK"})
_ASCII_LETTER = re.compile("[A-Za-z]")


@lru_cache(maxsize=1 << 16)
def script(character: str) -> str | None:
    """Return the script of a letter: LATIN, CYRILLIC, HAN, KANA, HANGUL, ARABIC …; None for other characters.

    The script is the first word of the character's Unicode name. Hiragana and Katakana count as one script, KANA.
    """
    if not character.isalpha():
        return None
    word = unicodedata.name(character, "").partition(" ")[0]
    return None if word in _NO_SCRIPT else _MERGED.get(word, word)


def dominant_script(text: str) -> str | None:
    """Return the most frequent script of the letters of `text`; None if the text has no letters."""
    if text.isascii():
        return "LATIN" if _ASCII_LETTER.search(text) else None
    counts = Counter(map(script, text))
    counts.pop(None, None)
    return max(counts, key=lambda name: (counts[name], name or "")) if counts else None


@lru_cache(maxsize=1)
def known_scripts() -> frozenset[str]:
    """Return all scripts that `script` returns for the Basic Multilingual Plane."""
    return frozenset(name for code in range(0x10000) if (name := script(chr(code))) is not None)


RATIO_ALLOWANCE = 10
"""Number of bytes added to the length of each side before the ratio is computed, so that short pairs
(`Hi.` – `Grüß Gott!`) are kept."""

_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f]")
_LETTER = re.compile(r"[^\W\d_]")


class CleaningConfig(Config):
    """Cleaning rules for sentence pairs. Disable single rules with false or null, and all rules with `enabled: false`.

    The defaults were chosen on Multi30k and Tatoeba so that they drop next to nothing from a good corpus.
    """

    enabled: bool = Field(default=True, description="Apply the cleaning rules. If false, invalid UTF-8 is an error.")
    empty: bool = Field(default=True, description="Drop pairs with a blank side.")
    max_tokens: int | None = Field(
        default=250, ge=1, description="Drop pairs with more subword tokens than this on either side; null: no limit."
    )
    max_words: int | None = Field(
        default=200,
        ge=1,
        description="Drop pairs with more whitespace-separated words than this on either side; null: no limit.",
    )
    max_characters: int | None = Field(
        default=2000, ge=1, description="Drop pairs with more characters than this on either side; null: no limit."
    )
    max_ratio: float | None = Field(
        default=4.0,
        gt=1.0,
        description="Drop pairs whose longer side has more than this many times as many bytes (UTF-8) as the shorter "
        "side, after 10 bytes are added to each side. Lengths are measured in bytes so that alphabets and syllabaries "
        "are comparable. null: no limit.",
    )
    duplicates: bool = Field(default=True, description="Keep only the first of pairs that are identical on both sides.")
    duplicates_between: bool = Field(
        default=True,
        description="Among corpora with the same tags and target language, drop pairs that an earlier corpus of "
        "`data.train` contains. Requires `duplicates`.",
    )
    broken_utf8: Literal["skip", "error"] = Field(
        default="skip",
        description="Treatment of pairs with invalid UTF-8. skip: drop and count them. error: stop at the first one.",
    )
    control_characters: bool = Field(
        default=True, description="Drop pairs with NUL or other control characters (C0 and C1, except tabs)."
    )
    wrong_script: bool = Field(
        default=True,
        description="Drop pairs with a side that is mostly written in a script other than the scripts of that side.",
    )
    source_scripts: tuple[str, ...] = Field(
        default=(),
        description="Scripts of the source (latin, cyrillic, han, kana …); empty: detected by `script_share`.",
    )
    target_scripts: tuple[str, ...] = Field(
        default=(), description="Scripts of the target; empty: detected by `script_share`."
    )
    script_share: float = Field(
        default=0.1,
        gt=0.0,
        lt=1.0,
        description="A script counts as a script of a side if at least this share of its sentences is mostly written "
        "in it.",
    )
    copied_words: int | None = Field(
        default=3,
        ge=1,
        description="Drop pairs with identical sides if they contain at least this many words with letters. Shorter "
        "pairs are kept, because they may be names. null: keep all pairs.",
    )

    @field_validator("source_scripts", "target_scripts")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return check_scripts(names)

    @property
    def scripts_of_sides(self) -> tuple[tuple[str, ...], ...]:
        """The configured scripts of each side; empty if they are detected."""
        return self.source_scripts, self.target_scripts


def check_scripts(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names. Raises ValueError for an unknown script."""
    for name in names:
        if name.upper() not in known_scripts():
            raise ValueError(f"unknown script {name!r}; known scripts are {', '.join(sorted(known_scripts())).lower()}")
    return names


class Rules(ABC):
    """The rules that are checked for each item, a `Pair` or a `Passage`, independently of the other items.

    `CleanedCorpus` applies the rules that require the whole corpus: duplicates and scripts.

    sides: names of the texts of an item. items: name of the items in messages. config: settings of the rules. origin:
    name of the corpus in messages.
    """

    sides: ClassVar[tuple[str, ...]]
    items: ClassVar[str]
    config: Any
    origin: str

    @abstractmethod
    def violated_rule(self, item: Any) -> str | None:
        """Return the first rule that an item breaks, or None.

        Raises DataError for invalid UTF-8 if `broken_utf8` is error.
        """

    def block_arrays(self, items: Sequence[Any]) -> dict[str, NDArray[Any]]:
        """Return the arrays that a block stores for its items in addition to their lines."""
        return {}

    def script_texts(self, item: Any) -> tuple[str, ...]:
        """Return the text of each side whose script is checked."""
        texts: tuple[str, ...] = item.texts
        return texts

    def digest(self, item: Any) -> bytes:
        """Return a 16-byte digest. By the birthday bound, 1e10 different items collide with probability 1e-19."""
        first, *others = item.texts
        text = f"{len(first)}:{first}{''.join(others)}" if others else first
        return blake2b(text.encode(), digest_size=16).digest()


class PairRules(Rules):
    """The rules that are checked for each sentence pair."""

    sides: ClassVar[tuple[str, ...]] = ("source", "target")
    items: ClassVar[str] = "pairs"

    def __init__(self, config: CleaningConfig, origin: str = "the corpus", vectors: bool = False) -> None:
        """origin: name of the corpus in error messages. vectors: whether the source consists of feature vectors. If so,
        only the target is checked, but blank sources still count as empty, and identical pairs as duplicates.
        """
        self.config, self.origin, self.vectors = config, origin, vectors

    def violated_rule(self, pair: Pair) -> str | None:
        """Return the first rule that a pair breaks, or None.

        Raises DataError for invalid UTF-8 if `broken_utf8` is error.
        """
        config = self.config
        source, target = pair.source, pair.target
        if not pair.complete:
            return "missing_language"
        for side, text in (("source", source), ("target", target)):
            if has_broken_utf8(text):
                if config.enabled and config.broken_utf8 == "skip":
                    return "broken_utf8"
                raise DataError(
                    f"{self.origin}, line {pair.line}: the {side} contains invalid UTF-8. Convert the file "
                    "(for example with iconv), or let cleaning skip such lines (broken_utf8: skip)."
                )
        if not config.enabled:
            return None
        if config.empty and not (source.strip() and target.strip()):
            return "empty"
        if self.vectors:
            source = target
        if config.control_characters and (_CONTROL.search(source) or _CONTROL.search(target)):
            return "control_characters"
        if config.max_characters and max(len(source), len(target)) > config.max_characters:
            return "max_characters"
        if config.max_words and max(len(source.split()), len(target.split())) > config.max_words:
            return "max_words"
        if config.max_ratio and _ratio(source, target) > config.max_ratio:
            return "max_ratio"
        if config.copied_words and not self.vectors and source.strip() == target.strip():
            words = sum(_LETTER.search(word) is not None for word in source.split())
            if words >= config.copied_words:
                return "copied_words"
        return None

    def script_texts(self, pair: Pair) -> tuple[str, ...]:
        """Return the text of each side. The text of a source of vectors is empty, because vectors have no script."""
        return ("", pair.target) if self.vectors else pair.texts


def _ratio(source: str, target: str) -> float:
    lengths = len(source.encode()) + RATIO_ALLOWANCE, len(target.encode()) + RATIO_ALLOWANCE
    return max(lengths) / min(lengths)


_CONTROL_BUT_NEWLINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class TextCleaningConfig(Config):
    """Cleaning rules for plain-text documents. Disable single rules with false, and all rules with `enabled: false`.

    These are the rules for pairs that make sense for a single text. Documents are dropped as a whole.
    There is no length limit, because documents are divided.
    """

    enabled: bool = Field(default=True, description="Apply the cleaning rules. If false, invalid UTF-8 is an error.")
    empty: bool = Field(default=True, description="Drop blank documents.")
    duplicates: bool = Field(default=True, description="Keep only the first of identical documents.")
    broken_utf8: Literal["skip", "error"] = Field(
        default="skip",
        description="Treatment of documents with invalid UTF-8. skip: drop and count them. error: stop at the first "
        "one.",
    )
    control_characters: bool = Field(
        default=True,
        description="Drop documents with NUL or other control characters (C0 and C1, except tabs and newlines).",
    )
    wrong_script: bool = Field(
        default=True,
        description="Drop documents if any part of up to 65,536 characters is mostly written in a script other "
        "than the scripts of the corpus.",
    )
    scripts: tuple[str, ...] = Field(
        default=(), description="Scripts of the corpus (latin, cyrillic, han …); empty: detected by `script_share`."
    )
    script_share: float = Field(
        default=0.1,
        gt=0.0,
        lt=1.0,
        description="A script counts as a script of the corpus if at least this share of these parts is mostly "
        "written in it.",
    )

    @field_validator("scripts")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return check_scripts(names)

    @property
    def scripts_of_sides(self) -> tuple[tuple[str, ...], ...]:
        """The configured scripts of the only side; empty if they are detected."""
        return (self.scripts,)


class TextRules(Rules):
    """The rules that are checked for each passage. A document is dropped if one of its passages breaks a rule."""

    sides: ClassVar[tuple[str, ...]] = ("text",)
    items: ClassVar[str] = "passages"

    def __init__(self, config: TextCleaningConfig, origin: str = "the corpus") -> None:
        """origin: name of the corpus in error messages."""
        self.config, self.origin = config, origin

    def violated_rule(self, passage: Passage) -> str | None:
        """Return the first rule that a passage breaks, or None.

        Raises DataError for invalid UTF-8 if `broken_utf8` is error.
        """
        config, text = self.config, passage.text
        if has_broken_utf8(text):
            if config.enabled and config.broken_utf8 == "skip":
                return "broken_utf8"
            raise DataError(
                f"{self.origin}, line {broken_line(passage)}: invalid UTF-8. Convert the file (for example "
                "with iconv), or let cleaning skip such documents (broken_utf8: skip)."
            )
        if not config.enabled:
            return None
        if config.empty and passage.begins and passage.ends and not text.strip():
            return "empty"
        if config.control_characters and _CONTROL_BUT_NEWLINES.search(text):
            return "control_characters"
        return None

    def block_arrays(self, passages: Sequence[Passage]) -> dict[str, NDArray[Any]]:
        """Return whether each passage starts and ends its document."""
        return {
            "begins": np.array([passage.begins for passage in passages], bool),
            "ends": np.array([passage.ends for passage in passages], bool),
        }
