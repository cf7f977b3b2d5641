"""`judge` compares the translations of a model with those of simple systems on the same test set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.base.cancellation import until_cancelled
from dragoman.base.errors import DragomanError
from dragoman.checkpoint.systems import NEURAL
from dragoman.checkpoint.verdict import COPYING, DICTIONARY, ScoreRange, SystemRanges, Verdict
from dragoman.metrics.bleu import BLEU
from dragoman.metrics.bootstrap import compare_statistics
from dragoman.metrics.chrf import ChrF
from dragoman.metrics.metric import Outputs
from dragoman.metrics.summed import SummedMetric
from dragoman.tasks.verdict.advice import advice
from dragoman.tasks.verdict.dictionary import WordDictionary
from dragoman.tasks.verdict.history import LearningState
from dragoman.tasks.verdict.training_pairs import TrainingPairs

_LEVEL = 0.05
"""Level of significance, as in the comparison of systems."""


@dataclass(frozen=True)
class JudgedModel:
    """A model and its translations of a test set.

    name: of the model. config: settings of its run. pairs: number of its training pairs, if it is known. data: name of
    the test set. outputs: translations, references and sources. tokenizer: that of BLEU. system, choice: as in
    `Verdict`. learning: the validations of its run.
    """

    name: str
    config: Mapping[str, Any]
    pairs: int | None
    data: str
    outputs: Outputs
    tokenizer: str
    system: str = NEURAL
    choice: str = ""
    learning: LearningState | None = None


def judge(model: JudgedModel, training: TrainingPairs, threads: int | None = None) -> Verdict:
    """Return the verdict on a model: scores of simple systems with intervals, seen words, and advice.

    The simple systems copy the source, and translate it word by word with a dictionary that is learned from the
    training pairs. The words of the first references are counted. `outputs` must have sources. threads: for the
    dictionary; None for one per core.
    """
    outputs, pairs = model.outputs, model.pairs
    sources = list(outputs.sources or ())
    systems: list[tuple[str, Sequence[str]]] = [(COPYING, sources)]
    missing, sampled = training.missing, None
    source = target = None
    if not missing:
        try:
            dictionary = WordDictionary.learn(training.pairs, threads)
        except DragomanError as error:  # without a C compiler, for example
            missing = str(error).splitlines()[0].rstrip(".")
        else:
            systems.append((DICTIONARY, dictionary.translate(sources)))
            source, target = dictionary.seen_words(0, sources), dictionary.seen_words(1, outputs.references[0])
            sampled = len(training.pairs) if training.is_sample else None
            pairs = len(training.pairs) if pairs is None and not training.is_sample else pairs
    measured, others = _compare(model.name, outputs, systems, (BLEU(tokenizer=model.tokenizer), ChrF()))
    verdict = Verdict(
        data=model.data,
        sentences=len(sources),
        pairs=pairs,
        sampled=sampled,
        system=model.system,
        choice=model.choice,
        model=measured,
        others=others,
        missing=missing,
        source=source,
        target=target,
    )
    return verdict.model_copy(update={"advice": advice(verdict, model.config, model.learning)})


def _compare(
    name: str, outputs: Outputs, systems: Sequence[tuple[str, Sequence[str]]], metrics: Sequence[SummedMetric]
) -> tuple[SystemRanges, tuple[SystemRanges, ...]]:
    """Return the scores of the model and of the other systems, compared by paired bootstrap on the same test sets."""
    references = outputs.references
    own = {metric.key: metric.statistics(outputs.hypotheses, *references) for metric in metrics}
    model: list[ScoreRange] = []
    others = []
    for system, lines in systems:
        ranges: list[ScoreRange] = []
        better: list[str] = []
        worse: list[str] = []
        for metric in until_cancelled(metrics):
            rows = metric.statistics(lines, *references)
            comparison = compare_statistics(rows, own[metric.key], metric, len(references))
            if len(model) < len(metrics):
                model.append(ScoreRange.of(comparison.second, comparison.second_interval))
            ranges.append(ScoreRange.of(comparison.first, comparison.first_interval))
            if comparison.p_value < _LEVEL:
                (better if comparison.difference > 0 else worse).append(metric.name)
        others.append(SystemRanges(system=system, scores=tuple(ranges), better=tuple(better), worse=tuple(worse)))
    return SystemRanges(system=name, scores=tuple(model)), tuple(others)
