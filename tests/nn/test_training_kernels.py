"""The kernels of training against PyTorch: in C, and in Triton on a GPU, or on a CPU with TRITON_INTERPRET=1."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from sanitizers import check_with_sanitizers
from torch import Tensor
from torch.nn import functional
from triton_interpreter import INTERPRETED, interpreted_ranges

from dragoman.data.batches.batch import collate
from dragoman.data.batches.shapes import BatchShapes
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.native.build import compiled_library
from dragoman.native.compiler import TRAINING, available
from dragoman.native.training import declared
from dragoman.nn import dropout, feedforward, linear, normalisation, residual
from dragoman.nn.attention import packed
from dragoman.nn.kernels import attention, cpu, cross_entropy
from dragoman.nn.kernels import check as check_kernels
from dragoman.nn.kernels import linear as products
from dragoman.nn.kernels import residual as sums
from dragoman.nn.kernels.attention import packed_attention
from dragoman.nn.kernels.cross_entropy import differentiate_logits
from dragoman.nn.kernels.interface import Geometry, Rotation
from dragoman.nn.kernels.linear import linear as fused_linear
from dragoman.nn.positions.rotary import RotaryConfig
from dragoman.training.objectives.cross_entropy import CrossEntropy

__all__ = ["interpreted_ranges"]


OTHERS = {f"C {each.name}": each for each in available()[1:]}
"""Instruction sets that this processor has, besides the best."""


@pytest.fixture(autouse=True, params=["C", *OTHERS, "Triton"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    """The device of all tensors, whose kernels are in the language and for the instructions of this parameter."""
    found = torch.device("cpu")
    if request.param in OTHERS:
        library = declared(compiled_library(OTHERS[request.param], TRAINING))
        monkeypatch.setattr(cpu, "library", lambda: library)
    if request.param == "Triton":
        pytest.importorskip("triton")
        if not (INTERPRETED or torch.cuda.is_available()):
            pytest.skip("no GPU, and TRITON_INTERPRET=1 is not set")
        from dragoman.nn.kernels.gpu import kernels

        found = torch.device("cpu" if INTERPRETED else "cuda")
        for module in (attention, cross_entropy, products, sums):
            monkeypatch.setattr(module, "kernels", lambda _: kernels)
    with found:
        yield found


def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape).to(dtype).requires_grad_()


def check(found: Tensor, expected: Tensor, inputs: list[Tensor], tolerance: float = 1e-4) -> None:
    """Compare results and their gradients, relative to their size."""
    gradient = torch.randn_like(found)
    pairs = [(found, expected)]
    pairs += zip(
        torch.autograd.grad(found, inputs, gradient),
        torch.autograd.grad(expected, inputs, gradient.to(expected.dtype)),
        strict=True,
    )
    for one, other in pairs:
        assert (one.float() - other.float()).norm() <= tolerance * other.float().norm()


def starts_of(lengths: list[int]) -> Tensor:
    return torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32)


def unchanged(*sizes: int) -> list[tuple[Tensor, None]]:
    """Projections that together return their input."""
    return [(each, None) for each in torch.eye(sum(sizes)).split(sizes)]


def attend(queries: Tensor, keys: Tensor, values: Tensor, scale: float, causal: bool) -> Tensor:
    scores = torch.einsum("qhd,khd->hqk", queries, keys) * scale
    if causal:
        scores = scores.masked_fill(~torch.ones_like(scores[0], dtype=torch.bool).tril(), -torch.inf)
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1), values)


@pytest.mark.parametrize("longest", [7, 33, 100])
@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_of_packed_rows(longest: int, causal: bool) -> None:
    torch.manual_seed(1)
    heads, key, value = 2, 16, 24
    lengths = [5, 1, 0, longest, 3]
    starts, filler = starts_of(lengths), 21
    joint = drawn(sum(lengths) + filler, heads * (2 * key + value))
    found = packed_attention(
        joint,
        None,
        (starts, starts),
        Geometry((longest, longest), heads, key, value, 0.3, causal),
        projections=unchanged(heads * key, heads * key, heads * value),
    )
    expected = []
    for rows in joint[: sum(lengths)].split(lengths):
        if len(rows):
            sizes = [heads * key, heads * key, heads * value]
            query, keys, values = (each.view(len(rows), heads, -1) for each in rows.split(sizes, 1))
            expected.append(attend(query, keys, values, 0.3, causal).flatten(1))
    check(found, torch.cat([*expected, found.new_zeros(filler, heads * value)]), [joint])


def test_attention_of_packed_rows_to_their_sources() -> None:
    torch.manual_seed(2)
    heads, key, value = 2, 64, 64
    targets, sources = [4, 20, 0, 1], [17, 3, 0, 40]
    queries, memory = drawn(40, heads * key), drawn(64, heads * (key + value))
    found = packed_attention(
        queries,
        memory,
        (starts_of(targets), starts_of(sources)),
        Geometry((20, 40), heads, key, value, 0.125, False),
        projections=unchanged(heads * key),
    )
    expected = []
    for row, rows in zip(queries[:25].split(targets), memory[:60].split(sources), strict=True):
        if len(row):
            keys, values = (each.view(len(rows), heads, -1) for each in rows.split(heads * key, 1))
            expected.append(attend(row.view(len(row), heads, -1), keys, values, 0.125, False))
    check(found, torch.cat([torch.cat(expected).flatten(1), found.new_zeros(15, heads * value)]), [queries, memory])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("combined", [False, True])
def test_projections_and_rotation_of_self_attention(bias: bool, combined: bool) -> None:
    torch.manual_seed(12)
    width, heads, key, value, lengths = 20, 2, 6, 8, [5, 9]
    sizes = [heads * key, heads * key, heads * value]
    states = drawn(sum(lengths), width)
    weights, biases = [drawn(size, width) for size in sizes], [drawn(size) if bias else None for size in sizes]
    output = (drawn(width, heads * value), drawn(width) if bias else None)
    relation = RotaryConfig().build_relative(heads, key, key, value)
    columns = torch.cat([torch.arange(length) for length in lengths])
    found = packed_attention(
        states,
        None,
        (starts_of(lengths), starts_of(lengths)),
        Geometry((9, 9), heads, key, value, 0.4, True),
        projections=list(zip(weights, biases, strict=True)),
        output=output if combined else None,
        rotation=Rotation(relation.rotations(9, key, states.device), columns),
    )
    expected = []
    for rows in states.split(lengths):
        query, keys, values = (
            functional.linear(rows, weight, each).view(len(rows), heads, -1)
            for weight, each in zip(weights, biases, strict=True)
        )
        query, keys = (relation.rotate(each.transpose(0, 1)[None], 0)[0].transpose(0, 1) for each in (query, keys))
        expected.append(attend(query, keys, values, 0.4, True).flatten(1))
    result = functional.linear(torch.cat(expected), *output) if combined else torch.cat(expected)
    parameters = [*weights, *biases, *(output if combined else [])]
    check(found, result, [states, *(each for each in parameters if each is not None)], 1e-3)


@pytest.mark.parametrize("residual_sum", [False, True])
@pytest.mark.parametrize("width", [24, 512])
def test_normalised_sums(residual_sum: bool, width: int) -> None:
    torch.manual_seed(3)
    states, result, weight, bias = drawn(3, 7, width), drawn(3, 7, width), drawn(width), drawn(width)
    found = sums.normalised(states, result if residual_sum else None, weight, bias, epsilon=1e-5, rate=0.0)
    total = states + result if residual_sum else states
    inputs = [states, weight, bias, *([result] if residual_sum else [])]
    check(found, functional.layer_norm(total, (width,), weight, bias), inputs)


def test_dropout_has_its_rate_and_the_same_mask_in_both_passes() -> None:
    torch.manual_seed(4)
    ones, zeros = torch.ones(500, 200, requires_grad=True), torch.zeros(500, 200)
    for rate in (0.1, 0.5):
        first, second = (sums.dropped_out(ones, rate) for _ in range(2))
        for dropped in (first, second, sums.added(zeros, ones, rate)):
            assert abs(float((dropped == 0).float().mean()) - rate) < 5e-3
            assert torch.equal(dropped.unique(), torch.tensor([0.0, 1 / (1 - rate)]))
            assert torch.equal(torch.autograd.grad(dropped.sum(), ones)[0], dropped)
            for axis in (0, 1):  # neighbours are independent
                neighbours = torch.stack([dropped.narrow(axis, at, dropped.size(axis) - 1).flatten() for at in (0, 1)])
                assert abs(float(torch.corrcoef(neighbours.detach())[0, 1])) < 0.02
        assert abs(float(torch.corrcoef(torch.stack([first.flatten(), second.flatten()]).detach())[0, 1])) < 0.02


def test_the_normalised_sum_drops_the_same_elements_in_both_passes() -> None:
    states, result, weight, bias = drawn(9, 24), drawn(9, 24), drawn(24), drawn(24)
    torch.manual_seed(5)
    found = sums.normalised(states, result, weight, bias, epsilon=1e-5, rate=0.4)
    torch.manual_seed(5)
    mask = sums.dropped_out(torch.ones(9, 24), 0.4)
    check(found, functional.layer_norm(states + result * mask, (24,), weight, bias), [states, result, weight, bias])


@pytest.mark.parametrize("relu", [False, True])
def test_linear_layers(relu: bool) -> None:
    torch.manual_seed(6)
    states, weight, bias = drawn(3, 70, 24), drawn(90, 24), drawn(90)
    expected = functional.linear(states, weight, bias)
    check(fused_linear(states, weight, bias, relu), expected.relu() if relu else expected, [states, weight, bias], 1e-3)


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_feedforward_networks(rate: float) -> None:
    torch.manual_seed(13)
    states, inner, outer = drawn(3, 70, 24), (drawn(90, 24), drawn(90)), (drawn(24, 90), drawn(24))
    torch.manual_seed(14)
    found = products.feedforward(states, inner, outer, rate)
    torch.manual_seed(14)
    mask = sums.dropped_out(torch.ones(3, 70, 90), rate) if rate else 1.0
    expected = functional.linear(functional.linear(states, *inner).relu() * mask, *outer)
    check(found, expected, [states, *inner, *outer], 1e-3)


@pytest.mark.parametrize("size", [11, 4096, 10_007])
def test_the_gradient_of_logits(size: int) -> None:
    torch.manual_seed(7)
    logits, labels = 5 * torch.randn(9, size), torch.randint(size, (9,))
    kept = torch.tensor([1.0] * 8 + [0.0])
    found = logits.clone()
    columns = [each[:, None].expand(-1, 3).contiguous()[:, 1] for each in (labels, kept)]  # not contiguous
    losses, label_logits = differentiate_logits(found, columns[0], columns[1], 0.1)
    expected = logits.softmax(1) - 0.9 * functional.one_hot(labels, size)
    torch.testing.assert_close(found, expected * kept[:, None], rtol=1e-4, atol=1e-5)
    entropies = functional.cross_entropy(logits, labels, reduction="none")
    torch.testing.assert_close(losses, entropies * kept, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(label_logits, logits.gather(1, labels[:, None])[:, 0] * kept)


@pytest.mark.parametrize(
    ("norm", "positions", "longest"),
    [("post", "sinusoidal", (14, 14)), ("pre", "rotary", (14, 14)), ("pre", "sinusoidal", (9, 140))],
    ids=["post-norm", "rotary", "targets that are too long for a GPU"],
)
def test_a_model_with_the_kernels_has_the_gradients_of_one_without(
    norm: str, positions: str, longest: tuple[int, int], monkeypatch: pytest.MonkeyPatch, device: torch.device
) -> None:
    def gradients(kernels: bool) -> list[Any]:
        for module in (dropout, feedforward, linear, normalisation, packed, residual):
            monkeypatch.setattr(module, "uses_kernels", lambda _: kernels)
        side = {"kind": "transformer", "layers": 2, "heads": 2, "feedforward": 48, "norm": norm}
        settings = {"preset": None, "width": 32, "encoder": side, "decoder": side, "dropout": 0.0}
        torch.manual_seed(8)
        config = ModelConfig.model_validate({**settings, "positions": {"kind": positions}})
        model = config.build(50, 50).train().to(device)
        draw = torch.Generator().manual_seed(9)
        lengths = [[*torch.randint(1, 9, (6,), generator=draw).tolist(), last - 1] for last in longest]
        source, target = [
            [torch.randint(4, 50, (length,), generator=draw).tolist() for length in side] for side in lengths
        ]
        batch = BatchShapes((200, 200), packed=256).apply(collate(source, target, range(7))).to(device)
        total, _ = CrossEntropy(0.1).static_sums(model, batch)
        return [total, *torch.autograd.grad(total, list(model.parameters()))]

    for found, expected in zip(gradients(True), gradients(False), strict=True):
        assert (found - expected).norm() <= 1e-3 * expected.norm() + 1e-4


def test_kernels_are_compared_before_their_first_use(monkeypatch: pytest.MonkeyPatch, device: torch.device) -> None:
    dtype = torch.float16 if INTERPRETED else torch.bfloat16  # the interpreter has no products of bfloat16
    assert check_kernels.differing_kernel(device, dtype) is None
    monkeypatch.setattr(sums, "normalised", lambda states, *_, **__: states * 2)
    assert check_kernels.differing_kernel(device, dtype) == "layer normalisation"


@pytest.mark.slow
def test_sanitizers_find_no_errors(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if request.node.callspec.params["device"] != "C":
        pytest.skip("compiled once, for the best instructions")
    steps = Path(__file__).parents[1] / "training" / "optimisers" / "test_muon_in_c.py"
    check_with_sanitizers([Path(__file__), steps], "not Triton and not sanitizers", tmp_path)
