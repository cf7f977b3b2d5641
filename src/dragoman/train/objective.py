"""What training minimises: label-smoothed cross-entropy, fused with the vocabulary projection."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

from dragoman.base.config import Config
from dragoman.data.batch import Batch
from dragoman.models.interface import Output
from dragoman.models.seq2seq import Seq2Seq
from dragoman.nn.auxiliary import Auxiliary, collecting
from dragoman.nn.embedding import Projection
from dragoman.nn.precision import product_type
from dragoman.train.r_drop import RDropConfig
from dragoman.train.reinforce import credit
from dragoman.train.reward import RewardConfig
from dragoman.train.teacher import forward

# Rows whose logits exist at one time: large enough for an efficient matrix product, small enough for the cache.
_CHUNK_ROWS = 1024

_SMALLEST = torch.finfo(torch.float32).tiny


class ObjectiveConfig(Config):
    """Cross-entropy of the next token against q' = (1 − ε)δ + ε·u (Szegedy et al. 2016, section 7)."""

    label_smoothing: float = Field(
        0.1, ge=0, lt=1, description="ε, probability mass moved off the reference (paper: 0.1)"
    )
    prior: Literal["uniform", "unigram"] = Field(
        "uniform", description="u, where the mass goes: every entry alike, or as frequent as in the training targets"
    )
    reward: RewardConfig | None = Field(
        None,
        description="fine-tuning on the reward of sampled translations, best from train.start; null: none",
    )
    r_drop: RDropConfig | None = Field(
        None, description="two passes under different dropout masks shall predict alike; null: a single pass"
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> "ObjectiveConfig":
        if self.reward is not None and self.r_drop is not None:
            raise ValueError("reward and r_drop do not go together: set one of them to null")
        return self


@dataclass(frozen=True)
class Loss:
    """Sums over a batch: total (scalar, differentiable), its cross-entropy part (nats), and the tokens to divide by.

    cross_entropy: a tensor on a GPU, so that nobody waits for it before it is needed.
    auxiliary: means of what modules add to the loss, by name, without their weights. counts: what modules count.
    """

    total: Tensor
    cross_entropy: float | Tensor
    tokens: int
    auxiliary: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, Tensor] = field(default_factory=dict)


class Objective:
    """Returns summed losses, so that accumulated parts and ranks add up to one big batch.

    What modules sampled is rewarded with minus the very loss that is minimised, smoothing included: so the gradient is
    an unbiased estimate of that of the expected loss.

    prior: (V,) probabilities u for the smoothing term; None means uniform. divisible: whether threads may compute it on
    parts of a batch at one time.
    """

    divisible = True

    def __init__(self, config: ObjectiveConfig, prior: Tensor | None = None) -> None:
        self.smoothing = config.label_smoothing
        self.prior = prior

    def __call__(self, model: Seq2Seq, batch: Batch, teacher_ratio: float = 1.0) -> Loss:
        """One batch. teacher_ratio: the share of input tokens that are the reference's, see `train.teacher`."""
        with collecting() as auxiliary:
            output = forward(model, batch, teacher_ratio)
        return self.judge(output, batch, auxiliary)

    def judge(self, output: Output, batch: Batch, auxiliary: Auxiliary) -> Loss:
        """The loss of what a model has put out for `batch` and of what its modules have told."""
        hidden, labels = batch.at_targets(output.hidden), batch.at_targets(batch.labels)
        assert isinstance(output.project, Projection)
        total, cross_entropy, losses = _ProjectedCrossEntropy.apply(  # type: ignore[no-untyped-call]
            hidden, output.project.weight, labels, self.smoothing, self.prior, bool(auxiliary.decisions), None
        )
        penalty, means = auxiliary.penalty(batch.target_tokens)
        if auxiliary.decisions:
            rewards = losses.new_zeros(batch.labels.shape)
            rewards[batch.target_keep] = -losses
            credited = credit(auxiliary.decisions, rewards, batch.target_keep)
            penalty, means = penalty + credited.total, {**means, **credited.means}
        told = float(cross_entropy) if cross_entropy.device.type == "cpu" else cross_entropy
        return Loss(total + penalty, told, batch.target_tokens, means, auxiliary.counts)


def projected_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    labels: Tensor,
    smoothing: float = 0.0,
    prior: Tensor | None = None,
    factors: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Σ cross-entropy of softmax(hWᵀ) against the smoothed labels, and the same without smoothing (detached).

    hidden (N, d), weight (V, d), labels (N,) int64, prior (V,) or None for uniform. The gradient is made in the forward
    pass, chunk by chunk, so that (N, V) logits never exist as a whole.

    factors: (N,), what each token's loss is multiplied by in the first sum, without smoothing; None for 1.
    """
    if factors is not None and smoothing:
        raise ValueError("factors and smoothing do not go together")
    total, plain, _ = _ProjectedCrossEntropy.apply(hidden, weight, labels, smoothing, prior, False, factors)  # type: ignore[no-untyped-call]
    return total, plain


class _ProjectedCrossEntropy(torch.autograd.Function):
    """The sums of `projected_cross_entropy` and, where asked for, each token's smoothed loss (N,), detached."""

    @staticmethod
    def forward(
        context: Any,
        hidden: Tensor,
        weight: Tensor,
        labels: Tensor,
        smoothing: float,
        prior: Tensor | None,
        each: bool,
        factors: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        differentiate = any(context.needs_input_grad)
        kind = product_type(hidden)
        states, table = hidden.to(kind), weight.to(kind)
        rows_sum = hidden.sum(0, dtype=torch.float32)
        # With u = prior, Σᵥ uᵥ·logitᵥ = h · (Wᵀu): the smoothing term and its gradients need no pass over the logits.
        # Written without matrix products, which autocast would round to bfloat16.
        spread = weight.mean(0) if prior is None else (prior[:, None] * weight).sum(0)
        total = -smoothing * (rows_sum * spread).sum()
        cross_entropy, weighted = torch.zeros_like(total), torch.zeros_like(total)
        each_loss = -smoothing * (hidden.float() * spread).sum(1) if each else None
        hidden_gradient = torch.empty_like(states) if differentiate else None
        weight_gradient = torch.zeros_like(weight) if differentiate else None
        for start in range(0, len(labels), _CHUNK_ROWS):
            rows = slice(start, start + _CHUNK_ROWS)
            target = labels[rows, None]
            logits = states[rows] @ table.t()
            label_logits = logits.gather(1, target).float()
            # In bfloat16 the loss is read off rounded probabilities: within ±0.002 nats a token, without a bias.
            probabilities = torch.softmax(logits, -1)
            label_probabilities = probabilities.gather(1, target)
            losses = -label_probabilities.float().clamp_min(_SMALLEST).log()
            cross_entropy += losses.sum()
            if factors is not None:
                weighted += (losses[:, 0] * factors[rows]).sum()
            if each_loss is not None:
                each_loss[rows] += (losses + smoothing * label_logits)[:, 0]
            if smoothing:
                total += smoothing * label_logits.sum()
            if hidden_gradient is None or weight_gradient is None:
                continue
            # index_put_ and not scatter_, which copies all of a bfloat16 tensor twice
            places = torch.arange(len(target), device=target.device), target[:, 0]
            gradient = probabilities.index_put_(places, label_probabilities[:, 0] - (1 - smoothing))
            if factors is not None:
                gradient = gradient * factors[rows, None].to(kind)
            hidden_gradient[rows] = gradient @ table
            weight_gradient += gradient.t() @ states[rows]
        total += cross_entropy if factors is None else weighted
        if hidden_gradient is not None and weight_gradient is not None and smoothing:
            hidden_gradient -= (smoothing * spread).to(kind)
            if prior is None:
                weight_gradient -= smoothing / len(weight) * rows_sum
            else:
                weight_gradient.addr_(prior, rows_sum, alpha=-smoothing)
        context.save_for_backward(hidden_gradient, weight_gradient)
        context.mark_non_differentiable(cross_entropy, *(() if each_loss is None else (each_loss,)))
        return total, cross_entropy, each_loss

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        hidden_gradient, weight_gradient = context.saved_tensors
        scale = gradients[0]
        return (
            (hidden_gradient * scale.to(hidden_gradient.dtype)),
            (weight_gradient * scale),
            None,
            None,
            None,
            None,
            None,
        )
