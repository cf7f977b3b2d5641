"""`PlaceholderWriter`: replaces protected spans by placeholders that a model copies, and marks glossary terms."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from dragoman.inference.control.control import Requirements
from dragoman.text.symbols import TERMINOLOGY, UNK, InlineText, InlineWriter, placeholder_symbols
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.words import is_word_character, split_units

_LARGEST = 99
_PIECES = 2
"""Maximum pieces of a number placeholder. A span of no more pieces, such as a short number, is not replaced."""


class NumberPlaceholder(NamedTuple):
    """A number that the source does not contain. before: the text that precedes the number in the model's input.

    joined_before, joined_after: True if a space that the source lacks was inserted on this side. alone: True if none of
    its digits occurs in the source, so that no other text needs its pieces.
    """

    text: str
    before: str
    joined_before: bool
    joined_after: bool
    alone: bool


class SymbolPlaceholder(NamedTuple):
    """A symbol that the model has learned to copy. id: in the target vocabulary."""

    text: str
    id: int


@dataclass(frozen=True)
class MaskedSource:
    """A source with placeholders. line: the model's input. placeholders: one per span, None for a span that is not
    replaced.

    learned: True if the model was trained to meet all requirements, so that no constraint needs to be enforced.
    """

    line: InlineText
    placeholders: tuple[NumberPlaceholder | SymbolPlaceholder | None, ...]
    learned: bool


class PlaceholderWriter:
    """Replaces spans by the placeholder symbols of the model's vocabulary, or by numbers if there are too few symbols.

    Models copy numbers more reliably than other text: for a model that was trained without addresses, number
    placeholders double BLEU. All numbers are distinct, so that each span is restored wherever its placeholder occurs.
    Spaces separate numbers from adjacent letters.
    """

    def __init__(self, tokenizers: Tokenizers) -> None:
        self._tokenizers = tokenizers
        tags = tokenizers.source.tags
        symbols = [symbol for symbol in placeholder_symbols(tags) if symbol in tokenizers.target.tags]
        self.symbols = [
            SymbolPlaceholder(*each) for each in zip(symbols, tokenizers.target.tag_ids(symbols), strict=True)
        ]
        """Symbols that the model was trained to copy."""
        self._supports_terms = all(symbol in tags for symbol in TERMINOLOGY)

    def mask(self, requirements: Requirements) -> MaskedSource:
        """Return a text with spans replaced and terms marked. No number placeholder occurs in the text or a phrase."""
        numbers, symbols = self._numbers(requirements), iter(self.symbols)
        line, end = InlineWriter(), 0
        found: list[NumberPlaceholder | SymbolPlaceholder | None] = []
        for span in requirements.spans:
            self._write(line, requirements, end, span.start)
            is_long = self._is_long(span.text)
            symbol = next(symbols, None) if is_long else None
            number = next(numbers, None) if is_long and symbol is None else None
            if symbol is not None:
                found.append(symbol)
                line.write_symbol(symbol.text)
            elif number is None:
                found.append(None)
                line.write(span.text)
            else:
                text = line.parts[-1]
                joined_before = bool(text) and is_word_character(text[-1])
                following = requirements.text[span.end : span.end + 1]
                # an adjacent span may be replaced by a digit
                joined_after = bool(following) and (
                    is_word_character(following) or any(other.start == span.end for other in requirements.spans)
                )
                line.write(" " if joined_before else "")
                found.append(NumberPlaceholder(number[0], line.parts[-1], joined_before, joined_after, number[1]))
                line.write(number[0] + (" " if joined_after else ""))
            end = span.end
        self._write(line, requirements, end, len(requirements.text))
        copies = not found or (bool(self.symbols) and not any(isinstance(each, NumberPlaceholder) for each in found))
        learned = copies and not requirements.phrases and (self._supports_terms or not requirements.terms)
        return MaskedSource(line.build(), tuple(found), learned)

    def _write(self, line: InlineWriter, requirements: Requirements, start: int, end: int) -> None:
        """Write the text between two spans, with its terms marked if the model was trained with such marks."""
        for term in requirements.terms if self._supports_terms else ():
            if start <= term.start < end:
                line.write(requirements.text[start : term.start])
                line.write_term(requirements.text[term.start : term.end], term.phrase.alternatives[0])
                start = term.end
        line.write(requirements.text[start:end])

    def _numbers(self, requirements: Requirements) -> Iterator[tuple[str, bool]]:
        """Yield unused numbers, each with its `alone` flag. Numbers that are `alone` come first."""
        texts = [requirements.text, *(form for phrase in requirements.required for form in phrase.alternatives)]
        used = {text[begin:end] for text in texts for begin, end in split_units(text)}
        digits = {character for text in texts for character in text if character.isdigit()}
        free = [number for number in self._short_numbers if number not in used]
        alone = []
        for number in free:
            if digits.isdisjoint(number):
                alone.append(number)
                digits.update(number)
        yield from ((number, True) for number in alone)
        yield from ((number, False) for number in free if number not in alone)

    @cached_property
    def _short_numbers(self) -> list[str]:
        """Numbers that both vocabularies encode with few pieces, sorted by the number of pieces."""
        if self._tokenizers.reads_vectors:
            return []
        costs = {}
        for number in map(str, range(2, _LARGEST + 1)):
            ids = [tokenizer.encode_phrase(number) for tokenizer in (self._tokenizers.source, self._tokenizers.target)]
            if not any(UNK in each for each in ids) and max(map(len, ids)) <= _PIECES:
                costs[number] = max(map(len, ids))
        return sorted(costs, key=lambda number: (costs[number], int(number)))

    def _is_long(self, span: str) -> bool:
        ids = self._tokenizers.target.encode_phrase(span)
        return len(ids) > _PIECES or UNK in ids
