"""Scheduled sampling: inputs, gradients, schedules of the ratio, and resumed runs."""

from math import exp, log

import pytest
import torch
from closeness import assert_all_close, assert_close
from searching import searched
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import parse_settings
from dragoman.data.batches.batch import Batch, collate
from dragoman.decode.search import SearchConfig
from dragoman.models.families.family import ProjectedOutput
from dragoman.models.interface import Memory, State
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.auxiliary import Decisions, collecting, collector
from dragoman.nn.embedding import Projection
from dragoman.tasks.translation.config import TranslationLoopConfig as LoopConfig
from dragoman.tasks.translation.objectives.scheduled_sampling import (
    ConstantRatioConfig,
    ExponentialRatioConfig,
    InverseSigmoidRatioConfig,
    LinearRatioConfig,
    ScheduledSampling,
    TeacherRatioConfig,
    forward,
)
from dragoman.text.symbols import BOS, EOS, PAD
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import TrainingPoint

SIZE = 14


def transformer(**changes: object) -> Seq2Seq:
    torch.manual_seed(3)
    stack = {"layers": 2, "heads": 2, "feedforward": 12}
    settings = {"preset": None, "width": 8, "encoder": stack, "decoder": stack, "dropout": 0.0, **changes}
    model = ModelConfig.model_validate(settings).build(SIZE, SIZE)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.4)
    return model


class Recurrent(nn.Module):
    """A recurrent decoder defined here: h' = tanh(W e + U h), every state summarised by the memory's mean."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.table = nn.Embedding(SIZE, width)
        self.cell = nn.RNNCell(width, width)
        self.projection = Projection(nn.Parameter(torch.randn(SIZE, width)))
        self.told: list[Tensor] = []

    def start(self, memory: Memory, attention: bool = False) -> State:
        return State({"keep": memory.mask}, memory.summary)

    def step(self, tokens: Tensor, state: State) -> tuple[ProjectedOutput, State]:
        hidden, states = state.cache, []
        for place in range(tokens.size(1)):
            hidden = self.cell(self.table(tokens[:, place]), hidden)
            states.append(hidden)
        if (auxiliary := collector()) is not None:
            self.told.append(tokens)
            auxiliary.penalise("square", torch.stack(states).square().sum(), float(tokens.numel()), 0.5)
            zero = torch.zeros(tokens.shape)
            auxiliary.decide(self, Decisions(zero + state.position, zero, zero, 0.0, 0.0))
            auxiliary.count("tokens", torch.tensor([float(tokens.numel())]))
        return ProjectedOutput(torch.stack(states, 1), self.projection), state.after(tokens.size(1), hidden)


def recurrent() -> Seq2Seq:
    model = transformer()
    torch.manual_seed(4)
    model.decoder = Recurrent()
    return model


def decoding(**decoder: object) -> Seq2Seq:
    return transformer(decoder=decoder)


MODELS = {
    "transformer": transformer,
    "rotary": lambda: transformer(positions={"kind": "rotary"}),
    "plain recurrent": recurrent,
    "gru": lambda: decoding(kind="recurrent"),
    "lstm": lambda: decoding(kind="recurrent", cell="lstm", layers=2, wiring={"kind": "luong", "input_feeding": True}),
    "tutorial": lambda: decoding(kind="recurrent", wiring={"kind": "tutorial"}),
    "convolutional": lambda: decoding(kind="convolutional"),
    "bytenet": lambda: decoding(kind="bytenet"),
}


def batch() -> Batch:
    draw = torch.Generator().manual_seed(1)

    def sentences(lengths: list[int]) -> list[list[int]]:
        return [torch.randint(4, SIZE, (length,), generator=draw).tolist() for length in lengths]

    return collate(sentences([3, 5, 2]), sentences([6, 2, 4]), range(3))


@pytest.mark.parametrize("name", MODELS)
def test_a_ratio_of_one_is_the_single_pass_and_so_is_a_loop_over_the_reference(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, pairs = MODELS[name](), batch()
    whole = model(pairs.source, pairs.source_mask, pairs.inputs)
    once = forward(model, pairs, 1.0)
    assert torch.equal(once.hidden, whole.hidden)
    monkeypatch.setattr(torch, "rand", lambda shape, generator: torch.zeros(shape))  # every draw chooses the reference
    looped = forward(model, pairs, 0.5)
    assert_close(looped.hidden[pairs.target_mask], whole.hidden[pairs.target_mask])
    gradients = []
    for output in (looped, whole):
        model.zero_grad()
        output.logits()[pairs.target_mask].logsumexp(1).sum().backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None])
    assert_all_close(*gradients)


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_a_ratio_of_zero_feeds_the_output_of_greedy_search(name: str) -> None:
    """Compared with full passes over growing prefixes, and with the search up to the end symbol."""
    model = MODELS[name]().eval()
    pairs = batch()
    memory = model.encode(pairs.source, pairs.source_mask)
    length = pairs.inputs.size(1)
    config = SearchConfig(beam=1, length_factor=0, length_margin=length)
    greedy = [list(best[0].tokens) for best in searched(model.decoder, memory, config)]
    output = forward(model, pairs, 0.0)
    for row, tokens in enumerate(greedy):
        there, one = int(pairs.target_mask[row].sum()), slice(row, row + 1)
        fed = [BOS]
        for _ in range(there):
            alone = model(pairs.source[one], pairs.source_mask[one], torch.tensor([fed])).logits()[0]
            alone[-1, [0, 1, 3]] = -torch.inf
            fed.append(int(alone[-1].argmax()))
        whole = model(pairs.source[one], pairs.source_mask[one], torch.tensor([fed[:-1]])).logits()[0]
        assert_close(output.logits()[row, :there], whole)
        shown = fed[1 : fed.index(EOS)] if EOS in fed else fed[1:]
        assert shown == tokens[: len(shown)]
        assert fed[1:there] != pairs.inputs[row, 1:there].tolist()


@pytest.mark.parametrize("ratio", [0.0, 0.25, 0.8])
def test_each_token_is_drawn_independently(ratio: float) -> None:
    """A decoder whose own output is always EOS, which no reference input is, so that its inputs can be identified."""
    model = recurrent()
    decoder = model.decoder
    with torch.no_grad():
        decoder.projection.weight.zero_()
        decoder.projection.weight[EOS, 0] = 1.0
        decoder.cell.bias_hh[0] = 100.0
    draw = torch.Generator().manual_seed(2)
    targets = [torch.randint(4, SIZE, (19,), generator=draw).tolist() for _ in range(120)] + [[5, 6]]
    pairs = collate([[5]] * 121, targets, range(121))
    torch.manual_seed(11)
    with collecting():
        forward(model, pairs, ratio)
    fed = torch.cat(decoder.told, 1)
    assert (fed[:, 0] == BOS).all()
    assert torch.equal(fed == PAD, pairs.inputs == PAD)
    assert fed[-1, 1:3].tolist() in [[a, b] for a in (5, EOS) for b in (6, EOS)]
    own = (fed[:-1, 1:] == EOS).float()
    assert torch.where(own == 1, pairs.inputs[:-1, 1:], fed[:-1, 1:]).equal(pairs.inputs[:-1, 1:])
    deviation = (ratio * (1 - ratio) / own.numel()) ** 0.5
    assert abs(float(own.mean()) - (1 - ratio)) <= 4 * deviation
    if 0 < ratio < 1:  # independent over positions and over sentences
        assert abs(float(torch.corrcoef(torch.stack([own[:, :-1].flatten(), own[:, 1:].flatten()]))[0, 1])) < 0.1
        assert 0 < float(own[:, 0].mean()) < 1


@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    """Between changes of an argmax the loss is smooth, and its gradient flows through all states."""
    model, pairs = MODELS[name]().double(), batch()

    def loss() -> Tensor:
        torch.manual_seed(5)
        output = forward(model, pairs, 0.4)
        logits = output.logits()[pairs.target_mask]
        return nn.functional.cross_entropy(logits, pairs.labels[pairs.target_mask], reduction="sum")

    loss().backward()
    for parameter in list(model.decoder.parameters())[:6]:
        direction = torch.randn_like(parameter)
        expected = float((parameter.grad * direction).sum())
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                parameter.add_(direction, alpha=sign * 1e-6)
                values.append(float(loss()))
                parameter.add_(direction, alpha=-sign * 1e-6)
        assert (values[0] - values[1]) / 2e-6 == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_auxiliary_losses_in_steps_equal_those_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "rand", lambda shape, generator: torch.zeros(shape))
    model, pairs = recurrent(), batch()
    told = []
    for ratio in (1.0, 0.5):
        with collecting() as auxiliary:
            forward(model, pairs, ratio)
        told.append(auxiliary)
    for one, other in zip(*(auxiliary.penalty(pairs.target_tokens) for auxiliary in told), strict=True):
        torch.testing.assert_close(one, other)
    assert torch.equal(told[0].counts["tokens"], told[1].counts["tokens"])
    steps = torch.cat([each.log_probability for each in told[1].decisions[model.decoder]], 1)
    assert steps.shape == pairs.inputs.shape
    assert steps[0].tolist() == list(range(pairs.inputs.size(1)))  # in temporal order


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_hard_attentions_decisions_line_up_with_the_tokens(kind: str) -> None:
    field = "cross_attention" if kind == "transformer" else "attention"
    model, pairs = decoding(kind=kind, **{field: {"kind": "hard", "gradient": "reinforce"}}), batch()
    with collecting() as auxiliary:
        forward(model, pairs, 0.5)
    assert auxiliary.decisions
    for calls in auxiliary.decisions.values():
        assert torch.cat([call.log_probability for call in calls], 1).shape == pairs.inputs.shape
    loss = CrossEntropy()(model, pairs).total
    loss.backward()
    assert loss.isfinite()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)


def test_the_objective_passes_the_ratio_on_and_the_generator_decides() -> None:
    model, pairs = transformer(), batch()
    objective = CrossEntropy()

    def loss(ratio: float, seed: int) -> float:
        torch.manual_seed(seed)
        teacher = LinearRatioConfig(steps=100)
        forced = CrossEntropy(predict=ScheduledSampling(teacher))
        return float(forced(model, pairs, TrainingPoint(1 + round(100 * (1 - ratio)))).total.detach())

    assert loss(0.5, 1) == loss(0.5, 1)
    assert len({loss(0.5, seed) for seed in range(6)}) > 1
    assert loss(1.0, 1) == loss(1.0, 2) == float(objective(model, pairs).total.detach())
    assert loss(0.0, 1) != pytest.approx(loss(1.0, 1))


def test_schedules_are_bengios_formulas() -> None:
    assert [ConstantRatioConfig(value=0.3).ratio(step, 0.5) for step in (1, 999)] == [0.3, 0.3]
    linear = LinearRatioConfig(first=0.9, floor=0.2, steps=70)
    assert [linear.ratio(step, 0.0) for step in (1, 11, 71, 500)] == pytest.approx([0.9, 0.8, 0.2, 0.2])
    whole = LinearRatioConfig(floor=0.5)
    assert [whole.ratio(7, progress) for progress in (0.0, 0.5, 1.0)] == pytest.approx([1.0, 0.75, 0.5])
    exponential = ExponentialRatioConfig(base=0.9, floor=0.1)
    assert [exponential.ratio(step, 0.0) for step in (1, 2, 11, 999)] == pytest.approx([1.0, 0.9, 0.9**10, 0.1])
    sigmoid = InverseSigmoidRatioConfig(speed=50)
    assert sigmoid.ratio(1, 0.0) == pytest.approx(50 / 51)
    assert sigmoid.ratio(round(50 * log(50)) + 1, 0.0) == pytest.approx(0.5, abs=0.01)
    assert sigmoid.ratio(101, 0.0) == pytest.approx(50 / (50 + exp(2)))
    assert sigmoid.ratio(10**9, 0.0) == pytest.approx(0.0)


def test_settings_choose_a_schedule_and_a_linear_one_needs_an_end() -> None:
    chosen = parse_settings({"kind": "inverse_sigmoid", "speed": 5}, TeacherRatioConfig, "here")
    assert chosen == InverseSigmoidRatioConfig(speed=5)
    with pytest.raises(ConfigError, match="the length of the run"):
        parse_settings({"teacher_forcing": {"kind": "linear"}}, LoopConfig, "here")
    parse_settings({"teacher_forcing": {"kind": "linear"}, "max_steps": 9}, LoopConfig, "here")
