"""How the translations of a batch are found: searched, or drawn."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dragoman.decode.prompts import Prompts
from dragoman.decode.replacement import UnknownWords
from dragoman.decode.sampling import SamplingConfig, sample, uniforms
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.models.interface import Decoder, Memory


class Prefix(NamedTuple):
    """What a translation starts with: its ids, and its words that the vocabulary lacks."""

    ids: tuple[int, ...] = ()
    unknown: tuple[str, ...] = ()


class Row(NamedTuple):
    """A line to translate: its number, counted from 1, its text, its ids with those of `tags` tags before them."""

    line: int
    text: str
    source: list[int]
    prefix: Prefix = Prefix()
    tags: int = 0


@dataclass(frozen=True)
class Drawing:
    """Translations drawn from the model's distribution instead of searched.

    seed: with a line's number it decides what is drawn for it; samples: how many for each line.
    """

    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    seed: int = 1
    samples: int = 1


class Searched:
    """Beam search, with texts for the unknowns.

    width: hypotheses a row; margin: of the length limit, in tokens; copies: of the logits, held at one time.
    """

    copies = 3

    def __init__(self, config: SearchConfig, unknown: UnknownWords, never: Sequence[int]) -> None:
        """never: ids that are never generated, besides those of the config."""
        self._config = config.model_copy(update={"forbid": (*config.forbid, *never)})
        self._unknown = unknown
        self.width, self.margin = config.beam, config.length_margin

    def hypotheses(self, decoder: Decoder, memory: Memory, rows: Sequence[Row]) -> list[list[Hypothesis]]:
        """For each row the best hypotheses, best first."""
        prefixes, kept = [row.prefix.ids for row in rows], [row.prefix.unknown for row in rows]
        tags = [row.tags for row in rows]
        return self._unknown.search(decoder, memory, self._config, prefixes, [row.text for row in rows], kept, tags)


class Drawn:
    """Ancestral sampling. width, margin and copies are as in `Searched`; sums over the vocabulary are in float64."""

    copies = 10

    def __init__(self, config: Drawing, never: Sequence[int]) -> None:
        """never: ids that are never drawn, besides those of the config."""
        sampling = config.sampling
        self._config = sampling.model_copy(update={"forbid": (*sampling.forbid, *never)})
        self._seed = config.seed
        self.width, self.margin = config.samples, sampling.length_margin

    def hypotheses(self, decoder: Decoder, memory: Memory, rows: Sequence[Row]) -> list[list[Hypothesis]]:
        """For each row the samples, in the order in which they were drawn. No row may have a prefix."""
        seeds = [(self._seed, row.line) for row in rows]
        prompts = Prompts.of(decoder, memory, self._config)
        numbers = uniforms(seeds, self.width, int(prompts.limits.max()))
        return sample(decoder, prompts, self._config, numbers)


Method = Searched | Drawn
