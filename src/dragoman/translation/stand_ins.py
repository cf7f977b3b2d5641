"""`StandIns`: short numbers that a model reads and writes in the place of what it must keep."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from dragoman.control.control import Demand
from dragoman.text.special import UNK
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.word_characters import is_word_character, units

_LARGEST = 99
_PIECES = 2
"""That a stand-in has at most; a span of no more pieces stands for itself, as short numbers do."""


class StandIn(NamedTuple):
    """text: a number that the source does not have. before: what stands before it in what the model reads.

    joined_before, joined_after: whether the source has no blank there, though what the model reads has one. alone:
    whether none of its digits stands in the source, so that nothing but it is written with its pieces.
    """

    text: str
    before: str
    joined_before: bool
    joined_after: bool
    alone: bool


@dataclass(frozen=True)
class Masked:
    """text: what the model reads; stand_ins: one for each span, None for one that stands for itself."""

    text: str
    stand_ins: tuple[StandIn | None, ...]


class StandIns:
    """Numbers are what models copy best: on a model that never saw an address, BLEU with them is twice that without.

    They are distinct, so that each span finds its place whatever the order, and set apart from letters beside them.
    """

    def __init__(self, tokenizers: Tokenizers) -> None:
        self._tokenizers = tokenizers

    def masked(self, demand: Demand) -> Masked:
        """Of a text with its spans; of the others it takes none that stands in the text or in a phrase."""
        numbers = self._numbers(demand)
        text, end = "", 0
        found: list[StandIn | None] = []
        for span in demand.spans:
            text += demand.text[end : span.start]
            number = next(numbers, None) if self._is_long(span.text) else None
            if number is None:
                found.append(None)
                text += span.text
            else:
                joined_before = bool(text) and is_word_character(text[-1])
                following = demand.text[span.end : span.end + 1]
                # the next span begins with whatever its stand-in does: a digit
                joined_after = bool(following) and (
                    is_word_character(following) or any(other.start == span.end for other in demand.spans)
                )
                text += " " if joined_before else ""
                found.append(StandIn(number[0], text, joined_before, joined_after, number[1]))
                text += number[0] + (" " if joined_after else "")
            end = span.end
        return Masked(text + demand.text[end:], tuple(found))

    def _numbers(self, demand: Demand) -> Iterator[tuple[str, bool]]:
        """Free ones, and whether each is alone: these first."""
        texts = [demand.text, *(form for phrase in demand.required for form in phrase.alternatives)]
        there = {text[begin:end] for text in texts for begin, end in units(text)}
        digits = {character for text in texts for character in text if character.isdigit()}
        free = [number for number in self._known if number not in there]
        alone = []
        for number in free:
            if digits.isdisjoint(number):
                alone.append(number)
                digits.update(number)
        yield from ((number, True) for number in alone)
        yield from ((number, False) for number in free if number not in alone)

    @cached_property
    def _known(self) -> list[str]:
        """Those that both vocabularies can write with few pieces, the fewest first."""
        if self._tokenizers.reads_vectors:
            return []
        costs = {}
        for number in map(str, range(2, _LARGEST + 1)):
            ids = [tokenizer.encode(number) for tokenizer in (self._tokenizers.source, self._tokenizers.target)]
            if not any(UNK in each for each in ids) and max(map(len, ids)) <= _PIECES:
                costs[number] = max(map(len, ids))
        return sorted(costs, key=lambda number: (costs[number], int(number)))

    def _is_long(self, span: str) -> bool:
        ids = self._tokenizers.target.encode(span)
        return len(ids) > _PIECES or UNK in ids
