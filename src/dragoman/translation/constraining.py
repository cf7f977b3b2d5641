"""`Constraining`: from phrases and kept spans to constraints on tokens, and back to the text that holds them."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from dragoman.base.errors import ConfigError
from dragoman.control.control import Demand
from dragoman.control.phrase import Phrase
from dragoman.decode.constraints.automaton import Automaton
from dragoman.decode.constraints.constraint import Alternative, Constraint, Edges, least
from dragoman.decode.search import Hypothesis
from dragoman.text.special import UNK
from dragoman.text.tokenizer import Tokenizer

_PRIVATE = range(0xE000, 0xF900)
"""Code points that mean nothing: one that a text does not have marks places in it."""


class Constraining:
    """Of a target vocabulary. Phrases stand in a text as they are given, also where it has no signs for them."""

    def __init__(self, target: Tokenizer) -> None:
        self._target = target

    def constraints(self, demand: Demand, room: int | None) -> tuple[Constraint, ...]:
        """What the search must see to; without the kept spans where `room` tokens (None: any number) are too few.

        Raises ConfigError where they are too few for the phrases.
        """
        required = tuple(self._constraint(phrase) for phrase in demand.required)
        kept = tuple(self._span(demand.text, span.start, span.text) for span in demand.spans)
        if room is None or least((*required, *kept)) <= room:
            return (*required, *kept)
        if (needed := least(required)) > room:
            raise ConfigError(
                f"the phrases that its translation must hold need up to {needed} tokens, but the model has positions "
                f"for {room}: require less, or train a model with more"
            )
        return required

    def text(self, hypothesis: Hypothesis, constraints: Sequence[Constraint]) -> str:
        """What a hypothesis says, each phrase as it was given, also where the vocabulary has other signs for it."""
        tokens = hypothesis.tokens
        plain = self._target.decode(tokens, hypothesis.unknown)
        if self._target.lossless or not constraints:
            return plain
        held = Automaton(constraints, self._edges).places(tokens)
        mark = next(sign for sign in map(chr, _PRIVATE) if sign not in plain)
        ids, stand_ins = self._marked(hypothesis, held, mark)
        between = self._target.decode(ids, stand_ins).split(mark)
        if len(between) != len(held) + 1:
            return plain
        phrases = [alternative.text.strip(" ") for _, alternative in held]
        return "".join(part for pair in zip(between, [*phrases, ""], strict=True) for part in pair)

    def _marked(
        self, hypothesis: Hypothesis, held: Sequence[tuple[int, Alternative]], mark: str
    ) -> tuple[list[int], list[str]]:
        """The ids with an unknown in the place of each phrase, and what stands for all unknowns among them."""
        tokens, unknown = hypothesis.tokens, iter(hypothesis.unknown)
        ids: list[int] = []
        stand_ins: list[str] = []
        places = iter([*held, (len(tokens), Alternative(()))])
        start, alternative = next(places)
        for place, token in enumerate(tokens):
            word = next(unknown, "") if token == UNK else ""
            if place == start + len(alternative.ids):
                start, alternative = next(places)
            if place < start:
                ids.append(token)
                stand_ins += [word] if token == UNK else []
            elif place == start:
                ids.append(UNK)
                stand_ins.append(alternative.text.replace(alternative.text.strip(" "), mark))
        return ids, stand_ins

    @cached_property
    def _edges(self) -> Edges:
        return Edges.of(self._target)

    def _constraint(self, phrase: Phrase) -> Constraint:
        """Each form as a word of its own, and right after a sign such as a bracket."""
        ways = (way for form in phrase.alternatives for way in (*self._apart(form), *self._joined(form)))
        return tuple({way.ids: way for way in reversed(list(ways))}.values())[::-1]

    def _span(self, text: str, start: int, span: str) -> Constraint:
        """With a blank before it or without, as in the source; at its beginning both."""
        apart, joined = self._apart(span), self._joined(span)
        if not text[:start].strip():
            return tuple({way.ids: way for way in (*apart, *joined)}.values())
        return (*apart,) if text[start - 1].isspace() else (*joined,)

    def _apart(self, text: str) -> Iterator[Alternative]:
        blank = self._target.added_blank
        before, after = " " if blank == "first" else "", " " if blank == "last" else ""
        yield self._alternative(self._target.encode(text), before + text + after)

    def _joined(self, text: str) -> Iterator[Alternative]:
        after = " " if self._target.added_blank == "last" else ""
        (ids,) = self._target.encode_further([text])
        yield self._alternative(ids, text + after)

    def _alternative(self, ids: Sequence[int], text: str) -> Alternative:
        written = tuple(ids) or (UNK,)
        return Alternative(written, bool(self._edges.opens[written[0]]), bool(self._edges.closes[written[-1]]), text)
