"""The search on a small random Transformer: its caches survive expansion, reordering and pruning."""

import pytest
import torch
from plain_search import plain_search

from dragoman.data.batch import pad
from dragoman.decode.forced import force
from dragoman.decode.penalties import GNMTPenalty, LengthPenalty, MeanLogProbability, NoPenalty
from dragoman.decode.search import Hypothesis, SearchConfig, search
from dragoman.models.build import ModelConfig, Seq2Seq, build_model
from dragoman.models.interface import Memory
from dragoman.text.special import BOS, EOS

SIZE = 24
SOURCES = [[5, 9, 4, EOS], [7, EOS], [12, 4, 20, 11, 6, 5, EOS], [9, 9, EOS], [EOS]]
STACK = {"layers": 2, "heads": 2, "feedforward": 24}


@pytest.fixture(scope="module", params=["pre", "post"])
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    torch.manual_seed(3)
    stack = {**STACK, "norm": request.param}
    model = build_model(ModelConfig(width=16, encoder=stack, decoder=stack), SIZE, SIZE).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in model.parameters():  # larger weights: outputs of many lengths that depend on what went before
            if parameter.dim() > 1:
                parameter.mul_(1.7)
    return model


def memory_of(model: Seq2Seq, sources: list[list[int]], extra: int = 0) -> Memory:
    tokens, keep = pad(sources)
    tokens = torch.nn.functional.pad(tokens, (0, extra), value=7)
    with torch.no_grad():
        return model.encode(tokens, torch.nn.functional.pad(keep, (0, extra)))


def same(found: list[Hypothesis], wanted: list[Hypothesis]) -> None:
    assert [(each.tokens, each.finished) for each in found] == [(each.tokens, each.finished) for each in wanted]
    assert [each.score for each in found] == pytest.approx([each.score for each in wanted], abs=1e-4)


@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize(
    "penalty", [GNMTPenalty(), MeanLogProbability(), NoPenalty()], ids=lambda penalty: penalty.kind
)
def test_equals_the_plain_search_and_rescores(model: Seq2Seq, beam: int, penalty: LengthPenalty) -> None:
    config = SearchConfig(beam=beam, nbest=beam, length_penalty=penalty, length_factor=1, length_margin=6)
    found = search(model.decoder, memory_of(model, SOURCES), config)
    for source, hypotheses in zip(SOURCES, found, strict=True):
        memory = memory_of(model, [source])
        with torch.no_grad():
            same(hypotheses, plain_search(model.decoder, memory, config))
        for each in hypotheses:
            tail = (EOS,) if each.finished else ()
            inputs, _ = pad([(BOS, *each.tokens, *tail)[:-1]])
            labels, keep = pad([(*each.tokens, *tail)])
            total = float(force(model.decoder, memory, inputs, labels, keep).sum())
            assert each.log_probability == pytest.approx(total, abs=1e-4)


def test_batch_order_and_padding_change_nothing(model: Seq2Seq) -> None:
    config = SearchConfig(beam=4, nbest=4, length_factor=1, length_margin=8)
    alone = [search(model.decoder, memory_of(model, [source]), config)[0] for source in SOURCES]
    for order in ([4, 3, 2, 1, 0], [2, 0, 4], [1, 1, 2]):
        together = search(model.decoder, memory_of(model, [SOURCES[row] for row in order], extra=3), config)
        for place, row in enumerate(order):
            same(together[place], alone[row])


def test_sentences_finish_at_different_steps(model: Seq2Seq) -> None:
    """Without this the tests above would say nothing about sentences that leave the batch."""
    found = search(model.decoder, memory_of(model, SOURCES), SearchConfig(beam=2, length_factor=1, length_margin=6))
    assert len({len(best[0].tokens) for best in found}) > 2
