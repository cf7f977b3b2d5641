"""Ancestral sampling over any `Decoder`: each token is drawn from the model's own distribution."""

from collections.abc import Sequence

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from dragoman.base.config import Config
from dragoman.base.errors import ModelError
from dragoman.decode.search import Hypothesis
from dragoman.models.interface import Decoder, Memory, source_keep
from dragoman.text.special import BOS, EOS, PAD, UNK


class SamplingConfig(Config):
    """How translations are drawn. Temperature comes first, then top_k, then top_p."""

    temperature: float = Field(
        default=1.0,
        gt=0,
        allow_inf_nan=False,
        description="Logits are divided by it (no unit): below 1 likely tokens become likelier.",
    )
    top_k: int | None = Field(
        default=None, ge=1, description="Draw among the k most probable tokens (Fan et al. 2018); null: among all."
    )
    top_p: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Draw among the fewest tokens that hold this share of the probability (nucleus sampling, Holtzman "
        "et al. 2020); null: among all.",
    )
    length_factor: float = Field(
        default=2.0,
        ge=0,
        description="Longest output = length_factor · source tokens + length_margin (tokens, end included).",
    )
    length_margin: int = Field(default=10, ge=1, description="The constant part of the longest output, in tokens.")
    forbid: tuple[int, ...] = Field(
        default=(PAD, BOS, UNK),
        description="Token ids that are never drawn; padding, beginning and unknown by default.",
    )

    def max_length(self, source_tokens: int) -> int:
        """The longest output in tokens, its end counted, for a source of `source_tokens` tokens (its end counted)."""
        return int(self.length_factor * source_tokens + self.length_margin)

    @model_validator(mode="after")
    def _can_end(self) -> "SamplingConfig":
        if EOS in self.forbid:
            raise ValueError(f"forbid holds {EOS}, the end of sentence, without which no translation ends; remove it")
        return self


def uniforms(seeds: Sequence[tuple[int, ...]], samples: int, length: int) -> Tensor:
    """Numbers from [0, 1) for `sample`: (B, samples, length) float64; a sentence's depend on its own seed alone.

    Neither the batch, nor its order, nor a greater `length` changes those that come first.
    """
    drawn = [[np.random.default_rng((*seed, each)).random(length) for each in range(samples)] for seed in seeds]
    return torch.from_numpy(np.array(drawn, dtype=np.float64).reshape(len(seeds), samples, length))


def longest(memory: Memory, config: SamplingConfig) -> int:
    """Tokens of the longest output that any sentence of `memory` may have."""
    return config.max_length(int(source_keep(memory).sum(1).max()))


@torch.no_grad()
def sample(decoder: Decoder, memory: Memory, config: SamplingConfig, numbers: Tensor) -> list[list[Hypothesis]]:
    """Draw translations of each of the B sentences of `memory`, one for each row of its `numbers`.

    numbers: (B, n, L) in [0, 1), L at least `longest(memory, config)`. Sample j of sentence i takes its t-th token by
    inverting the cumulative distribution, tokens in order of their ids, at numbers[i, j, t]: uniform numbers give
    independent samples, and the same numbers the same translation whatever batch it stands in, up to rounding.

    A hypothesis' log_probability is the model's own, natural, without temperature or truncation, its EOS counted; its
    score is the same number. finished is False where the longest output was reached before an EOS. The decoder should
    be in evaluation mode. Raises ModelError where the model's log-probabilities are NaN.
    """
    sentences, width = numbers.shape[:2]
    source = source_keep(memory)
    device = source.device
    numbers = numbers.to(device).flatten(0, 1)
    limits = torch.tensor([config.max_length(tokens) for tokens in source.sum(1).tolist()])
    state = decoder.start(memory)
    if state.limit is not None:
        limits = limits.clamp(max=state.limit)
    limits = limits.repeat_interleave(width).to(device)
    first = torch.arange(sentences, device=device).repeat_interleave(width)
    state = state.reorder(first, width)

    rows = torch.arange(len(first), device=device)  # the hypotheses still in the batch, all of a sentence or none
    tokens = torch.full((len(rows), 1), BOS, dtype=torch.int64, device=device)
    written = torch.full((len(rows), int(limits.max())), EOS, dtype=torch.int64, device=device)
    totals = torch.zeros(len(rows), dtype=torch.float64, device=device)
    ended = torch.zeros(len(rows), dtype=torch.bool, device=device)
    lengths = limits.clone()
    for length in range(1, written.size(1) + 1):
        output, state = decoder.step(tokens, state)
        logits = output.last_logits().float()
        if not torch.isfinite(logits).any(1).all() or torch.isnan(logits).any():
            raise ModelError("the model's log-probabilities are not numbers (NaN): damaged or diverged parameters")
        chosen = _draw(truncated(logits, config), numbers[rows, length - 1])
        log_probabilities = (logits.gather(1, chosen[:, None]).squeeze(1) - logits.logsumexp(1)).double()
        live = ~ended[rows] & (limits[rows] >= length)
        totals[rows] += torch.where(live, log_probabilities, 0.0)
        written[rows, length - 1] = torch.where(live, chosen, EOS)
        ends = live & (chosen == EOS)
        lengths[rows[ends]] = length - 1
        ended[rows[ends]] = True
        over = (ended | (limits <= length))[rows].view(-1, width).all(1)
        if over.all():
            break
        tokens = chosen[:, None]
        if over.any():
            stays = (~over).repeat_interleave(width)
            state = state.reorder(stays.nonzero().squeeze(1), width)
            rows, tokens = rows[stays], tokens[stays]
    texts, sums = written.tolist(), totals.tolist()
    found = [
        Hypothesis(tuple(text[:count]), total, total, done)
        for text, count, total, done in zip(texts, lengths.tolist(), sums, ended.tolist(), strict=True)
    ]
    return [found[start : start + width] for start in range(0, len(found), width)]


def truncated(logits: Tensor, config: SamplingConfig) -> Tensor:
    """Logits (R, V) divided by the temperature, −inf for tokens that are not drawn among."""
    logits = logits / config.temperature
    if config.forbid:
        logits[:, list(config.forbid)] = -torch.inf
    if config.top_k is not None and config.top_k < logits.size(1):
        smallest = logits.topk(config.top_k, dim=1).values[:, -1:]
        logits = logits.masked_fill(logits < smallest, -torch.inf)
    if config.top_p is not None:
        ordered, order = logits.sort(dim=1, descending=True, stable=True)
        share = ordered.softmax(1)
        before = share.cumsum(1) - share  # the most probable token always stays
        outside = (before >= config.top_p).scatter(1, order, before >= config.top_p)
        logits = logits.masked_fill(outside, -torch.inf)
    return logits


def _draw(logits: Tensor, numbers: Tensor) -> Tensor:
    """(R,) int64: for each row of logits (R, V) the token at which its cumulative distribution passes the number."""
    cumulative = logits.double().softmax(1).cumsum(1)
    total = cumulative[:, -1:]
    # below the total, so that rounding never takes a token of probability 0
    places = torch.minimum(numbers.double()[:, None] * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulative, places, right=True).squeeze(1)
