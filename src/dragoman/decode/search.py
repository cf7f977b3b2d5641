"""Batched beam search over any `Decoder`; greedy search is a beam of one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from dragoman.base.errors import ConfigError
from dragoman.decode.beam.beam_search import BeamSearch
from dragoman.decode.beam.diverse_search import DiverseBeamSearch, DiversityConfig
from dragoman.decode.beam.exact_search import ExactSearch
from dragoman.decode.beam.hypotheses import CompleteHypothesis
from dragoman.decode.constraints.constrained_search import ConstrainedSearch
from dragoman.decode.constraints.constraint import Constraints
from dragoman.decode.output import OutputConfig, expand_configs
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.beam_sizes import FixedBeamSizes, ShrinkingBeam
from dragoman.decode.rules.coverage import Coverage
from dragoman.decode.rules.fusion import FusionConfig
from dragoman.decode.rules.length_penalty import GNMTPenalty, LengthNormalisation, LengthPenalty
from dragoman.decode.rules.restrictions import restrictions
from dragoman.decode.rules.rule import Rule
from dragoman.decode.search_tree import SearchTree, TreeRecorder
from dragoman.models.interface import Decoder
from dragoman.text.unknown_words import UnknownConfig


class SearchConfig(OutputConfig):
    """Settings for beam search."""

    beam: int = Field(
        default=5,
        ge=1,
        le=10_000,
        description="Beam size (hypotheses per sentence). 1 is greedy search; usual values are 5 to 10.",
    )
    length_penalty: LengthPenalty = Field(
        default=GNMTPenalty(), description="Divisor of the summed log-probabilities, for comparing hypotheses."
    )
    coverage_penalty: float = Field(
        default=0.0,
        ge=0,
        le=1000,
        allow_inf_nan=False,
        description="β of the coverage penalty (no unit; Wu et al. 2016, equation 14). Larger values prefer "
        "translations whose attention covers all source tokens. 0 disables it.",
    )
    nbest: int = Field(default=1, ge=1, le=10_000, description="Number of translations per sentence, at most `beam`.")
    shrinking: bool = Field(
        default=False,
        description="Reduce the beam by one for each finished hypothesis, as in deck 004 (Jurafsky and Martin 2023, "
        "section 10.4), and consider only one continuation per remaining slot.",
    )
    diversity: DiversityConfig | None = Field(
        default=None, description="Divide the beam into groups with different outputs; null: a single group."
    )
    shortlist: bool = Field(
        default=False,
        description="Generate only probable tokens: those in the model's shortlist for the tokens of the source, "
        "which `dragoman shortlist` or `data.shortlist` creates. This is faster on a CPU. Probabilities are normalised "
        "over these tokens.",
    )
    exact: int = Field(
        default=0,
        ge=0,
        le=10_000_000,
        description="Exact search: after the beam search, continue until no other translation can have a higher score, "
        "or until this number of prefixes has been expanded. 0: beam search only.",
    )
    tree: bool = Field(default=False, description="Record all expanded hypotheses and their outcomes (--tree).")
    fusion: FusionConfig | None = Field(
        default=None,
        description="Language model that contributes to the score of every token (shallow fusion); null: none.",
    )
    unknown: UnknownConfig | None = Field(
        default=None,
        description="Output for words that are not in the vocabulary. null: copy if the vocabulary has unknown words "
        "and the decoder attends to the source; otherwise forbid. With copy and dictionary, UNK is generated even if "
        "`forbid` contains it. A vocabulary that can encode any text has no unknown words.",
        json_schema_extra={"kind": "copy"},
    )

    @field_validator("length_penalty", mode="before")
    @classmethod
    def _expand_length_penalty(cls, value: Any) -> Any:
        """Expand `length_penalty=0.6` to GNMT's penalty with this exponent, and `length_penalty=mean` to the kind."""
        if isinstance(value, str):
            return {"kind": value}
        return {"kind": "gnmt", "alpha": value} if isinstance(value, int | float) else value

    @field_validator("unknown", mode="before")
    @classmethod
    def _expand_unknown(cls, value: Any) -> Any:
        """Expand `unknown=copy` to `unknown.kind=copy`."""
        return {"kind": value} if isinstance(value, str) else value

    @property
    def needs_attention(self) -> bool:
        """Whether the coverage penalty is set, which needs the attention weights."""
        return self.coverage_penalty > 0

    def beyond(self, *more_supported: str) -> list[str]:
        """Return the names of non-default settings that a plain beam search with a length penalty does not support.

        more_supported: names of additional settings that the calling engine supports.
        """
        supported = {
            "beam",
            "nbest",
            "length_penalty",
            "length_factor",
            "length_margin",
            "maximum_length",
            "forbid",
            *more_supported,
        }
        return [name for name, default in _DEFAULTS if name not in supported and getattr(self, name) != default]

    @model_validator(mode="after")
    def _validate_nbest(self) -> "SearchConfig":
        if self.nbest > self.beam:
            raise ValueError(f"nbest = {self.nbest} is larger than beam = {self.beam}: raise beam")
        return self

    @model_validator(mode="after")
    def _validate_groups(self) -> "SearchConfig":
        if self.diversity is not None:
            if self.beam % self.diversity.groups:
                raise ValueError(
                    f"diversity.groups = {self.diversity.groups} does not divide beam = {self.beam}: set beam to "
                    "a multiple"
                )
            if self.shrinking:
                raise ValueError("a beam that is divided into groups cannot shrink: remove diversity or shrinking")
            if self.exact:
                raise ValueError("an exact search has no groups: remove diversity or exact")
        return self


_DEFAULTS = tuple(SearchConfig())
"""Names and default values of all settings."""


@dataclass(frozen=True)
class Hypothesis:
    """One translation.

    tokens: ids without BOS and EOS. log_probability: natural, summed over the tokens and, if finished, EOS. score:
    log_probability divided by the length penalty (including EOS if finished), plus the coverage penalty if one is set.
    finished: False if the maximum length was reached before EOS. unknown: replacements for the UNK tokens, in order;
    the search leaves it empty. token_log_probabilities: log-probabilities of the tokens and, if finished, EOS, which
    sum to log_probability; empty unless `token_scores` is set. tree: the search tree of the sentence, shared by all its
    hypotheses, if `SearchConfig.tree` is set. bound: no finished output that is missing from the result has a higher
    score; None unless `SearchConfig.exact` is set.
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    finished: bool
    unknown: tuple[str, ...] = ()
    token_log_probabilities: tuple[float, ...] = ()
    tree: SearchTree | None = field(default=None, compare=False, repr=False)
    bound: float | None = None


def search(
    decoder: Decoder,
    prompts: Prompts,
    config: SearchConfig | Sequence[SearchConfig],
    rules: Sequence[Rule] = (),
    constraints: Constraints | None = None,
) -> list[list[Hypothesis]]:
    """Find the best continuations of B prompts: between 1 and `nbest` distinct hypotheses for each prompt.

    config: one shared value, or one per sentence. rules: rules in addition to those of the config. constraints: phrases
    that outputs must contain, enforced by `ConstrainedSearch`; the maximum lengths must allow for them (see
    `required_tokens` in `Prompts.of`).

    The search starts with one live hypothesis per sentence, its prompt. In each step, every live hypothesis is
    continued by every token that may follow, and the continuations are ordered by summed log-probability plus the
    additions of rules. Ties are ordered by the rank of the parent hypothesis, then by token id. Of the 2 · beam best
    continuations, those that end with EOS and are among the first `beam` are finished; the best `beam` that do not end
    with EOS are the live hypotheses of the next step. A beam of 1 is greedy search: only the best continuation is
    considered, and the search stops if this is EOS. The search continues until the maximum length. A sentence leaves
    the batch earlier if its result can no longer change, i.e. if no continuation of the best live hypothesis can score
    higher than the last of `nbest` finished ones. A score is the sum of log-probabilities divided by the length
    penalty, then modified by the other scoring rules.

    With `shrinking`, the beam loses a slot for each finished hypothesis, and only one continuation per slot is
    considered. With `diversity`, each group is searched in this way, and its continuations are compared after a penalty
    for tokens of earlier groups (`DiverseBeamSearch`). The result contains hypotheses from all groups in turn, and a
    sentence leaves the batch early only if the results of all its groups can no longer change.

    The result is ordered by score, with finished hypotheses first. If the maximum length is reached with fewer than
    `nbest` finished hypotheses, the best live ones follow with finished=False.

    Prefix tokens are part of the output, and their log-probabilities are part of its log-probability.

    Log-probabilities are float32 for any number type of the model. The decoder should be in evaluation mode. Raises
    ConfigError if a coverage penalty is set but the decoder has no attention, and if `diversity` or `beam` differ
    between sentences that are searched in groups. Raises ModelError if a log-probability of the model is NaN.
    """
    configs = expand_configs(config, len(prompts))
    recorder = _recorder(prompts, configs) if any(config.tree for config in configs) else None
    searching = _build_search(
        decoder, prompts, configs, rules=(*_rules(configs, prompts), *rules), constraints=constraints, recorder=recorder
    )
    found = searching.run()
    trees = [None] * len(found) if recorder is None else recorder.trees()
    hypotheses = []
    for row, (settings, prefix, best) in enumerate(zip(configs, prompts.prefixes(), found, strict=True)):
        before, bound = searching.prefixes[row], searching.bounds[row]
        prefix_scores = before[len(before) - len(prefix) :] if settings.token_scores else None
        tree = trees[row] if settings.tree else None
        hypotheses.append([_hypothesis(prefix, each, prefix_scores, tree, bound) for each in best])
    return hypotheses


def _build_search(
    decoder: Decoder,
    prompts: Prompts,
    configs: Sequence[SearchConfig],
    *,
    rules: Sequence[Rule],
    constraints: Constraints | None,
    recorder: TreeRecorder | None,
) -> BeamSearch:
    """Create the kind of search that the settings select."""
    beam = max((config.beam for config in configs), default=1)
    nbest = [config.nbest for config in configs]
    keeps_totals = any(config.token_scores for config in configs)
    if constraints is not None and constraints:
        if recorder is not None or any(config.diversity or config.shrinking or config.exact for config in configs):
            raise ConfigError(
                "a search with constraints does not support search.tree, search.diversity, search.shrinking and "
                "search.exact: remove these settings or the constraints"
            )
        beams = [config.beam for config in configs]
        return ConstrainedSearch(
            decoder, prompts, beams, nbest, rules, constraints=constraints, keeps_totals=keeps_totals
        )
    if any(config.exact for config in configs):
        expansions = [config.exact for config in configs]
        return ExactSearch(
            decoder, prompts, beam, nbest, rules, keeps_totals=keeps_totals, observer=recorder, expansions=expansions
        )
    if all(config.diversity is None for config in configs):
        return BeamSearch(decoder, prompts, beam, nbest, rules, keeps_totals=keeps_totals, observer=recorder)
    if len({(config.diversity, config.beam) for config in configs}) > 1:
        raise ConfigError("sentences that are searched together in groups need the same search.diversity and beam")
    diversity = configs[0].diversity
    assert diversity is not None
    return DiverseBeamSearch(
        decoder, prompts, beam, nbest, rules, keeps_totals=keeps_totals, observer=recorder, diversity=diversity
    )


def _recorder(prompts: Prompts, configs: Sequence[SearchConfig]) -> TreeRecorder:
    groups = 1 if configs[0].diversity is None else configs[0].diversity.groups
    return TreeRecorder(prompts, [config.beam for config in configs], groups)


def _hypothesis(
    prefix: tuple[int, ...],
    found: CompleteHypothesis,
    prefix_scores: NDArray[np.float32] | None,
    tree: SearchTree | None,
    bound: float | None,
) -> Hypothesis:
    """prefix_scores: log-probabilities of the prefix tokens; None without `token_scores`."""
    end, steps = found.end, ()
    if prefix_scores is not None:
        totals = [float(prefix_scores.sum()), *found.totals, *([end.log_probability] if end.finished else [])]
        steps = (*prefix_scores.tolist(), *np.diff(totals).tolist())
    tokens = (*prefix, *found.tokens)
    return Hypothesis(tokens, end.log_probability, end.score, end.finished, (), steps, tree, bound)


def _rules(configs: Sequence[SearchConfig], prompts: Prompts) -> list[Rule]:
    """Return the rules that the settings of at least one sentence need."""
    rules: list[Rule] = [*restrictions(configs, prompts)]
    rules.append(LengthNormalisation([config.length_penalty for config in configs], prompts.limits))
    if any(config.coverage_penalty for config in configs):
        rules.append(Coverage([config.coverage_penalty for config in configs]))
    if any(config.shrinking for config in configs):
        rules.append(ShrinkingBeam([config.beam for config in configs], [config.shrinking for config in configs]))
    if len({config.beam for config in configs}) > 1:
        rules.append(FixedBeamSizes([config.beam for config in configs]))
    return rules
