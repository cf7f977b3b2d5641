"""`advice`: what would improve a translation model, most likely first."""

from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.checkpoint.systems import NEURAL
from dragoman.checkpoint.verdict import Verdict
from dragoman.tasks.verdict.history import LearningState

FEW_PAIRS = 30_000
"""Number of pairs below which a model that starts from random parameters lacks data above all.

Koehn and Knowles 2017 ("Six Challenges for Neural Machine Translation", section 3.2) find phrase-based systems better
with little text; Sennrich and Zhang 2019 ("Revisiting Low-Resource Neural Machine Translation") move the crossing to
about 10,000 to 20,000 sentence pairs if the neural model is as small as the corpus requires.
"""
_MANY_PAIRS = 1_000_000
_UNSEEN = 0.02
"""Fraction of unseen words from which they are mentioned."""


def advice(verdict: Verdict, config: Mapping[str, Any], learning: LearningState | None = None) -> tuple[str, ...]:
    """Return what would help this model, most likely first. config, learning: the settings and the state of its run."""
    return tuple(_advice(verdict, config, learning))


def _advice(verdict: Verdict, config: Mapping[str, Any], learning: LearningState | None) -> Iterator[str]:
    train, model = (_section(config, name) for name in ("train", "model"))
    pairs, is_statistical = verdict.pairs, model.get("kind") == "statistical"
    has_neural = verdict.system == NEURAL or bool(verdict.choice)
    if learning is not None and has_neural and (longer := learning.advice(verdict.is_poor)) is not None:
        yield longer
    few = pairs is not None and pairs < FEW_PAIRS
    starts = "start from a pre-trained model, which knows words that your corpus lacks: train.start=FOLDER"
    if few:
        if train.get("start") is None:
            yield starts
        if not is_statistical and not verdict.choice:
            yield "compare with a phrase-based model, often better on few pairs: task.kind=statistical_translation"
    if pairs is not None and pairs < _MANY_PAIRS:
        yield "translate text in the target language back, as further training pairs: dragoman backtranslate"
        if is_statistical and not few:
            yield "train a neural model on the same pairs: leave out task.kind"
        elif not few and train.get("start") is None:
            yield starts
    if verdict.source is not None and verdict.source.unseen >= _UNSEEN:
        yield f"add pairs of the kind of text that you translate: {verdict.source.unseen:.1%} of its words are unseen"


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = config.get(name)
    return section if isinstance(section, Mapping) else {}
