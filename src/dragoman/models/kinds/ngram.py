"""An n-gram language model: log-probabilities and back-off weights of all stored n-grams, as a decoder.

p(w | h) is the stored probability of the n-gram h w, or else b(h) · p(w | h'), where b(h) is the back-off weight of
the context h (1 if h is not stored), and h' is h without its first token.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.models.interface import LengthLimit, Memory, State, Trial
from dragoman.models.settings import ModelSettings
from dragoman.text.symbols import BOS
from dragoman.text.tokenizers import VocabularySizes

MAX_ORDER = 16
LOG_ZERO = -99.0
"""log₁₀ of probabilities and weights that are 0, as in SRILM's files."""

LN10 = log(10.0)
MISSING = -1
"""Number of an n-gram that the model does not contain."""


class NgramConfig(ModelSettings):
    """An n-gram language model, which is estimated from counts."""

    kind: Literal["ngram"] = "ngram"
    order: int = Field(
        5,
        ge=1,
        le=MAX_ORDER,
        description="Order n: number of tokens of the longest n-grams. The context is n − 1 tokens.",
    )
    entries: tuple[int, ...] = Field(
        (),
        description="Number of stored n-grams of each order from 2 to n; training sets it. Every token is a unigram.",
    )

    def build_for(self, sizes: VocabularySizes) -> "NgramModel":
        """Build the model without n-grams, which is filled from a model folder.

        Raises ConfigError if the number of entries does not match the order.
        """
        if self.entries and len(self.entries) != self.order - 1:
            raise ConfigError(f"model.entries has {len(self.entries)} numbers, but order {self.order} needs one less")
        return NgramModel(sizes.target, self.entries or (0,) * (self.order - 1))


class NgramTable(NamedTuple):
    """The N n-grams of one order k, sorted by their tokens.

    keys: (N,) int64, (number of the first k − 1 tokens in the table of order k − 1) · V + last token. The n-gram number
    i of order 1 is the token i, and its keys are 0, …, V − 1. log10_probabilities: (N,) float. log10_backoffs: (N,)
    float, of the n-grams as contexts; None for the highest order.
    """

    keys: Tensor
    log10_probabilities: Tensor
    log10_backoffs: Tensor | None


class NgramModel(nn.Module):
    """The tables of all orders, and the decoder that reads them.

    vocabulary: V, number of tokens. order: n. The state of the decoder after a text is the numbers of its last 1 to
    n − 1 tokens in the tables of orders 1 to n − 1, (R, n − 1) int64.
    """

    unbounded = True
    limits = (LengthLimit("target", None, ""),)

    def __init__(self, vocabulary: int, entries: Sequence[int]) -> None:
        """entries: number of n-grams of the orders 2 to n."""
        super().__init__()
        self.vocabulary, self.order = vocabulary, len(entries) + 1
        sizes = (vocabulary, *entries)
        self.keys = nn.ParameterList(_fixed(torch.empty(size, dtype=torch.int64)) for size in entries)
        self.log10_probabilities = nn.ParameterList(_fixed(torch.empty(size)) for size in sizes)
        self.log10_backoffs = nn.ParameterList(_fixed(torch.empty(size)) for size in sizes[:-1])

    @classmethod
    def of(cls, tables: Sequence[NgramTable]) -> "NgramModel":
        """Return a model with these tables, the first of which has one entry for each token."""
        model = cls(len(tables[0].log10_probabilities), [len(table.keys) for table in tables[1:]])
        for index, table in enumerate(tables):
            if index:
                model.keys[index - 1].copy_(table.keys)
            model.log10_probabilities[index].copy_(table.log10_probabilities)
            if table.log10_backoffs is not None and index < model.order - 1:
                model.log10_backoffs[index].copy_(table.log10_backoffs)
        return model

    @property
    def tables(self) -> list[NgramTable]:
        """The tables of all orders."""
        device = self.log10_probabilities[0].device
        keys = [torch.arange(self.vocabulary, device=device), *self.keys]
        backoffs = [*self.log10_backoffs, None]
        return [NgramTable(*each) for each in zip(keys, self.log10_probabilities, backoffs, strict=True)]

    @property
    def config(self) -> NgramConfig:
        """The settings of the model."""
        return NgramConfig(order=self.order, entries=tuple(len(keys) for keys in self.keys))

    @property
    def decoder(self) -> "NgramModel":
        """The model itself."""
        return self

    def start(
        self,
        memory: Memory | None,
        attention: bool = False,
        left_padding: Tensor | None = None,
        capacity: int | None = None,
    ) -> State:
        """See `Decoder.start`. The context is empty; the first token must be BOS, before which no token counts."""
        return State(None, None, attention=attention, left_padding=left_padding, capacity=capacity)

    def step(self, tokens: Tensor, state: State) -> tuple["NgramOutput", State]:
        """See `Decoder.step`."""
        contexts = self.contexts(tokens, state.cache)
        output = NgramOutput(self, contexts)
        return output, state.after(tokens.size(1), contexts[:, -1])

    def contexts(self, tokens: Tensor, before: Tensor | None) -> Tensor:
        """Return the contexts after each token, (R, T, n − 1) int64: the numbers of the last 1 to n − 1 tokens.

        tokens: (R, T) int64. before: (R, n − 1), the context before the first token; None: no tokens. Numbers are
        `MISSING` for contexts that are not in the model.
        """
        if tokens.numel() and not 0 <= int(tokens.min()) <= int(tokens.max()) < self.vocabulary:
            raise IndexError(f"a token is outside the vocabulary of {self.vocabulary} entries")
        numbers = [tokens] if self.order > 1 else []
        for index in range(1, self.order - 1):
            first = tokens.new_full((len(tokens), 1), MISSING) if before is None else before[:, index - 1 : index]
            preceding = torch.cat([first, numbers[-1][:, :-1]], 1)
            numbers.append(self._find(index + 1, preceding, tokens))
        return torch.stack(numbers, 2) if numbers else tokens.new_empty((*tokens.shape, 0))

    def score(self, contexts: Tensor, tokens: Tensor) -> Tensor:
        """Return log₁₀ p of tokens (N,) int64 after contexts (N, n − 1) int64, (N,) float32."""
        scores: Tensor = self.log10_probabilities[0][tokens]
        for order in range(2, self.order + 1):
            context = contexts[:, order - 2]
            found = self._find(order, context, tokens)
            backed_off = scores + self._backoff(order - 1, context)
            if not len(self.keys[order - 2]):
                scores = backed_off
                continue
            scores = torch.where(found >= 0, self.log10_probabilities[order - 1][found.clamp_min(0)], backed_off)
        return scores

    def distributions(self, contexts: Tensor) -> Tensor:
        """Return log₁₀ p of all tokens after contexts (N, n − 1) int64, (N, V) float32."""
        rows: Tensor = self.log10_probabilities[0].repeat(len(contexts), 1)
        for order in range(2, self.order + 1):
            context, keys = contexts[:, order - 2], self.keys[order - 2]
            rows += self._backoff(order - 1, context).unsqueeze(1)
            present = (context >= 0).nonzero().squeeze(1)
            firsts = context[present] * self.vocabulary
            begins, ends = torch.searchsorted(keys, firsts), torch.searchsorted(keys, firsts + self.vocabulary)
            counts = ends - begins
            starts = torch.repeat_interleave(begins - (counts.cumsum(0) - counts), counts)
            following = starts + torch.arange(len(starts), device=starts.device)  # numbers of all n-grams h w
            row = torch.repeat_interleave(present, counts)
            rows[row, keys[following] % self.vocabulary] = self.log10_probabilities[order - 1][following]
        return rows

    def trial(self, length: int) -> Trial:
        """See `Model.trial`."""
        device = self.log10_probabilities[0].device
        return Trial((), torch.full((1, length), BOS, dtype=torch.int64, device=device))

    def encode_source(self, source: tuple[Tensor, ...]) -> None:
        """Return None: a language model has no source."""

    def forward(self, inputs: Tensor) -> "NgramOutput":
        """Predict the token that follows each input token. inputs: (B, T) int64."""
        return self.step(inputs, self.start(None))[0]

    def _find(self, order: int, contexts: Tensor, tokens: Tensor) -> Tensor:
        """Return the numbers of n-grams of an order from 2, or MISSING. contexts: numbers of their first tokens."""
        keys = self.keys[order - 2]
        if not len(keys):
            return torch.full_like(tokens, MISSING)
        wanted = contexts * self.vocabulary + tokens
        found = torch.searchsorted(keys, wanted).clamp_max(len(keys) - 1)
        return torch.where((contexts >= 0) & (keys[found] == wanted), found, MISSING)

    def _backoff(self, order: int, contexts: Tensor) -> Tensor:
        """Return log₁₀ b of contexts of an order, 0 for MISSING."""
        weights = self.log10_backoffs[order - 1]
        if not len(weights):
            return torch.zeros(contexts.shape, device=contexts.device)
        return torch.where(contexts >= 0, weights[contexts.clamp_min(0)], 0.0)


@dataclass(frozen=True)
class NgramOutput:
    """The predictions after each token of a step. contexts: (R, T, n − 1) int64, the contexts after the tokens."""

    model: NgramModel
    contexts: Tensor
    attention: None = None

    def logits(self, positions: Tensor | None = None) -> Tensor:
        """See `Output.logits`. The logits are natural log-probabilities."""
        if positions is None:
            rows = self.model.distributions(self.contexts.flatten(0, 1)) * LN10
            return rows.view(*self.contexts.shape[:2], -1)
        return self.model.distributions(self._contexts(positions)) * LN10

    def last_logits(self) -> Tensor:
        """See `Output.last_logits`."""
        return self.model.distributions(self.contexts[:, -1]) * LN10

    def label_log_probabilities(self, positions: Tensor, labels: Tensor) -> Tensor:
        """Return the natural log-probabilities of labels (N,) int64 after positions (N,) int64, as in `logits`."""
        return self.model.score(self._contexts(positions), labels) * LN10

    def _contexts(self, positions: Tensor) -> Tensor:
        if positions.dtype == torch.bool:
            return self.contexts[positions]
        return self.contexts.flatten(0, 1)[positions]


def _fixed(values: Tensor) -> Any:
    return nn.Parameter(values, requires_grad=False)
