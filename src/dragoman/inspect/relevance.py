"""`Relevance`: how much each word of a text contributed to an output of a model, by gradient × input."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dragoman.nn.embedding import Embedding


@dataclass(frozen=True)
class RelevantText:
    """A text with the relevance of its words.

    name: such as "question"; empty if there is only one text. words, values: each word, and its relevance.
    """

    name: str
    words: tuple[str, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Relevance:
    """The relevance of each word for an output of a model (Denil et al. 2014).

    The relevance of a token is Σ_d v_d · ∂output/∂v_d for its vector v, and that of a word is the sum over its tokens.
    A positive value raises the output. The sum over all tokens is the output minus its value for zero vectors if the
    output is a linear function of the vectors, as for the mean of embeddings with a linear head.

    output: describes the output, such as "logit of 'sports'". value: its value. texts: the texts with their words.
    symbols: the relevance of the special symbols together.
    """

    output: str
    value: float
    texts: tuple[RelevantText, ...]
    symbols: float

    @property
    def total(self) -> float:
        """The sum over all words and special symbols."""
        return self.symbols + sum(sum(text.values) for text in self.texts)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The words (N,) and their relevance (N,) float64 of text n, counted from 0, as `relevance.n` and `words.n`."""
        arrays: dict[str, np.ndarray] = {}
        for number, text in enumerate(self.texts):
            arrays[f"relevance.{number}"] = np.array(text.values, np.float64)
            arrays[f"words.{number}"] = np.array(text.words, dtype=np.str_)
        return arrays

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON types."""
        texts = [{"name": text.name, "words": list(text.words), "values": list(text.values)} for text in self.texts]
        return {"output": self.output, "value": self.value, "symbols": self.symbols, "sum": self.total, "texts": texts}


def gradient_times_input(
    model: nn.Module, inputs: Sequence[Tensor], output: Callable[[Any], Tensor]
) -> tuple[float, NDArray[np.float64]]:
    """Return an output of a model for one row, and gradient × input (S,) of each of its tokens.

    inputs: the arguments of the model, of which the first are the tokens (1, S). output: selects a scalar of the value
    that the model returns. The model is in evaluation mode. Vectors of positions and segments are not part of the
    tokens' vectors.
    """
    (embedding,) = [module for module in model.modules() if isinstance(module, Embedding)]
    recorded: list[Tensor] = []

    def replace(module: nn.Module, arguments: Any, vectors: Tensor) -> Tensor:
        recorded.append(vectors.detach().requires_grad_())
        return recorded[-1]

    handle = embedding.tokens.register_forward_hook(replace)
    try:
        # the fused kernels of recurrent layers have no gradients in evaluation mode
        with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
            value = output(model(*inputs))
            (gradient,) = torch.autograd.grad(value, recorded)
    finally:
        handle.remove()
    products = (gradient.double() * recorded[0].detach().double()).sum(-1)[0]
    return float(value.detach()), products.cpu().numpy()


def sum_over_words(
    spans: Sequence[tuple[int, int]], values: Sequence[float], units: Sequence[tuple[int, int]]
) -> tuple[list[tuple[int, int]], list[float], float]:
    """Return the spans of words, the sum of the values of each word's tokens, and the sum of all other tokens.

    spans: the characters of each token; empty for a space, and for a further piece of the same character. values: of
    each token. units: the spans of words and punctuation marks. Units that a token covers together form one word. Words
    after the last token are left out. An empty span belongs to the word before it.
    """
    words: list[tuple[int, int]] = []
    for start, end in sorted({*units, *(span for span in spans if span[0] < span[1])}):
        if words and start < words[-1][1]:
            words[-1] = (words[-1][0], max(words[-1][1], end))
        else:
            words.append((start, end))
    sums, rest, current = [0.0] * len(words), 0.0, -1
    for (start, end), value in zip(spans, values, strict=True):
        if start < end:
            current = max(number for number, word in enumerate(words) if word[0] <= start)
        if current < 0:
            rest += value
        else:
            sums[current] += value
    read = max((end for _, end in spans), default=0)
    kept = [number for number, word in enumerate(words) if word[0] < read]
    return [words[number] for number in kept], [sums[number] for number in kept], rest
