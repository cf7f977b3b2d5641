"""Convolutions against torch's Conv1d, and whole convolutional models against their formulas, sentence by sentence."""

from math import ceil, sqrt
from typing import Any

import pytest
import torch
from closeness import assert_close
from random_parameters import perturb
from torch import Tensor, nn
from torch.nn import functional

from dragoman.data.batches.batch import pad
from dragoman.models.families.bytenet import UnfoldingConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.convolution import Convolution

WIDTH, SIZE = 8, 20
SOURCES = [[5, 9, 4, 2], [7, 2], [12, 4, 15, 11, 6, 5, 2]]
TARGETS = [[1, 8, 9, 4, 5, 6, 7, 10, 11], [1, 17], [1, 5, 6]]


@pytest.mark.parametrize(("kernel", "dilation"), [(1, 1), (3, 1), (5, 1), (3, 2), (3, 8), (2, 1), (4, 3)])
def test_convolution_equals_torch(kernel: int, dilation: int) -> None:
    torch.manual_seed(1)
    ours = Convolution(WIDTH, 6, kernel, dilation)
    theirs = nn.Conv1d(WIDTH, 6, kernel, dilation=dilation, padding="same")
    causal = nn.Conv1d(WIDTH, 6, kernel, dilation=dilation)
    with torch.no_grad():
        ours.bias.normal_()
        for twin in (theirs, causal):
            twin.weight.copy_(ours.weight.transpose(1, 2))
            twin.bias.copy_(ours.bias)
    states, lengths = torch.randn(3, 7, WIDTH), [7, 1, 4]
    keep = torch.arange(7) < torch.tensor(lengths)[:, None]
    both, (forward, past) = ours.centred(states, keep), ours.causal(states, None)
    first, middle = ours.causal(states[:, :2], None)
    second, end = ours.causal(states[:, 2:], middle)
    torch.testing.assert_close(torch.cat((first, second), 1), forward)
    torch.testing.assert_close(end, past)
    assert past.shape == (3, (kernel - 1) * dilation, WIDTH)
    for row, length in enumerate(lengths):
        alone = states[row : row + 1, :length].transpose(1, 2)
        torch.testing.assert_close(both[row, :length], theirs(alone)[0].T)
        behind = functional.pad(alone, ((kernel - 1) * dilation, 0))
        torch.testing.assert_close(forward[row, :length], causal(behind)[0].T)


def built(encoder: dict[str, Any], decoder: dict[str, Any]) -> Seq2Seq:
    torch.manual_seed(2)
    config = ModelConfig.model_validate({"preset": None, "width": WIDTH, "encoder": encoder, "decoder": decoder})
    model = config.build(SIZE, SIZE).eval()
    return perturb(model)


def conv1d(convolution: Any, states: Tensor, left: int, right: int) -> Tensor:
    """torch's convolution of one sentence's states (T, d)."""
    padded = functional.pad(states.T, (left, right))[None]
    weight = convolution.weight.transpose(1, 2)
    return functional.conv1d(padded, weight, convolution.bias, dilation=convolution.dilation)[0].T


def attend(attention: Any, queries: Tensor, memory: Tensor) -> Tensor:
    """One head in torch, of scaled dot products with projections, or of plain ones without."""
    if not attention.config.projections:
        return (queries @ memory.T).softmax(1) @ memory
    parts = [
        part(states)
        for part, states in ((attention.query, queries), (attention.key, memory), (attention.value, memory))
    ]
    return attention.output(functional.scaled_dot_product_attention(*(part[None] for part in parts))[0])


def compare(model: Seq2Seq, plain: Any) -> None:
    """Compare the logits of the padded batch with `plain`, which reads one sentence."""
    (source, keep), (inputs, _) = pad(SOURCES), pad(TARGETS)
    found = model(source, keep, inputs).logits()
    for row, (reading, writing) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        expected = plain(torch.tensor(reading), torch.tensor(writing)) @ model.decoder.projection.weight.T
        assert_close(found[row, : len(writing)], expected)


@pytest.mark.parametrize("attention", [{}, {"scorer": {"kind": "dot"}, "projections": False}], ids=["ours", "paper's"])
def test_convolutional_model_is_its_formula(attention: dict[str, Any]) -> None:
    """After Gehring et al. 2017, sections 3.2 and 3.3, with one memory for keys and values and no factor m·√(1/m).

    The other differences are in `models/families/convolutional.py`; the second case scores as the paper does, d·z.
    """
    decoder = {"kind": "convolutional", "layers": 3, "kernel": 2, "cross_attention": attention}
    model = built({"kind": "convolutional", "layers": 2}, decoder)
    half = sqrt(0.5)

    def plain(source: Tensor, inputs: Tensor) -> Tensor:
        embedded = model.encoder.embedding(source[None])[0]
        states = embedded
        for layer in model.encoder.layers:
            states = (functional.glu(conv1d(layer.convolution, states, 1, 1)) + states) * half
        memory = (states + embedded) * half
        embedded = model.decoder.embedding(inputs[None])[0]
        states = embedded
        for layer in model.decoder.layers:
            gated = functional.glu(conv1d(layer.convolution, states, 1, 0))
            query = (layer.query(gated) + embedded) * half
            states = ((gated + attend(layer.cross_attention, query, memory)) * half + states) * half
        return states

    compare(model, plain)


def gated(states: Tensor, gates: Tensor) -> Tensor:
    """Return MU(h) = g₁ ⊙ tanh(g₂ ⊙ h + g₃ ⊙ u) (Kalchbrenner et al. 2016b, "Video Pixel Networks", section 4.1)."""
    g1, g2, g3 = gates.split(states.size(1), 1)[:3]
    update = gates.split(states.size(1), 1)[3].tanh()
    return g1.sigmoid() * (g2.sigmoid() * states + g3.sigmoid() * update).tanh()


@pytest.mark.parametrize("unfolding", [None, {}, {"factor": 1.5, "margin": 2}], ids=["as long", "1.2", "1.5 + 2"])
@pytest.mark.parametrize("block_kind", ["relu", "multiplicative"])
@pytest.mark.parametrize("attends", [False, True])
def test_bytenet_is_its_formula(attends: bool, block_kind: str, unfolding: dict[str, Any] | None) -> None:
    """The blocks of Kalchbrenner et al. 2016, figure 3.

    The source is lengthened by zeros to ⌈a·S⌉ + b positions (section 3.2), and the encoder's states by zeros.
    """
    common = {"kind": "bytenet", "layers": 3, "dilations": [1, 2], "block": block_kind}
    model = built(
        {**common, "unfolding": unfolding},
        {**common, "cross_attention": {} if attends else None, "stacked": not attends},
    )
    multiple = 4 if block_kind == "multiplicative" else 1
    assert model.encoder.layers[0].convolution.weight.shape == (multiple * WIDTH // 2, 3, WIDTH // 2)

    def block(part: Any, states: Tensor, causal: bool) -> Tensor:
        reach = 2 * part.convolution.dilation
        left = reach if causal else reach // 2
        inside = part.narrow(part.norms[0](states).relu())
        inside = part.norms[1](inside).relu()
        convolved = conv1d(part.convolution, inside, left, reach - left)
        if block_kind == "relu":
            return states + part.widen(part.norms[2](convolved).relu())
        inside = gated(inside, convolved)
        return states + part.widen(gated(inside, part.pointwise(inside)))

    def plain(source: Tensor, inputs: Tensor) -> Tensor:
        states = model.encoder.embedding(source[None])[0]
        if unfolding is not None:
            positions = ceil(unfolding.get("factor", 1.2) * len(source)) + unfolding.get("margin", 0)
            states = torch.cat((states, torch.zeros(positions - len(source), WIDTH)))
        for layer, dilation in zip(model.encoder.layers, (1, 2, 1), strict=True):
            assert layer.convolution.dilation == dilation
            states = block(layer, states, causal=False)
        memory = model.encoder.norm(states)
        states = model.decoder.embedding(inputs[None])[0]
        if not attends:
            common = min(len(memory), len(states))
            states = torch.cat((states[:common] + memory[:common], states[common:]))
        for layer in model.decoder.layers:
            states = block(layer.block, states, causal=True)
            if attends:
                norm = layer.around_cross_attention.norm
                states = states + attend(layer.cross_attention, norm(states), memory[: len(source)])
        return model.decoder.output(model.decoder.norm(states).relu())

    compare(model, plain)


def test_the_lengthened_source_has_the_length_of_the_formula() -> None:
    """⌈1.1 · 10⌉ is 11, although 1.1 · 10 is 11.000000000000002 in floating point."""
    mask = torch.arange(12) < torch.tensor([10, 12, 0, 1])[:, None]
    for factor, margin, expected in ((1.1, 0, [11, 14, 0, 2]), (1.0, 3, [13, 15, 3, 4]), (1.2, 1, [13, 16, 1, 3])):
        found = UnfoldingConfig(factor=factor, margin=margin).lengthen(mask)
        assert found.sum(1).tolist() == expected
        assert found.size(1) == max(expected)
        assert bool((found[:, 1:] <= found[:, :-1]).all())


@pytest.mark.parametrize(("kind", "positions"), [("mean", None), ("sum", None), ("mean", "sinusoidal")])
def test_simple_encoders_are_their_formulas(kind: str, positions: str | None) -> None:
    given = {"preset": None, "width": WIDTH, "encoder": {"kind": kind}}
    given |= {"positions": {"kind": positions}} if positions else {}
    model = ModelConfig.model_validate(given).build(SIZE, SIZE).eval()
    source, keep = pad(SOURCES)
    memory = model.encode(source, keep)
    assert memory.final is not None
    for row, sentence in enumerate(SOURCES):
        vectors = model.encoder.embedding.tokens.weight[torch.tensor(sentence)] * sqrt(WIDTH)
        vectors = vectors if positions is None else model.encoder.embedding(torch.tensor([sentence]))[0]
        expected = vectors.mean(0) if kind == "mean" else vectors.sum(0)
        torch.testing.assert_close(memory.final[row], expected)
        torch.testing.assert_close(memory.states[row], expected.expand(source.size(1), WIDTH))
    assert torch.equal(memory.mask, keep)
    torch.testing.assert_close(memory.summary, memory.final)
    nothing = model.encode(source[:1], torch.zeros(1, source.size(1), dtype=torch.bool))
    assert nothing.final is not None and not nothing.final.any()


@pytest.mark.parametrize("layers", [4, 24])
def test_a_deep_convolutional_model_starts_with_a_usable_gradient(layers: int) -> None:
    """Without a norm between the layers, only the initial weights preserve the states' variance."""
    torch.manual_seed(1)
    stack = {"kind": "convolutional", "layers": layers}
    given = {"preset": None, "width": 64, "encoder": stack, "decoder": stack}
    model = ModelConfig.model_validate(given).build(200, 200)
    source, keep = torch.randint(4, 200, (8, 12)), torch.ones(8, 12, dtype=torch.bool)
    output = model(source, keep, source)
    loss = functional.cross_entropy(output.logits().flatten(0, 1), source.flatten())
    loss.backward()
    assert 0.3 < float(output.hidden.detach().std()) < 2
    norms = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None])
    assert 0.3 < float(norms.norm()) < 10
