"""The computation of a model's outputs for many inputs, in batches of similar length."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from dragoman.base.cancellation import until_cancelled
from dragoman.data.batches.batch import pad
from dragoman.inference.prediction.heads.chains import decode_inputs
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.inference.prediction.heads.trees import chart_trees, generate_trees
from dragoman.models.heads.chart import ChartOutput
from dragoman.models.heads.tagging import ChainOutput
from dragoman.models.heads.tree_decoder import TreeDecoderOutput
from dragoman.models.kinds.encoder_only import EncoderOnly
from dragoman.nn.precision import to_at_least_float32

TOKENS = 4096
"""Maximum number of tokens of a batch, with padding."""


def compute_outputs(
    model: EncoderOnly, inputs: Sequence[ModelInput], device: torch.device, tokens: int = TOKENS
) -> list[Any]:
    """Return the outputs of the head for each input, without padding, in order. The model is in evaluation mode.

    They are arrays, float32. The outputs of a masked language model are the logits (places, V) at the places of an
    input. The output of a tagger with transitions is a `TagSequence`, that of a parser the best tree of the sentence.
    Raises Cancelled between two batches.
    """
    return _compute(model, inputs, device, tokens)


def compute_vectors(
    model: EncoderOnly, inputs: Sequence[ModelInput], device: torch.device, tokens: int = TOKENS
) -> NDArray[np.float32]:
    """Return the vector of each input, (N, d), in order, scaled to length 1. An input contains one text.

    The vector is the mean of the states of all tokens with special symbols, or the last state of a recurrent or causal
    encoder. If the model encodes the texts of a pair separately, it is the vector that the head compares. The model is
    in evaluation mode.
    """

    def vectors(ids: Tensor, mask: Tensor) -> Tensor:
        return functional.normalize(to_at_least_float32(model.vectors(ids, mask)), dim=1)

    computed = _compute(vectors, inputs, device, tokens)
    return np.stack(computed) if computed else np.zeros((0, model.width), np.float32)


@torch.no_grad()
def _compute(
    function: Callable[[Tensor, Tensor], Any], inputs: Sequence[ModelInput], device: torch.device, tokens: int
) -> list[Any]:
    """Return the result of a function of tokens and mask for each input, without padding, in order."""
    outputs: list[Any] = [None] * len(inputs)
    for rows in until_cancelled(length_batches([len(each.ids) for each in inputs], tokens)):
        ids, mask = input_tensors([inputs[row] for row in rows])
        results = function(ids.to(device), mask.to(device))
        if isinstance(results, Tensor):
            for row, result in zip(rows, results.float().cpu().numpy(), strict=True):
                outputs[row] = result[: len(inputs[row].ids)] if result.ndim > 1 else result
            continue
        if (decode := _DECODERS.get(type(results))) is not None:
            for row, decoded in zip(rows, decode(results, [inputs[row] for row in rows]), strict=True):
                outputs[row] = decoded
            continue
        for index, row in enumerate(rows):
            places = index * ids.size(1) + torch.tensor(inputs[row].places, dtype=torch.int64)
            outputs[row] = results.logits(places.to(device)).float().cpu().numpy()
    return outputs


_DECODERS: dict[type, Callable[[Any, Sequence[ModelInput]], Sequence[Any]]] = {
    ChainOutput: decode_inputs,
    TreeDecoderOutput: generate_trees,
    ChartOutput: chart_trees,
}
"""The functions that find the best sequence or tree of each input, for outputs that are not tensors."""


def input_tensors(rows: Sequence[ModelInput]) -> tuple[Tensor, Tensor]:
    """Return tokens int64 (B, S), or with factors (B, S, 1 + K), and their mask (B, S) bool."""
    if all(len(row.ids) == len(rows[0].ids) for row in rows):  # a single text, for which `pad` would take 30 µs
        tokens = torch.from_numpy(np.stack([row.tokens for row in rows]))
        return tokens, torch.ones(tokens.shape[:2], dtype=torch.bool)
    return pad([row.tokens for row in rows])


def length_batches(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Yield the rows of each batch: rows of similar length, and at most `tokens` tokens with padding."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: lengths[row]):
        if batch and lengths[row] * (len(batch) + 1) > tokens:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
