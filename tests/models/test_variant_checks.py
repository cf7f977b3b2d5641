"""The checks of every variant detect faults: each is given a model with a fault of its kind."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import variant_checks as checks
from torch import Tensor, nn

from dragoman.models.families import layered, transformer
from dragoman.models.interface import State
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.attention.soft import SoftAttention
from dragoman.nn.mask import Mask
from dragoman.nn.mixture import Mixture
from dragoman.nn.recurrent.cells import GRUCell

STACK = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 8}
RECURRENT = {"kind": "recurrent"}
Patch = pytest.MonkeyPatch


def model(side: dict[str, Any] = STACK) -> Seq2Seq:
    config = {"preset": None, "width": 8, "dropout": 0.0, "encoder": side, "decoder": side}
    return checks.built(ModelConfig.model_validate(config), 1).double().eval()


def padding_is_read(patch: Patch) -> None:
    patch.setattr(transformer.Mask, "padding", lambda keep, **packing: Mask(torch.ones_like(keep)[:, None, None]))


def positions_stand_still(patch: Patch) -> None:
    step = transformer.TransformerDecoder.step

    def still(self: nn.Module, tokens: Tensor, state: State) -> Any:
        embed = self.embedding.forward  # type: ignore[union-attr]
        with Patch.context() as inner:
            inner.setattr(
                self.embedding, "forward", lambda tokens, start=0, *rest, **named: embed(tokens, 0, *rest, **named)
            )
            return step(self, tokens, state)

    patch.setattr(transformer.TransformerDecoder, "step", still)


def memory_stays(patch: Patch) -> None:
    reorder = State.reorder

    def without_memory(self: State, rows: Tensor, width: int) -> State:
        count = len(rows) // width
        sentences = torch.arange(count) * self.beam_size
        kept = reorder(self, sentences.repeat_interleave(width), width)
        return State(kept.memory, reorder(self, rows, width).cache, self.position, width)

    patch.setattr(State, "reorder", without_memory)


def rows_mix(patch: Patch) -> None:
    look = SoftAttention.cross_attend

    def rolled(self: SoftAttention, states: Tensor, memory: Any, *rest: Any) -> Tensor:
        result = look(self, states, memory, *rest)
        return result.roll(1, 0) if len(result) > len(memory[0]) else result

    patch.setattr(SoftAttention, "cross_attend", rolled)


def derivative_is_off(patch: Patch) -> None:
    backward_step = GRUCell.backward_step

    def off(gradients: list[Tensor], before: Any, after: Any, kept: Tensor, to_gates: Tensor) -> None:
        backward_step(gradients, before, after, kept, to_gates)
        gradients[0].mul_(1.01)

    patch.setattr(GRUCell, "backward_step", staticmethod(off))


def padding_is_shown(patch: Patch) -> None:
    mean = layered.mean_over_heads
    patch.setattr(layered, "mean_over_heads", lambda *given: torch.full_like(mean(*given), 1 / 6))


def score_is_off(patch: Patch) -> None:
    force = checks.force
    patch.setattr(checks, "force", lambda *given: force(*given) + 0.001)


@pytest.mark.parametrize(
    ("fault", "check", "side"),
    [
        (padding_is_read, checks.check_padding_and_order, STACK),
        (positions_stand_still, checks.check_steps, STACK),
        (padding_is_shown, checks.check_steps, STACK),
        (memory_stays, checks.check_reordering, STACK),
        (rows_mix, checks.check_reordering, STACK),
        (rows_mix, checks.check_search, STACK),
        (score_is_off, checks.check_search, STACK),
        (derivative_is_off, lambda model: checks.check_gradient(model, 1), RECURRENT),
    ],
)
def test_a_fault_is_detected(
    monkeypatch: Patch, fault: Callable[[Patch], None], check: Callable[[Seq2Seq], None], side: dict[str, Any]
) -> None:
    sound = model(side)
    check(sound)
    with monkeypatch.context() as patch:
        fault(patch)
        with pytest.raises(AssertionError):
            check(sound)


def test_an_unused_parameter_and_an_infinite_penalty_are_detected(monkeypatch: Patch) -> None:
    checks.check_training(model().float())
    idle = model().float()
    idle.idle = nn.Linear(2, 2)
    with pytest.raises(AssertionError, match=r"no gradient at all: \['idle.weight', 'idle.bias'\]"):
        checks.check_training(idle)
    mixed = model({**STACK, "experts": {"count": 4}}).float()
    checks.check_training(mixed)
    tell = Mixture._report

    def infinite(self: Mixture, auxiliary: Any, probabilities: Tensor, sizes: list[int], most: int) -> None:
        tell(self, auxiliary, probabilities * torch.inf, sizes, most)

    monkeypatch.setattr(Mixture, "_report", infinite)
    with pytest.raises(AssertionError, match="balance"):
        checks.check_training(mixed)
