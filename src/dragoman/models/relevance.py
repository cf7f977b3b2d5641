"""`Relevance`: how much each word contributed to an output of a model, by gradient × input or by erasure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan
from threading import get_ident
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dragoman.models.families.ngrams import NgramEncoder
from dragoman.models.kinds.electra_generator import SharedEmbedding
from dragoman.nn.embedding import Embedding


@dataclass(frozen=True)
class RelevantText:
    """A text with the relevance of its words.

    name: such as "question"; empty if there is only one text. words, values: each word, and its relevance; NaN if it is
    undefined.
    """

    name: str
    words: tuple[str, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Relevance:
    """The relevance of each word for an output of a model.

    method: "gradient × input" (Denil et al. 2014): the relevance of a token is Σ_d v_d · ∂output/∂v_d for its vector v,
    and that of a word is the sum over its tokens. A positive value raises the output. The sum over all tokens is the
    output minus its value for zero vectors if the output is a linear function of the vectors, as for the mean of
    embeddings with a linear head. "erasure" (Li et al. 2016): the output minus the output for the text without the
    word.

    output: describes the output, such as "logit of 'sports'". value: its value. texts: the texts with their words.
    symbols: the relevance of the special symbols together; 0 for erasure.
    """

    method: Literal["gradient × input", "erasure"]
    output: str
    value: float
    texts: tuple[RelevantText, ...]
    symbols: float

    @property
    def total(self) -> float:
        """The sum over all words and special symbols."""
        return self.symbols + sum(sum(text.values) for text in self.texts)

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """Return the words (N,) and their relevance (N,) float64 of text n, from 0, as `words.n` and `NAME.n`."""
        arrays: dict[str, np.ndarray] = {}
        for number, text in enumerate(self.texts):
            arrays[f"{name}.{number}"] = np.array(text.values, np.float64)
            arrays[f"words.{number}"] = np.array(text.words, dtype=np.str_)
        return arrays

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON types."""
        texts = [
            {
                "name": text.name,
                "words": list(text.words),
                "values": [None if isnan(value) else value for value in text.values],
            }
            for text in self.texts
        ]
        if self.method == "erasure":
            return {"method": self.method, "output": self.output, "value": self.value, "texts": texts}
        return {
            "method": self.method,
            "output": self.output,
            "value": self.value,
            "symbols": self.symbols,
            "sum": self.total,
            "texts": texts,
        }


def gradient_times_input(
    model: nn.Module, inputs: Sequence[Tensor], output: Callable[[Any], Tensor]
) -> tuple[float, NDArray[np.float64]]:
    """Return an output of a model, and gradient × input (N, S) of each token that it embeds.

    inputs: the arguments of the model, which embeds tokens once. N is the number of rows that it embeds, usually one.
    output: selects a scalar of the value that the model returns. See `gradients_times_inputs`.
    """
    values, (products,) = gradients_times_inputs(model, inputs, lambda found: output(found).reshape(1))
    return float(values[0]), products[0]


def gradients_times_inputs(
    model: nn.Module, inputs: Sequence[Tensor], outputs: Callable[[Any], Tensor]
) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """Return M outputs of a model (M,), and gradient × input (M, N, S) of the tokens of each call of an embedding.

    inputs: the arguments of the model. outputs: selects M numbers of the value that the model returns. N is the number
    of rows. The model is in evaluation mode, and embeds the source before the target. Vectors of positions and segments
    are not part of the tokens' vectors. Computations in other threads are not affected.
    """
    modules = [each.shared if isinstance(each, SharedEmbedding) else each for each in model.modules()]
    tables = dict.fromkeys(module.tokens for module in modules if isinstance(module, Embedding | NgramEncoder))
    recorded: list[Tensor] = []
    thread = get_ident()

    def replace(module: nn.Module, arguments: Any, vectors: Tensor) -> Tensor:
        if get_ident() != thread:
            return vectors
        recorded.append(vectors.detach().requires_grad_())
        return recorded[-1]

    handles = [table.register_forward_hook(replace) for table in tables]
    try:
        # the fused kernels of recurrent layers have no gradients in evaluation mode
        with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
            values = outputs(model(*inputs))
            gradients = [
                torch.autograd.grad(value, recorded, retain_graph=True, allow_unused=True) for value in values.unbind()
            ]
    finally:
        for handle in handles:
            handle.remove()
    products = [
        torch.stack(
            [
                torch.zeros(vectors.shape[:-1], dtype=torch.float64)
                if row[number] is None
                else (row[number].double() * vectors.detach().double()).sum(-1).cpu()
                for row in gradients
            ]
        ).numpy()
        for number, vectors in enumerate(recorded)
    ]
    return values.detach().double().cpu().numpy(), products


def words_of_tokens(
    spans: Sequence[tuple[int, int]], units: Sequence[tuple[int, int]]
) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the spans of words, and the index of each token's word, or −1.

    spans: the characters of each token; empty for a space, and for a further piece of the same character. units: the
    spans of words and punctuation marks. Units that a token covers together form one word. Words after the last token
    are left out. An empty span belongs to the word before it.
    """
    words: list[tuple[int, int]] = []
    for start, end in sorted({*units, *(span for span in spans if span[0] < span[1])}):
        if words and start < words[-1][1]:
            words[-1] = (words[-1][0], max(words[-1][1], end))
        else:
            words.append((start, end))
    owners, current = [], -1
    for start, end in spans:
        if start < end:
            current = max(number for number, word in enumerate(words) if word[0] <= start)
        owners.append(current)
    read = max((end for _, end in spans), default=0)
    return [word for word in words if word[0] < read], owners
