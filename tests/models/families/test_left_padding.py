"""Decoders without a source, and texts of unequal length padded on the left: every family, attention and scheme."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dragoman.base.settings.config import Config
from dragoman.base.settings.load import parse_settings
from dragoman.models.families.family import DecoderContext, DecoderFamily, ProjectingDecoder
from dragoman.models.families.union import DecoderConfig
from dragoman.models.interface import Memory, State
from dragoman.nn.dropout import DropoutConfig
from dragoman.nn.embedding import Embedding, Projection, token_table
from dragoman.nn.positions.union import PositionsConfig
from dragoman.text.symbols import PAD

WIDTH, SIZE, SOURCE = 8, 20, 5
TEXTS = [[7, 5, 9, 4, 11, 6, 13], [8, 3], [5, 9, 12, 4], [17]]
TRANSFORMER: dict[str, Any] = {"kind": "transformer", "layers": 2, "heads": 2, "feedforward": 8}
RECURRENT: dict[str, Any] = {"kind": "recurrent", "bridge": "none", "attention": None}
SOFT, WINDOW, LINEAR = {"kind": "soft"}, {"kind": "window", "window": 3}, {"kind": "linear"}
FEEDING = {"kind": "luong", "input_feeding": True}
ONE_HOT = {"kind": "one_hot", "join": "concatenate", "width": 16}
DECODERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    **{
        f"{attention['kind']} {positions['kind']}": (
            {**TRANSFORMER, "attention": attention, "cross_attention": None, "norm": norm},
            positions,
        )
        for attention, norm, schemes in (
            (SOFT, "pre", ("sinusoidal", "learned", "relative", "rotary", "alibi", "none", "index", "one_hot")),
            (WINDOW, "post", ("sinusoidal", "relative", "rotary", "alibi")),
            (LINEAR, "post", ("learned", "rotary")),
            ({"kind": "average", "inner": 6}, "post", ("sinusoidal",)),
            ({"kind": "ssru"}, "pre", ("none", "learned")),
        )
        for positions in (ONE_HOT if kind == "one_hot" else {"kind": kind} for kind in schemes)
    },
    "other scores": (
        {**TRANSFORMER, "cross_attention": None, "attention": {"scorer": {"kind": "additive"}, "normaliser": "sum"}},
        {"kind": "rotary"},
    ),
    "batch norm, experts": (
        {**TRANSFORMER, "cross_attention": None, "normalisation": {"kind": "batch"}, "experts": {"count": 3}},
        {"kind": "learned", "limit": 8},
    ),
    "gru": ({**RECURRENT, "layers": 2}, {"kind": "sinusoidal"}),
    "lstm, luong": (
        {**RECURRENT, "cell": "lstm", "wiring": {"kind": "luong", "input_feeding": True}},
        {"kind": "none"},
    ),
    "rnn, tutorial": ({**RECURRENT, "cell": "rnn", "wiring": {"kind": "tutorial"}, "hidden": 6}, {"kind": "none"}),
    "lstm, gnmt, fast-forward": (
        {**RECURRENT, "layers": 3, "wiring": {"kind": "gnmt"}, "connections": {"kind": "fast_forward"}},
        {"kind": "none"},
    ),
    "convolutional": ({"kind": "convolutional", "layers": 3, "cross_attention": None}, {"kind": "learned"}),
    "bytenet": ({"kind": "bytenet", "layers": 3, "stacked": False}, {"kind": "none"}),
    "multiplicative bytenet": (
        {"kind": "bytenet", "layers": 2, "stacked": False, "block": "multiplicative"},
        {"kind": "none"},
    ),
}
# These attend to a source if there is one, but do not require it.
LOOKING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "transformer": (TRANSFORMER, {"kind": "sinusoidal"}),
    "hard": ({**TRANSFORMER, "norm": "pre", "cross_attention": {"kind": "hard"}}, {"kind": "rotary"}),
    "bahdanau": ({"kind": "recurrent", "bridge": "both"}, {"kind": "none"}),
    "luong": ({"kind": "recurrent", "wiring": {"kind": "luong"}, "cell": "lstm"}, {"kind": "none"}),
    "feeding": ({"kind": "recurrent", "wiring": FEEDING}, {"kind": "none"}),
    "tutorial": ({"kind": "recurrent", "wiring": {"kind": "tutorial"}, "bridge": "none"}, {"kind": "none"}),
    "gnmt": (
        {
            "kind": "recurrent",
            "layers": 2,
            "wiring": {"kind": "gnmt"},
            "connections": {"kind": "residual"},
            "bridge": "none",
        },
        {"kind": "none"},
    ),
    "convolutional": ({"kind": "convolutional", "layers": 2}, {"kind": "sinusoidal"}),
    "bytenet": ({"kind": "bytenet", "layers": 2}, {"kind": "none"}),
    "attending bytenet": ({"kind": "bytenet", "layers": 2, "cross_attention": {}}, {"kind": "none"}),
}


class Parts(Config):
    decoder: DecoderConfig
    positions: PositionsConfig


def decoder(settings: dict[str, Any], positions: dict[str, Any]) -> ProjectingDecoder:
    """In float64 and evaluation mode, with random parameters only."""
    torch.manual_seed(len(settings))
    parts = parse_settings({"decoder": settings, "positions": positions}, Parts, "")
    assert isinstance(parts.decoder, DecoderFamily)
    embedding = Embedding(token_table(SIZE, WIDTH), parts.positions.build_embedding(WIDTH), 0.0)
    projection = Projection(token_table(SIZE, WIDTH).weight)
    built = parts.decoder.build(DecoderContext(embedding, WIDTH, DropoutConfig(), parts.positions, projection))
    assert isinstance(built, nn.Module)
    built.double().eval()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4)
    return built


def padded(texts: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Return tokens (R, T), and the amount of padding before each row."""
    longest = max(map(len, texts))
    left_padding = torch.tensor([longest - len(text) for text in texts])
    return torch.tensor([[PAD] * (longest - len(text)) + text for text in texts]), left_padding


def read(built: ProjectingDecoder, state: State, *tokens: Tensor) -> tuple[list[Tensor], State]:
    """Return the last logits after each of several reads."""
    found = []
    for each in tokens:
        output, state = built.step(each, state)
        assert bool(output.hidden.isfinite().all())
        found.append(output.last_logits())
    return found, state


def alone(built: ProjectingDecoder, memory: Memory | None, text: list[int]) -> Tensor:
    return built.step(torch.tensor([text]), built.start(memory))[0].last_logits()[0]


@torch.no_grad()
def check(built: ProjectingDecoder, memory: Memory | None) -> None:
    """Read padded text at once or token by token, reorder and continue: each row gives the same as alone."""
    sources = [None if memory is None else one(memory, row) for row in range(len(TEXTS))]
    tokens, left_padding = padded(TEXTS)
    expected = torch.stack([alone(built, source, text) for source, text in zip(sources, TEXTS, strict=True)])
    (found,), state = read(built, built.start(memory, left_padding=left_padding), tokens)
    torch.testing.assert_close(found, expected)
    stepwise, _ = read(built, built.start(memory, left_padding=left_padding), *tokens[:, :2].split(1, 1), tokens[:, 2:])
    torch.testing.assert_close(stepwise[-1], expected)

    rows, following = torch.tensor([3, 3, 1, 1]), torch.tensor([[6, 10], [15, 4], [9, 9], [3, 12]])
    after, _ = read(built, state.reorder(rows, 2), *following.split(1, 1))
    for place in range(2):
        for number, row in enumerate(rows.tolist()):
            text = TEXTS[row] + following[number, : place + 1].tolist()
            torch.testing.assert_close(after[place][number], alone(built, sources[row], text))


def one(memory: Memory, row: int) -> Memory:
    return Memory(memory.states[row : row + 1], memory.mask[row : row + 1])


@pytest.mark.parametrize("name", DECODERS)
def test_a_padded_row_of_a_language_model_equals_the_row_alone(name: str) -> None:
    built = decoder(*DECODERS[name])
    check(built, None)
    with torch.no_grad():
        text = torch.tensor(TEXTS[:1])
        whole = built.step(text, built.start(None))[0].logits()
        steps, _ = read(built, built.start(None, left_padding=None), *text.split(1, 1))
        torch.testing.assert_close(torch.stack(steps, 1), whole)


@pytest.mark.parametrize("name", LOOKING)
def test_a_padded_row_with_a_source_equals_the_row_alone(name: str) -> None:
    built = decoder(*LOOKING[name])
    keep = torch.arange(SOURCE) < torch.tensor([[4], [SOURCE], [2], [3]])
    check(built, Memory(torch.randn(len(TEXTS), SOURCE, WIDTH, dtype=torch.float64), keep))
    check(built, None)


@torch.no_grad()
def test_without_a_source_the_sublayer_is_left_out() -> None:
    """The decoder of translation and language modelling then never attends to a source."""
    settings = {**TRANSFORMER, "norm": "pre"}
    shared = decoder(settings, {"kind": "rotary"})
    blind = decoder({**settings, "cross_attention": None}, {"kind": "rotary"})
    assert isinstance(shared, nn.Module) and isinstance(blind, nn.Module)
    names = set(blind.state_dict())
    assert {name for name in shared.state_dict() if "cross_attention" in name} == set(shared.state_dict()) - names
    blind.load_state_dict({name: value for name, value in shared.state_dict().items() if name in names})
    text = torch.tensor(TEXTS[:1])
    one, other = (built.step(text, built.start(None))[0].logits() for built in (shared, blind))
    assert torch.equal(one, other)
