"""A metric defined outside the package and registered by one line is computed, compared and used in validation."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU as SacreBLEU
from tiny_model import SOURCES, TARGETS, tiny_config, tiny_model, tiny_tokenizers

import dragoman
from dragoman.base.errors import ConfigError
from dragoman.checkpoint.folder import LoadedModel
from dragoman.checkpoint.meta import Meta
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.inference.translation.translator import Translator
from dragoman.metrics.bootstrap import paired_bootstrap
from dragoman.metrics.metric import Metric, Outputs
from dragoman.metrics.registry import METRICS
from dragoman.metrics.summed import SummedMetric
from dragoman.tasks.corpora.job import ValidationSets
from dragoman.tasks.translation.validation import HeldOutPairs, build_validators, validation_metrics
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.validation import Validation

CPU = torch.device("cpu")
REFERENCE = ["a dog runs", "two cats", "it is late"]
FIRST, SECOND = ["a dog runs", "two cats here", "late"], ["dog", "two", "it is not that late"]


class Words(SummedMetric):
    """Counts the words that differ, per sentence."""

    key, name, better = "words", "word difference", "lower"

    def sacrebleu(self) -> Any:
        return SacreBLEU()

    def statistics(self, hypotheses: Any, *references: Any) -> NDArray[Any]:
        pairs = zip(hypotheses, references[0], strict=True)
        return np.array([[abs(len(one.split()) - len(other.split())), 1] for one, other in pairs])

    def corpus(self, sums: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(sums[..., 0] / sums[..., 1])

    def exact(self, sums: NDArray[Any]) -> float:
        return float(self.corpus(sums))

    def value(self, outputs: Outputs) -> float:
        return self.exact(self.statistics(outputs.hypotheses, *outputs.references).sum(0))

    def signature(self, references: int) -> str:
        return f"nrefs:{references}|words"


class Copied(Metric):
    """The fraction of sentences that equal their source."""

    key, name, better, needs = "copied", "copied", "lower", frozenset({"references", "sources"})

    def value(self, outputs: Outputs) -> float:
        assert outputs.sources is not None
        return float(np.mean([one == other for one, other in zip(outputs.hypotheses, outputs.sources, strict=True)]))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for metric in (Words(), Copied()):
        monkeypatch.setitem(METRICS, metric.key, metric)


def test_evaluate_computes_what_the_inputs_allow() -> None:
    found = dragoman.evaluate(reference=REFERENCE, hypothesis=[FIRST, SECOND])
    assert list(found.systems[0].scores) == ["bleu", "chrf", "ter", "lecture", "words"]
    assert found["words"].value == 1.0 and "word difference = 1.00 (nrefs:1|words)" in str(found)
    compared = found.comparisons[0].metrics["words"]
    assert compared.difference == pytest.approx(5 / 3 - 1) and list(found.comparisons[0].metrics)[-1] == "words"
    with_sources = dragoman.evaluate(reference=REFERENCE, hypothesis=FIRST, source=["a dog runs", "x", "y"])
    assert with_sources["copied"].value == pytest.approx(1 / 3)


def test_missing_inputs_of_a_metric_are_reported_before_translation() -> None:
    with pytest.raises(ConfigError, match="copied requires sources, which are missing"):
        dragoman.evaluate(reference=REFERENCE, hypothesis=FIRST, metric=["copied"])
    with pytest.raises(ConfigError, match="perplexity requires log-probabilities"):
        dragoman.evaluate("no model", reference=REFERENCE, source=REFERENCE, metric=["perplexity"])
    with pytest.raises(ConfigError, match="requires log-probabilities"):
        METRICS["loss"].score(FIRST, REFERENCE)


def test_only_sums_of_sentences_are_resampled() -> None:
    assert paired_bootstrap(FIRST, SECOND, REFERENCE, metric="words", samples=20).first.value == 1.0
    with pytest.raises(ConfigError, match="does not support bootstrap resampling: use bleu or .* or words"):
        paired_bootstrap(FIRST, SECOND, REFERENCE, metric="copied")


@pytest.mark.parametrize("metric", ["words", "chrf", "bleu"])
def test_validation_computes_the_metric_that_decides(metric: str) -> None:
    tokenizers = tiny_tokenizers()
    model = tiny_model(tiny_config(), tokenizers).eval()
    translator = Translator.of(LoadedModel(model, tokenizers, Meta(step=0), {}), CPU)

    def judged(count: int) -> Validation:
        sets = [_held_out(f"set {number}") for number in range(count)]
        metrics = validation_metrics(metric)
        return ValidationSets(build_validators(sets, model, translator, beam=1, metrics=metrics), metrics).run(
            Runtime(CPU)
        )

    one, two = judged(1), judged(2)
    outputs = translator.translate(SOURCES, search={"beam": 1, "length_factor": 1.5})
    for found in (one, two):
        assert [each.key for each in found.scores] == list(
            dict.fromkeys(["loss", "perplexity", "bleu", "chrf", metric])
        )
        assert found[metric].value == pytest.approx(METRICS[metric].score(outputs, TARGETS).value)
        assert found.rank(metric)[0] == found[metric].merit
        assert found.log_line()[f"valid_{metric}_signature"] == found[metric].signature
    assert two[metric].signature == f"mean of 2 sets, {one[metric].signature}" and list(two.sets) == ["set 0", "set 1"]


def _held_out(name: str) -> HeldOutPairs:
    return HeldOutPairs(CorpusConfig.model_validate({"source": "a", "target": "b", "name": name}), SOURCES, TARGETS)
