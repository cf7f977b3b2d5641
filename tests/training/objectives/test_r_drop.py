"""R-Drop compared with its equations in torch's functions, and with plain cross-entropy if both passes agree."""

from collections.abc import Iterator

import pytest
import torch
from closeness import assert_all_close, assert_close
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from dragoman.data.batches.batch import Batch, collate
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.training.objectives import fused_cross_entropy
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.fused_cross_entropy import ProjectedLosses, projected_losses
from dragoman.training.objectives.r_drop import RDrop

ROWS, WIDTH, SIZE = 53, 12, 37
SOURCES = [[5 + row, *range(6, 7 + row)] for row in range(8)]
TARGETS = [[9, *range(20, 20 + (3 * row) % 7)] for row in range(8)]


def formula(one: Tensor, other: Tensor) -> Tensor:
    """Equation 2, from logits."""
    p, q = one.log_softmax(-1), other.log_softmax(-1)
    return (
        functional.kl_div(q, p, log_target=True, reduction="sum")
        + functional.kl_div(p, q, log_target=True, reduction="sum")
    ) / 2


def leaves(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    tensors = torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH), torch.randn(SIZE, WIDTH)
    one, other, weight = (tensor.to(dtype).requires_grad_() for tensor in tensors)
    return one, other, weight


def judged(one: Tensor, other: Tensor, weight: Tensor, alpha: float | None, smoothing: float = 0.1) -> ProjectedLosses:
    """Return the losses of duplicated rows with the same labels."""
    labels = torch.arange(len(one)) % len(weight)
    return projected_losses(torch.cat((one, other)), weight, labels.repeat(2), smoothing, None, alpha=alpha)


@pytest.mark.parametrize("chunk", [1, 10, 53, 1024])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_and_its_gradient_equal_torch(monkeypatch: pytest.MonkeyPatch, chunk: int, smoothing: float) -> None:
    monkeypatch.setattr(fused_cross_entropy, "_CHUNK_ROWS", chunk)
    one, other, weight = leaves()
    found = judged(one, other, weight, 3.0, smoothing)
    logits, labels = [each @ weight.t() for each in (one, other)], torch.arange(ROWS) % SIZE
    plain = [functional.cross_entropy(each, labels, reduction="sum", label_smoothing=smoothing) for each in logits]
    divergence = formula(*logits)
    expected = sum(plain) + 3 * divergence
    assert float(divergence.detach()) > 100
    assert_close(found.total, expected)
    assert_close(found.divergence, divergence.detach())
    ours = torch.autograd.grad(found.total * 0.3, (one, other, weight))
    theirs = torch.autograd.grad(expected * 0.3, (one, other, weight))
    assert_all_close(ours, theirs)


def test_numerical_gradients_agree() -> None:
    inputs = tuple(leaf.detach()[:4].requires_grad_() for leaf in leaves(torch.float64))
    assert torch.autograd.gradcheck(lambda *given: judged(*given, 2.0).total, inputs)  # type: ignore[call-arg]


def test_bfloat16_is_close_to_float32() -> None:
    one, other, weight = (leaf.detach() / 2 for leaf in leaves())
    other = one + 0.2 * other
    exact = judged(one, other, weight, 1.0).divergence
    with torch.autocast("cpu", torch.bfloat16):
        rounded = judged(one, other, weight, 1.0).divergence
    assert exact is not None and rounded is not None and rounded.dtype == torch.float32
    assert float(rounded) == pytest.approx(float(exact), rel=0.02)


def test_equal_passes_have_no_divergence_and_no_gradient_of_it() -> None:
    one, _, weight = leaves()
    found, plain = (judged(one, one.detach(), weight, alpha) for alpha in (5.0, None))
    assert float(found.divergence) == 0
    torch.testing.assert_close(found.total, plain.total)
    pairs = zip(*(torch.autograd.grad(each.total, (one, weight)) for each in (found, plain)), strict=True)
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs)


def test_the_loss_of_each_row_is_that_of_a_single_pass() -> None:
    one, other, weight = leaves()
    labels = (torch.arange(ROWS) % SIZE).repeat(2)
    given = torch.cat((one, other)), weight, labels, 0.1, None
    torch.testing.assert_close(
        projected_losses(*given, per_row=True, alpha=5.0).per_row, projected_losses(*given, per_row=True).per_row
    )


class _Largest(TorchDispatchMode):
    """Records the largest number of elements of tensors with a dimension of the vocabulary's size."""

    def __init__(self, size: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.size, self.largest = size, 0

    def __torch_dispatch__(self, function, types, arguments=(), settings=None):  # type: ignore[no-untyped-def]
        result = function(*arguments, **(settings or {}))
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, Tensor) and self.size in tensor.shape:
                self.largest = max(self.largest, tensor.numel())
        return result


def test_no_more_logits_exist_than_those_of_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_cross_entropy, "_CHUNK_ROWS", 16)
    torch.manual_seed(1)
    one, other, weight = torch.randn(500, 4), torch.randn(500, 4), torch.randn(211, 4)
    with _Largest(211) as seen:
        judged(one.requires_grad_(), other.requires_grad_(), weight.requires_grad_(), 5.0).total.backward()
    assert 0 < seen.largest <= 16 * 211


def model(dropout: float) -> Seq2Seq:
    stack = {"layers": 1, "heads": 2, "feedforward": 24}
    settings = {"preset": None, "width": 16, "encoder": stack, "decoder": stack, "dropout": dropout}
    torch.manual_seed(4)
    return ModelConfig.model_validate(settings).build(30, 30).train()


def gradients(model: Seq2Seq, loss: Tensor) -> Iterator[Tensor]:
    yield from torch.autograd.grad(loss, [each for each in model.parameters() if each.requires_grad])


def batch() -> Batch:
    return collate(SOURCES, TARGETS, range(8))


def test_without_weight_it_is_half_the_plain_loss_over_the_doubled_batch() -> None:
    subject, plain = model(0.3), CrossEntropy()
    torch.manual_seed(7)
    found = RDrop(plain, 0)(subject, batch())
    torch.manual_seed(7)
    expected = plain(subject, batch().repeat_rows())
    torch.testing.assert_close(found.total, expected.total / 2)
    assert found.cross_entropy == pytest.approx(expected.cross_entropy / 2)
    assert found.tokens == expected.tokens // 2 == batch().target_tokens
    assert found.auxiliary["r_drop"] > 0.001
    for one, other in zip(gradients(subject, found.total), gradients(subject, expected.total / 2), strict=True):
        torch.testing.assert_close(one, other)


def test_the_whole_loss_equals_equation_4() -> None:
    subject, pairs = model(0.3), batch()
    torch.manual_seed(7)
    found = RDrop(CrossEntropy(), 3)(subject, pairs)
    torch.manual_seed(7)
    both = pairs.repeat_rows()
    logits = subject(both.source, both.source_mask, both.inputs).logits()
    keep = pairs.target_mask
    one, other = logits[:8][keep], logits[8:][keep]
    losses = [
        functional.cross_entropy(each, pairs.labels[keep], label_smoothing=0.1, reduction="sum")
        for each in (one, other)
    ]
    divergence = formula(one, other)
    assert_close(found.total, (sum(losses) + 3 * divergence) / 2)
    assert found.auxiliary["r_drop"] == pytest.approx(float(divergence.detach()) / pairs.target_tokens, rel=1e-4)


def test_without_dropout_both_passes_agree() -> None:
    subject, plain = model(0.0), CrossEntropy()
    found, expected = RDrop(plain, 5)(subject, batch()), plain(subject, batch())
    assert_close(found.total, expected.total)
    assert found.auxiliary["r_drop"] == pytest.approx(0, abs=1e-6)
