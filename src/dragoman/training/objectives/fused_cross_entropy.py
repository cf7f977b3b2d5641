"""Label-smoothed cross-entropy fused with the vocabulary projection, and the divergence between duplicated rows."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from dragoman.nn.kernels.choice import kernels_run
from dragoman.nn.precision import matmul_dtype

_CHUNK_ROWS = 1024
"""Rows whose logits are computed at once: enough for an efficient matrix product, few enough for a CPU's cache."""

_GPU_CHUNK_ROWS = 8192
"""The same on a GPU, where each operation must be large."""

_SMALLEST = torch.finfo(torch.float32).tiny


class ProjectedLosses(NamedTuple):
    """Sums over N rows; only `total` is differentiable.

    per_row: the smoothed loss of each row (N,), or None. divergence: None unless the rows are duplicated.
    """

    total: Tensor
    cross_entropy: Tensor
    per_row: Tensor | None
    divergence: Tensor | None


def projected_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    labels: Tensor,
    smoothing: float = 0.0,
    *,
    prior: Tensor | None = None,
    factors: Tensor | None = None,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the summed cross-entropy of softmax(hWᵀ + b), first with label smoothing, then without (detached).

    hidden (N, d), weight (V, d), labels (N,) int64, prior (V,) or None for uniform, bias (V,) or None. The gradient is
    computed in the forward pass, chunk by chunk, so that the (N, V) logits are never in memory as a whole.

    factors: (N,) weights of the tokens' losses in the first sum, or None for 1; only without smoothing. Raises
    ValueError if both factors and smoothing are set.
    """
    if factors is not None and smoothing:
        raise ValueError("factors and smoothing are mutually exclusive")
    total, unsmoothed, _, _ = _ProjectedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden, weight, labels, smoothing, prior, False, factors, None, bias, None
    )
    return total, unsmoothed


def projected_losses(
    hidden: Tensor,
    weight: Tensor,
    labels: Tensor,
    smoothing: float,
    prior: Tensor | None,
    *,
    per_row: bool = False,
    alpha: float | None = None,
    bias: Tensor | None = None,
    counted: Tensor | None = None,
) -> ProjectedLosses:
    """Compute the sums of `projected_cross_entropy`, and optionally the loss of every row (`per_row`).

    counted: (N,) bool, False for rows that are left out of all sums, such as filler; None: all rows count.

    alpha: None, or α of R-Drop. In that case, rows n and N/2 + n are two predictions p and q of the same token, and
    α · Σ ½ (KL(p‖q) + KL(q‖p)) over N/2 tokens (nats) is added to the total.
    """
    return ProjectedLosses(
        *_ProjectedCrossEntropy.apply(hidden, weight, labels, smoothing, prior, per_row, None, alpha, bias, counted)  # type: ignore[no-untyped-call]
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
        per_row: bool,
        factors: Tensor | None,
        alpha: float | None,
        bias: Tensor | None,
        counted: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        differentiate = any(context.needs_input_grad)
        dtype = matmul_dtype(hidden)
        sum_dtype = torch.promote_types(hidden.dtype, torch.float32)
        states, table = hidden.to(dtype), weight.to(dtype)
        keep = None if counted is None else counted[:, None].to(sum_dtype)  # (N, 1)
        rows_sum = (hidden if keep is None else hidden * keep).sum(0, dtype=sum_dtype)  # (d,)
        row_count = len(labels) if keep is None else keep.sum()
        # With u = prior, Σᵥ uᵥ·logitᵥ = h · (Wᵀu) + b · u, so the smoothing term and its gradients need no pass over
        # the logits. Wᵀu is computed without matrix products, because autocast would round them to bfloat16.
        mean_weight = weight.mean(0) if prior is None else (prior[:, None] * weight).sum(0)  # (d,)
        total = -smoothing * (rows_sum * mean_weight).sum()
        cross_entropy, weighted = torch.zeros_like(total), torch.zeros_like(total)
        divergence = None if alpha is None else torch.zeros_like(total)
        row_losses = -smoothing * (hidden.to(sum_dtype) * mean_weight).sum(1) if per_row else None
        hidden_gradient = torch.empty_like(states) if differentiate else None
        weight_gradient = torch.zeros_like(weight, dtype=sum_dtype) if differentiate else None
        bias_gradient = torch.zeros_like(bias) if differentiate and bias is not None else None
        if bias is not None:
            mean_bias = smoothing * (bias.mean() if prior is None else (prior * bias).sum())
            total -= row_count * mean_bias
            row_losses = None if row_losses is None else row_losses - mean_bias
        # R-Drop needs small differences between rows, and early in training the probability of a label may be below
        # 6e-8, the smallest float16.
        needs_float32 = alpha is not None or dtype == torch.float16
        copies = 1 if alpha is None else 2
        chunk_rows = _GPU_CHUNK_ROWS if hidden.device.type == "cuda" else _CHUNK_ROWS
        count, step = len(labels) // copies, max(1, chunk_rows // copies)
        special = alpha is not None or factors is not None or per_row
        in_place = differentiate and not special and dtype == torch.bfloat16 and kernels_run(hidden.device)
        for start in range(0, count, step):
            rows = slice(start, start + step)
            inputs = _copies(states, copies)[:, rows].flatten(0, 1)  # (n, d)
            target = _copies(labels, copies)[:, rows].reshape(-1, 1)  # (n, 1)
            logits = inputs @ table.t() if bias is None else torch.addmm(bias.to(dtype), inputs, table.t())  # (n, V)
            kept = None if keep is None else _copies(keep, copies)[:, rows].flatten(0, 1)  # (n, 1)
            if in_place:
                from dragoman.nn.kernels.cross_entropy import differentiate_logits

                weights = torch.ones_like(target, dtype=sum_dtype) if kept is None else kept
                losses, label_logits = differentiate_logits(logits, target[:, 0], weights[:, 0], smoothing)
            else:
                label_logits = logits.gather(1, target).to(sum_dtype)  # (n, 1)
                if needs_float32:
                    logits = logits.to(sum_dtype)
                # In bfloat16, the loss is computed from rounded probabilities. Its error is within ±0.002 nats per
                # token and unbiased.
                probabilities = torch.softmax(logits, -1)  # (n, V)
                label_probabilities = probabilities.gather(1, target)  # (n, 1)
                losses = -label_probabilities.to(sum_dtype).clamp_min(_SMALLEST).log()
                if kept is not None:
                    losses, label_logits = losses * kept, label_logits * kept
            cross_entropy += losses.sum()
            if factors is not None:
                weighted += (losses[:, 0] * factors[rows]).sum()
            if row_losses is not None:
                _copies(row_losses, copies)[:, rows] += (losses + smoothing * label_logits).view(copies, -1)
            if smoothing:
                total += smoothing * label_logits.sum()
            if divergence is not None:
                chunk_divergence, *divergence_gradients = _divergence(logits, probabilities)
                divergence += chunk_divergence
            if hidden_gradient is None or weight_gradient is None:
                continue
            if in_place:
                gradient = logits  # (n, V)
            else:
                # scatter_ would copy a bfloat16 tensor twice
                indices = torch.arange(len(target), device=target.device), target[:, 0]
                gradient = probabilities.index_put_(indices, label_probabilities[:, 0] - (1 - smoothing))
                if alpha is not None:
                    for half, divergence_gradient in zip(gradient.chunk(2), divergence_gradients, strict=True):
                        half.add_(divergence_gradient, alpha=alpha / 2)
                gradient = gradient.to(dtype)
                if kept is not None:
                    gradient = gradient * kept.to(dtype)
                if factors is not None:
                    gradient = gradient * factors[rows, None].to(dtype)
            _copies(hidden_gradient, copies)[:, rows] = (gradient @ table).view(copies, -1, table.shape[1])
            weight_gradient += gradient.t() @ inputs
            if bias_gradient is not None:
                bias_gradient += gradient.sum(0, dtype=sum_dtype)
        total += cross_entropy if factors is None else weighted
        if alpha is not None and divergence is not None:
            total += alpha * divergence
        if hidden_gradient is not None and weight_gradient is not None and smoothing:
            share = (smoothing * mean_weight).to(dtype)
            hidden_gradient -= share if keep is None else share * keep.to(dtype)
            if prior is None:
                weight_gradient -= smoothing / len(weight) * rows_sum
            else:
                weight_gradient.addr_(prior, rows_sum, alpha=-smoothing)
            if bias_gradient is not None:
                bias_gradient -= smoothing * row_count * (1 / len(weight) if prior is None else prior)
        context.save_for_backward(hidden_gradient, weight_gradient, bias_gradient)
        others = cross_entropy, row_losses, divergence
        context.mark_non_differentiable(*(tensor for tensor in others if tensor is not None))
        return total, *others

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
            None,
        )


def _copies(tensor: Tensor, copies: int) -> Tensor:
    """Reshape (N, …) to (copies, N / copies, …)."""
    return tensor.view(copies, len(tensor) // copies, *tensor.shape[1:])


def _divergence(logits: Tensor, probabilities: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return Σ ½ (KL(p‖q) + KL(q‖p)) and twice its gradients. p: the first half of the rows, q: the second half.

    Let δ be the difference of the logits. The sum of both divergences is Σᵥ (pᵥ − qᵥ) δᵥ. Its gradient is
    (p − q) + p (δ − Σᵥ pᵥ δᵥ) with respect to the logits of p, and −(p − q) − q (δ − Σᵥ qᵥ δᵥ) with respect to those
    of q.
    """
    p, q = probabilities.chunk(2)
    difference = torch.sub(*logits.chunk(2))
    by_p, by_q = p * difference, q * difference
    mean_p, mean_q = by_p.sum(1, keepdim=True), by_q.sum(1, keepdim=True)
    by_p.addcmul_(p, 1 - mean_p).sub_(q)
    by_q.neg_().addcmul_(q, 1 + mean_q).sub_(p)
    return (mean_p - mean_q).sum() / 2, by_p, by_q
