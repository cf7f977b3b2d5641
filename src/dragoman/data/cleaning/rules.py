"""Cleaning rules that are checked for each sentence pair or passage by itself."""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.base.log import info
from dragoman.data.cleaning.config import BaseCleaningConfig, CleaningConfig, TextCleaningConfig
from dragoman.data.cleaning.repair import (
    find_control_characters,
    find_escapes,
    is_binary,
    repair_control_characters,
    unescape,
)
from dragoman.data.cleaning.sentence_keys import SentenceKeys
from dragoman.data.corpora.documents import broken_line
from dragoman.data.corpora.items import Pair, Passage
from dragoman.data.files.lines import has_broken_utf8
from dragoman.text.scripts import dominant_system
from dragoman.text.words import countable_words

_LETTER = regex.compile(r"\p{L}")
_SENTENCE_END = regex.compile(r"[\p{Sentence_Terminal}…:;]\W*$")
"""A mark that ends a sentence, and closing quotation marks and brackets. The semicolon is the Greek question mark."""


class Finding(NamedTuple):
    """A kind of character or escape that a setting concerns, in a line of a corpus.

    setting: `control_characters` or `unescape`. side: number of the side. name: such as `U+000C form feed`.
    """

    setting: str
    side: int
    name: str
    line: int


class Checked(NamedTuple):
    """An item after it has been repaired.

    rule: the first rule that the item breaks, or None. findings: what was found in the item, each kind once per line.
    """

    item: Any
    rule: str | None
    findings: tuple[Finding, ...] = ()


class Rules(ABC):
    """The rules that are checked for each item, a `Pair` or a `Passage`, independently of the other items.

    `CleanedCorpus` applies the rules that require the whole corpus: duplicates, scripts and length ratios.

    sides: names of the texts of an item. items: name of the items in messages. config: settings of the rules. origin:
    name of the corpus in messages. side_names: names of the sides in the report.
    """

    sides: ClassVar[tuple[str, ...]]
    items: ClassVar[str]
    newlines: ClassVar[bool]
    config: Any
    origin: str
    side_names: tuple[str, ...]

    @abstractmethod
    def check(self, item: Any) -> Checked:
        """Repair an item, and return it with the first rule that it breaks.

        Raises DataError for invalid UTF-8 if `broken_utf8` is error.
        """

    def chunk_arrays(self, items: Sequence[Any]) -> dict[str, NDArray[Any]]:
        """Return the arrays that a chunk stores for all its items in addition to their lines."""
        return {}

    def kept_arrays(self, items: Sequence[Any]) -> dict[str, NDArray[Any]]:
        """Return the arrays that a chunk stores for the items that break no rule by themselves."""
        return {}

    def script_texts(self, item: Any) -> tuple[str, ...]:
        """Return the text of each side whose script is checked."""
        texts: tuple[str, ...] = item.texts
        return texts

    def script(self, text: str) -> str | None:
        """Return the script or writing system of a text, which `fits` compares; None for a text without letters."""
        return dominant_system(text)

    def digest(self, item: Any) -> bytes:
        """Return a 16-byte digest. By the birthday bound, 1e10 different items collide with probability 1e-19."""
        first, *others = item.texts
        text = f"{len(first)}:{first}{''.join(others)}" if others else first
        return blake2b(text.encode(), digest_size=16).digest()

    def _findings(self, item: Any, side: int, text: str) -> list[Finding]:
        """Return the escapes and the control characters of a side, each kind once per line."""
        config: BaseCleaningConfig = self.config
        found = [("unescape", each) for each in find_escapes(text)]
        if config.control_characters:
            found += [("control_characters", each) for each in find_control_characters(text, self.newlines)]
        if not found:
            return []
        lines = self._lines(item, text)
        locations = ((setting, name, lines(position)) for setting, (name, position) in found)
        return [Finding(setting, side, name, line) for setting, name, line in dict.fromkeys(locations)]

    def _lines(self, item: Any, text: str) -> Callable[[int], int]:
        """Return a function that returns the line of a position in a text of an item."""
        line: int = item.line
        return lambda position: line


class PairRules(Rules):
    """The rules that are checked for each sentence pair."""

    sides: ClassVar[tuple[str, ...]] = ("source", "target")
    items: ClassVar[str] = "pairs"
    newlines: ClassVar[bool] = False

    def __init__(
        self,
        config: CleaningConfig,
        origin: str = "the corpus",
        vectors: bool = False,
        side_names: tuple[str, ...] = sides,
        *,
        held_out: SentenceKeys | None = None,
    ) -> None:
        """origin: name of the corpus in error messages. vectors: whether the source consists of feature vectors. If so,
        only the target is checked, but blank sources still count as empty, and identical pairs as duplicates.
        held_out: sentences of held-out pairs.
        """
        self.config, self.origin, self.vectors, self.side_names = config, origin, vectors, side_names
        self.held_out = held_out

    def check(self, item: Pair) -> Checked:
        """Repair a pair, and return it with the first rule that it breaks.

        Raises DataError for invalid UTF-8 if `broken_utf8` is error.
        """
        checked = self._check_alone(item)
        if self.held_out is not None and checked.rule is None and self.held_out.contain(*checked.item.texts):
            return checked._replace(rule="held_out")
        return checked

    def _check_alone(self, item: Pair) -> Checked:
        """Return a repaired pair with the first rule that it breaks, other than `held_out`."""
        config = self.config
        if not item.complete:
            return Checked(item, "missing_language")
        for side, text in zip(self.sides, item.texts, strict=True):
            if has_broken_utf8(text):
                if config.enabled and config.broken_utf8 == "skip":
                    return Checked(item, "broken_utf8")
                raise DataError(
                    f"{self.origin}, line {item.line}: the {side} contains invalid UTF-8. Convert the file "
                    "(for example with iconv), or let cleaning skip such lines (broken_utf8: skip)."
                )
        if not config.enabled:
            return Checked(item, None)
        if config.control_characters and any(is_binary(text) for text in item.texts[self.vectors :]):
            return Checked(item, "control_characters")
        findings: list[Finding] = []
        texts = list(item.texts)
        for index in range(int(self.vectors), len(texts)):
            findings += self._findings(item, index, texts[index])
            texts[index] = repair_text(texts[index], config, newlines=False)
        pair = item._replace(source=texts[0], target=texts[1])
        return Checked(pair, self._violated_rule(pair), tuple(findings))

    def _violated_rule(self, pair: Pair) -> str | None:
        """Return the first rule that a pair breaks."""
        config, source, target = self.config, pair.source, pair.target
        if config.empty and not (source.strip() and target.strip()):
            return "empty"
        if self.vectors:
            source = target
        if config.max_characters and max(len(source), len(target)) > config.max_characters:
            return "max_characters"
        if config.max_words and any(len(countable_words(text)) > config.max_words for text in (source, target)):
            return "max_words"
        if config.copied_words and not self.vectors and source.strip() == target.strip():
            return "copied_words" if _has_lettered_words(source, config.copied_words) else None
        if config.final_punctuation and not self.vectors and _ends_sentence(source) != _ends_sentence(target):
            return "final_punctuation"
        return None

    def kept_arrays(self, items: Sequence[Pair]) -> dict[str, NDArray[Any]]:
        """Return the lengths in characters of both sides if the length ratio is checked: `lengths` (2, m)."""
        if not self.config.checks_ratio or self.vectors:
            return {}
        lengths = [[len(text.strip()) for text in pair.texts] for pair in items]
        return {"lengths": np.array(lengths, np.uint32).reshape(-1, 2).T}

    def script_texts(self, pair: Pair) -> tuple[str, ...]:
        """Return the text of each side. A text whose script does not matter is empty.

        Vectors have no script. Identical sides, such as names, are checked by `copied_words` instead.
        """
        if pair.source.strip() == pair.target.strip():
            return "", ""
        return ("", pair.target) if self.vectors else pair.texts


class TextRules(Rules):
    """The rules that are checked for each passage. A document is dropped if one of its passages breaks a rule."""

    sides: ClassVar[tuple[str, ...]] = ("text",)
    items: ClassVar[str] = "passages"
    newlines: ClassVar[bool] = True

    def __init__(
        self,
        config: TextCleaningConfig,
        origin: str = "the corpus",
        *,
        single_lines: bool = False,
        held_out: SentenceKeys | None = None,
    ) -> None:
        """origin: name of the corpus in error messages. single_lines: whether each passage is in one line of the file,
        whose text may contain newlines, as in JSON Lines. held_out: documents that are held out, each of one passage.
        """
        self.config, self.origin, self.single_lines, self.side_names = config, origin, single_lines, (origin,)
        self.held_out = held_out

    def check(self, item: Passage) -> Checked:
        """Repair a passage, and return it with the first rule that it breaks.

        Raises DataError for invalid UTF-8 if `broken_utf8` is error.
        """
        checked, keys = self._check_alone(item), self.held_out
        if keys is not None and checked.rule is None and item.begins and item.ends:
            return checked._replace(rule="held_out") if keys.contain_text(checked.item.text) else checked
        return checked

    def _check_alone(self, item: Passage) -> Checked:
        """Return a repaired passage with the first rule that it breaks, other than `held_out`."""
        config, text = self.config, item.text
        if has_broken_utf8(text):
            if config.enabled and config.broken_utf8 == "skip":
                return Checked(item, "broken_utf8")
            raise DataError(
                f"{self.origin}, line {broken_line(item)}: invalid UTF-8. Convert the file (for example "
                "with iconv), or let cleaning skip such documents (broken_utf8: skip)."
            )
        if not config.enabled:
            return Checked(item, None)
        if config.control_characters and is_binary(text):
            return Checked(item, "control_characters")
        findings = tuple(self._findings(item, 0, text))
        passage = item._replace(text=repair_text(text, config, newlines=True, begins=item.begins, ends=item.ends))
        return Checked(passage, self._violated_rule(passage), findings)

    def _violated_rule(self, passage: Passage) -> str | None:
        config = self.config
        if config.empty and passage.begins and passage.ends and not passage.text.strip():
            return "empty"
        return None

    def _lines(self, item: Passage, text: str) -> Callable[[int], int]:
        if self.single_lines:
            return super()._lines(item, text)
        newlines = [match.start() for match in regex.finditer("\n", text)]
        return lambda position: item.line + bisect_left(newlines, position)

    def chunk_arrays(self, passages: Sequence[Passage]) -> dict[str, NDArray[Any]]:
        """Return whether each passage starts and ends its document."""
        return {
            "begins": np.array([passage.begins for passage in passages], bool),
            "ends": np.array([passage.ends for passage in passages], bool),
        }


def _ends_sentence(text: str) -> bool:
    """Return whether the last mark of a text, after its last letter or digit, ends a sentence."""
    return _SENTENCE_END.search(text) is not None


def _has_lettered_words(text: str, count: int) -> bool:
    """Return whether at least `count` words have letters."""
    return sum(_LETTER.search(word) is not None for word in countable_words(text)) >= count


def repair_text(text: str, config: BaseCleaningConfig, newlines: bool, begins: bool = True, ends: bool = True) -> str:
    """Unescape a text and repair its control characters, each if the settings require it.

    newlines, begins, ends: as in `repair_control_characters`.
    """
    if config.unescape:
        text = unescape(text)
    return repair_control_characters(text, newlines, begins, ends) if config.control_characters else text


def repair_like_training(
    texts: Sequence[str], cleaning: BaseCleaningConfig, name: str, newlines: bool = False
) -> list[str]:
    """Return the texts of one side of a validation set, repaired like those of the training corpora; none is dropped.

    A model that never saw `&quot;` in training would otherwise be validated against it. name: of the set or the side,
    in the message that reports the number of changed texts. newlines: whether texts may have several lines. Sets are
    not changed if cleaning is disabled.
    """
    if not cleaning.enabled:
        return list(texts)
    repaired = [repair_text(text, cleaning, newlines) for text in texts]
    changed = sum(text != other for text, other in zip(texts, repaired, strict=True))
    if changed:
        info(f"{name}: {changed:,} of {len(texts):,} texts are repaired like the training corpora")
    return repaired
