"""Filters that drop unsuitable synthetic pairs, and the rules that they apply."""

import re
from typing import NamedTuple

import numpy as np
from pydantic import Field

from dragoman.base.settings.config import Config
from dragoman.data.cleaning.length_ratio import UsualRatio
from dragoman.data.lengths import CorpusLengths
from dragoman.inference.translation.guard.copied import is_copied
from dragoman.inference.translation.guard.guard import is_empty
from dragoman.inference.translation.guard.repetition import repeated_phrase

RULES = {
    "broken_utf8": "the line is not UTF-8",
    "control_characters": "the line or its translation has a tab or another control character",
    "empty": "the line or its translation is blank",
    "duplicates": "the line is a duplicate",
    "max_tokens": "the line exceeds the limit or the model's number of positions",
    "unfinished": "the translation was cut off at the length limit",
    "copied": "the translation repeats the words of the line",
    "max_ratio": "one side is unusually long compared with the other",
    "unusual_length": "the translation is much shorter or longer than those in the model's training data",
    "repeats": "the translation repeats a phrase",
    "min_score": "the model assigns its translation a low probability",
}
"""Reasons why pairs are dropped, by rule, in the order in which the rules are applied."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


class FilterConfig(Config):
    """Filters of synthetic pairs. Each can be turned off (false or null).

    Pairs with broken UTF-8 or control characters are always dropped.
    """

    empty: bool = Field(default=True, description="Drop pairs with a blank side.")
    duplicates: bool = Field(default=True, description="Translate only the first of identical lines.")
    max_tokens: int | None = Field(
        default=250, ge=1, description="Drop lines with more subword tokens than this before they are translated."
    )
    unfinished: bool = Field(default=True, description="Drop translations that were cut off at the length limit.")
    copied: float | None = Field(
        default=0.8,
        gt=0,
        le=1,
        description="Drop translations that contain at least this fraction of the line's lower-case words (four or "
        "more) in the same order.",
    )
    max_ratio: float | None = Field(
        default=4.0,
        gt=1,
        description="Drop pairs whose length ratio differs by more than this factor from the usual ratio of the "
        "model's training data, or from 1 if the model folder lacks the lengths of its corpora. Lengths are numbers of "
        "characters, after 10 characters are added to each side.",
    )
    unusual_length: bool = Field(
        default=True,
        description="Drop translations that are much shorter or longer than their line would lead to expect from the "
        "model's training data, as the guard does. No effect if the model folder lacks the lengths of its corpora.",
    )
    repeats: int | None = Field(
        default=4,
        ge=2,
        description="Drop translations that repeat a phrase at least this many times in a row (a single letter 6, "
        "punctuation 8 times), unless the line does so as well.",
    )
    min_score: float | None = Field(
        default=None,
        lt=0,
        description="Drop translations whose mean log-probability per token (nats, end of sentence included) is below "
        "this.",
    )


class ScoredPair(NamedTuple):
    """A line and its translation.

    finished: whether the translation ends with EOS. score: its mean log-probability per token, in nats.
    """

    line: str
    translation: str
    finished: bool
    score: float


def has_control_characters(text: str) -> bool:
    """Return whether a text contains control characters, such as tabs, and cannot be a column of the output."""
    return _CONTROL.search(text) is not None


def broken_rule(pair: ScoredPair, config: FilterConfig, lengths: CorpusLengths | None = None) -> str | None:
    """Return the name of the first rule that a pair breaks, or None if it breaks no rule.

    lengths: the lengths of the model's training pairs; None if they are unknown.
    """
    if has_control_characters(pair.translation):
        return "control_characters"
    if config.empty and (not pair.line.strip() or is_empty(pair.line, pair.translation)):
        return "empty"
    if config.unfinished and not pair.finished:
        return "unfinished"
    if config.copied is not None and is_copied(pair.line, pair.translation, config.copied):
        return "copied"
    if config.max_ratio is not None and _ratio_deviation(pair, lengths) > config.max_ratio:
        return "max_ratio"
    if config.unusual_length and lengths is not None and lengths.judge(pair.line, pair.translation) is not None:
        return "unusual_length"
    if config.repeats is not None and repeated_phrase(pair.line, pair.translation, config.repeats) is not None:
        return "repeats"
    if config.min_score is not None and pair.score < config.min_score:
        return "min_score"
    return None


def _ratio_deviation(pair: ScoredPair, lengths: CorpusLengths | None) -> float:
    """Return the factor, at least 1, by which the length ratio of a pair differs from the usual ratio."""
    ratio = UsualRatio()
    if lengths is not None and lengths.is_representative:
        ratio = UsualRatio(lengths.character_ratio.median)
    return float(ratio.deviations(np.array([[len(pair.line.strip())], [len(pair.translation.strip())]]))[0])
