"""The search on recurrent translators, against a plain search, brute force and forced decoding."""

from itertools import product

import pytest
import torch
from plain_search import brute_force, plain_search
from recurrent_models import BRIDGES, CELLS, SIZE, WIRINGS, small_model
from searching import searched

from dragoman.data.batches.batch import pad
from dragoman.decode.forced import force
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.models.interface import Memory
from dragoman.models.kinds.encoder_decoder import Seq2Seq
from dragoman.text.symbols import BOS, EOS

SOURCES = [[5, 9, 4, EOS], [7, EOS], [12, 4, 16, 11, EOS]]
MODELS = [
    *product(CELLS, WIRINGS, ["initial"]),
    *product(["gru"], WIRINGS, BRIDGES[1:]),
]


def memory_of(model: Seq2Seq, sources: list[list[int]]) -> Memory:
    with torch.no_grad():
        return model.encode(*pad(sources))


def same(found: list[Hypothesis], wanted: list[Hypothesis]) -> None:
    assert [(each.tokens, each.finished) for each in found] == [(each.tokens, each.finished) for each in wanted]
    assert [each.score for each in found] == pytest.approx([each.score for each in wanted], abs=1e-4)


@pytest.mark.parametrize(("cell", "wiring", "bridge"), MODELS)
def test_equals_the_plain_search_and_rescores(cell: str, wiring: str, bridge: str) -> None:
    model = small_model(cell, wiring, bridge, layers=2, scale=0.6)
    config = SearchConfig(beam=3, nbest=3, coverage_penalty=0.3, length_factor=0, length_margin=4)
    memory, prefixes = memory_of(model, SOURCES), [[7], [], [9, 4, 7]]
    found = searched(model.decoder, memory, config)
    begun = searched(model.decoder, memory, config, prefixes)
    for source, hypotheses, prefix, others in zip(SOURCES, found, prefixes, begun, strict=True):
        memory = memory_of(model, [source])
        with torch.no_grad():
            same(hypotheses, plain_search(model.decoder, memory, config))
            same(others, plain_search(model.decoder, memory, config, prefix))
        for each in (*hypotheses, *others):
            tail = (EOS,) if each.finished else ()
            inputs, _ = pad([(BOS, *each.tokens, *tail)[:-1]])
            labels, keep = pad([(*each.tokens, *tail)])
            total = float(force(model.decoder, memory, inputs, labels, keep).sum())
            assert each.log_probability == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("wiring", WIRINGS)
def test_an_exhaustive_beam_equals_brute_force(wiring: str) -> None:
    model = small_model("lstm", wiring, "both", scale=0.6)
    config = SearchConfig(beam=500, nbest=5, length_factor=0, length_margin=2)
    memory = memory_of(model, SOURCES[:1])
    (found,) = searched(model.decoder, memory, config)
    with torch.no_grad():
        same(found, brute_force(model.decoder, memory, config, SIZE)[:5])
