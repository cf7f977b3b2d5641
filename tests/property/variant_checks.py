"""Checks that every model must pass, in double precision, with weights other than the initial ones."""

from collections.abc import Iterable
from math import isfinite
from typing import Any

import pytest
import torch
from plain_search import brute_force
from searching import searched
from torch import Tensor
from torch.nn import functional
from variant_settings import SIZE

from dragoman.data.batches.batch import Batch, collate, pad
from dragoman.data.batches.shapes import BatchShapes
from dragoman.decode.forced import force
from dragoman.decode.sampling import SamplingConfig
from dragoman.decode.search import SearchConfig
from dragoman.models.architectures.seq2seq import ModelConfig, Seq2Seq
from dragoman.models.interface import State
from dragoman.nn.attention.hard import HardAttention
from dragoman.nn.dropout import scale_dropout
from dragoman.tasks.translation.objectives.scheduled_sampling import ConstantRatioConfig, ScheduledSampling
from dragoman.tasks.translation.objectives.sequence_reward import SequenceReward, SequenceRewardConfig
from dragoman.text.symbols import BOS, EOS
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import Objective
from dragoman.training.objectives.r_drop import RDrop

CLOSE: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-6}
SOURCES = [[5, 9, 4, 7, 10], [6], [11, 4, 8]]
BATCH = collate(SOURCES, [[6, 7, 8], [4], [9, 9, 5, 4]], range(3))
ORDINARY = (4, 5)
STEP = 1e-6


class Numbers:
    """A vocabulary for rewards: token 5 is the word 5."""

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        return [" ".join(map(str, ids)) for ids in batch]


def built(config: ModelConfig, seed: int) -> Seq2Seq:
    """Return a model with weights other than the initial ones."""
    torch.manual_seed(seed)
    model = config.build(SIZE, SIZE if config.tie_embeddings else SIZE + 1)
    with torch.no_grad():  # initial values of biases would hide mistakes
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def check(config: ModelConfig, seed: int = 1) -> None:
    """Check every invariant."""
    model = built(config, seed)
    check_training(model)  # running statistics then have values
    model = model.double()
    check_shapes(model.train(), seed, config.packs)
    if not estimates(model):
        check_gradient(model.train(), seed)
    check_gradient(model.eval(), seed)
    with torch.no_grad():
        check_steps(model)
        check_padding_and_order(model)
        check_reordering(model)
        check_search(model)


def estimates(model: Seq2Seq) -> bool:
    """Return whether training uses a gradient estimate instead of the loss's gradient (test_straight_through)."""
    hard = [module for module in model.modules() if isinstance(module, HardAttention)]
    return any(not module.is_sampled for module in hard)


def check_training(model: Seq2Seq) -> None:
    """Check that there is an update, and that each parameter has a finite gradient, for each objective and input.

    The cases: the reference as input, the model's own output, and the reward of sampled translations. Auxiliary losses
    and counts that modules report to the objective are finite too.
    """
    model.train()
    short = SamplingConfig(length_factor=0, length_margin=4, forbid=())
    rewarded = SequenceReward(CrossEntropy(), SequenceRewardConfig(samples=2, likelihood=1.0), Numbers(), short)
    often_own = CrossEntropy(predict=ScheduledSampling(ConstantRatioConfig(value=0.3)))
    for objective in (CrossEntropy(), often_own, rewarded):
        loss = objective(model, BATCH)
        assert isfinite(loss.total.item()) and isfinite(loss.cross_entropy), f"loss {loss}"
        assert all(isfinite(value) for value in loss.auxiliary.values()), loss.auxiliary
        assert all(bool((counts >= 0).all()) for counts in loss.counts.values()), loss.counts
        model.zero_grad()
        loss.total.backward()
        trained = {name: each.grad for name, each in model.named_parameters() if each.requires_grad}
        without = [name for name, gradient in trained.items() if gradient is None]
        assert not without, f"no gradient at all: {without}"
        broken = [name for name, gradient in trained.items() if not gradient.isfinite().all()]
        assert not broken, f"gradient not finite: {broken}"
        assert any(gradient.abs().sum() > 0 for gradient in trained.values()), "all gradients are zero"
    model.zero_grad()


def check_shapes(model: Seq2Seq, seed: int, packs: bool) -> None:
    """Further padding, and packed states, have the same loss, gradient, reports and running statistics.

    R-Drop reads every row twice, and a part of a batch is packed like the batch. packs: whether the model packs.
    """
    stored = {name: value.clone() for name, value in model.state_dict().items()}
    part = BATCH.split(2)[1]
    cases: list[tuple[Objective, list[Batch]]] = [(CrossEntropy(), [BATCH])]
    if not any(isinstance(module, HardAttention) for module in model.modules()):  # its samples depend on the shape
        cases[0][1].append(BatchShapes((8, 8)).apply(BATCH))
    if packs:
        cases[0][1].append(BATCH.with_packing())
        cases.append((RDrop(CrossEntropy(), 0.5), [part, BATCH.with_packing(100).split(2)[1]]))
    for objective, batches in cases:
        results = []
        for batch in batches:
            model.load_state_dict(stored)
            model.zero_grad()
            torch.default_generator.manual_seed(seed)
            with scale_dropout(0.0):
                loss = objective(model, batch)
            loss.total.backward()  # type: ignore[no-untyped-call]
            gradients = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
            buffers = {name: value.clone() for name, value in model.named_buffers()}
            results.append((loss.total.detach(), loss.cross_entropy, loss.auxiliary, loss.counts, gradients, buffers))
        for result in results[1:]:
            torch.testing.assert_close(result, results[0], rtol=1e-6, atol=1e-7)
    model.load_state_dict(stored)
    model.zero_grad()


def started(model: Seq2Seq, sources: list[list[int]], extra: int = 0, attention: bool = False) -> State:
    tokens, keep = pad(sources, after=(EOS,))
    tokens = functional.pad(tokens, (0, extra), value=9)
    return model.decoder.start(model.encode(tokens, functional.pad(keep, (0, extra))), attention)


def targets(rows: int, length: int) -> Tensor:
    return torch.randint(4, SIZE, (rows, length), generator=torch.Generator().manual_seed(rows * 100 + length))


def check_steps(model: Seq2Seq) -> None:
    """Any split of the steps equals the whole, and returning attention changes nothing else."""
    tokens = targets(len(SOURCES), 7)
    whole, after = model.decoder.step(tokens, started(model, SOURCES))
    for split, asked in (([1] * 7, True), ([3, 1, 3], False)):
        state, parts, seen = started(model, SOURCES, attention=asked), [], []
        for part in tokens.split(split, 1):
            output, state = model.decoder.step(part, state)
            parts.append(output.logits())
            seen.append(output.attention)
        torch.testing.assert_close(torch.cat(parts, 1), whole.logits(), **CLOSE)
        assert state.position == after.position == 7
        if asked and seen[0] is not None:
            check_attention(model, tokens, torch.cat(seen, 1))


def check_attention(model: Seq2Seq, tokens: Tensor, seen: Tensor) -> None:
    """Attention (R, T, S) step by step equals attention at once, and is a distribution over the real positions."""
    source, keep = pad(SOURCES, after=(EOS,))
    states = model.encode(source, keep).states
    if (states - states[:, :1]).abs().max() > 1e-6:  # if all are equal, argmax may return any
        state = started(model, SOURCES, attention=True)
        torch.testing.assert_close(model.decoder.step(tokens, state)[0].attention, seen, **CLOSE)
    torch.testing.assert_close(seen.sum(2), torch.ones_like(seen[:, :, 0]), **CLOSE)
    assert bool((seen >= -1e-9).all())
    assert not seen.masked_select(~keep[:, None].expand_as(seen)).any(), "padding was attended"


def check_padding_and_order(model: Seq2Seq) -> None:
    """Neighbours in the batch, order and padding change nothing."""
    tokens = targets(len(SOURCES), 4)
    order = [2, 0, 1]
    found = model.decoder.step(tokens[order], started(model, [SOURCES[row] for row in order], extra=2))[0].logits()
    for place, row in enumerate(order):
        alone = model.decoder.step(tokens[row : row + 1], started(model, [SOURCES[row]]))[0].logits()
        torch.testing.assert_close(found[place], alone[0], **CLOSE)


def check_reordering(model: Seq2Seq) -> None:
    """Expanded, shuffled and pruned hypotheses continue as if each had been read alone."""
    tokens = targets(len(SOURCES), 4)
    _, state = model.decoder.step(tokens[:, :2], started(model, SOURCES))
    rows = torch.tensor([2, 2, 0, 0])  # sentence 1 leaves, the others get two hypotheses
    state, read = state.reorder(rows, 2), tokens[rows, :2]
    fresh = torch.tensor([[4], [7], [9], [5]])
    _, state = model.decoder.step(fresh, state)
    read = torch.cat([read, fresh], 1)
    swapped = torch.tensor([1, 0, 2, 2])
    state, read = state.reorder(swapped, 2), torch.cat([read[swapped], fresh], 1)
    found = model.decoder.step(fresh, state)[0].logits()[:, -1]
    for row, owner in enumerate((2, 2, 0, 0)):
        alone = model.decoder.step(read[row : row + 1], started(model, [SOURCES[owner]]))[0].logits()[0, -1]
        torch.testing.assert_close(found[row], alone, **CLOSE)


def check_gradient(model: Seq2Seq, seed: int) -> None:
    """Compare autograd's directional derivative of the cross-entropy with a central difference, in double precision.

    Random numbers in training are the same each time; running statistics are restored.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}

    def loss() -> Tensor:
        torch.default_generator.manual_seed(seed)
        logits = model(BATCH.source, BATCH.source_mask, BATCH.inputs).logits()[BATCH.target_mask]
        return functional.cross_entropy(logits, BATCH.labels[BATCH.target_mask])

    gradients = torch.autograd.grad(loss(), parameters, allow_unused=True)
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(4):  # a step may cross a kink of relu or a change of argmax; four of them rarely do
        direction = [torch.randn(each.shape, generator=generator, dtype=torch.float64) for each in parameters]
        exact = sum(
            float((gradient * along).sum())
            for gradient, along in zip(gradients, direction, strict=True)
            if gradient is not None
        )
        values = []
        with torch.no_grad():
            for sign in (STEP, -2 * STEP):
                torch._foreach_add_(parameters, direction, alpha=sign)
                values.append(float(loss()))
            torch._foreach_add_(parameters, direction, alpha=STEP)
        found.append((exact, (values[0] - values[1]) / (2 * STEP)))
        if abs(found[-1][1] - exact) <= 1e-5 * max(1.0, abs(exact)):
            break
    else:
        mode = "training" if model.training else "evaluation"
        raise AssertionError(f"in {mode} autograd and central differences say {found}")
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])


def check_search(model: Seq2Seq) -> None:
    """An exhaustive beam equals brute force, and forced decoding gives the same scores.

    Four prefixes of two tokens have twelve continuations: a beam of twelve prunes nothing.
    """
    size = model.decoder.projection.weight.size(0)
    forbid = tuple(token for token in range(size) if token not in (*ORDINARY, EOS))
    config = SearchConfig(beam=12, nbest=4, forbid=forbid, length_factor=0, length_margin=3)
    source = SOURCES[2]
    tokens, keep = pad([source, SOURCES[1]], after=(EOS,))
    with torch.no_grad():
        found = searched(model.decoder, model.encode(tokens, keep), config)[0]
        memory = model.encode(*pad([source], after=(EOS,)))
        wanted = brute_force(model.decoder, memory, config, size)[: config.nbest]
    assert [each.score for each in found] == pytest.approx([each.score for each in wanted], abs=1e-4)
    for each in found:
        assert each.finished
        inputs, _ = pad([(BOS, *each.tokens)])
        labels, keep = pad([(*each.tokens, EOS)])
        total = float(force(model.decoder, memory, inputs, labels, keep).sum())
        assert abs(each.log_probability - total) < 1e-4
