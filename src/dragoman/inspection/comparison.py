"""`compare_translations`: the translations of a sentence by two models. `rank_pairs`: where two models differ most."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dragoman.base.errors import DataError, LineError
from dragoman.figures.bars import Bars
from dragoman.figures.comparison import Comparison
from dragoman.inference.abilities import LoadedObject
from dragoman.inference.subject import check_not_blank, check_token_count
from dragoman.inspection.alignments import NO_ATTENTION
from dragoman.inspection.translators import InspectedTranslator, inspected_translator
from dragoman.metrics.bleu import BLEU
from dragoman.metrics.chrf import ChrF
from dragoman.statistical.alignment.links import Alignment
from dragoman.text.words import Difference, word_differences

METRICS = {metric.key: metric for metric in (ChrF(), BLEU())}
"""The metrics of single sentences, by the name of an order of `rank_pairs`."""

Measure = Literal["chrf", "bleu"]


@dataclass(frozen=True)
class TranslationComparison:
    """The translations of a sentence by two models.

    names: of the models. links: those of the attention of each model between its translation and the source; empty for
    a model that is in `absent`, with the reason. differences: between the words of the translations. scores: by
    measure, the value of each model: the log-probabilities of its own translation, of the other one's and of the
    reference in nats, and sentence BLEU and chrF (0 to 100) if there is a reference.
    """

    names: tuple[str, str]
    source: str
    texts: tuple[str, str]
    links: tuple[Alignment, Alignment]
    differences: tuple[Difference, ...]
    scores: dict[str, tuple[float, float]]
    absent: tuple[str, ...] = ()

    def figure(self) -> Comparison:
        """Return the translations beside their source, with links, differences and scores."""
        return Comparison(
            title=f"Translations by {self.names[0]} and {self.names[1]}",
            caption="The source between the translations by the two models. Lines link each word to the source word "
            "with the largest attention weight. Marked words differ between the translations.",
            slide="deck 002, training and validation criteria for machine translation",
            limits="Words are compared, not tokens, because the models may have different tokenisers. BLEU and chrF of "
            "a single sentence vary widely: compare models on a test set. A log-probability is that of one "
            "segmentation into tokens, and a large attention weight does not show that the output depends on the word.",
            names=self.names,
            source=tuple(self.source.split()),
            translations=(tuple(self.texts[0].split()), tuple(self.texts[1].split())),
            links=self.links,
            differences=self.differences,
            scores=self.scores,
        )


def compare_translations(
    models: tuple[LoadedObject, LoadedObject],
    source: str,
    texts: tuple[str, str],
    reference: str = "",
    *,
    names: tuple[str, str] = ("first", "second"),
    to: str | None = None,
) -> TranslationComparison:
    """Return how two translations of a sentence differ, and what each model computes for them.

    texts: the translation by each model. reference: a right translation, or blank. to: as in `Translator.request`. The
    log-probabilities are those of `dragoman score`, BLEU and chrF those of sacreBLEU's `sentence_score`. Raises
    DataError for a source that is blank, and for texts that are too long.
    """
    check_not_blank(source, "text")
    for text in (source, *texts, reference):
        check_token_count(len(text.split()))
    given = [*texts, *([reference] if reference.strip() else [])]
    try:
        translators = [inspected_translator(model) for model in models]
        totals = [
            [each.log_probability for each in model.score([source] * len(given), given, to=to)] for model in translators
        ]
        links = [
            _attention_links(model, source, text, to) if text.strip() else ()
            for model, text in zip(translators, texts, strict=True)
        ]
    except LineError as error:
        raise DataError(f"the text is too long: {error.reason}") from None
    first, second = totals
    scores = {
        "log-probability of its own translation": (first[0], second[1]),
        "log-probability of the other translation": (first[1], second[0]),
    }
    if reference.strip():
        scores["log-probability of the reference"] = (first[2], second[2])
        for metric in METRICS.values():
            values = metric.sentence_scores(texts, [reference] * 2)
            scores[metric.name] = (values[0], values[1])
    absent = tuple(f"{name}: {NO_ATTENTION}" for name, found in zip(names, links, strict=True) if found is None)
    differences = word_differences(texts[0].split(), texts[1].split())
    found = (links[0] or (), links[1] or ())
    return TranslationComparison(names, source, texts, found, differences, scores, absent)


@dataclass(frozen=True)
class RankedPairs:
    """Sentence pairs by the difference of two models.

    order: the numbers of the pairs, from 0, those with the largest differences first. values: (first model, second
    model), the metric of each pair in the order of the file. differences: second − first.
    """

    measure: str
    order: tuple[int, ...]
    values: tuple[tuple[float, float], ...]

    @property
    def differences(self) -> tuple[float, ...]:
        """The metric of the second model minus that of the first, of each pair in the order of the file."""
        return tuple(second - first for first, second in self.values)

    def figure(self, sources: Sequence[str], names: tuple[str, str], marked: int | None = None) -> Bars:
        """Return the differences as bars. sources: the source sentences. marked: the number of a pair, from 0."""
        differences = self.differences
        return Bars(
            title=f"Differences in {self.measure}: {names[1]} − {names[0]}",
            caption=f"The sentences of the file by the difference of the two models in {self.measure}. Positive values "
            f"mean that {names[1]} is closer to the reference.",
            slide="deck 002, training and validation criteria for machine translation",
            limits="Sentence scores vary widely, and the largest differences are not typical of the models: compare "
            "them on a whole test set with dragoman evaluate.",
            labels=tuple(sources[number] for number in self.order),
            values=tuple(differences[number] for number in self.order),
            unit=f"{self.measure} of {names[1]} − {names[0]}",
            marked=() if marked is None else (self.order.index(marked),),
        )


def rank_pairs(texts: Sequence[tuple[str, str]], references: Sequence[str], by: Measure) -> RankedPairs:
    """Rank sentence pairs by the absolute difference of the sentence scores of two models; ties keep their order.

    texts: the translations of each source by both models. by: the metric.
    """
    metric = METRICS[by]
    first, second = (metric.sentence_scores([each[side] for each in texts], references) for side in (0, 1))
    values = tuple(zip(first, second, strict=True))
    order = sorted(range(len(values)), key=lambda number: -abs(values[number][1] - values[number][0]))
    return RankedPairs(metric.name, tuple(order), values)


def _attention_links(model: InspectedTranslator, source: str, text: str, to: str | None) -> Alignment | None:
    """Return the links of the decoder's attention, None for a decoder without weights over source tokens."""
    aligner = model.attention_aligner(model.request(to=to).tags)
    return None if aligner is None else aligner.align([source], [text], 1)[0]
