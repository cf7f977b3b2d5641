"""`head_importance`: how much the output of a model depends on each of its attention heads."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dragoman.base.cancellation import until_cancelled
from dragoman.base.errors import ConfigError
from dragoman.inference.abilities import SupportsInspect
from dragoman.inference.subject import NO_SETTINGS, Subject, SubjectSettings
from dragoman.inspection.heads import Head, attention_layers, count_heads, head_masks, heads_of
from dragoman.nn.attention.graph import GraphAttention, entropy_over_edges
from dragoman.nn.attention.heads import masking_heads
from dragoman.nn.attention.recording import recording


@dataclass(frozen=True)
class HeadImportance:
    """The importance of a head, a mean over texts.

    gradient: |∂ℓ/∂ξ|, where ℓ is the negative output (`Subject`), and ξ the factor of the head (Michel et al. 2019,
    equation 3). drop: the output minus the output without the head, in nats for a log-probability; negative if the
    head is harmful. entropy: mean entropy of the rows of its weights, in nats; NaN if the weights of the mechanism are
    not a distribution, as those of linear attention with rotary positions.
    """

    head: Head
    gradient: float
    drop: float
    entropy: float

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON types; an undefined entropy is None."""
        entropy = None if isnan(self.entropy) else self.entropy
        return {"head": str(self.head), "gradient": self.gradient, "drop": self.drop, "entropy": entropy}


def head_importance(
    loaded: SupportsInspect, texts: Sequence[Any], settings: SubjectSettings = NO_SETTINGS
) -> list[HeadImportance]:
    """Return the importance of each head for the outputs of a model for some texts.

    settings: for all texts. Raises ConfigError without texts, and the errors of `subject` and `heads_of`.

    >>> from dragoman import Translator, head_importance
    >>> importance = head_importance(Translator.load("runs/ende"), ["The dog sleeps.", "The cat sleeps."])
    >>> print(max(importance, key=lambda each: each.gradient).head)
    decoder...:1:...
    """
    if isinstance(texts, str) or not texts:
        raise ConfigError("the importance of heads is a mean over texts: pass a list of at least one text")
    sums: dict[Head, NDArray[np.float64]] = {}
    for text in until_cancelled(texts):
        subject = loaded.subject(text, settings)
        gradients, entropies = head_gradients(subject), head_entropies(subject)
        whole = float(subject.values().sum())
        for head in until_cancelled(heads_of(subject.model)):
            with masking_heads(head_masks(subject.model, [head])):
                drop = whole - float(subject.values().sum())
            values = np.array([abs(gradients[head]), drop, entropies[head]])
            sums[head] = sums.get(head, 0.0) + values / len(texts)
    return [HeadImportance(head, *map(float, values)) for head, values in sums.items()]


def head_gradients(subject: Subject) -> dict[Head, float]:
    """Return ∂ℓ/∂ξ of each head at ξ = 1, where ℓ is the negative output, and ξ multiplies the result of the head."""
    layers = attention_layers(subject.model)
    device = subject.arguments[0].device
    masks: dict[nn.Module, Tensor] = {
        each: torch.ones(count_heads(each), device=device, requires_grad=True) for each in layers.values()
    }
    # the fused kernels of recurrent layers have no gradients in evaluation mode
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False), masking_heads(masks):
        loss = -subject.compute().sum()
        gradients = torch.autograd.grad(loss, list(masks.values()), allow_unused=True)
    by_layer = dict(zip(masks, gradients, strict=True))
    return {
        head: 0.0 if (found := by_layer[layers[head.kind, head.layer]]) is None else float(found[head.number - 1])
        for head in heads_of(subject.model)
    }


def head_entropies(subject: Subject) -> dict[Head, float]:
    """Return the mean entropy of the rows of each head's weights, in nats; see `HeadImportance.entropy`."""
    with torch.inference_mode(), recording() as weights:
        subject.compute()
    entropies: dict[Head, float] = {}
    for (kind, layer), attention in attention_layers(subject.model).items():
        if isinstance(attention, GraphAttention):
            (weights_of_edges,), edges = weights[attention], subject.arguments[-1]
            queries = subject.model.attended_edges(edges, len(subject.arguments[2]))[0]
            for number, entropy in enumerate(entropy_over_edges(weights_of_edges.double(), queries).tolist(), 1):
                entropies[Head(kind, layer, number)] = entropy
            continue
        rows = torch.cat(weights[attention], 2)[0].double()  # (h, T, S)
        is_distribution = bool((rows >= 0).all() and ((rows.sum(2) - 1).abs() < _ROUNDING).all())
        means = torch.special.entr(rows).sum(2).mean(1).tolist()
        for number in range(1, count_heads(attention) + 1):
            entropies[Head(kind, layer, number)] = means[number - 1] if is_distribution else float("nan")
    return entropies


_ROUNDING = 1e-3
"""Maximum rounding error of the sum of a row of weights, which are at least float16."""
