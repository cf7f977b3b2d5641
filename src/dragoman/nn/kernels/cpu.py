"""The kernels of a CPU, in C (`native/source/training/`): an implementation of `Kernels`, each for one thread."""

from collections.abc import Sequence
from ctypes import byref, c_int64, c_void_p

import torch
from torch import Tensor

from dragoman.native.training import Rows, library
from dragoman.nn.kernels.interface import DropoutDraw, Geometry, NormInputs, NormResults, Rotation


def attend(
    inputs: tuple[Tensor, Tensor, Tensor], out: Tensor, starts: tuple[Tensor, Tensor], geometry: Geometry
) -> None:
    """See `Kernels.attend`. Raises MemoryError."""
    rows = _rows(inputs, out, starts, geometry)
    addresses = (each.data_ptr() for each in (*inputs, out))
    _check(library().dragoman_training_attend(byref(rows), *addresses, _wide(out)))


def differentiate_attention(
    inputs: tuple[Tensor, Tensor, Tensor],
    gradient: Tensor,
    gradients: tuple[Tensor, Tensor, Tensor],
    starts: tuple[Tensor, Tensor],
    geometry: Geometry,
) -> None:
    """See `Kernels.differentiate_attention`. Raises MemoryError."""
    rows = _rows(inputs, gradient, starts, geometry)
    addresses = (each.data_ptr() for each in (*inputs, gradient, *gradients))
    _check(library().dragoman_training_differentiate_attention(byref(rows), *addresses, _wide(gradient)))


def rotate(vectors: Tensor, rotation: Rotation, heads: tuple[int, int], inverse: bool) -> None:
    """See `Kernels.rotate`."""
    library().dragoman_training_rotate(
        vectors.data_ptr(),
        rotation.table.data_ptr(),
        rotation.positions.data_ptr(),
        *vectors.shape,
        *heads,
        inverse,
        _wide(vectors),
    )


def drop(values: Tensor, out: Tensor, draw: DropoutDraw) -> None:
    """See `Kernels.drop`."""
    _drop(None, values.data_ptr(), out, draw)


def add(states: Tensor, result: Tensor, out: Tensor, draw: DropoutDraw) -> None:
    """See `Kernels.add`."""
    _drop(states.data_ptr(), result.data_ptr(), out, draw)


def normalise(inputs: NormInputs, results: NormResults, epsilon: float, draw: DropoutDraw) -> None:
    """See `Kernels.normalise`."""
    states, result, weight, bias = inputs
    library().dragoman_training_normalise(
        states.data_ptr(),
        None if result is None else result.data_ptr(),
        *(each.data_ptr() for each in (results.sums, results.out, weight, bias, results.means, results.deviations)),
        len(results.means),
        len(weight),
        epsilon,
        *_seed_and_rate(draw),
        _wide(states),
    )


def differentiate_norm(
    gradient: Tensor,
    saved: tuple[Tensor, Tensor, Tensor, Tensor],
    gradients: tuple[Tensor, Tensor | None, Tensor],
    draw: DropoutDraw,
) -> None:
    """See `Kernels.differentiate_norm`. Raises MemoryError."""
    state_gradient, result_gradient, parameters = gradients
    _check(
        library().dragoman_training_differentiate_norm(
            *(each.data_ptr() for each in (gradient, *saved, state_gradient)),
            None if result_gradient is None else result_gradient.data_ptr(),
            parameters.data_ptr(),
            parameters[1].data_ptr(),
            len(saved[2]),
            parameters.size(1),
            *_seed_and_rate(draw),
            _wide(gradient),
        )
    )


def sum_rows(gradient: Tensor, activations: Tensor | None, change: Tensor, sums: Tensor) -> None:
    """See `Kernels.sum_rows`. Raises MemoryError."""
    _check(
        library().dragoman_training_sum_rows(
            gradient.data_ptr(),
            None if activations is None else activations.data_ptr(),
            change.data_ptr(),
            sums.data_ptr(),
            *gradient.shape,
            _wide(gradient),
        )
    )


def differentiate_logits(
    logits: Tensor, labels: Tensor, kept: Tensor, losses: tuple[Tensor, Tensor], smoothing: float
) -> None:
    """See `Kernels.differentiate_logits`. Raises MemoryError."""
    addresses = (each.data_ptr() for each in (logits, labels, kept, *losses))
    _check(library().dragoman_training_differentiate_entropy(*addresses, *logits.shape, smoothing, _wide(logits)))


def narrow(wide: Sequence[Tensor], narrow: Sequence[Tensor]) -> None:
    """Round tensors in float32 to others of the same shapes in bfloat16, all contiguous."""
    count = len(wide)
    arrays = ((c_void_p * count)(*(each.data_ptr() for each in tensors)) for tensors in (wide, narrow))
    library().dragoman_training_narrow(*arrays, (c_int64 * count)(*(each.numel() for each in wide)), count)


def sum_widened(parts: Sequence[Tensor]) -> Tensor:
    """Return the sum of tensors of one shape in bfloat16, in their order, in float32."""
    parts = [each.contiguous() for each in parts]
    out = torch.empty(parts[0].shape)
    addresses = (c_void_p * len(parts))(*(each.data_ptr() for each in parts))
    library().dragoman_training_sum_widened(addresses, len(parts), out.data_ptr(), out.numel())
    return out


def _rows(
    inputs: tuple[Tensor, Tensor, Tensor], out: Tensor, starts: tuple[Tensor, Tensor], geometry: Geometry
) -> Rows:
    queries, keys, _ = inputs
    return Rows(
        *(each.data_ptr() for each in starts),
        len(starts[0]) - 1,
        len(queries),
        len(keys),
        *(each.stride(0) for each in (*inputs, out)),
        geometry.heads,
        geometry.key_width,
        geometry.value_width,
        geometry.causal,
        geometry.scale,
    )


def _drop(states: int | None, values: int, out: Tensor, draw: DropoutDraw) -> None:
    library().dragoman_training_drop(states, values, out.data_ptr(), out.numel(), *_seed_and_rate(draw), _wide(out))


def _seed_and_rate(draw: DropoutDraw) -> tuple[int, float]:
    return int(draw.seed), draw.rate * float(draw.factor)


def _wide(tensor: Tensor) -> bool:
    """Return whether elements are float32; otherwise they are bfloat16."""
    return tensor.dtype == torch.float32


def _check(failed: int) -> None:
    if failed:
        raise MemoryError("not enough memory for an operation of training")
