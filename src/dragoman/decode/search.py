"""Batched beam search over any `Decoder`; greedy search is a beam of one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor

from dragoman.base.config import Config
from dragoman.base.errors import ConfigError, ModelError
from dragoman.decode.best import best
from dragoman.decode.coverage import penalty
from dragoman.decode.history import History
from dragoman.decode.penalties import GNMTPenalty, LengthPenalty
from dragoman.decode.unknown import UnknownConfig
from dragoman.models.interface import Decoder, Memory, Output, source_keep
from dragoman.text.special import BOS, EOS, PAD, UNK


class SearchConfig(Config):
    """How translations are searched."""

    beam: int = Field(default=5, ge=1, description="Hypotheses kept a sentence; 1 is greedy search, 5 to 10 are usual.")
    length_penalty: LengthPenalty = Field(
        default=GNMTPenalty(), description="What summed log-probabilities are divided by before they are compared."
    )
    coverage_penalty: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        description="β of the coverage penalty (no unit): the larger, the more a translation is preferred whose "
        "attention missed no source token; 0 is none. Wu et al. 2016, equation 14.",
    )
    nbest: int = Field(default=1, ge=1, description="Translations returned a sentence, at most `beam`.")
    length_factor: float = Field(
        default=2.0,
        ge=0,
        description="Longest output = length_factor · source tokens + length_margin (tokens, end included).",
    )
    length_margin: int = Field(default=10, ge=1, description="The constant part of the longest output, in tokens.")
    minimum_length: int = Field(default=0, ge=0, description="Tokens that an output has at least, its end not counted.")
    forbid: tuple[int, ...] = Field(
        default=(PAD, BOS, UNK),
        description="Token ids that are never generated; padding, beginning and unknown by default. `unknown` decides "
        "about the unknown where it is copy or dictionary.",
    )
    unknown: UnknownConfig | None = Field(
        default=None,
        description="What is shown for a word that the vocabulary lacks; null: copy where there are such words and the "
        "decoder attends the source, else forbid. A vocabulary that can write any text has none.",
        json_schema_extra={"kind": "copy"},
    )

    @field_validator("length_penalty", mode="before")
    @classmethod
    def _number_is_gnmt(cls, value: Any) -> Any:
        """`length_penalty=0.6` is short for GNMT's with that exponent."""
        return {"kind": "gnmt", "alpha": value} if isinstance(value, int | float) else value

    @field_validator("unknown", mode="before")
    @classmethod
    def _name_is_a_kind(cls, value: Any) -> Any:
        """`unknown=copy` is short for `unknown.kind=copy`."""
        return {"kind": value} if isinstance(value, str) else value

    def max_length(self, source_tokens: int) -> int:
        """The longest output in tokens, its end counted, for a source of `source_tokens` tokens (its end counted)."""
        return max(int(self.length_factor * source_tokens + self.length_margin), self.minimum_length + 1)

    @model_validator(mode="after")
    def _check(self) -> "SearchConfig":
        if self.nbest > self.beam:
            raise ValueError(f"nbest = {self.nbest} is more than beam = {self.beam} keeps; raise beam")
        if EOS in self.forbid:
            raise ValueError(f"forbid holds {EOS}, the end of sentence, without which no translation ends; remove it")
        return self


@dataclass(frozen=True)
class Hypothesis:
    """One translation.

    tokens: ids without BOS and EOS. log_probability: natural, summed over the tokens and, if finished, the EOS.
    score: log_probability divided by the length penalty (EOS counted if finished), plus the coverage penalty if one
    is set. finished: False where the longest output was reached before an EOS. unknown: what stands for the UNKs among
    the tokens, in order; the search leaves it empty, `decode.replacement` fills it.
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    finished: bool
    unknown: tuple[str, ...] = ()


class _End(NamedTuple):
    """A hypothesis whose tokens are still links: where it ends in the history, after so many tokens."""

    log_probability: float
    score: float
    finished: bool
    tokens: int
    number: int


@dataclass
class _Found:
    """What the search has found for one sentence, best first; among equal scores the first found stays first."""

    wanted: int
    ends: list[_End] = field(default_factory=list)

    def add(self, end: _End) -> None:
        self.ends = sorted([*self.ends, end], key=lambda each: -each.score)[: self.wanted]

    def threshold(self) -> float:
        """A later hypothesis enters the list only with a score above this one."""
        return self.ends[-1].score if len(self.ends) == self.wanted else -np.inf


@torch.no_grad()
def search(
    decoder: Decoder, memory: Memory, config: SearchConfig, prefixes: Sequence[Sequence[int]] | None = None
) -> list[list[Hypothesis]]:
    """Translate the B sentences of `memory`: for each, at most `config.nbest` distinct hypotheses, never none.

    Beam search, precisely: a sentence starts with one live hypothesis, BOS. In each step every live hypothesis is
    continued by every token, and the continuations are ordered by summed log-probability (equal ones by rank of their
    hypothesis, then token id). Of the 2 · beam best, those that end with EOS *and* are among the first `beam` are
    finished; the best `beam` that do not end with EOS are the live hypotheses of the next step. A beam of 1 looks at
    the single best continuation only, so it stops where that is EOS: greedy search. This goes on until the longest
    output; a sentence leaves the batch before that when its result can't change any more: when the best live
    hypothesis, divided by the largest penalty that it could still get, does not exceed the score of the last of
    `nbest` finished ones.

    config.coverage_penalty: β > 0 adds β · Σ_i log(min(Σ_j p_ij, 1)) to the score of each hypothesis, p_ij being the
    attention of its step j on source position i. Every position of the source counts, its end too, and every step,
    that of the EOS too: as many as the length penalty counts tokens. It decides between the hypotheses found, not
    which continuations live on. It is never above 0, so the rule by which a sentence leaves the batch stays exact.

    The list is ordered by score, finished hypotheses first; where the longest output is reached with fewer than
    `nbest` finished, the best live ones follow them with finished=False.

    prefixes: token ids (no EOS) that the sentence's output starts with, forbidden ones allowed; their log-probability
    counts. The longest output leaves room for at least one token after the prefix and the minimum length.

    Log-probabilities are float32 whatever the model computes in. The decoder should be in evaluation mode.
    Raises ConfigError where the prefixes do not fit or the decoder has no attention for a coverage penalty that is
    set, ModelError where the model's log-probabilities are NaN.
    """
    source = source_keep(memory)
    count, device = len(source), source.device
    found = [_Found(config.nbest) for _ in range(count)]
    if count == 0:
        return []
    forced = _prefix_table(prefixes, count)
    cover = config.coverage_penalty > 0
    state = decoder.start(memory, attention=cover)
    limits = np.array([config.max_length(tokens) for tokens in source.sum(1).tolist()])
    if state.limit is not None:
        limits = np.minimum(limits, state.limit)
    needed = (forced >= 0).sum(1) + 1
    if state.limit is not None and (too_long := np.flatnonzero(needed > state.limit)).size:
        row = int(too_long[0])
        raise ConfigError(
            f"prefix of sentence {row}: {needed[row] - 1} tokens, but the decoder has {state.limit} positions, one of "
            "them for the beginning of the sentence: shorten the prefix"
        )
    limits = np.maximum(limits, needed)
    ceilings = np.array([config.length_penalty.divisor(int(limit)) for limit in limits])

    beam = config.beam
    looked_at = 2 * beam if beam > 1 else 1
    forbid = torch.tensor(config.forbid, dtype=torch.int64, device=device)
    forbid_end = torch.cat([forbid, torch.tensor([EOS], device=device)])
    alive = np.arange(count)  # the sentences that are still in the batch
    tokens = torch.full((count, 1), BOS, dtype=torch.int64, device=device)
    # (B, width) summed log-probabilities, −inf for an empty place
    totals = torch.zeros(count, 1, dtype=torch.float32, device=device)
    history = History()
    numbers = torch.arange(count, device=device)  # (R,) in the history
    # (R, S) attention received so far; 1 at padding, which is thereby never found uncovered
    coverage = (~source).float() if cover else None
    length = 0
    while True:
        output, state = decoder.step(tokens, state)
        logits = output.last_logits().float()
        length += 1
        before, coverage = coverage, None if coverage is None else coverage + _attention(output)
        now = torch.from_numpy(forced[alive, length - 1]).to(device) if length <= forced.shape[1] else None
        never = forbid_end if length <= config.minimum_length else forbid
        values, candidates = _continuations(logits, looked_at, never, now)
        scores, parents, chosen = _rank(totals, values, candidates, looked_at)

        # Which finish, which live on.
        ends = chosen == EOS
        finished = scores.masked_fill(~ends, -torch.inf)[:, :beam]
        order = ends.int().argsort(dim=1, stable=True)[:, :beam]
        live = scores.masked_fill(ends, -torch.inf).gather(1, order)
        width_before, width = totals.shape[1], live.shape[1]
        offsets = torch.arange(len(alive), device=device).unsqueeze(1) * width_before
        host = torch.cat([finished, live[:, :1]], 1).cpu().numpy()  # the one transfer of a usual step
        if np.isnan(host).any():
            raise ModelError("the model's log-probabilities are not numbers (NaN): damaged or diverged parameters")

        # Collect the finished ones.
        where, ranks = np.nonzero(host[:, :-1] > -np.inf)
        if len(where):
            rows = (offsets + parents)[torch.from_numpy(where).to(device), torch.from_numpy(ranks).to(device)]
            sums = host[where, ranks].tolist()
            ended = _ends(length - 1, numbers[rows], sums, _part(coverage, rows), True, config)
            for sentence, end in zip(where, ended, strict=True):
                found[alive[sentence]].add(end)

        # Who leaves.
        best_live = host[:, -1].astype(np.float64)
        thresholds = np.array([found[sentence].threshold() for sentence in alive])
        dead = best_live == -np.inf
        full = (limits[alive] == length) & ~dead
        leaves = dead | full | (best_live / ceilings[alive] <= thresholds)
        rows = offsets + parents.gather(1, order)
        following = chosen.gather(1, order)
        before_numbers, numbers = numbers, torch.arange(following.numel(), device=device)
        history.extend(before_numbers[rows.flatten()], following.flatten())
        for sentence in np.nonzero(full)[0]:
            part = slice(int(sentence) * width, (int(sentence) + 1) * width)
            seen = _part(coverage, rows[sentence])
            _add_unfinished(found[alive[sentence]], length, numbers[part], live[sentence], seen, config)
        for sentence in np.nonzero(dead)[0]:
            if not (ends_here := found[alive[sentence]]).ends:  # no token may follow any live hypothesis
                part = slice(int(sentence) * width_before, (int(sentence) + 1) * width_before)
                seen, last = _part(before, part), before_numbers[part]
                _add_unfinished(ends_here, length - 1, last, totals[sentence], seen, config)
        stays = np.nonzero(~leaves)[0]
        if not len(stays):
            return _traced(found, history)

        # Expansion, reordering and pruning in one row-take; a greedy step that loses no sentence needs none.
        if width_before > 1 or width > 1 or len(stays) < len(alive):
            kept = torch.from_numpy(stays).to(device)
            state = state.reorder(rows[kept].flatten(), width)
            coverage = _part(coverage, rows[kept].flatten())
            live = live[kept]
            following = following[kept]
            numbers = numbers.view(-1, width)[kept].flatten()
            alive = alive[stays]
        totals, tokens = live, following.view(-1, 1)


def _prefix_table(prefixes: Sequence[Sequence[int]] | None, count: int) -> np.ndarray:
    """(B, longest prefix) int64, −1 where nothing is forced."""
    if prefixes is None:
        return np.full((count, 0), -1, dtype=np.int64)
    if len(prefixes) != count:
        raise ConfigError(
            f"{len(prefixes)} prefixes for {count} sentences; give one a sentence, empty ones where none is wanted"
        )
    table = np.full((count, max(len(prefix) for prefix in prefixes)), -1, dtype=np.int64)
    for row, prefix in enumerate(prefixes):
        if EOS in prefix or any(token < 0 for token in prefix):
            raise ConfigError(f"prefix of sentence {row}: {list(prefix)} holds the end of sentence or a negative id")
        table[row, : len(prefix)] = prefix
    return table


def _continuations(logits: Tensor, count: int, forbid: Tensor, forced: Tensor | None) -> tuple[Tensor, Tensor]:
    """The best continuations of each hypothesis: log-probabilities and token ids (R, ·) by ascending id.

    logits: (R, V) float32; forced: (B,) the only token that may follow, −1 where any may.
    """
    rows, size = logits.shape
    normaliser = logits.logsumexp(1, keepdim=True)
    values, candidates = best(logits, min(count + len(forbid), size))
    values = (values - normaliser).masked_fill(torch.isin(candidates, forbid), -torch.inf)
    if forced is not None:
        if int(forced.max()) >= size:
            raise ConfigError(f"a prefix holds token {int(forced.max())}, but the vocabulary has only {size}")
        forced = forced.repeat_interleave(rows // len(forced)).unsqueeze(1)
        token = forced.clamp(min=0)
        only = torch.where(forced >= 0, logits.gather(1, token) - normaliser, -torch.inf)
        values = torch.cat([torch.where(forced >= 0, -torch.inf, values), only], 1)
        candidates = torch.cat([candidates, token], 1)
    candidates, order = candidates.sort(dim=1)
    return values.gather(1, order), candidates


def _rank(totals: Tensor, values: Tensor, candidates: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best `count` continuations of each sentence, best first: sums, parents' places and tokens, each (B, ·)."""
    sentences, width = totals.shape
    each = values.shape[1]
    sums = (totals.view(-1, 1) + values).view(sentences, width * each)
    # A stable sort leaves equal sums in the order of place, then token.
    scores, order = sums.sort(dim=1, descending=True, stable=True)
    scores, order = scores[:, :count], order[:, :count]
    return scores, order // each, candidates.view(sentences, width * each).gather(1, order)


def _attention(output: Output) -> Tensor:
    """(R, S) float32: what the step that was just made attended."""
    if output.attention is None:
        raise ConfigError(
            "search.coverage_penalty is set, but this model's decoder has no attention over the source: set it to 0"
        )
    return output.attention[:, -1].float()


def _part(coverage: Tensor | None, rows: Tensor | slice) -> Tensor | None:
    return None if coverage is None else coverage[rows]


def _ends(
    tokens: int, numbers: Tensor, totals: Sequence[float], coverage: Tensor | None, finished: bool, config: SearchConfig
) -> list[_End]:
    """One a hypothesis of `numbers` (R,), all of so many tokens; coverage: (R, S), None where it does not count."""
    divisor = config.length_penalty.divisor(tokens + finished)
    penalties = [0.0] * len(totals) if coverage is None else (config.coverage_penalty * penalty(coverage)).tolist()
    return [
        _End(total, total / divisor + minus, finished, tokens, number)
        for number, total, minus in zip(numbers.tolist(), totals, penalties, strict=True)
    ]


def _add_unfinished(
    found: _Found, tokens: int, numbers: Tensor, totals: Tensor, coverage: Tensor | None, config: SearchConfig
) -> None:
    """Fill the list up with live hypotheses of so many tokens; numbers and totals: (width,), coverage: (width, S)."""
    rest = [
        end for end in _ends(tokens, numbers, totals.tolist(), coverage, False, config) if end.log_probability > -np.inf
    ]
    rest.sort(key=lambda each: -each.score)
    found.ends.extend(rest[: found.wanted - len(found.ends)])


def _traced(found: Sequence[_Found], history: History) -> list[list[Hypothesis]]:
    """The hypotheses of each sentence with their tokens."""
    sequences = iter(history.sequences([(end.tokens, end.number) for each in found for end in each.ends]))
    return [
        [Hypothesis(next(sequences), end.log_probability, end.score, end.finished) for end in each.ends]
        for each in found
    ]
