"""Ancestral sampling over any `Decoder`: each token is drawn from the model's own distribution."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from dragoman.base.errors import ModelError
from dragoman.decode.forced import read_prompts
from dragoman.decode.output import OutputConfig, each
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.restrictions import restrictions
from dragoman.decode.rules.rule import Restriction, Step
from dragoman.decode.search import Hypothesis
from dragoman.models.interface import Decoder
from dragoman.text.symbols import EOS

_NONE = -1
"""Stands where no token was drawn."""


class SamplingConfig(OutputConfig):
    """Sampling of outputs. Temperature is applied first, then top_k, then top_p."""

    temperature: float = Field(
        default=1.0,
        gt=0,
        allow_inf_nan=False,
        description="Divisor of the logits (no unit); values below 1 make likely tokens more likely.",
    )
    top_k: int | None = Field(
        default=None, ge=1, description="Sample from the k most probable tokens (Fan et al. 2018); null: from all."
    )
    top_p: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Sample from the smallest set of tokens with at least this total probability (nucleus sampling, "
        "Holtzman et al. 2020); null: from all.",
    )


def uniforms(seeds: Sequence[tuple[int, ...]], samples: int, length: int) -> Tensor:
    """Numbers from [0, 1) for `sample`: (B, samples, length) float64; a sentence's depend on its own seed alone.

    Neither the batch, nor its order, nor a greater `length` changes those that come first.
    """
    drawn = [[np.random.default_rng((*seed, each)).random(length) for each in range(samples)] for seed in seeds]
    return torch.from_numpy(np.array(drawn, dtype=np.float64).reshape(len(seeds), samples, length))


class Draw(NamedTuple):
    """What one step has drawn.

    rows: (R,) int64, sample j of prompt i being i · n + j: those that go on or end now, no others. tokens: (R,) int64,
    EOS where a sample ends. log_probabilities: (R,) float32, the model's own, natural, without temperature,
    restriction or truncation.
    """

    rows: Tensor
    tokens: Tensor
    log_probabilities: Tensor


class Draws(Iterator[Draw]):
    """Samples token by token, as they are drawn: an iterator over steps, which is through when all samples are over.

    prefix_log_probabilities: (B, T) float32, of the tokens of the prefixes that outputs begin with, which are not
    drawn; they stand on the right, behind zeros.

    A sample is over with its EOS, at its prompt's limit, where no token may follow, or where `stop` says so.
    """

    def __init__(
        self,
        decoder: Decoder,
        prompts: Prompts,
        config: SamplingConfig | Sequence[SamplingConfig],
        numbers: Tensor,
        rules: Sequence[Restriction] = (),
    ) -> None:
        """n samples of each of B prompts.

        numbers: (B, n, L) in [0, 1), L at least what the limits leave room for after the prefixes.
        config: one for all or one a prompt. rules: what may follow, besides what the config forbids. Sample j of prompt
        i takes its t-th token by inverting the cumulative distribution, tokens in order of their ids, at
        numbers[i, j, t].
        """
        self._decoder, self._width = decoder, numbers.size(1)
        self._configs = each(config, len(prompts))
        device = prompts.tokens.device
        self._numbers = numbers.to(device).flatten(0, 1)
        self._first = prompts.prefix_lengths
        room = torch.from_numpy(prompts.limits - prompts.prefix_lengths).to(device)
        self._room = room.repeat_interleave(self._width)
        # the samples still in the batch, all of a prompt or none
        self._rows = torch.arange(len(self._room), device=device)
        self._over = self._room < 1
        beginning = read_prompts(decoder, prompts, (*restrictions(self._configs, prompts), *rules))
        prompt_of = torch.div(self._rows, self._width, rounding_mode="floor")
        self._state = beginning.state.reorder(prompt_of, self._width)
        self._carried = beginning.rule_states.reorder(prompt_of, self._width)
        self._tokens = beginning.tokens[prompt_of]
        self.prefix_log_probabilities = beginning.prefixes
        self._steps = 0

    @torch.no_grad()
    def __next__(self) -> Draw:
        """One token more of every sample. Raises ModelError where the model's log-probabilities are NaN."""
        self._leave()
        if not len(self._rows):
            raise StopIteration
        output, self._state = self._decoder.step(self._tokens, self._state)
        sentences = (self._rows[:: self._width] // self._width).cpu().numpy()
        step = Step(sentences, self._first[sentences] + self._steps + 1, self._tokens, output)
        self._carried = self._carried.read(step)
        logits = output.last_logits().float()
        normaliser = logits.logsumexp(1)
        if not torch.isfinite(normaliser).all():
            raise ModelError("the model's log-probabilities are not numbers (NaN): damaged or diverged parameters")
        self._carried.restrict(logits, step)
        stuck = logits.amax(1) == -torch.inf
        self.stop(self._rows[stuck])
        logits[stuck] = 0.0  # whatever is drawn there
        tokens = _draw(self._truncated(logits, sentences), self._numbers[self._rows, self._steps])
        log_probabilities = logits.gather(1, tokens[:, None]).squeeze(1) - normaliser
        self._steps += 1
        self._tokens = tokens[:, None]
        live = (~self._over[self._rows]).nonzero().squeeze(1)
        rows, tokens = self._rows[live], tokens[live]
        self.stop(rows[(tokens == EOS) | (self._room[rows] <= self._steps)])
        return Draw(rows, tokens, log_probabilities[live])

    def stop(self, rows: Tensor) -> None:
        """Samples `rows` (int64) are over: no more is drawn for them."""
        self._over[rows] = True

    def _leave(self) -> None:
        """Take prompts whose samples are all over out of the batch."""
        over = self._over[self._rows].view(-1, self._width).all(1)
        if over.any():
            stays = (~over).repeat_interleave(self._width).nonzero().squeeze(1)
            self._rows, self._tokens = self._rows[stays], self._tokens[stays]
            if len(stays):
                self._state = self._state.reorder(stays, self._width)
                self._carried = self._carried.reorder(stays, self._width)

    def _truncated(self, logits: Tensor, sentences: NDArray[np.int64]) -> Tensor:
        """Each row by the config of its prompt."""
        configs = [self._configs[sentence] for sentence in sentences]
        kinds = list(dict.fromkeys(configs))
        if len(kinds) == 1:
            return truncated(logits, kinds[0])
        which = torch.tensor([kinds.index(config) for config in configs], device=logits.device)
        which = which.repeat_interleave(self._width)
        result = torch.empty_like(logits)
        for number, config in enumerate(kinds):
            result[which == number] = truncated(logits[which == number], config)
        return result


def sample(
    decoder: Decoder,
    prompts: Prompts,
    config: SamplingConfig | Sequence[SamplingConfig],
    numbers: Tensor,
    rules: Sequence[Restriction] = (),
) -> list[list[Hypothesis]]:
    """Draw outputs that go on from each of B prompts, one for each row of its `numbers`; arguments as of `Draws`.

    Uniform numbers give independent samples, and the same numbers the same output whatever batch it stands in, up to
    rounding.

    A hypothesis' log_probability is the model's own, natural, without temperature or truncation, its EOS counted; its
    score is the same number. finished is False where the longest output was reached before an EOS. The decoder should
    be in evaluation mode. Raises ModelError where the model's log-probabilities are NaN.
    """
    sentences, width = numbers.shape[:2]
    longest = int((prompts.limits - prompts.prefix_lengths).max(initial=0))
    written = torch.full((sentences * width, longest + 1), _NONE, dtype=torch.int64, device=prompts.tokens.device)
    draws = Draws(decoder, prompts, config, numbers, rules)
    before = draws.prefix_log_probabilities.double()
    totals = before.sum(1).repeat_interleave(width)
    told = [one.token_scores for one in each(config, sentences)]
    steps = torch.zeros(written.shape if any(told) else (0, 0), dtype=torch.float64, device=written.device)
    for step, drawn in enumerate(draws):
        written[drawn.rows, step] = drawn.tokens
        totals[drawn.rows] += drawn.log_probabilities.double()
        if len(steps):
            steps[drawn.rows, step] = drawn.log_probabilities.double()
    found: list[list[Hypothesis]] = [[] for _ in range(sentences)]
    prefixes = prompts.prefixes()
    for row, (text, total) in enumerate(zip(written.tolist(), totals.tolist(), strict=True)):
        finished = EOS in text
        tokens = (*prefixes[row // width], *text[: text.index(EOS if finished else _NONE)])
        scores: tuple[float, ...] = ()
        if told[row // width]:
            given = len(prefixes[row // width])
            drawn_ones = steps[row, : len(tokens) + finished - given]
            scores = (*before[row // width, before.size(1) - given :].tolist(), *drawn_ones.tolist())
        found[row // width].append(Hypothesis(tokens, total, total, finished, token_log_probabilities=scores))
    return found


def truncated(logits: Tensor, config: SamplingConfig) -> Tensor:
    """Logits (R, V) divided by the temperature, −∞ for tokens that top_k and top_p rule out."""
    logits = logits / config.temperature
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
