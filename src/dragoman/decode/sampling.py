"""Ancestral sampling over any `Decoder`: each token is drawn from the model's distribution."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from dragoman.base.cancellation import check_cancelled
from dragoman.base.errors import ModelError
from dragoman.decode.forced import read_prompts
from dragoman.decode.output import OutputConfig, expand_configs
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.restrictions import restrictions
from dragoman.decode.rules.rule import Restriction, Step
from dragoman.decode.search import Hypothesis
from dragoman.models.interface import Decoder
from dragoman.text.symbols import EOS

_LOWEST_TEMPERATURE = 1e-5
"""Below it, sampling is greedy: the quotients could leave the range of float32."""

_NONE = -1
"""Placeholder for a token that was not drawn."""


class SamplingConfig(OutputConfig):
    """Sampling of outputs. Temperature is applied first, then top_k, then top_p."""

    temperature: float = Field(
        default=1.0,
        ge=0,
        le=1e5,
        allow_inf_nan=False,
        description="Divisor of the logits (no unit); values below 1 make likely tokens more likely. 0: always the "
        "most probable token (greedy search).",
    )
    top_k: int | None = Field(
        default=None,
        ge=1,
        le=10**9,
        description="Sample from the k most probable tokens (Fan et al. 2018); null: from all.",
    )
    top_p: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Sample from the smallest set of tokens with at least this total probability (nucleus sampling, "
        "Holtzman et al. 2020); null: from all.",
    )


class GenerationConfig(SamplingConfig):
    """Sampling of texts that continue a prompt."""

    prompt_start: bool = Field(
        True,
        description="Put the start symbol before every prompt, as before every training text. false: only before an "
        "empty prompt, as Hugging Face does with GPT-2.",
    )


def uniforms(seeds: Sequence[tuple[int, ...]], samples: int, length: int) -> Tensor:
    """Return random numbers in [0, 1) for `sample`: (B, samples, length) float64.

    The numbers of a sentence depend only on its seed. They do not change with the batch, its order or the length.
    """
    numbers = [[np.random.default_rng((*seed, index)).random(length) for index in range(samples)] for seed in seeds]
    return torch.from_numpy(np.array(numbers, dtype=np.float64).reshape(len(seeds), samples, length))


class Draw(NamedTuple):
    """The tokens drawn in one step.

    rows: (R,) int64, indices of the samples for which a token was drawn; sample j of prompt i has index i · n + j.
    tokens: (R,) int64, EOS for a sample that ends. log_probabilities: (R,) float32, natural, under the model without
    temperature, restrictions and truncation. best_tokens, best_log_probabilities: (R, K), the K most probable tokens
    that the restrictions allow, best first, with their log-probabilities; None if none were requested.
    """

    rows: Tensor
    tokens: Tensor
    log_probabilities: Tensor
    best_tokens: Tensor | None = None
    best_log_probabilities: Tensor | None = None


class Draws(Iterator[Draw]):
    """An iterator over sampling steps that stops when all samples have ended.

    prefix_log_probabilities: (B, T) float32, log-probabilities of the prefix tokens, which are not drawn;
    right-aligned and padded with 0.

    A sample ends with EOS, at its maximum length, when no token may follow, or when it is passed to `stop`.
    """

    def __init__(
        self,
        decoder: Decoder,
        prompts: Prompts,
        config: SamplingConfig | Sequence[SamplingConfig],
        numbers: Tensor,
        rules: Sequence[Restriction] = (),
        *,
        best: int = 0,
    ) -> None:
        """Start n samples of each of B prompts. best: number of most probable tokens that each `Draw` contains.

        numbers: (B, n, L) in [0, 1), where L is at least the maximum number of tokens after a prefix. config: one
        shared value, or one per prompt. rules: restrictions in addition to those of the config. Token t of sample j of
        prompt i is drawn by inverting the cumulative distribution over token ids at numbers[i, j, t].
        """
        self._decoder, self._width, self._best = decoder, numbers.size(1), best
        self._configs = expand_configs(config, len(prompts))
        device = prompts.tokens.device
        self._numbers = numbers.to(device).flatten(0, 1)
        self._first = prompts.prefix_lengths
        max_new_tokens = torch.from_numpy(prompts.limits - prompts.prefix_lengths).to(device)
        self._max_new_tokens = max_new_tokens.repeat_interleave(self._width)
        # indices of the samples in the batch: for each prompt, either all of its samples or none
        self._rows = torch.arange(len(self._max_new_tokens), device=device)
        self._ended = self._max_new_tokens < 1
        start = read_prompts(decoder, prompts, (*restrictions(self._configs, prompts), *rules))
        prompt_of = torch.div(self._rows, self._width, rounding_mode="floor")
        self._state = start.state.reorder(prompt_of, self._width)
        self._rule_states = start.rule_states.reorder(prompt_of, self._width)
        self._tokens = start.tokens[prompt_of]
        self.prefix_log_probabilities = start.prefixes
        self._steps = 0

    @torch.no_grad()
    def __next__(self) -> Draw:
        """Draw one token for each sample. Raises ModelError if a log-probability of the model is NaN."""
        check_cancelled()
        self._remove_ended_prompts()
        if not len(self._rows):
            raise StopIteration
        output, self._state = self._decoder.step(self._tokens, self._state)
        sentences = (self._rows[:: self._width] // self._width).cpu().numpy()
        step = Step(sentences, self._first[sentences] + self._steps + 1, self._tokens, output)
        self._rule_states = self._rule_states.read(step)
        logits = output.last_logits().float()  # (R, V)
        normaliser = logits.logsumexp(1)  # (R,)
        if not torch.isfinite(normaliser).all():
            raise ModelError("the model's log-probabilities are NaN: its parameters are damaged or have diverged")
        self._rule_states.restrict(logits, step)
        exhausted = logits.amax(1) == -torch.inf
        self.stop(self._rows[exhausted])
        logits[exhausted] = 0.0  # the sample has ended, so the token does not matter
        best = logits.topk(min(self._best, logits.size(1)), 1) if self._best else None
        tokens = _draw(self._truncate(logits, sentences), self._numbers[self._rows, self._steps])
        log_probabilities = logits.gather(1, tokens[:, None]).squeeze(1) - normaliser
        self._steps += 1
        self._tokens = tokens[:, None]
        live = (~self._ended[self._rows]).nonzero().squeeze(1)
        rows, tokens = self._rows[live], tokens[live]
        self.stop(rows[(tokens == EOS) | (self._max_new_tokens[rows] <= self._steps)])
        drawn = Draw(rows, tokens, log_probabilities[live])
        if best is None:
            return drawn
        scores = best.values[live] - normaliser[live, None]
        return drawn._replace(best_tokens=best.indices[live], best_log_probabilities=scores)

    def stop(self, rows: Tensor) -> None:
        """End the samples with indices `rows` (int64): no more tokens are drawn for them."""
        self._ended[rows] = True

    def _remove_ended_prompts(self) -> None:
        """Remove prompts whose samples have all ended from the batch."""
        all_ended = self._ended[self._rows].view(-1, self._width).all(1)
        if all_ended.any():
            remaining = (~all_ended).repeat_interleave(self._width).nonzero().squeeze(1)
            self._rows, self._tokens = self._rows[remaining], self._tokens[remaining]
            if len(remaining):
                self._state = self._state.reorder(remaining, self._width)
                self._rule_states = self._rule_states.reorder(remaining, self._width)

    def _truncate(self, logits: Tensor, sentences: NDArray[np.int64]) -> Tensor:
        """Truncate each row with the config of its prompt."""
        configs = [self._configs[sentence] for sentence in sentences]
        distinct = list(dict.fromkeys(configs))
        if len(distinct) == 1:
            return truncate(logits, distinct[0])
        config_indices = torch.tensor([distinct.index(config) for config in configs], device=logits.device)
        config_indices = config_indices.repeat_interleave(self._width)
        result = torch.empty_like(logits)
        for number, config in enumerate(distinct):
            result[config_indices == number] = truncate(logits[config_indices == number], config)
        return result


def sample(
    decoder: Decoder,
    prompts: Prompts,
    config: SamplingConfig | Sequence[SamplingConfig],
    numbers: Tensor,
    rules: Sequence[Restriction] = (),
) -> list[list[Hypothesis]]:
    """Draw n continuations of each of B prompts; arguments as in `Draws`.

    Uniformly distributed numbers give independent samples. Equal numbers give the same output in any batch, up to
    rounding.

    The `log_probability` of a hypothesis is natural, under the model without temperature and truncation, and includes
    EOS; `score` has the same value. `finished` is False if the maximum length was reached before EOS. The decoder
    should be in evaluation mode. Raises ModelError if a log-probability of the model is NaN.
    """
    draws = Draws(decoder, prompts, config, numbers, rules)
    prefixes = draws.prefix_log_probabilities.double()
    outputs = _Outputs(prompts, expand_configs(config, len(prompts)), numbers.size(1), prefixes)
    for step, drawn in enumerate(draws):
        outputs.add(step, drawn)
    return outputs.hypotheses()


class _Outputs:
    """Collects the drawn tokens of n samples of each of B prompts, for at most L steps."""

    def __init__(self, prompts: Prompts, configs: Sequence[SamplingConfig], samples: int, before: Tensor) -> None:
        """before: (B, T) float64, log-probabilities of the prefix tokens."""
        self._prefixes, self._samples, self._before = prompts.prefixes(), samples, before
        rows, device = len(prompts) * samples, prompts.tokens.device
        longest = int((prompts.limits - prompts.prefix_lengths).max(initial=0))
        self._token_scores = [config.token_scores for config in configs]
        self._tokens = torch.full((rows, longest + 1), _NONE, dtype=torch.int64, device=device)  # (B·n, L + 1)
        self._totals = before.sum(1).repeat_interleave(samples)  # (B·n,)
        shape = self._tokens.shape if any(self._token_scores) else (0, 0)
        self._steps = torch.zeros(shape, dtype=torch.float64, device=device)  # (B·n, L + 1)

    def add(self, step: int, drawn: Draw) -> None:
        """Add the tokens of one step."""
        self._tokens[drawn.rows, step] = drawn.tokens
        self._totals[drawn.rows] += drawn.log_probabilities.double()
        if len(self._steps):
            self._steps[drawn.rows, step] = drawn.log_probabilities.double()

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Return all samples of each prompt."""
        before = self._before
        hypotheses: list[list[Hypothesis]] = [[] for _ in self._prefixes]
        for row, (text, total) in enumerate(zip(self._tokens.tolist(), self._totals.tolist(), strict=True)):
            prompt = row // self._samples
            prefix, finished = self._prefixes[prompt], EOS in text
            tokens = (*prefix, *text[: text.index(EOS if finished else _NONE)])
            scores: tuple[float, ...] = ()
            if self._token_scores[prompt]:
                drawn = self._steps[row, : len(tokens) + finished - len(prefix)]
                scores = (*before[prompt, before.size(1) - len(prefix) :].tolist(), *drawn.tolist())
            hypotheses[prompt].append(Hypothesis(tokens, total, total, finished, token_log_probabilities=scores))
        return hypotheses


def truncate(logits: Tensor, config: SamplingConfig) -> Tensor:
    """Return logits (R, V) divided by the temperature, with −∞ for tokens that top_k and top_p exclude.

    With a temperature of 0, only the most probable token of each row remains.
    """
    if config.temperature < _LOWEST_TEMPERATURE:
        best = logits.argmax(1, keepdim=True)
        return torch.full_like(logits, -torch.inf).scatter_(1, best, 0.0)
    logits = logits / config.temperature
    if config.top_k is not None and config.top_k < logits.size(1):
        smallest = logits.topk(config.top_k, dim=1).values[:, -1:]
        logits = logits.masked_fill(logits < smallest, -torch.inf)
    if config.top_p is not None:
        ordered, order = logits.sort(dim=1, descending=True, stable=True)  # (R, V)
        probabilities = ordered.softmax(1)  # (R, V)
        preceding = probabilities.cumsum(1) - probabilities  # 0 for the most probable token, which is never excluded
        excluded = (preceding >= config.top_p).scatter(1, order, preceding >= config.top_p)
        logits = logits.masked_fill(excluded, -torch.inf)
    return logits


def _draw(logits: Tensor, numbers: Tensor) -> Tensor:
    """Return the first token of each row whose cumulative probability exceeds the number of the row.

    logits: (R, V); numbers: (R,) in [0, 1). Returns (R,) int64.
    """
    cumulative = logits.double().softmax(1).cumsum(1)  # (R, V)
    total = cumulative[:, -1:]
    # the upper bound keeps rounding from selecting a token of probability 0
    positions = torch.minimum(numbers.double()[:, None] * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulative, positions, right=True).squeeze(1)
