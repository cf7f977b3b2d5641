"""Recurrent decoders with any split of steps, beam, batch order and padding; any encoder with any decoder."""

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import pytest
import torch
from closeness import assert_close
from decoder_inputs import started, targets
from recurrent_models import BRIDGES, CELLS, SIZE, SYSTEM_WIRINGS, WIRINGS, small_model

from dragoman.data.batches.batch import pad
from dragoman.models.attention_weights import capture
from dragoman.models.interface import Memory
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.attention.recording import recording

CLOSE = {"rtol": 1e-4, "atol": 1e-5}
SOURCES = [[5, 9, 4, 2], [7, 2], [12, 4, 16, 11, 6, 5, 2]]
ATTENTIONS: dict[str, dict[str, Any] | None] = {
    "additive": None,
    "general": {"scorer": {"kind": "general"}},
    "projected": {"projections": True, "scorer": {"kind": "scaled_dot"}},
    "hard": {"kind": "hard"},
}
MODELS = [
    *product(CELLS, WIRINGS, ["initial"], ["additive"]),
    *product(["gru"], WIRINGS, BRIDGES[1:], ["general"]),
    *product(["gru"], WIRINGS, ["both"], ["projected", "hard"]),
    *product(["lstm"], WIRINGS, ["both"], ["absent"]),
    *product(["lstm"], SYSTEM_WIRINGS, ["initial"], ["additive"]),
]


@cache
def model_of(cell: str, wiring: str, bridge: str, attention: str) -> Seq2Seq:
    return small_model(
        cell, wiring, bridge, ATTENTIONS.get(attention), attends=attention != "absent", layers=2, seed=len(wiring)
    )


@pytest.fixture(params=MODELS, ids="-".join)
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    return model_of(*request.param)


@torch.no_grad()
def test_any_split_of_the_steps_equals_the_whole(model: Seq2Seq) -> None:
    tokens = targets(3, 6, SIZE)
    whole, _ = model.decoder.step(tokens, started(model, SOURCES))
    for lengths in ([1] * 6, [2, 3, 1]):
        state, parts = started(model, SOURCES), []
        for part in tokens.split(lengths, 1):
            output, state = model.decoder.step(part, state)
            parts.append(output.logits())
        assert_close(torch.cat(parts, 1), whole.logits())


@torch.no_grad()
def test_hypotheses_of_a_beam_continue_as_if_read_alone(model: Seq2Seq) -> None:
    """Expanded to a beam of three, shuffled within it, and the middle sentence dropped."""
    first, later = targets(3, 2, SIZE), targets(9, 2, SIZE)
    _, state = model.decoder.step(first, started(model, SOURCES))
    state = state.reorder(torch.arange(3).repeat_interleave(3), 3)
    _, state = model.decoder.step(later, state)
    rows = torch.tensor([2, 0, 0, 7, 8, 6])
    last = targets(6, 2, SIZE)
    found, _ = model.decoder.step(last, state.reorder(rows, 3))
    for place, row in enumerate(rows.tolist()):
        read = torch.cat([first[row // 3], later[row], last[place]])[None]
        alone, _ = model.decoder.step(read, started(model, [SOURCES[row // 3]]))
        assert_close(found.logits()[place], alone.logits()[0, -2:])


@torch.no_grad()
def test_padding_and_the_batchs_order_change_nothing(model: Seq2Seq) -> None:
    tokens = targets(3, 4, SIZE)
    expected = [
        model.decoder.step(tokens[row : row + 1], started(model, [source]))[0].logits()[0]
        for row, source in enumerate(SOURCES)
    ]
    order = [2, 0, 1]
    found = model.decoder.step(tokens[order], started(model, [SOURCES[row] for row in order], 3))[0].logits()
    for place, row in enumerate(order):
        assert_close(found[place], expected[row])


@torch.no_grad()
def test_the_source_matters_and_every_part_of_it(model: Seq2Seq) -> None:
    tokens = targets(1, 4, SIZE)
    one, two = ([[5, 9, 4, 2]], [[5, 9, 14, 2]])
    logits = [model.decoder.step(tokens, started(model, each))[0].logits() for each in (one, two)]
    assert not torch.allclose(*logits, **CLOSE)


@pytest.mark.parametrize("wiring", WIRINGS)
@pytest.mark.parametrize("attention", ["additive", "absent"])
@torch.no_grad()
def test_only_attention_reads_more_of_the_source_than_its_summary(wiring: str, attention: str) -> None:
    """The bottleneck of seq2seq: without attention, the encoder's last state is all that a decoder reads."""
    model = model_of("lstm" if attention == "absent" else "gru", wiring, "both", attention)
    tokens = targets(1, 4, SIZE)
    memory = model.encode(*pad([[5, 9, 4, 2]]))
    assert memory.final is not None
    others = replace(memory, states=memory.states + 1)
    shorter = replace(memory, final=memory.final + 1)
    given, with_others, with_another_summary = (
        model.decoder.step(tokens, model.decoder.start(each))[0].logits() for each in (memory, others, shorter)
    )
    assert torch.equal(given, with_others) == (attention == "absent")
    assert not torch.allclose(given, with_another_summary, **CLOSE)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("both", [False, True])
@torch.no_grad()
def test_an_encoders_memory_of_a_batch_is_that_of_each_sentence(cell: str, both: bool) -> None:
    model = small_model(cell, encoder={"kind": "recurrent", "cell": cell, "layers": 2, "bidirectional": both})
    tokens, keep = pad(SOURCES)
    together = model.encode(torch.nn.functional.pad(tokens, (0, 2), value=9), torch.nn.functional.pad(keep, (0, 2)))
    assert together.final is not None
    for row, source in enumerate(SOURCES):
        alone = model.encode(torch.tensor([source]), torch.ones(1, len(source), dtype=torch.bool))
        assert_close(together.states[row, : len(source)], alone.states[0])
        assert_close(together.final[row : row + 1], alone.final)
        if not both:  # the last state of a one-way encoder is the state of its last token
            assert_close(alone.final, alone.states[:, -1])


def test_a_text_of_padding_only_gives_numbers_and_gradients() -> None:
    model = small_model("lstm", "bahdanau", "both", layers=2)
    keep = torch.tensor([[True, True, False], [False, False, False]])
    logits = model(torch.full((2, 3), 5), keep, targets(2, 3, SIZE)).logits()
    logits.sum().backward()
    assert bool(logits.isfinite().all())
    assert all(bool(each.grad.isfinite().all()) for each in model.parameters() if each.grad is not None)


@pytest.mark.parametrize("wiring", WIRINGS)
@torch.no_grad()
def test_attention_has_a_row_per_hypothesis_and_token(wiring: str) -> None:
    model = model_of("gru", wiring, "initial", "additive")
    tokens, keep = pad(SOURCES)
    memory = model.encode(tokens, keep)
    rows = torch.arange(3).repeat_interleave(2)
    inputs = targets(6, 4, SIZE)
    output, _ = model.decoder.step(inputs, model.decoder.start(memory, attention=True).reorder(rows, 2))
    assert output.attention is not None
    assert output.attention.shape == (6, 4, 7)
    for row, sentence in enumerate(rows.tolist()):
        assert memory.final is not None
        alone = Memory(*(part[sentence : sentence + 1] for part in (memory.states, memory.mask, memory.final)))
        with recording() as weights:
            model.decoder.step(inputs[row : row + 1], model.decoder.start(alone))
        calls = weights[model.decoder.cross_attention]
        assert len(calls) == (1 if wiring == "luong" else 4)
        assert_close(output.attention[row], torch.cat(calls, 2)[0, 0])
        torch.testing.assert_close(output.attention[row].sum(1), torch.ones(4))
        assert not output.attention[row][:, ~keep[sentence]].any()


def test_the_inspector_names_the_only_attention() -> None:
    model = model_of("gru", "feeding", "initial", "additive")
    maps = capture(model, [8, 6], [5, 9, 4])
    assert {name: weights.shape for name, weights in maps.items()} == {"decoder.cross_attention": (1, 3, 4)}


TRANSFORMER = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 12}


@pytest.mark.parametrize("wiring", WIRINGS)
@torch.no_grad()
def test_a_transformer_reads_for_a_recurrent_decoder(wiring: str) -> None:
    """Deck 003's homework. The encoder has no last state: the mean of its states is used instead."""
    model = small_model("gru", wiring, "both", encoder=TRANSFORMER)
    test_any_split_of_the_steps_equals_the_whole(model)
    test_padding_and_the_batchs_order_change_nothing(model)
    tokens, keep = pad(SOURCES)
    memory = model.encode(tokens, keep)
    assert memory.final is None
    expected = torch.stack([states[kept].mean(0) for states, kept in zip(memory.states, keep, strict=True)])
    torch.testing.assert_close(memory.summary, expected)


def test_a_recurrent_encoder_reads_for_a_transformer() -> None:
    torch.manual_seed(1)
    settings = {"preset": None, "width": 8, "encoder": {"kind": "recurrent"}, "decoder": TRANSFORMER, "dropout": 0.0}
    model = ModelConfig.model_validate(settings).build(SIZE, SIZE).eval()
    test_any_split_of_the_steps_equals_the_whole(model)
    test_padding_and_the_batchs_order_change_nothing(model)
