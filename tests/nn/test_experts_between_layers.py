"""Experts between recurrent layers against torch's LSTM and experts that all process all tokens; translators."""

from typing import Any

import pytest
import torch
from closeness import assert_close
from decoder_inputs import started, targets
from plain_recurrent import copy_to_torch
from recurrent_models import SIZE
from torch import nn

from dragoman.base.errors import ConfigError
from dragoman.data.batches.batch import pad
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.models.parts import count_active_parameters, count_parameters
from dragoman.nn.auxiliary import Auxiliary, collecting
from dragoman.nn.mixture import Mixture
from dragoman.nn.recurrent.cells import CELLS
from dragoman.nn.recurrent.connections import ResidualConfig
from dragoman.nn.recurrent.experts import LayerExpertsConfig
from dragoman.nn.recurrent.stack import Reader, Stack

EXPERTS: dict[str, Any] = {
    "count": 4, "capacity": None, "balance": 0, "importance": 0.01, "noise": {"load": 0.01}, "sigmoid": True,
    "feedforward": 5,
}  # fmt: skip
SOURCES = [[5, 9, 4, 2], [7, 2], [12, 4, 16, 11, 6, 5, 2]]


def build(layer: int, width: int) -> nn.Module | None:
    config = LayerExpertsConfig.model_validate({**EXPERTS, "after_layers": [1, 2]})
    return config.build_after(layer, width, residual=0.0, feedforward=0.0)


def randomise(module: nn.Module) -> None:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4)


def dense(mixture: Mixture, states: torch.Tensor) -> torch.Tensor:
    """Compute the mixture without routing: each expert processes each token, most with the weight zero."""
    scores = states @ mixture.router.t()
    kept = scores.masked_fill(scores < scores.sort(-1).values[..., -2:-1], -torch.inf)
    results = torch.stack([expert(states) for expert in mixture.experts], -1)
    return torch.sigmoid((results * kept.softmax(-1).unsqueeze(-2)).sum(-1))


def test_a_decoders_layers() -> None:
    """Torch's LSTM layers and dense experts, with residual connections around both, and the experts' own gradient."""
    torch.manual_seed(1)
    stack = Stack(
        CELLS["lstm"], [7], 7, 3, dropout=0.0, connections=ResidualConfig(first_layer=2), experts=build
    ).eval()
    randomise(stack)
    theirs = [nn.LSTM(7, 7) for _ in range(3)]
    for cell, module in zip(stack.layers, theirs, strict=True):
        copy_to_torch([cell], module, "lstm")  # type: ignore[list-item]
    inputs, zeros = torch.randn(9, 5, 7), torch.zeros(5, 7)
    found, _ = stack(stack.drive(inputs), [(zeros, zeros)] * 3)
    states = theirs[0](inputs)[0]
    for number in (1, 2):
        states = states + dense(stack.experts[str(number)].mixture, states)
        states = theirs[number](states)[0] + states
    assert_close(found, states)
    router = stack.experts["1"].mixture.router
    ours, expected = (torch.autograd.grad(each.square().sum(), router)[0] for each in (found, states))
    assert_close(ours, expected)


@pytest.mark.parametrize("both", [False, True])
def test_an_encoders_layers(both: bool) -> None:
    """Two layers of sentences without padding: the experts process the concatenated directions."""
    torch.manual_seed(2)
    reader = Reader(CELLS["lstm"], 6, 4, 2, bidirectional=both, dropout=0.0, experts=build).eval()
    randomise(reader)
    width = 8 if both else 4
    theirs = [nn.LSTM(size, 4, bidirectional=both, batch_first=True) for size in (6, width)]
    for number, module in enumerate(theirs):
        copy_to_torch(
            [side[number] for side in (reader.forward_layers, reader.backward_layers) if side], module, "lstm"
        )  # type: ignore[misc]
    inputs, lengths = torch.randn(3, 5, 6), [5, 2, 4]
    found, final = reader(inputs, torch.arange(5) < torch.tensor(lengths)[:, None])
    for row, length in enumerate(lengths):
        lowest = theirs[0](inputs[row : row + 1, :length])[0]
        expected = theirs[1](lowest + dense(reader.experts["1"].mixture, lowest))[0][0]
        assert_close(found[row, :length], expected)
        assert_close(final[row], torch.cat([expected[-1, :4], expected[0, 4:]]))


def translator(**decoder: Any) -> Seq2Seq:
    """Return Shazeer et al.'s translator in small: three and two layers, experts after the second and the first."""
    side = {"kind": "recurrent", "cell": "lstm", "connections": {"kind": "residual"}}
    encoder = {**side, "layers": 3, "bidirectional": "first", "experts": {**EXPERTS, "after_layers": [2]}}
    decoder = {**side, "layers": 2, "wiring": {"kind": "gnmt"}, "experts": EXPERTS, **decoder}
    config = {"preset": None, "width": 8, "dropout": 0.0, "encoder": encoder, "decoder": decoder}
    torch.manual_seed(3)
    built = ModelConfig.model_validate(config).build(SIZE, SIZE)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return built


def trained_once(model: Seq2Seq, rows: list[list[int]]) -> tuple[torch.Tensor, Auxiliary]:
    source, mask = pad(rows)
    inputs, keep = pad([[1, *row[:-1]] for row in rows])
    torch.manual_seed(4)
    with collecting() as auxiliary:
        logits = model.train()(source, mask, inputs).logits()[keep]
    return logits, auxiliary


@torch.no_grad()
@pytest.mark.parametrize("wiring", [{"kind": "gnmt"}, {"kind": "gnmt", "context": "first"}, {"kind": "luong"}])
def test_tokens_in_steps_equal_tokens_at_once(wiring: dict[str, Any]) -> None:
    model = translator(wiring=wiring).eval()
    tokens = targets(3, 6, SIZE)
    whole, _ = model.decoder.step(tokens, started(model, SOURCES))
    for lengths in ([1] * 6, [2, 3, 1]):
        state, parts = started(model, SOURCES), []
        for part in tokens.split(lengths, 1):
            output, state = model.decoder.step(part, state)
            parts.append(output.logits())
        assert_close(torch.cat(parts, 1), whole.logits())


def test_training_reports_both_sides_and_all_parameters_have_gradients() -> None:
    """The loads are those of the tokens without padding: twice 13 in the encoder, and in the decoder."""
    model = translator()
    logits, auxiliary = trained_once(model, SOURCES)
    assert {name: len(parts) for name, parts in auxiliary.penalties.items()} == {
        "balance": 2, "importance": 2, "load": 2,
    }  # fmt: skip
    assert int(auxiliary.counts["experts"].sum()) == 2 * 2 * sum(map(len, SOURCES))
    (logits.logsumexp(1).sum() + auxiliary.penalty(13)[0]).backward()
    gates = [name for name, each in model.named_parameters() if each.grad is None or not each.grad.any()]
    assert not [name for name in gates if name.endswith(("router", "noise"))], gates


def test_active_parameters_are_those_of_two_experts() -> None:
    model = translator()
    expert = 8 * 5 + 5 + 5 * 8 + 8
    assert count_parameters(model) - count_active_parameters(model) == 2 * 2 * expert


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"layers": 1, "connections": {"kind": "plain"}}, ValueError, r"after_layers is \[1\] and layers is 1"),
        ({"experts": {**EXPERTS, "after_layers": [2]}}, ValueError, r"after_layers is \[2\] and layers is 2"),
        ({"experts": {**EXPERTS, "active": 5}}, ValueError, "experts.active = 5 exceeds experts.count = 4"),
        ({"wiring": {"kind": "bahdanau"}}, ValueError, "with wiring bahdanau the layers process one token at a time"),
        ({"wiring": {"kind": "luong", "input_feeding": True}}, ValueError, "with wiring luong"),
    ],
)
def test_settings_without_experts_between_layers_are_rejected(
    settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises((error, ConfigError), match=message):
        translator(**settings)


def test_without_attention_any_wiring_processes_all_tokens_at_once() -> None:
    """So a language model may have experts between its layers (Shazeer et al. 2017, section 5.1)."""
    model = translator(wiring={"kind": "bahdanau"}, attention=None)
    assert "load" in trained_once(model, SOURCES)[1].penalties
