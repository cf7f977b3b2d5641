"""Cleaning: which pairs of a corpus are not worth learning from, and the rule that each of them breaks."""

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, ClassVar, Literal

from numpy.typing import NDArray
from pydantic import Field, field_validator

from dragoman.base.errors import DataError
from dragoman.base.settings.config import Config
from dragoman.data.corpora.lines import has_broken_utf8
from dragoman.data.corpora.pair import Pair
from dragoman.data.preparation.scripts import known_scripts

RATIO_ALLOWANCE = 10
"""Bytes added to both sides before their ratio is taken, so that short pairs (`Hi.` – `Grüß Gott!`) pass."""

_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f]")
_LETTER = re.compile(r"[^\W\d_]")


class CleaningConfig(Config):
    """The rules; each can be switched off alone (false or null), and all together by `enabled: false`.

    The defaults are ours, chosen on Multi30k and Tatoeba so that they drop next to nothing of a good corpus.
    """

    enabled: bool = Field(
        default=True, description="Whether pairs are dropped at all. False: broken UTF-8 is an error."
    )
    empty: bool = Field(default=True, description="Drop pairs of which a side has nothing but blanks.")
    max_tokens: int | None = Field(
        default=250, ge=1, description="Drop pairs of which a side has more subword tokens than this; null: keep them."
    )
    max_words: int | None = Field(
        default=200, ge=1, description="Drop pairs of which a side has more words (parted by blanks) than this."
    )
    max_characters: int | None = Field(
        default=2000, ge=1, description="Drop pairs of which a side has more characters than this."
    )
    max_ratio: float | None = Field(
        default=4.0,
        gt=1.0,
        description="Drop pairs whose longer side has more than this many times the bytes (UTF-8) of the shorter one, "
        "10 bytes added to each. Bytes, because they make alphabets and syllabaries alike.",
    )
    duplicates: bool = Field(default=True, description="Keep only the first of pairs that are the same on both sides.")
    duplicates_between: bool = Field(
        default=True,
        description="Where several corpora have the same tags and target language, drop pairs that one before in "
        "`data.train` has; with `duplicates` only.",
    )
    broken_utf8: Literal["skip", "error"] = Field(
        default="skip", description="Pairs with bytes that are no UTF-8: drop and count them, or stop at the first."
    )
    control_characters: bool = Field(
        default=True, description="Drop pairs with NUL or other control characters (C0 and C1; a tab may stay)."
    )
    wrong_script: bool = Field(
        default=True,
        description="Drop pairs of which a side is mostly written in a script that is not one of its side's.",
    )
    source_scripts: tuple[str, ...] = Field(
        default=(), description="Scripts of the source (latin, cyrillic, han, kana …); empty: found by `script_share`."
    )
    target_scripts: tuple[str, ...] = Field(
        default=(), description="Scripts of the target; empty: found by `script_share`."
    )
    script_share: float = Field(
        default=0.1,
        gt=0.0,
        lt=1.0,
        description="A script is one of a side's when this share of its sentences is mostly written in it.",
    )
    copied_words: int | None = Field(
        default=3,
        ge=1,
        description="Drop pairs whose two sides are the same when they have at least this many words with letters; "
        "shorter ones may be names. null: keep all.",
    )

    @field_validator("source_scripts", "target_scripts")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return check_scripts(names)

    @property
    def scripts_of_sides(self) -> tuple[tuple[str, ...], ...]:
        """The scripts that are given for each side; where none is, they are found."""
        return self.source_scripts, self.target_scripts


def check_scripts(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names themselves. Raises ValueError for one that is no script's."""
    for name in names:
        if name.upper() not in known_scripts():
            raise ValueError(f"unknown script {name!r}; known are {', '.join(sorted(known_scripts())).lower()}")
    return names


class PairRules:
    """What a pair can break on its own; rules that take the whole corpus, scripts and duplicates, are `Cleaned`'s."""

    sides: ClassVar[tuple[str, ...]] = ("source", "target")
    items: ClassVar[str] = "pairs"

    def __init__(self, config: CleaningConfig, origin: str = "the corpus", vectors: bool = False) -> None:
        """origin: the corpus's name in error messages. vectors: the source is no text, so only the target's is judged.

        A blank source is dropped as empty all the same, and a pair that is the same on both sides as a duplicate.
        """
        self.config, self.origin, self.vectors = config, origin, vectors

    def broken_by(self, pair: Pair) -> str | None:
        """The first rule that a pair breaks on its own. Raises DataError at broken UTF-8 where that is an error."""
        config = self.config
        source, target = pair.source, pair.target
        if not pair.complete:
            return "missing_language"
        for side, text in (("source", source), ("target", target)):
            if has_broken_utf8(text):
                if config.enabled and config.broken_utf8 == "skip":
                    return "broken_utf8"
                raise DataError(
                    f"{self.origin}, line {pair.line}: the {side} holds bytes that are no UTF-8. Convert the file "
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

    def marks(self, pairs: Sequence[Pair]) -> dict[str, NDArray[Any]]:
        """What a block keeps of all its pairs: nothing."""
        return {}

    def scripted(self, pair: Pair) -> tuple[str, ...]:
        """What of each side has a script."""
        return ("", pair.target) if self.vectors else pair.texts

    def digest(self, pair: Pair) -> bytes:
        """16 bytes that no two different pairs share: by the birthday bound, 1e10 meet with probability 1e-19."""
        text = f"{len(pair.source)}:{pair.source}{pair.target}"
        return blake2b(text.encode(), digest_size=16).digest()


def _ratio(source: str, target: str) -> float:
    lengths = len(source.encode()) + RATIO_ALLOWANCE, len(target.encode()) + RATIO_ALLOWANCE
    return max(lengths) / min(lengths)
