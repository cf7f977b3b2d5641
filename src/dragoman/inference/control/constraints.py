"""`ConstraintCodec`: encodes requirements as placeholders and constraints, and decodes hypotheses to text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from dragoman.base.cancellation import until_cancelled
from dragoman.base.errors import ConfigError
from dragoman.decode.constraints.automaton import Automaton
from dragoman.decode.constraints.constraint import Alternative, Constraint, Edges, tokens_needed, word_edges
from dragoman.decode.search import Hypothesis
from dragoman.inference.control.control import Requirements
from dragoman.inference.control.masking import (
    MaskedSource,
    NumberPlaceholder,
    PlaceholderWriter,
    SymbolPlaceholder,
)
from dragoman.inference.control.phrase import Phrase
from dragoman.text.symbols import UNK, InlineText
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.words import is_word_character, split_units

_PRIVATE = range(0xE000, 0xF900)
"""Private-use code points; one that a text does not contain marks positions in it."""

_CACHED_PHRASES = 1024
"""Number of phrases whose tokens are cached, because all sentences of a request require the same phrases."""


class Rendering(NamedTuple):
    """The text that replaces the tokens of an alternative in a translation.

    before, after: spaces that belong to the tokens. joined_before, joined_after: True if adjacent spaces are removed.
    """

    text: str
    before: str = ""
    after: str = ""
    joined_before: bool = False
    joined_after: bool = False


@dataclass(frozen=True)
class ConstrainedSource:
    """A text encoded for a constrained search. line: the source, with placeholders. forbidden: ids that may occur only
    as part of a constraint.

    free: further ids that may be generated, for a model that was trained to meet the constraints; None if the search
    must enforce the constraints.
    """

    line: InlineText
    constraints: tuple[Constraint, ...] = ()
    forbidden: tuple[int, ...] = ()
    free: tuple[int, ...] | None = None


class ConstraintCodec:
    """Encodes and decodes constraints with a pair of vocabularies.

    Required phrases appear in translations exactly as specified, even if the vocabulary lacks some of their characters.
    """

    def __init__(self, tokenizers: Tokenizers) -> None:
        self._target = tokenizers.target
        self._placeholders = PlaceholderWriter(tokenizers)
        self._constraint = lru_cache(_CACHED_PHRASES)(self._encode_phrase)
        self._symbols = frozenset(symbol.id for symbol in self._placeholders.symbols)

    def encode(self, requirements: Requirements, max_tokens: int | None) -> ConstrainedSource:
        """Return the encoded source and the constraints that the search must enforce.

        Protected spans are omitted if the constraints need more than `max_tokens` tokens (None: no limit). Raises
        ConfigError if the required phrases alone exceed this limit.
        """
        required = tuple(self._constraint(phrase) for phrase in until_cancelled(requirements.required))
        masked = self._placeholders.mask(requirements)
        kept = tuple(self._span_constraint(requirements, masked, index) for index in range(len(requirements.spans)))
        if max_tokens is not None and tokens_needed((*required, *kept)) > max_tokens:
            if (needed := tokens_needed(required)) > max_tokens:
                raise ConfigError(
                    f"the required phrases need up to {needed} tokens, but the translation can have at most "
                    f"{max_tokens}: require fewer phrases, or train a model with more positions"
                )
            return ConstrainedSource(InlineText((requirements.text,)), required)
        constraints = (*required, *kept)
        symbol_ids = tuple(each.id for each in masked.placeholders if isinstance(each, SymbolPlaceholder))
        return ConstrainedSource(
            masked.line,
            constraints,
            _written_once(requirements, masked, constraints),
            symbol_ids if masked.learned else None,
        )

    def decode(self, hypothesis: Hypothesis, constraints: Sequence[Constraint]) -> str:
        """Return the text of a hypothesis, with each phrase and span exactly as specified."""
        parts, matches = self._parts(hypothesis, constraints)
        text = parts[0]
        for alternative, part in zip(matches, parts[1:], strict=True):
            rendering = alternative.label
            text = text.rstrip(" ") if rendering.joined_before else text
            text += rendering.text + (part.lstrip(" ") if rendering.joined_after else part)
        return text

    def meets_all(self, hypothesis: Hypothesis, constraints: Sequence[Constraint]) -> bool:
        """Return whether a hypothesis contains every phrase and span, not overlapping and not attached to words."""
        return len(self._parts(hypothesis, constraints)[1]) == len(constraints)

    def restores_all(self, hypothesis: Hypothesis, constraints: Sequence[Constraint]) -> bool:
        """Return whether every placeholder in a hypothesis is replaced by its span."""
        parts, matches = self._parts(hypothesis, constraints)
        symbols = [token for token in hypothesis.tokens if token in self._symbols]
        if len(symbols) != sum(alternative.ids[0] in self._symbols for alternative in matches):
            return False
        written = {self._target.decode(alternative.ids).strip() for alternative in matches}
        left_over = written - {alternative.label.text for alternative in matches}
        return all(left_over.isdisjoint(part[begin:end] for begin, end in split_units(part)) for part in parts)

    def _parts(self, hypothesis: Hypothesis, constraints: Sequence[Constraint]) -> tuple[list[str], list[Alternative]]:
        """Return the texts between phrases and spans, and the alternative that the hypothesis contains for each."""
        plain = self._target.decode(hypothesis.tokens, hypothesis.unknown)
        if not constraints:
            return [plain], []
        matches = Automaton(constraints, self._edges).positions(hypothesis.tokens)
        mark = next(each for each in map(chr, _PRIVATE) if each not in plain)
        parts = self._target.decode(*self._marked(hypothesis, matches, mark)).split(mark)
        if len(parts) != len(matches) + 1:  # the vocabulary dropped or duplicated the mark; no known vocabulary does so
            return [plain], []
        return parts, [alternative for _, alternative in matches]

    def _marked(
        self, hypothesis: Hypothesis, matches: Sequence[tuple[int, Alternative]], mark: str
    ) -> tuple[list[int], list[str]]:
        """Return the ids with each phrase or span replaced by UNK, and the text of each UNK."""
        unknown = iter(hypothesis.unknown)
        words = [next(unknown, "") if token == UNK else None for token in hypothesis.tokens]
        ids: list[int] = []
        texts: list[str] = []
        end = 0
        for start, alternative in [*matches, (len(words), Alternative(()))]:
            ids += hypothesis.tokens[end:start]
            texts += [word for word in words[end:start] if word is not None]
            if alternative.ids:
                ids.append(UNK)
                texts.append(alternative.label.before + mark + alternative.label.after)
            end = start + len(alternative.ids)
        return ids, texts

    @cached_property
    def _edges(self) -> Edges:
        return word_edges(self._target)

    def _encode_phrase(self, phrase: Phrase) -> Constraint:
        """Return two alternatives for each form: after a space, and directly after punctuation such as a bracket."""
        return _distinct(
            alternative
            for form in phrase.alternatives
            for alternative in (self._separate(form, Rendering(form)), self._attached(form, Rendering(form)))
        )

    def _span_constraint(self, requirements: Requirements, masked: MaskedSource, index: int) -> Constraint:
        """Return the constraint that requires a span.

        As in the model's input, a space precedes the span or not. At the start of the text, both are allowed.
        """
        span, placeholder = requirements.spans[index], masked.placeholders[index]
        if isinstance(placeholder, SymbolPlaceholder):
            starts_word, ends_word = is_word_character(span.text[0]), is_word_character(span.text[-1])
            return (Alternative((placeholder.id,), starts_word, ends_word, Rendering(span.text)),)
        if placeholder is None:
            surface, rendering, preceding = span.text, Rendering(span.text), requirements.text[: span.start]
        else:
            surface, preceding = placeholder.text, placeholder.before
            rendering = Rendering(
                span.text, joined_before=placeholder.joined_before, joined_after=placeholder.joined_after
            )
        alternatives = self._separate(surface, rendering), self._attached(surface, rendering)
        return _distinct(
            alternatives if not preceding.strip() else alternatives[:1] if preceding[-1].isspace() else alternatives[1:]
        )

    def _separate(self, written: str, rendering: Rendering) -> Alternative:
        blank = self._target.phrase_space
        before, after = " " if blank == "first" else "", " " if blank == "last" else ""
        return self._alternative(self._target.encode_phrase(written), rendering._replace(before=before, after=after))

    def _attached(self, written: str, rendering: Rendering) -> Alternative:
        (ids,) = self._target.encode_continuation([written])
        return self._alternative(ids, rendering._replace(after=" " if self._target.phrase_space == "last" else ""))

    def _alternative(self, ids: Sequence[int], rendering: Rendering) -> Alternative:
        written = tuple(ids) or (UNK,)
        opens, closes = bool(self._edges.opens[written[0]]), bool(self._edges.closes[written[-1]])
        if UNK in (written[0], written[-1]):  # the text of this UNK is known
            opens = opens or (written[0] == UNK and not rendering.before and is_word_character(rendering.text[0]))
            closes = closes and not rendering.after
        return Alternative(written, opens, closes, rendering)


def _written_once(
    requirements: Requirements, masked: MaskedSource, constraints: Sequence[Constraint]
) -> tuple[int, ...]:
    """Return the ids of kept numbers and number placeholders, which must be written only once.

    Ids that are part of other constraints are left out.
    """
    numbers = [
        span.text.isdigit() if placeholder is None else isinstance(placeholder, NumberPlaceholder) and placeholder.alone
        for span, placeholder in zip(requirements.spans, masked.placeholders, strict=True)
    ]
    kept = constraints[len(constraints) - len(numbers) :]
    alone = {alternative.ids[0] for each, is_one in zip(kept, numbers, strict=True) if is_one for alternative in each}
    parts = {
        token for each in constraints for alternative in each if len(alternative.ids) > 1 for token in alternative.ids
    }
    return tuple(sorted(alone - parts))


def _distinct(alternatives: Iterable[Alternative]) -> Constraint:
    """Return the alternatives without duplicates: of alternatives with equal ids, only the first is kept."""
    found: dict[tuple[int, ...], Alternative] = {}
    for alternative in alternatives:
        found.setdefault(alternative.ids, alternative)
    return tuple(found.values())
