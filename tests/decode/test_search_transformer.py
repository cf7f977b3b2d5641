"""The search on a small random Transformer: its caches are correct after expansion, reordering and pruning."""

import pytest
import torch
from plain_search import plain_search
from searching import searched
from torch import Tensor

from dragoman.data.batches.batch import pad
from dragoman.decode.forced import force
from dragoman.decode.rules.length_penalty import GNMTPenalty, LengthPenalty, MeanLogProbability, NoPenalty
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.models.interface import Memory, Output, State
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.attention.recording import recording
from dragoman.text.symbols import BOS, EOS

SIZE = 24
SOURCES = [[5, 9, 4, EOS], [7, EOS], [12, 4, 20, 11, 6, 5, EOS], [9, 9, EOS], [EOS]]
STACK = {"layers": 2, "heads": 2, "feedforward": 24}


@pytest.fixture(scope="module", params=["pre", "post"])
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    torch.manual_seed(3)
    stack = {**STACK, "norm": request.param}
    model = ModelConfig(width=16, encoder=stack, decoder=stack).build(SIZE, SIZE).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in model.parameters():  # larger weights: outputs of many lengths that depend on earlier tokens
            if parameter.dim() > 1:
                parameter.mul_(1.7)
    return model


def memory_of(model: Seq2Seq, sources: list[list[int]], extra: int = 0) -> Memory:
    tokens, keep = pad(sources)
    tokens = torch.nn.functional.pad(tokens, (0, extra), value=7)
    with torch.no_grad():
        return model.encode(tokens, torch.nn.functional.pad(keep, (0, extra)))


PREFIXES = [[5, 9, 4], [], [12], [9, 9, 3, 5], [6]]


def same(found: list[Hypothesis], wanted: list[Hypothesis]) -> None:
    assert [(each.tokens, each.finished) for each in found] == [(each.tokens, each.finished) for each in wanted]
    assert [each.score for each in found] == pytest.approx([each.score for each in wanted], abs=1e-4)


@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize("coverage", [0.0, 0.5])
@pytest.mark.parametrize(
    "penalty", [GNMTPenalty(), MeanLogProbability(), NoPenalty()], ids=lambda penalty: penalty.kind
)
def test_equals_the_plain_search_and_rescores(
    model: Seq2Seq, beam: int, penalty: LengthPenalty, coverage: float
) -> None:
    config = SearchConfig(
        beam=beam, nbest=beam, length_penalty=penalty, coverage_penalty=coverage, length_factor=1, length_margin=6
    )
    found = searched(model.decoder, memory_of(model, SOURCES), config)
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


@pytest.mark.parametrize("beam", [1, 4])
def test_prefixes_are_read_at_once_and_continued_as_in_the_plain_search(
    model: Seq2Seq, beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = SearchConfig(beam=beam, nbest=beam, coverage_penalty=0.5, length_factor=1, length_margin=6)
    step, read = model.decoder.step, []

    def counted(tokens: Tensor, state: State) -> tuple[Output, State]:
        read.append(tokens.shape[1])
        return step(tokens, state)  # type: ignore[no-any-return]

    with monkeypatch.context() as patch:
        patch.setattr(model.decoder, "step", counted)
        found = searched(model.decoder, memory_of(model, SOURCES, extra=2), config, PREFIXES)
    assert read[0] == max(map(len, PREFIXES)) and set(read[1:]) == {1}
    for source, prefix, hypotheses in zip(SOURCES, PREFIXES, found, strict=True):
        memory = memory_of(model, [source])
        with torch.no_grad():
            same(hypotheses, plain_search(model.decoder, memory, config, prefix))


@pytest.mark.parametrize("coverage", [0.0, 0.5])
def test_batch_order_and_padding_change_nothing(model: Seq2Seq, coverage: float) -> None:
    config = SearchConfig(beam=4, nbest=4, coverage_penalty=coverage, length_factor=1, length_margin=8)
    alone = [searched(model.decoder, memory_of(model, [source]), config)[0] for source in SOURCES]
    for order in ([4, 3, 2, 1, 0], [2, 0, 4], [1, 1, 2]):
        together = searched(model.decoder, memory_of(model, [SOURCES[row] for row in order], extra=3), config)
        for place, row in enumerate(order):
            same(together[place], alone[row])


def test_sentences_finish_at_different_steps(model: Seq2Seq) -> None:
    """Otherwise the tests above would not cover sentences that leave the batch."""
    found = searched(model.decoder, memory_of(model, SOURCES), SearchConfig(beam=2, length_factor=1, length_margin=6))
    assert len({len(best[0].tokens) for best in found}) > 2


@torch.no_grad()
def test_attention_is_the_mean_over_the_heads_of_the_last_layer(model: Seq2Seq) -> None:
    memory = memory_of(model, SOURCES, extra=2)
    tokens = torch.randint(4, SIZE, (2 * len(SOURCES), 4), generator=torch.Generator().manual_seed(1))
    rows = torch.arange(len(SOURCES)).repeat_interleave(2)
    output, _ = model.decoder.step(tokens, model.decoder.start(memory, attention=True).reorder(rows, 2))
    assert output.attention is not None
    for row, sentence in enumerate(rows.tolist()):
        alone = Memory(memory.states[sentence : sentence + 1], memory.mask[sentence : sentence + 1])
        with recording() as weights:
            whole, _ = model.decoder.step(tokens[row : row + 1], model.decoder.start(alone))
        assert whole.attention is None
        expected = weights[model.decoder.layers[-1].cross_attention][0][0].mean(0)
        assert torch.allclose(output.attention[row], expected, atol=1e-6)
        assert torch.allclose(output.attention[row].sum(-1), torch.ones(4), atol=1e-6)
        assert not output.attention[row][:, ~memory.mask[sentence]].any()

    state, steps = model.decoder.start(memory, attention=True).reorder(rows, 2), []
    for column in tokens.T:
        step, state = model.decoder.step(column.unsqueeze(1), state)
        steps.append(step.attention)
        assert torch.allclose(step.hidden[:, -1], output.hidden[:, len(steps) - 1], atol=1e-5)
    assert torch.allclose(torch.cat(steps, 1), output.attention, atol=1e-6)  # type: ignore[arg-type]
