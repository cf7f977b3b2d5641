"""A comparison of the kernels with PyTorch's operations on the device that will run them."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.nn.kernels import residual
from dragoman.nn.kernels.attention import packed_attention
from dragoman.nn.kernels.cross_entropy import differentiate_logits
from dragoman.nn.kernels.interface import Geometry
from dragoman.nn.kernels.linear import linear
from dragoman.nn.randomness import use_generator

_TOLERANCE = 0.03
"""Maximum relative difference of results in bfloat16, which has a relative precision of 0.004."""


def differing_kernel(device: torch.device, dtype: torch.dtype = torch.bfloat16) -> str | None:
    """Return the name of a kernel whose result or gradient differs from PyTorch's float32 on a device, or None.

    On a GPU, this compiles the kernels, which takes a few seconds. Raises errors of Triton, compiler and driver.
    """
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(1)
        for name, found, expected in _pairs(device, dtype):
            if not (found.float() - expected.float()).norm() <= _TOLERANCE * expected.float().norm():
                return name
    return None


def _pairs(device: torch.device, dtype: torch.dtype) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield the results of each kernel and PyTorch's results in float32."""

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, device=device).to(dtype).requires_grad_()

    def gradients(
        name: str, found: Tensor, expected: Tensor, inputs: list[Tensor]
    ) -> Iterator[tuple[str, Tensor, Tensor]]:
        gradient = torch.randn_like(found)
        yield name, found, expected
        for one, other in zip(
            torch.autograd.grad(found, inputs, gradient),
            torch.autograd.grad(expected, inputs, gradient.to(expected.dtype)),
            strict=True,
        ):
            yield name, one, other

    states, result, weight, bias = drawn(70, 512), drawn(70, 512), drawn(512), drawn(512)
    wide = [each.float() for each in (states, result, weight, bias)]
    sums = functional.layer_norm(wide[0] + wide[1], (512,), wide[2], wide[3])
    found = residual.normalised(states, result, weight, bias, epsilon=1e-5, rate=0.0)
    yield from gradients("layer normalisation", found, sums, [states, result, weight, bias])
    masks, sums = (
        _seeded(device, make)
        for make in (
            lambda: residual.dropped_out(torch.ones_like(states), 0.3),
            lambda: residual.added(states, result, 0.3),
        )
    )
    yield from gradients("dropout", sums, wide[0] + masks * wide[1], [states, result])
    layer, offset = drawn(90, 512), drawn(90)
    product = functional.linear(wide[0], layer.float(), offset.float()).relu()
    yield from gradients("linear layer", linear(states, layer, offset, relu=True), product, [states, layer, offset])
    joint = drawn(70, 3 * 128)
    starts = torch.tensor([0, 20, 52, 64], dtype=torch.int32, device=device)
    geometry = Geometry((32, 32), 2, 64, 64, 0.125, True)
    identity = torch.eye(3 * 128, device=device, dtype=dtype)
    contexts = packed_attention(
        joint, None, (starts, starts), geometry, projections=[(each, None) for each in identity.chunk(3)]
    )
    expected = []
    for first, end in ((0, 20), (20, 52), (52, 64)):
        query, key, value = (each.reshape(-1, 2, 64).transpose(0, 1) for each in joint[first:end].float().chunk(3, 1))
        context = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        expected.append(context.transpose(0, 1).flatten(1))
    expected.append(contexts.new_zeros(6, 128, dtype=torch.float32))
    yield from gradients("attention", contexts, torch.cat(expected), [joint])
    logits, labels = drawn(9, 5000).detach(), torch.arange(9, device=device)
    probabilities = logits.float().softmax(1) - 0.9 * functional.one_hot(labels, 5000)
    differentiate_logits(logits, labels, torch.ones(9, device=device), 0.1)
    yield "cross-entropy", logits, probabilities


def _seeded(device: torch.device, make: Callable[[], Tensor]) -> Tensor:
    """Return a result that is made from the same random numbers in each call."""
    torch.manual_seed(2)
    with use_generator(torch.default_generator):  # not that of a thread
        return make()
