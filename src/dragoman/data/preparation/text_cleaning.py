"""Cleaning of plain text: which documents are not worth learning from, and the rule that each of them breaks."""

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from dragoman.base.errors import DataError
from dragoman.base.settings.config import Config
from dragoman.data.corpora.documents import broken_line
from dragoman.data.corpora.lines import has_broken_utf8
from dragoman.data.corpora.passage import Passage
from dragoman.data.preparation.cleaning import check_scripts

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class TextCleaningConfig(Config):
    """The rules for documents of plain text; each can be switched off alone, and all together by `enabled: false`.

    They are those of pairs as far as a text on its own can break them. What breaks one is dropped as a whole document.
    There is no limit of length, because a document is divided.
    """

    enabled: bool = Field(
        default=True, description="Whether documents are dropped at all. False: broken UTF-8 is an error."
    )
    empty: bool = Field(default=True, description="Drop documents that are nothing but blanks.")
    duplicates: bool = Field(default=True, description="Keep only the first of documents that are the same.")
    broken_utf8: Literal["skip", "error"] = Field(
        default="skip", description="Documents with bytes that are no UTF-8: drop and count them, or stop at the first."
    )
    control_characters: bool = Field(
        default=True,
        description="Drop documents with NUL or other control characters (C0 and C1; tabs and newlines may stay).",
    )
    wrong_script: bool = Field(
        default=True,
        description="Drop documents of which a part of up to 65,536 characters is mostly written in another script "
        "than the corpus.",
    )
    scripts: tuple[str, ...] = Field(
        default=(), description="Scripts of the corpus (latin, cyrillic, han …); empty: found by `script_share`."
    )
    script_share: float = Field(
        default=0.1,
        gt=0.0,
        lt=1.0,
        description="A script is one of the corpus's when this share of those parts is mostly written in it.",
    )

    @field_validator("scripts")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return check_scripts(names)

    @property
    def scripts_of_sides(self) -> tuple[tuple[str, ...], ...]:
        """The scripts that are given for the only side; where none is, they are found."""
        return (self.scripts,)


class TextRules:
    """What a passage can break on its own; its whole document is dropped then."""

    sides: ClassVar[tuple[str, ...]] = ("text",)
    items: ClassVar[str] = "passages"

    def __init__(self, config: TextCleaningConfig, origin: str = "the corpus") -> None:
        """origin: the corpus's name in error messages."""
        self.config, self.origin = config, origin

    def broken_by(self, passage: Passage) -> str | None:
        """The first rule that a passage breaks. Raises DataError at broken UTF-8 where that is an error."""
        config, text = self.config, passage.text
        if has_broken_utf8(text):
            if config.enabled and config.broken_utf8 == "skip":
                return "broken_utf8"
            raise DataError(
                f"{self.origin}, line {broken_line(passage)}: bytes that are no UTF-8. Convert the file (for example "
                "with iconv), or let cleaning skip such documents (broken_utf8: skip)."
            )
        if not config.enabled:
            return None
        if config.empty and passage.begins and passage.ends and not text.strip():
            return "empty"
        if config.control_characters and _CONTROL.search(text):
            return "control_characters"
        return None

    def marks(self, passages: Sequence[Passage]) -> dict[str, NDArray[Any]]:
        """What a block keeps of all its passages: where documents begin and end."""
        return {
            "begins": np.array([passage.begins for passage in passages], bool),
            "ends": np.array([passage.ends for passage in passages], bool),
        }

    def scripted(self, passage: Passage) -> tuple[str, ...]:
        """What has a script."""
        return passage.texts

    def digest(self, passage: Passage) -> bytes:
        """16 bytes that no two different passages share: see `PairRules.digest`."""
        return blake2b(passage.text.encode(), digest_size=16).digest()
