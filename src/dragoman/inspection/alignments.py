"""`compare_alignments`: the words that a model links by attention and by gradients, beside aligners and annotations."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dragoman.base.errors import ConfigError, DataError
from dragoman.figures.alignments import GOLD, Alignments, alignment_figure, link_confusion
from dragoman.figures.confusion import Confusion
from dragoman.inference.abilities import LoadedObject, SupportsAlign
from dragoman.inference.subject import NO_SETTINGS, SubjectSettings
from dragoman.inference.translation.alignment import Aligner, WeightedAligner, WordMatrix, sum_words
from dragoman.inspection.relevance import token_relevance
from dragoman.inspection.translators import InspectedTranslator, inspected_translator
from dragoman.metrics.alignment_error_rate import GoldLinks
from dragoman.models.attention_weights import AttentionChoice
from dragoman.models.kinds.ensemble import Ensemble
from dragoman.statistical.alignment.links import Alignment, LinkFile, format_pharaoh, sorted_alignment

ATTENTION, GRADIENT, STORED = "attention", "gradient", "word aligner"

NO_ATTENTION = "this model's decoder has no attention weights over source tokens"


@dataclass(frozen=True)
class AlignmentComparison:
    """Several alignments of a sentence with its translation.

    source, target: the words, which are separated by whitespace. links: by the name of the aligner: `attention` and
    `gradient` of the model, and `word aligner` for that in the model folder. weights: (target words, source words), the
    values behind the links: the attention, the magnitude of gradient × input of the pieces of both words, and the
    weights of a `WeightedAligner`, such as posterior probabilities. gold: annotated links, or None. absent: aligners
    that the model does not have, with reasons.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: Mapping[str, Alignment]
    weights: Mapping[str, WordMatrix] = field(default_factory=dict)
    gold: GoldLinks | None = None
    absent: tuple[str, ...] = ()

    @property
    def error_rates(self) -> dict[str, float]:
        """The alignment error rate of each aligner in percent; empty without annotated links."""
        return self.figure().error_rates

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON types."""
        gold = None
        if self.gold is not None:
            gold = {"sure": sorted(map(list, self.gold.sure)), "possible": sorted(map(list, self.gold.possible))}
        return {
            "source": list(self.source),
            "target": list(self.target),
            "links": {name: [list(each) for each in links] for name, links in self.links.items()},
            "pharaoh": {name: format_pharaoh(links) for name, links in self.links.items()},
            "error_rates": self.error_rates,
            "gold": gold,
            "absent": list(self.absent),
        }

    def with_gold(self, gold: GoldLinks | str | None) -> "AlignmentComparison":
        """Return the comparison with annotated links; a text is read by `gold_links`.

        Raises DataError for links of words that do not exist.
        """
        expected = gold_links(gold) if isinstance(gold, str) else gold
        for i, j in () if expected is None else expected.possible:
            if i >= len(self.source) or j >= len(self.target):
                raise DataError(
                    f"the annotated link {i}-{j} is outside of the sentence pair, which has {len(self.source)} source "
                    f"words and {len(self.target)} target words, numbered from 0"
                )
        return replace(self, gold=expected)

    def figure(self, hidden: Collection[str] = ()) -> Alignments:
        """Return the links of all aligners over each other, with the annotated links and the weights.

        The weights of gradients are divided by their sum over the source words. hidden: as in `Alignments`.
        """
        weights = {name: (_shares(each) if name == GRADIENT else each).T for name, each in self.weights.items()}
        return alignment_figure(self.source, self.target, self.links, gold=self.gold, weights=weights, hidden=hidden)

    def confusion(self) -> Confusion:
        """Return the numbers of links of each aligner by their agreement with the annotation.

        Raises ConfigError without annotated links.
        """
        if self.gold is None:
            raise ConfigError("there are no annotated links: give the links of the sentence pair")
        return link_confusion({name: [links] for name, links in self.links.items()}, [self.gold])


def compare_alignments(
    model: LoadedObject,
    source: str,
    settings: SubjectSettings = NO_SETTINGS,
    gold: GoldLinks | str | None = None,
    aligners: Mapping[str, Aligner | SupportsAlign] | None = None,
    *,
    attention: AttentionChoice | None = None,
) -> AlignmentComparison:
    """Return the links of a sentence with its translation (by default the model's own) by several aligners.

    The model links each target word to the source word with the largest attention (`AttentionAligner`), and to that
    with the largest sum of the magnitudes of gradient × input. gold: annotated links, also in the Pharaoh format with
    words numbered from 0, such as `0-0 1?2`. aligners: further aligners by name. attention: as in
    `Translator.aligner_of`. Raises ModelError for a model that does not translate; ConfigError for a model whose
    sources are vectors, an ensemble and a name that is in use; DataError for annotated links of words that do not
    exist; and the errors of `subject`.

    >>> from dragoman import Translator, compare_alignments
    >>> comparison = compare_alignments(Translator.load("runs/ende"), "The dog sleeps.")
    >>> comparison.source, sorted(comparison.links)
    (('The', 'dog', 'sleeps.'), ['attention', 'gradient'])
    """
    translator = inspected_translator(model)
    if translator.tokenizers.reads_vectors:
        raise ConfigError("cannot align words: the sources of this model are vectors, which have no words")
    if isinstance(translator.model, Ensemble):
        raise ConfigError("an ensemble has no alignment of its own: compare one of its models")
    request = translator.request(to=settings.to, tags=settings.tags)
    target = settings.target
    if not isinstance(target, str):
        target = translator.subject(source, settings).target
    given = SubjectSettings(target, settings.to, settings.tags)
    words = tuple(source.split()), tuple(target.split())
    links: dict[str, Alignment] = {}
    absent = []
    weights = {GRADIENT: _gradient_weights(translator, source, target, given)}
    if (aligner := translator.attention_aligner(request.tags, attention)) is not None:
        (links[ATTENTION],) = aligner.align([source], [target], 1)
        weights[ATTENTION] = aligner.link_weights(source, target)
    else:
        absent.append(f"{ATTENTION}: {NO_ATTENTION}")
    links[GRADIENT] = _largest(weights[GRADIENT])
    stored = {STORED: translator.aligner} if translator.aligner is not None else {}
    for name, other in {**stored, **(aligners or {})}.items():
        if name in (*links, GOLD):
            raise ConfigError(f"two aligners are called {name}: choose another name")
        (links[name],) = other.align([source], [target], 1)
        if isinstance(other, WeightedAligner):
            weights[name] = other.link_weights(source, target)
    return AlignmentComparison(*words, links, weights, absent=tuple(absent)).with_gold(gold)


def gold_links(text: str) -> GoldLinks:
    """Read links in the Pharaoh format, whose words are numbered from 0. Raises DataError for another format."""
    (pair,) = LinkFile.parse("the annotated alignment", [text]).zero_based(0, "--gold")
    return GoldLinks({link for link, is_possible in pair.items() if not is_possible}, set(pair))


def _gradient_weights(
    translator: InspectedTranslator, source: str, target: str, settings: SubjectSettings
) -> WordMatrix:
    """Return the magnitude of gradient × input of each source word for each target word, summed over pieces."""
    found = token_relevance(translator, source, settings)
    tags = len(translator.request(to=settings.to, tags=settings.tags).tags)
    return sum_words(np.abs(found.of_source[:-1, tags:-1]), translator.codec, source, target)[0]


def _shares(weights: WordMatrix) -> WordMatrix:
    """Return weights divided by their sum over the source words. A row of zeros remains."""
    totals = weights.sum(1, keepdims=True)
    return np.asarray(weights / np.where(totals > 0, totals, 1))


def _largest(weights: WordMatrix) -> Alignment:
    """Return a link from each target word to the source word with the largest weight."""
    return sorted_alignment((int(row.argmax()), word) for word, row in enumerate(weights) if row.any())
