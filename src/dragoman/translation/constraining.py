"""`Constraining`: from what a translation must hold to a row's source and constraints, and back to the text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from dragoman.base.errors import ConfigError
from dragoman.control.control import Demand
from dragoman.control.phrase import Phrase
from dragoman.decode.constraints.automaton import Automaton
from dragoman.decode.constraints.constraint import Alternative, Constraint, Edges, Shown, least
from dragoman.decode.search import Hypothesis
from dragoman.text.symbols import UNK, Inlined
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.words import is_word_character, units
from dragoman.translation.stand_ins import Masked, OwnSymbol, StandIn, StandIns

_PRIVATE = range(0xE000, 0xF900)
"""Code points that mean nothing: one that a text does not have marks places in it."""


@dataclass(frozen=True)
class Constrained:
    """How a text is translated. line: the source, with stand-ins; forbidden: ids that only constraints may write.

    free: ids that the model may write where it is searched for a translation that happens to meet the constraints,
    because it has learned to; None where the search has to see to them.
    """

    line: Inlined
    constraints: tuple[Constraint, ...] = ()
    forbidden: tuple[int, ...] = ()
    free: tuple[int, ...] | None = None


class Constraining:
    """Of two vocabularies. Phrases stand in a text as they are given, also where the target's has no signs for them."""

    def __init__(self, tokenizers: Tokenizers) -> None:
        self._target = tokenizers.target
        self._stand_ins = StandIns(tokenizers)
        self._symbols = frozenset(symbol.number for symbol in self._stand_ins.symbols)

    def constrained(self, demand: Demand, room: int | None) -> Constrained:
        """What the model reads, and what the search must see to.

        Without the kept spans where `room` tokens (None: any number) are too few for all; raises ConfigError where they
        are too few for the phrases.
        """
        required = tuple(self._constraint(phrase) for phrase in demand.required)
        masked = self._stand_ins.masked(demand)
        kept = tuple(self._span(demand, masked, place) for place in range(len(demand.spans)))
        if room is not None and least((*required, *kept)) > room:
            if (needed := least(required)) > room:
                raise ConfigError(
                    f"the phrases that its translation must hold need up to {needed} tokens, but the model has "
                    f"positions for {room}: require less, or train a model with more"
                )
            return Constrained(Inlined((demand.text,)), required)
        constraints = (*required, *kept)
        own = tuple(each.number for each in masked.stand_ins if isinstance(each, OwnSymbol))
        return Constrained(
            masked.line, constraints, _once(demand, masked, constraints), own if masked.learned else None
        )

    def text(self, hypothesis: Hypothesis, constraints: Sequence[Constraint]) -> str:
        """What a hypothesis says, with each phrase and span as it was given."""
        parts, held = self._parts(hypothesis, constraints)
        text = parts[0]
        for alternative, part in zip(held, parts[1:], strict=True):
            shown = alternative.shown
            text = text.rstrip(" ") if shown.joined_before else text
            text += shown.text + (part.lstrip(" ") if shown.joined_after else part)
        return text

    def holds_all(self, hypothesis: Hypothesis, constraints: Sequence[Constraint]) -> bool:
        """Whether it holds each phrase and span in a place of its own, none running together with other words."""
        return len(self._parts(hypothesis, constraints)[1]) == len(constraints)

    def is_tidy(self, hypothesis: Hypothesis, constraints: Sequence[Constraint]) -> bool:
        """Whether no stand-in stands anywhere but where it is put back."""
        parts, held = self._parts(hypothesis, constraints)
        symbols = [token for token in hypothesis.tokens if token in self._symbols]
        if len(symbols) != sum(alternative.ids[0] in self._symbols for alternative in held):
            return False
        written = {self._target.decode(alternative.ids).strip() for alternative in held}
        stand_ins = written - {alternative.shown.text for alternative in held}
        return all(stand_ins.isdisjoint(part[begin:end] for begin, end in units(part)) for part in parts)

    def _parts(self, hypothesis: Hypothesis, constraints: Sequence[Constraint]) -> tuple[list[str], list[Alternative]]:
        """What a hypothesis says before, between and after phrases and spans, and how it says these."""
        plain = self._target.decode(hypothesis.tokens, hypothesis.unknown)
        if not constraints:
            return [plain], []
        held = Automaton(constraints, self._edges).places(hypothesis.tokens)
        mark = next(sign for sign in map(chr, _PRIVATE) if sign not in plain)
        parts = self._target.decode(*self._marked(hypothesis, held, mark)).split(mark)
        if len(parts) != len(held) + 1:  # no vocabulary is known that drops or doubles the mark
            return [plain], []
        return parts, [alternative for _, alternative in held]

    def _marked(
        self, hypothesis: Hypothesis, held: Sequence[tuple[int, Alternative]], mark: str
    ) -> tuple[list[int], list[str]]:
        """The ids with an unknown in the place of each phrase, and what stands for all unknowns among them."""
        unknown = iter(hypothesis.unknown)
        words = [next(unknown, "") if token == UNK else None for token in hypothesis.tokens]
        ids: list[int] = []
        stand_ins: list[str] = []
        end = 0
        for start, alternative in [*held, (len(words), Alternative(()))]:
            ids += hypothesis.tokens[end:start]
            stand_ins += [word for word in words[end:start] if word is not None]
            if alternative.ids:
                ids.append(UNK)
                stand_ins.append(alternative.shown.before + mark + alternative.shown.after)
            end = start + len(alternative.ids)
        return ids, stand_ins

    @cached_property
    def _edges(self) -> Edges:
        return Edges.of(self._target)

    def _constraint(self, phrase: Phrase) -> Constraint:
        """Each form as a word of its own, and right after a sign such as a bracket."""
        return _distinct(
            way
            for form in phrase.alternatives
            for way in (self._apart(form, Shown(form)), self._joined(form, Shown(form)))
        )

    def _span(self, demand: Demand, masked: Masked, place: int) -> Constraint:
        """With a blank before it or without, as in what the model reads; at the beginning both."""
        span, stand_in = demand.spans[place], masked.stand_ins[place]
        if isinstance(stand_in, OwnSymbol):
            opens, closes = is_word_character(span.text[0]), is_word_character(span.text[-1])
            return (Alternative((stand_in.number,), opens, closes, Shown(span.text)),)
        if stand_in is None:
            written, shown, before = span.text, Shown(span.text), demand.text[: span.start]
        else:
            written, before = stand_in.text, stand_in.before
            shown = Shown(span.text, joined_before=stand_in.joined_before, joined_after=stand_in.joined_after)
        ways = self._apart(written, shown), self._joined(written, shown)
        return _distinct(ways if not before.strip() else ways[:1] if before[-1].isspace() else ways[1:])

    def _apart(self, written: str, shown: Shown) -> Alternative:
        blank = self._target.added_blank
        before, after = " " if blank == "first" else "", " " if blank == "last" else ""
        return self._alternative(self._target.encode(written), shown._replace(before=before, after=after))

    def _joined(self, written: str, shown: Shown) -> Alternative:
        (ids,) = self._target.encode_further([written])
        return self._alternative(ids, shown._replace(after=" " if self._target.added_blank == "last" else ""))

    def _alternative(self, ids: Sequence[int], shown: Shown) -> Alternative:
        written = tuple(ids) or (UNK,)
        opens, closes = bool(self._edges.opens[written[0]]), bool(self._edges.closes[written[-1]])
        if UNK in (written[0], written[-1]):  # what it stands for is known here
            opens = opens or (written[0] == UNK and not shown.before and is_word_character(shown.text[0]))
            closes = closes and not shown.after
        return Alternative(written, opens, closes, shown)


def _once(demand: Demand, masked: Masked, constraints: Sequence[Constraint]) -> tuple[int, ...]:
    """Ids of numbers that are kept, or stand in, which must not be written once more; none that others are made of."""
    numbers = [
        span.text.isdigit() if stand_in is None else isinstance(stand_in, StandIn) and stand_in.alone
        for span, stand_in in zip(demand.spans, masked.stand_ins, strict=True)
    ]
    kept = constraints[len(constraints) - len(numbers) :]
    alone = {way.ids[0] for each, is_one in zip(kept, numbers, strict=True) if is_one for way in each}
    parts = {token for each in constraints for way in each if len(way.ids) > 1 for token in way.ids}
    return tuple(sorted(alone - parts))


def _distinct(ways: Iterable[Alternative]) -> Constraint:
    """Of ways that are written alike the first."""
    found: dict[tuple[int, ...], Alternative] = {}
    for way in ways:
        found.setdefault(way.ids, way)
    return tuple(found.values())
