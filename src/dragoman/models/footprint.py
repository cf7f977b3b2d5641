"""Estimates of the memory that a model needs for a sentence, measured on short sentences for any architecture."""

import weakref
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from dragoman.models.interface import Model, TensorTree, Trial, has_decoder, memories, tensors

SHORT_TRIAL, LONG_TRIAL = 128, 2048
"""Tokens. Texts up to the long trial are measured at their own length. Beyond it, memory that grows more slowly from
there on, such as that of a window of more than 1024 tokens, is overestimated."""

_DECODING = 8
"""Upper bound of the memory of a decoder that reads a whole trial at once, relative to the encoder."""

_BLOCK_OVERHEAD = 1.4
"""Only powers of two are measured; a partially filled block takes up to this factor more memory per token."""


@dataclass(frozen=True)
class Footprint:
    """Bytes per sentence as polynomials of its length in tokens, lowest power first, for float32.

    training: peak of a forward pass that keeps everything for the backward pass, with source and target of that length.
    encoding: peak of the encoder in translation. memory: the source as the decoder stores it. cache: the decoder's
    cache for one hypothesis. measured: length of the longest requested trial in tokens.
    """

    measured: int
    training: tuple[float, ...]
    encoding: tuple[float, ...]
    memory: tuple[float, ...]
    cache: tuple[float, ...]


def evaluate(polynomial: tuple[float, ...], length: int) -> int:
    """Return the bytes for a sentence of `length` tokens."""
    return int(sum(coefficient * float(length) ** power for power, coefficient in enumerate(polynomial)))


def measure(model: Any, longest: int, training: bool) -> Footprint:
    """Run the model on single sentences of up to `longest` tokens, at most 2048.

    training: also measure the activations kept for the backward pass. The model's mode and buffers and the random state
    are restored.
    """
    was_training = model.training
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    state = torch.get_rng_state()
    top = min(max(longest, 16), LONG_TRIAL)
    limit = min((limit.positions for limit in model.limits if limit.positions is not None), default=top)
    lengths = sorted({max(1, min(top, limit) // part) for part in (1, 2, 4)})
    rows = []
    try:
        for length in lengths:
            trial = model.trial(length)
            both = _Peak()
            if training:
                model.train()
                with torch.enable_grad(), both:
                    model(*trial.arguments)
            model.eval()
            with torch.no_grad():
                encoding, memory, cache = _held(model, trial)
            rows.append((_BLOCK_OVERHEAD * both.most, _BLOCK_OVERHEAD * encoding, memory, cache))
    finally:
        model.train(was_training)
        torch.set_rng_state(state)
        for name, buffer in model.named_buffers():
            if name in buffers and buffer.shape == buffers[name].shape:
                buffer.copy_(buffers[name])
    columns = np.array(rows, np.float64).T
    return Footprint(top, *(_fit(np.array(lengths, np.float64), column) for column in columns))


def _held(model: Model, trial: Trial) -> tuple[int, int, int]:
    """Measure the bytes for one text: the encoder's peak, the decoder's memory, and the cache of one hypothesis.

    A model without a decoder has neither memory nor cache.
    """
    with _Peak() as encoding:
        if not has_decoder(model):
            model(*trial.arguments)
            return encoding.most, 0, 0
        memory = model.encode_source(trial.source)
    started = model.decoder.start(memory)
    assert trial.inputs is not None
    _, after = model.decoder.step(trial.inputs, started)
    held = _bytes(started.memory) + _bytes([each.states for each in memories(memory)])
    return encoding.most, held, _bytes(after.cache)


def refine_footprint(footprint: Footprint, model: Any, longest: int, training: bool, free: int) -> Footprint:
    """Measure again on sentences of up to `longest` tokens, if `footprint` was measured on shorter ones.

    Returns `footprint` unchanged if the trial itself would not fit into `free` bytes. A trial takes less time than
    translating a sentence of its length, and lengths are rounded up to powers of two, so few trials are needed.
    """
    trial = min(1 << (longest - 1).bit_length(), LONG_TRIAL)
    needed = max(evaluate(footprint.training, trial), _DECODING * evaluate(footprint.encoding, trial))
    return measure(model, trial, training) if footprint.measured < trial and needed <= free else footprint


def _fit(lengths: np.ndarray, values: np.ndarray) -> tuple[float, ...]:
    """Fit a polynomial with non-negative coefficients by relative least squares, and scale it to bound all points.

    Non-negative coefficients keep steps in the measurements, caused by block allocation, from distorting the fit.
    Returns the coefficients, lowest degree first.
    """
    if not values.all():
        return (0.0,)
    powers = lengths[:, None] ** np.arange(len(lengths))
    nearest, coefficients = np.inf, np.zeros(len(lengths))
    for kept in product((False, True), repeat=len(lengths)):
        found = np.zeros(len(lengths))
        found[list(kept)] = np.linalg.lstsq((powers / values[:, None])[:, kept], np.ones(len(lengths)), rcond=None)[0]
        distance = float(np.square(powers @ found / values - 1).sum())
        if distance < nearest and (found >= 0).all():
            nearest, coefficients = distance, found
    raised = coefficients * (values / (powers @ coefficients)).max()
    return tuple(float(coefficient) for coefficient in raised)


class _Peak(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records in `most` the peak number of bytes of tensors created in the context, for any backend."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.most = self._held = 0
        self._storages: dict[int, weakref.ref[torch.UntypedStorage]] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False, because skipping would make torch import its compiler, which takes a second."""
        return False

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {id(each.untyped_storage()) for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)}
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._add(tensor.untyped_storage(), given)
        self.most = max(self.most, self._held)
        return result

    def _add(self, storage: torch.UntypedStorage, given: set[int]) -> None:
        number, size = id(storage), storage.nbytes()
        if number in self._storages or number in given:  # a view or an in-place result
            return

        def freed(_: object) -> None:
            self._held -= size
            del self._storages[number]

        self._held += size
        self._storages[number] = weakref.ref(storage, freed)


def _bytes(tree: TensorTree) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors(tree))
