"""Cells, stacks and whole recurrent translators against torch's own layers with the same weights."""

from itertools import product
from typing import Any

import pytest
import torch
from closeness import assert_close
from plain_recurrent import MODULES, copy_to_torch, plain_encoder, plain_logits, reordered, torch_weights
from recurrent_models import BRIDGES, CELLS, WIRINGS, small_model
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dragoman.data.batches.batch import pad
from dragoman.models.kinds.encoder_decoder import Seq2Seq
from dragoman.nn.recurrent.cell import Cell
from dragoman.nn.recurrent.cells import CELLS as CLASSES
from dragoman.nn.recurrent.connections import ResidualConfig
from dragoman.nn.recurrent.stack import Reader, Stack

SOURCES, TARGETS = [[5, 9, 4, 2], [7, 2], [12, 4, 16, 11, 6, 5, 2]], [[1, 8, 9], [1, 10, 11, 12, 5], [1]]


def randomise(module: nn.Module) -> None:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4)


def finals(kind: str, found: object) -> list[torch.Tensor]:
    """Return torch's last states as a list: h, or h and c."""
    return list(found) if kind == "lstm" else [found]  # type: ignore[call-overload,list-item]


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("kind", CELLS)
def test_a_stack_equals_torch(kind: str, layers: int) -> None:
    """Outputs, final states and all gradients, from given initial states."""
    torch.manual_seed(1)
    ours, theirs = Stack(CLASSES[kind], [5], 7, layers, dropout=0.0), MODULES[kind](5, 7, layers)
    randomise(ours)
    copy_to_torch(list(ours.layers), theirs, kind)
    inputs = torch.randn(6, 4, 5, requires_grad=True)
    first = [torch.randn(layers, 4, 7, requires_grad=True) for _ in range(2 if kind == "lstm" else 1)]
    outputs, states = ours(ours.drive(inputs), [tuple(part[layer] for part in first) for layer in range(layers)])
    expected, last = theirs(inputs, tuple(first) if kind == "lstm" else first[0])
    assert_close(outputs, expected)
    for part, wanted in enumerate(finals(kind, last)):
        assert_close(torch.stack([state[part] for state in states]), wanted)

    directions = torch.randn_like(expected)
    found = (outputs * directions).sum() + sum(part.square().sum() for state in states for part in state)
    wanted = (expected * directions).sum() + sum(part.square().sum() for part in finals(kind, last))
    leaves = [inputs, *first]
    for gradient, other in zip(
        torch.autograd.grad(found, leaves, retain_graph=True), torch.autograd.grad(wanted, leaves, retain_graph=True),
        strict=True,
    ):  # fmt: skip
        assert_close(gradient, other)
    found.backward()
    wanted.backward()
    for number, cell in enumerate(ours.layers):
        assert isinstance(cell, Cell)
        same_weight_gradients(cell, theirs, kind, f"l{number}")


def same_weight_gradients(cell: Cell, theirs: nn.Module, kind: str, suffix: str) -> None:
    def theirs_of(name: str) -> torch.Tensor:
        gradient = getattr(theirs, f"{name}_{suffix}").grad
        assert isinstance(gradient, torch.Tensor)
        return gradient

    def of(parameter: torch.Tensor) -> torch.Tensor:
        assert parameter.grad is not None
        return parameter.grad

    assert_close(reordered(of(cell.input_weights[0]), kind), theirs_of("weight_ih"))
    recurrent = of(cell.recurrent_weight)
    assert_close(recurrent if kind == "gru" else reordered(recurrent, kind), theirs_of("weight_hh"))
    assert_close(reordered(of(cell.bias), kind), theirs_of("bias_ih"))
    if kind == "gru":
        assert_close(of(cell.recurrent_bias), theirs_of("bias_hh")[-cell.hidden :])  # type: ignore[arg-type]


@pytest.mark.parametrize(("layers", "both"), [(1, False), (1, True), (2, True)])
@pytest.mark.parametrize("kind", CELLS)
def test_a_reader_equals_torch_on_packed_sentences(kind: str, layers: int, both: bool) -> None:
    torch.manual_seed(1)
    ours = Reader(CLASSES[kind], 5, 6, layers, bidirectional=both, dropout=0.0)
    randomise(ours)
    theirs = MODULES[kind](5, 6, layers, batch_first=True, bidirectional=both)
    cells = [cell for pair in zip(ours.forward_layers, ours.backward_layers or [None] * layers, strict=True) for cell in pair if cell is not None]  # fmt: skip  # noqa: E501
    copy_to_torch(cells, theirs, kind)  # type: ignore[arg-type]
    lengths = torch.tensor([4, 7, 1])
    keep = torch.arange(7) < lengths[:, None]
    inputs = torch.randn(3, 7, 5, requires_grad=True)
    states, final = ours(inputs, keep)
    packed, last = theirs(pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False))
    expected, _ = pad_packed_sequence(packed, batch_first=True)
    assert_close(states[keep], expected[keep])
    wanted = finals(kind, last)[0].view(layers, -1, 3, 6)[-1].transpose(0, 1).reshape(3, -1)
    assert_close(final, wanted)
    found = states[keep].square().sum() + final.exp().sum()
    other = expected[keep].square().sum() + wanted.exp().sum()
    (gradient,) = torch.autograd.grad(found, inputs, retain_graph=True)
    (its,) = torch.autograd.grad(other, inputs, retain_graph=True)
    assert_close(gradient, its)
    found.backward()
    other.backward()
    for number, cell in enumerate(cells):
        layer, back = divmod(number, 2 if both else 1)
        same_weight_gradients(cell, theirs, kind, f"l{layer}" + ("_reverse" if back else ""))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", CELLS)
def test_gradients_against_finite_differences(kind: str) -> None:
    torch.manual_seed(2)
    cell = CLASSES[kind]([2], 3).double()
    randomise(cell)
    parameters = dict(cell.named_parameters())
    inputs = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)
    first = [torch.randn(2, 3, dtype=torch.float64, requires_grad=True) for _ in range(cell.components)]

    def outputs(inputs: torch.Tensor, *rest: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = dict(zip(parameters, rest[len(first) :], strict=True))
        drive = inputs @ values["input_weights.0"].t() + values["bias"]
        return torch.func.functional_call(cell, values, (drive, rest[: len(first)]))  # type: ignore[no-any-return]

    leaves = [parameter.detach().requires_grad_() for parameter in parameters.values()]
    assert torch.autograd.gradcheck(outputs, (inputs, *first, *leaves))


@pytest.mark.parametrize("kind", CELLS)
def test_bfloat16_products_keep_states_in_float32(kind: str) -> None:
    torch.manual_seed(2)
    cell = CLASSES[kind]([16], 16)
    inputs, zeros = torch.randn(9, 5, 16), torch.zeros(5, 16)
    results = []
    for enabled in (False, True):
        cell.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            outputs = cell(cell.drive(inputs), (zeros,) * cell.components)[0]
        assert outputs.dtype == torch.float32
        outputs.square().sum().backward()
        results.append((outputs.detach(), cell.recurrent_weight.grad))
    for exact, rounded in zip(*results, strict=True):
        assert exact is not None
        assert rounded is not None
        assert float((exact - rounded).norm() / exact.norm()) < 0.02
        assert not torch.equal(exact, rounded)


PLAIN = [
    *((cell, wiring, "initial", True, 1) for cell, wiring in product(CELLS, WIRINGS)),
    *(("gru", wiring, bridge, True, 2) for wiring, bridge in product(WIRINGS, BRIDGES[1:])),
    *(("lstm", wiring, "both", False, 1) for wiring in WIRINGS),
]


@pytest.mark.parametrize(("cell", "wiring", "bridge", "attends", "layers"), PLAIN)
def test_logits_and_gradients_equal_a_plain_unrolled_model(
    cell: str, wiring: str, bridge: str, attends: bool, layers: int
) -> None:
    """In float64: torch's cells, one sentence and one token at a time, without masks or batches."""
    equals_plain(small_model(cell, wiring, bridge, attends=attends, layers=layers), cell, wiring)


def equals_plain(model: Seq2Seq, cell: str, wiring: str) -> None:
    """Compare the logits and the gradients of a padded batch in float64 with those of a plain model."""
    model = model.double()
    source, source_mask = pad(SOURCES)
    inputs, keep = pad(TARGETS)
    found = model(source, source_mask, inputs).logits()[keep]
    expected = torch.cat(
        [
            plain_logits(model, cell, wiring, row, target, plain_encoder(model, cell, row))
            for row, target in zip(SOURCES, TARGETS, strict=True)
        ]
    )
    torch.testing.assert_close(found, expected)
    parameters = dict(model.named_parameters())
    unused = "allow_unused"
    ours = torch.autograd.grad(found.logsumexp(1).sum(), list(parameters.values()), **{unused: True})
    theirs = torch.autograd.grad(expected.logsumexp(1).sum(), list(parameters.values()), **{unused: True})
    for name, gradient, other in zip(parameters, ours, theirs, strict=True):
        assert (gradient is None) == (other is None), name
        if gradient is not None:
            torch.testing.assert_close(gradient, other, msg=lambda text, name=name: f"{name}: {text}")


RESIDUAL, FAST_FORWARD = {"kind": "residual"}, {"kind": "fast_forward"}
GNMT = ("lstm", "gnmt", {"bidirectional": "first"}, {"kind": "residual", "first_layer": 3}, 4)
DEEP_ATT = ("lstm", "deep_att", {"bidirectional": "interleaved"}, FAST_FORWARD, 3)
DEEP = [
    GNMT,
    DEEP_ATT,
    ("gru", "gnmt", {"bidirectional": "interleaved"}, RESIDUAL, 3),
    ("rnn", "deep_att", {"bidirectional": "first"}, FAST_FORWARD, 3),
    ("gru", "bahdanau", {"bidirectional": True}, FAST_FORWARD, 2),
    ("lstm", "luong", {"bidirectional": True}, RESIDUAL, 3),
    ("gru", "luong", {"bidirectional": False}, FAST_FORWARD, 2),
    ("rnn", "feeding", {"bidirectional": "first"}, RESIDUAL, 2),
    ("lstm", "tutorial", {"bidirectional": False}, RESIDUAL, 2),
]


@pytest.mark.parametrize(("cell", "wiring", "encoder", "connections", "layers"), DEEP)
def test_deep_stacks_equal_a_plain_unrolled_model(
    cell: str, wiring: str, encoder: dict[str, Any], connections: dict[str, Any], layers: int
) -> None:
    """As above, with residual and fast-forward connections, and with directions that differ between layers.

    The first two are the systems of Wu et al. 2016 and of Zhou et al. 2016.
    """
    equals_plain(
        small_model(cell, wiring, "both", layers=layers, encoder=encoder, connections=connections), cell, wiring
    )


@pytest.mark.parametrize("connections", [RESIDUAL, FAST_FORWARD], ids=["residual", "fast_forward"])
def test_deep_stacks_without_attention(connections: dict[str, Any]) -> None:
    model = small_model("lstm", "gnmt", "both", layers=3, connections=connections, attends=False)
    equals_plain(model, "lstm", "gnmt")


def test_a_stack_of_torch_with_residual_connections() -> None:
    """GNMT's decoder stack against torch's own LSTM layers, whose outputs are added by hand."""
    torch.manual_seed(1)
    ours = Stack(CLASSES["lstm"], [7], 7, 4, dropout=0.0, connections=ResidualConfig(first_layer=3))
    randomise(ours)
    theirs = [MODULES["lstm"](7, 7, 1) for _ in range(4)]
    for cell, module in zip(ours.layers, theirs, strict=True):
        copy_to_torch([cell], module, "lstm")  # type: ignore[list-item]
    inputs = torch.randn(9, 5, 7)
    zeros = torch.zeros(5, 7)
    outputs, _ = ours(ours.drive(inputs), [(zeros, zeros)] * 4)
    expected = inputs
    for number, module in enumerate(theirs, 1):
        expected = module(expected)[0] + (expected if number >= 3 else 0)
    torch.testing.assert_close(outputs, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("wiring", WIRINGS)
def test_the_whole_models_gradient_against_finite_differences(wiring: str) -> None:
    """In random directions through all parameters at once, float64."""
    model = small_model("lstm", wiring, "both", layers=2).double()
    source, source_mask = pad(SOURCES)
    inputs, keep = pad(TARGETS)

    def loss() -> torch.Tensor:
        return model(source, source_mask, inputs).logits()[keep].log_softmax(1)[:, 3].sum()

    parameters = list(model.parameters())
    gradients = torch.autograd.grad(loss(), parameters)
    generator = torch.Generator().manual_seed(1)
    for _ in range(3):
        direction = [torch.randn(each.shape, generator=generator, dtype=torch.float64) for each in parameters]
        slope = sum(float((one * other).sum()) for one, other in zip(gradients, direction, strict=True))
        values = []
        with torch.no_grad():
            for offset in (1e-6, -1e-6):
                for parameter, step in zip(parameters, direction, strict=True):
                    parameter.add_(step, alpha=offset)
                values.append(float(loss()))
                for parameter, step in zip(parameters, direction, strict=True):
                    parameter.sub_(step, alpha=offset)
        assert (values[0] - values[1]) / 2e-6 == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_torch_weights_are_of_torchs_shapes() -> None:
    """So that no test above passes by broadcasting."""
    for kind in CELLS:
        cell = CLASSES[kind]([5, 3], 7)
        theirs = MODULES[kind](8, 7)
        for name, values in zip(
            ("weight_ih", "weight_hh", "bias_ih", "bias_hh"), torch_weights(cell, kind), strict=True
        ):
            assert getattr(theirs, f"{name}_l0").shape == values.shape
