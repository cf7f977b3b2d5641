"""Estimates of a model's memory use per sentence, extrapolated from measurements on short sentences."""

import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from dragoman.models.interface import Model, TensorTree, Trial, has_decoder, memories, tensors

SHORT_TRIAL, LONG_TRIAL = 128, 2048
"""Lengths of the first and of the longest trial in tokens. The estimate is extrapolated for longer texts. It is too
high if memory grows more slowly beyond 2048 tokens, as with an attention window of more than 1024 tokens."""

_DECODER_FACTOR = 8
"""Upper bound of the peak memory of a decoder that processes a whole trial at once, relative to the encoder's peak."""

_BLOCK_OVERHEAD = 1.4
"""Upper bound of the additional memory per token, as a factor, for lengths that are not powers of two and therefore
leave a block of memory partially filled."""


@dataclass(frozen=True)
class Footprint:
    """Bytes per sentence in float32, as polynomials of the sentence length in tokens, lowest power first.

    training: peak of a forward pass that keeps all activations for the backward pass; source and target have the same
    length. encoding: peak of the encoder in translation. memory: the source representation that the decoder stores.
    cache: the decoder's cache for one hypothesis. measured_length: maximum trial length in tokens.
    """

    measured_length: int
    training: tuple[float, ...]
    encoding: tuple[float, ...]
    memory: tuple[float, ...]
    cache: tuple[float, ...]


def evaluate_polynomial(polynomial: tuple[float, ...], length: int) -> int:
    """Return the number of bytes for a sentence of `length` tokens."""
    return int(sum(coefficient * float(length) ** power for power, coefficient in enumerate(polynomial)))


def measure_footprint(model: Any, longest: int, training: bool) -> Footprint:
    """Measure the memory use on single sentences of up to `longest` tokens, at most 2048.

    training: also measure the activations kept for the backward pass. The training mode, the buffers and the random
    state are restored afterwards.
    """
    lengths = trial_lengths(model, longest)
    return fit_footprint(longest, lengths, measure_trials(model, lengths, training))


def trial_lengths(model: Model, longest: int) -> list[int]:
    """Return the numbers of tokens of the sentences that `measure_footprint` runs, the shortest first."""
    max_length = _measured_length(longest)
    limit = min((limit.positions for limit in model.limits if limit.positions is not None), default=max_length)
    return sorted({max(1, min(max_length, limit) // divisor) for divisor in (1, 2, 4)})


def measure_trials(model: Any, lengths: Sequence[int], training: bool) -> np.ndarray:
    """Return the bytes (lengths, 4) of single sentences: the values of `Footprint`'s polynomials. See there."""
    was_training = model.training
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    state = torch.get_rng_state()
    measurements = []
    try:
        for length in lengths:
            trial = model.trial(length)
            training_memory = _PeakMemory()
            if training:
                model.train()
                with torch.enable_grad(), training_memory:
                    model(*trial.arguments)
            model.eval()
            with torch.no_grad():
                encoding, memory, cache = _measure_inference(model, trial)
            measurements.append((_BLOCK_OVERHEAD * training_memory.peak, _BLOCK_OVERHEAD * encoding, memory, cache))
    finally:
        model.train(was_training)
        torch.set_rng_state(state)
        for name, buffer in model.named_buffers():
            if name in buffers and buffer.shape == buffers[name].shape:
                buffer.copy_(buffers[name])
    return np.array(measurements, np.float64)


def fit_footprint(longest: int, lengths: Sequence[int], measurements: np.ndarray) -> Footprint:
    """Return the footprint that fits the measurements (lengths, 4) of trials for up to `longest` tokens."""
    columns = measurements.T
    return Footprint(_measured_length(longest), *(_fit(np.array(lengths, np.float64), column) for column in columns))


def _measured_length(longest: int) -> int:
    return min(max(longest, 16), LONG_TRIAL)


def _measure_inference(model: Model, trial: Trial) -> tuple[int, int, int]:
    """Return the bytes for one text: the encoder's peak, the decoder's memory, and the cache of one hypothesis.

    The last two are 0 for a model without a decoder.
    """
    with _PeakMemory() as encoding:
        if not has_decoder(model):
            model(*trial.arguments)
            return encoding.peak, 0, 0
        memory = model.encode_source(trial.source)
    initial_state = model.decoder.start(memory)
    assert trial.inputs is not None
    _, state = model.decoder.step(trial.inputs, initial_state)
    memory_bytes = _bytes(initial_state.memory) + _bytes([each.states for each in memories(memory)])
    return encoding.peak, memory_bytes, _bytes(state.cache)


def refine_footprint(footprint: Footprint, model: Any, longest: int, training: bool, free: int) -> Footprint:
    """Repeat the measurement on sentences of up to `longest` tokens if `footprint` was measured on shorter sentences.

    Returns `footprint` unchanged if a trial of this length would not fit into `free` bytes. A trial takes less time
    than translating a sentence of the same length. Lengths are rounded up to powers of two, so few trials are needed.
    """
    length = min(1 << (longest - 1).bit_length(), LONG_TRIAL)
    required = max(
        evaluate_polynomial(footprint.training, length),
        _DECODER_FACTOR * evaluate_polynomial(footprint.encoding, length),
    )
    if footprint.measured_length >= length or required > free:
        return footprint
    return measure_footprint(model, length, training)


def _fit(lengths: np.ndarray, values: np.ndarray) -> tuple[float, ...]:
    """Fit a polynomial with non-negative coefficients by relative least squares, and scale it to an upper bound.

    Block allocation causes steps in the measurements. Because coefficients are non-negative, these steps do not
    distort the fit. Returns the coefficients, lowest degree first.
    """
    if not values.all():
        return (0.0,)
    powers = lengths[:, None] ** np.arange(len(lengths))
    best_error, best = np.inf, np.zeros(len(lengths))
    for support in product((False, True), repeat=len(lengths)):
        coefficients = np.zeros(len(lengths))
        matrix = (powers / values[:, None])[:, support]
        coefficients[list(support)] = np.linalg.lstsq(matrix, np.ones(len(lengths)), rcond=None)[0]
        error = float(np.square(powers @ coefficients / values - 1).sum())
        if error < best_error and (coefficients >= 0).all():
            best_error, best = error, coefficients
    scaled = best * (values / (powers @ best)).max()
    return tuple(float(coefficient) for coefficient in scaled)


class _PeakMemory(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records in `peak` the maximum number of bytes of live tensors created in the context, on any device."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak = self._current = 0
        self._storages: dict[int, weakref.ref[torch.UntypedStorage]] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False, because skipping would make torch import its compiler, which takes a second."""
        return False

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        inputs = {id(each.untyped_storage()) for each in _flat_tensors((*args, *kwargs.values()))}
        result = function(*args, **kwargs)
        for tensor in _flat_tensors((result,)):
            self._add(tensor.untyped_storage(), inputs)
        self.peak = max(self.peak, self._current)
        return result

    def _add(self, storage: torch.UntypedStorage, inputs: set[int]) -> None:
        key, size = id(storage), storage.nbytes()
        if key in self._storages or key in inputs:  # a view or an in-place result
            return

        def on_free(_: object) -> None:
            self._current -= size
            del self._storages[key]

        self._current += size
        self._storages[key] = weakref.ref(storage, on_free)


def _flat_tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    """Yield the tensors among the arguments or results of an operation, which are also in lists and tuples.

    `torch.utils._pytree.tree_leaves` would take most of the time of a measurement.
    """
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _flat_tensors(value)


def _bytes(tree: TensorTree) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors(tree))
