"""How much memory a model takes for so long a sentence: measured on short ones, so that it holds for every variant."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dragoman.models.interface import Tree, tree_map
from dragoman.models.seq2seq import Seq2Seq
from dragoman.text.special import BOS

SHORT_TRIAL, LONG_TRIAL = 512, 2048
"""Tokens. What is compared in blocks, or by another kernel from some length on, shows only in the long trial how it
grows; it takes seconds, and is made where the short one says that a sentence does not fit the memory."""

_HELD_IN_TRIAL = 8
"""A trial's whole forward pass holds at most so many times what is estimated for the encoder's largest layer."""


@dataclass(frozen=True)
class Footprint:
    """Bytes a sentence as polynomials of its length in tokens, lowest power first, for float32.

    training: kept for the backward pass, source and target both of that length. encoding: at work inside the encoder.
    memory: what a decoder holds of the source. cache: what it holds of one hypothesis. measured: tokens of the longest
    trial asked for.
    """

    measured: int
    training: tuple[float, ...]
    encoding: tuple[float, ...]
    memory: tuple[float, ...]
    cache: tuple[float, ...]


def evaluate(polynomial: tuple[float, ...], length: int) -> int:
    """The bytes for a sentence of `length` tokens."""
    return int(sum(coefficient * float(length) ** power for power, coefficient in enumerate(polynomial)))


def measure(model: Seq2Seq, longest: int, training: bool) -> Footprint:
    """Run the model on single sentences of up to `longest` tokens, of which 2048 tell as much as more would.

    training: with what the backward pass keeps, which only a run that trains needs to know. Modes, buffers and random
    state of the model are left as they were.
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
            kept = 0
            if training:
                model.train()
                with _saved(model) as saved:
                    model(*_sentence(model, length))
                kept = sum(saved)
            model.eval()
            tokens, keep, inputs = _sentence(model, length)
            with _saved(model) as inside:
                memory = model.encode(tokens, keep)
            with torch.no_grad():
                started = model.decoder.start(memory)
                _, after = model.decoder.step(inputs, started)
            held = _bytes(started.memory) + _bytes(memory.states)
            rows.append((kept, 4 * max(inside, default=0), held, _bytes(after.cache)))
    finally:
        model.train(was_training)
        torch.set_rng_state(state)
        for name, buffer in model.named_buffers():
            if name in buffers and buffer.shape == buffers[name].shape:
                buffer.copy_(buffers[name])
    columns = np.array(rows, np.float64).T
    return Footprint(top, *(_fit(np.array(lengths, np.float64), column) for column in columns))


def refined(footprint: Footprint, model: Seq2Seq, longest: int, training: bool, free: int) -> Footprint:
    """A footprint measured on longer sentences than the given one, for sentences of `longest` tokens.

    The same one where none is longer, or where the trial itself would not fit into `free` bytes.
    """
    trial = min(longest, LONG_TRIAL)
    kept = evaluate(footprint.training, trial) + _HELD_IN_TRIAL * evaluate(footprint.encoding, trial)
    return measure(model, trial, training) if footprint.measured < trial and kept <= free else footprint


def _fit(lengths: np.ndarray, values: np.ndarray) -> tuple[float, ...]:
    """A parabola through the points, its coefficients never below zero."""
    degree = len(lengths) - 1
    coefficients = np.polynomial.polynomial.polyfit(lengths, values, degree)
    return tuple(float(max(value, 0.0)) for value in coefficients)


def _sentence(model: Seq2Seq, length: int) -> tuple[Tensor, Tensor, Tensor]:
    device = model.decoder.projection.weight.device
    tokens = torch.full((1, length), BOS, dtype=torch.int64, device=device)
    source = tokens if model.vectors is None else torch.zeros(1, length, model.vectors, device=device)
    return source, torch.ones_like(tokens, dtype=torch.bool), tokens


@contextmanager
def _saved(model: Seq2Seq) -> Iterator[list[int]]:
    """The bytes of each tensor that the backward pass would need, parameters not counted, each storage once."""
    seen = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    sizes: list[int] = []
    kept: list[Tensor] = []  # alive, so that no storage is freed and its address taken again

    def pack(tensor: Tensor) -> Tensor:
        address = tensor.untyped_storage().data_ptr()
        if address not in seen:
            seen.add(address)
            sizes.append(tensor.untyped_storage().nbytes())
            kept.append(tensor)
        return tensor

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield sizes


def _bytes(tree: Tree) -> int:
    sizes: list[int] = []

    def add(tensor: Tensor) -> Tensor:
        sizes.append(tensor.numel() * tensor.element_size())
        return tensor

    tree_map(add, tree)
    return sum(sizes)
