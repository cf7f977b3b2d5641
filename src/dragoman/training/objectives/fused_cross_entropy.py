"""Label-smoothed cross-entropy fused with the vocabulary projection, and the divergence of duplicated rows."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from dragoman.nn.precision import matmul_dtype

# Rows whose logits exist at the same time: enough for an efficient matrix product, few enough for the cache.
_CHUNK_ROWS = 1024

_SMALLEST = torch.finfo(torch.float32).tiny


class ProjectedLosses(NamedTuple):
    """Sums over N rows; only `total` is differentiable.

    each: the smoothed loss of each row (N,), or None. divergence: None unless the rows are duplicated.
    """

    total: Tensor
    cross_entropy: Tensor
    each: Tensor | None
    divergence: Tensor | None


def projected_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    labels: Tensor,
    smoothing: float = 0.0,
    prior: Tensor | None = None,
    factors: Tensor | None = None,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Sum the cross-entropy of softmax(hWᵀ + b) against the smoothed labels, and the one without smoothing (detached).

    hidden (N, d), weight (V, d), labels (N,) int64, prior (V,) or None for uniform, bias (V,) or None. The gradient is
    computed in the forward pass, chunk by chunk, so that the (N, V) logits never exist as a whole.

    factors: (N,) weights of the tokens' losses in the first sum, only without smoothing; None for 1. Raises ValueError
    if both factors and smoothing are given.
    """
    if factors is not None and smoothing:
        raise ValueError("factors and smoothing exclude each other")
    total, plain, _, _ = _ProjectedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden, weight, labels, smoothing, prior, False, factors, None, bias
    )
    return total, plain


def projected_losses(
    hidden: Tensor,
    weight: Tensor,
    labels: Tensor,
    smoothing: float,
    prior: Tensor | None,
    each: bool = False,
    alpha: float | None = None,
    bias: Tensor | None = None,
) -> ProjectedLosses:
    """Like `projected_cross_entropy`; each: whether to return the loss of every row.

    alpha: None, or α of R-Drop: rows n and N/2 + n are two predictions p and q of the same token, and
    α · Σ ½ (KL(p‖q) + KL(q‖p)) over N/2 tokens (nats) is added to the total.
    """
    return ProjectedLosses(
        *_ProjectedCrossEntropy.apply(hidden, weight, labels, smoothing, prior, each, None, alpha, bias)  # type: ignore[no-untyped-call]
    )


class _ProjectedCrossEntropy(torch.autograd.Function):
    """Autograd function that computes the gradients together with the sums, in the forward pass."""

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
        alpha: float | None,
        bias: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        differentiate = any(context.needs_input_grad)
        kind = matmul_dtype(hidden)
        exact = torch.promote_types(hidden.dtype, torch.float32)
        states, table = hidden.to(kind), weight.to(kind)
        rows_sum = hidden.sum(0, dtype=exact)  # (d,)
        # With u = prior, Σᵥ uᵥ·logitᵥ = h · (Wᵀu) + b · u: the smoothing term and its gradients need no pass over
        # logits. Computed without matrix products, which autocast would round to bfloat16.
        spread = weight.mean(0) if prior is None else (prior[:, None] * weight).sum(0)  # (d,)
        total = -smoothing * (rows_sum * spread).sum()
        cross_entropy, weighted = torch.zeros_like(total), torch.zeros_like(total)
        divergence = None if alpha is None else torch.zeros_like(total)
        each_loss = -smoothing * (hidden.to(exact) * spread).sum(1) if each else None
        hidden_gradient = torch.empty_like(states) if differentiate else None
        weight_gradient = torch.zeros_like(weight) if differentiate else None
        bias_gradient = torch.zeros_like(bias) if differentiate and bias is not None else None
        if bias is not None:
            of_bias = smoothing * (bias.mean() if prior is None else (prior * bias).sum())
            total -= len(labels) * of_bias
            each_loss = None if each_loss is None else each_loss - of_bias
        # Differences of two rows are small, and so is a label's probability at first; the smallest float16 is 6e-8.
        precise = alpha is not None or kind == torch.float16
        copies = 1 if alpha is None else 2
        count, step = len(labels) // copies, max(1, _CHUNK_ROWS // copies)
        for start in range(0, count, step):
            rows = slice(start, start + step)
            inputs = _copies(states, copies)[:, rows].flatten(0, 1)  # (n, d)
            target = _copies(labels, copies)[:, rows].reshape(-1, 1)  # (n, 1)
            logits = inputs @ table.t() if bias is None else torch.addmm(bias.to(kind), inputs, table.t())  # (n, V)
            label_logits = logits.gather(1, target).to(exact)  # (n, 1)
            if precise:
                logits = logits.to(exact)
            # In bfloat16 the loss comes from rounded probabilities: within ±0.002 nats per token, without bias.
            probabilities = torch.softmax(logits, -1)  # (n, V)
            label_probabilities = probabilities.gather(1, target)  # (n, 1)
            losses = -label_probabilities.to(exact).clamp_min(_SMALLEST).log()
            cross_entropy += losses.sum()
            if factors is not None:
                weighted += (losses[:, 0] * factors[rows]).sum()
            if each_loss is not None:
                _copies(each_loss, copies)[:, rows] += (losses + smoothing * label_logits).view(copies, -1)
            if smoothing:
                total += smoothing * label_logits.sum()
            if divergence is not None:
                of_chunk, *pulls = _divergence(logits, probabilities)
                divergence += of_chunk
            if hidden_gradient is None or weight_gradient is None:
                continue
            # index_put_ instead of scatter_, which copies a bfloat16 tensor twice
            indices = torch.arange(len(target), device=target.device), target[:, 0]
            gradient = probabilities.index_put_(indices, label_probabilities[:, 0] - (1 - smoothing))  # (n, V)
            if alpha is not None:
                for half, pull in zip(gradient.chunk(2), pulls, strict=True):
                    half.add_(pull, alpha=alpha / 2)
            gradient = gradient.to(kind)
            if factors is not None:
                gradient = gradient * factors[rows, None].to(kind)
            _copies(hidden_gradient, copies)[:, rows] = (gradient @ table).view(copies, -1, table.shape[1])
            weight_gradient += gradient.t() @ inputs
            if bias_gradient is not None:
                bias_gradient += gradient.sum(0, dtype=exact)
        total += cross_entropy if factors is None else weighted
        if alpha is not None and divergence is not None:
            total += alpha * divergence
        if hidden_gradient is not None and weight_gradient is not None and smoothing:
            hidden_gradient -= (smoothing * spread).to(kind)
            if prior is None:
                weight_gradient -= smoothing / len(weight) * rows_sum
            else:
                weight_gradient.addr_(prior, rows_sum, alpha=-smoothing)
            if bias_gradient is not None:
                bias_gradient -= smoothing * len(labels) * (1 / len(weight) if prior is None else prior)
        context.save_for_backward(hidden_gradient, weight_gradient, bias_gradient)
        sums = cross_entropy, each_loss, divergence
        context.mark_non_differentiable(*(tensor for tensor in sums if tensor is not None))
        return total, *sums

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        hidden_gradient, weight_gradient, bias_gradient = context.saved_tensors
        scale = gradients[0]
        return (
            (hidden_gradient * scale.to(hidden_gradient.dtype)),
            (weight_gradient * scale),
            None,
            None,
            None,
            None,
            None,
            None,
            None if bias_gradient is None else bias_gradient * scale,
        )


def _copies(tensor: Tensor, copies: int) -> Tensor:
    """Reshape (N, …) to (copies, N / copies, …)."""
    return tensor.view(copies, len(tensor) // copies, *tensor.shape[1:])


def _divergence(logits: Tensor, probabilities: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return Σ ½ (KL(p‖q) + KL(q‖p)), p in the first half of the rows, q in the second, and twice its gradients.

    With δ the difference of the logits, the sum of both divergences is Σᵥ (pᵥ − qᵥ) δᵥ. Its gradient with respect to
    the logits of p is (p − q) + p (δ − Σᵥ pᵥ δᵥ), and −(p − q) − q (δ − Σᵥ qᵥ δᵥ) with respect to those of q.
    """
    p, q = probabilities.chunk(2)
    difference = torch.sub(*logits.chunk(2))
    by_p, by_q = p * difference, q * difference
    mean_p, mean_q = by_p.sum(1, keepdim=True), by_q.sum(1, keepdim=True)
    by_p.addcmul_(p, 1 - mean_p).sub_(q)
    by_q.neg_().addcmul_(q, 1 + mean_q).sub_(p)
    return (mean_p - mean_q).sum() / 2, by_p, by_q
