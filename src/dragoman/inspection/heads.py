"""`Head`: the attention heads of a model, by name, and the context in which some of them are switched off."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.models.attention_weights import KINDS, kind_of_attention, layer_of_attention, without_weights
from dragoman.models.families.hierarchical import HierarchicalEncoder
from dragoman.models.interface import has_decoder
from dragoman.models.kinds.ensemble import Ensemble
from dragoman.nn.attention.graph import GraphAttention
from dragoman.nn.attention.heads import masking_heads
from dragoman.nn.attention.interface import Attention

GRAPH = "graph.attention"
"""The kind of the attention of nodes to their neighbours."""

HEAD_KINDS = (*KINDS, GRAPH)
"""The kinds of attention with heads."""


class Head(NamedTuple):
    """An attention head, written as `decoder.cross_attention:4:3`.

    kind: one of `HEAD_KINDS`. layer, number: counted from 1. The attention of a recurrent decoder is its
    layer 1.
    """

    kind: str
    layer: int
    number: int

    def __str__(self) -> str:
        """Return the name, which `parse` reads."""
        return f"{self.kind}:{self.layer}:{self.number}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a name. Raises ConfigError if it has another form."""
        kind, *numbers = text.split(":")
        if kind not in HEAD_KINDS or len(numbers) != 2 or not all(each.isdecimal() and int(each) for each in numbers):
            raise ConfigError(
                f"'{text}' is not a head: write its kind, layer and number, such as decoder.cross_attention:4:3. The "
                f"kinds are {', '.join(HEAD_KINDS)}, and layers and heads are numbered from 1"
            )
        return cls(kind, int(numbers[0]), int(numbers[1]))


def attention_layers(model: Any) -> dict[tuple[str, int], Attention | GraphAttention]:
    """Return the attention layers with heads by kind and layer, counted from 1.

    Raises ConfigError for an ensemble and for a model without attention heads.
    """
    if isinstance(model, Ensemble):
        raise ConfigError("an ensemble has no heads of its own: inspect one of its models")
    layers: dict[tuple[str, int], Attention | GraphAttention] = {}
    for name, module in model.named_modules():
        if isinstance(module, GraphAttention):
            layers[GRAPH, int(name.rpartition(".")[2]) + 1] = module
        elif isinstance(module, Attention) and module.weightless is None and kind_of_attention(name) in KINDS:
            layers[kind_of_attention(name), layer_of_attention(name) or 1] = module
    if not layers and isinstance(getattr(model, "encoder", None), HierarchicalEncoder):
        raise ConfigError(
            "a hierarchical encoder pools words and sentences with one head each, without which nothing of the text is "
            "left: `dragoman inspect` shows the weights of the words and sentences"
        )
    if not layers:
        reasons = without_weights(model, None if has_decoder(model) else KINDS[:1])
        raise ConfigError(f"this model has no attention heads. {'; '.join(reasons)}")
    return {key: layers[key] for key in sorted(layers, key=lambda key: (HEAD_KINDS.index(key[0]), key[1]))}


def heads_of(model: Any) -> list[Head]:
    """Return all heads of a model, ordered by kind, layer and number. Raises the errors of `attention_layers`."""
    return [
        Head(kind, layer, number)
        for (kind, layer), attention in attention_layers(model).items()
        for number in range(1, count_heads(attention) + 1)
    ]


def count_heads(attention: Attention | GraphAttention) -> int:
    """Return the number of heads of an attention layer with heads."""
    return int(attention.heads)  # type: ignore[arg-type]


def check_heads(model: Any, heads: Iterable[Head | str]) -> tuple[Head, ...]:
    """Return the heads without duplicates, in the order of `heads_of`.

    Raises ConfigError for a head that the model does not have, and the errors of `Head.parse` and `attention_layers`.
    """
    chosen = {Head.parse(each) if isinstance(each, str) else each for each in heads}
    if not chosen:
        return ()
    layers = attention_layers(model)
    for head in sorted(chosen):
        attention = layers.get((head.kind, head.layer))
        if attention is None:
            known = dict.fromkeys(kind for kind, _ in layers)
            counts = [f"{kind} with layers 1 to {sum(each == kind for each, _ in layers)}" for kind in known]
            raise ConfigError(f"there is no head {head}: this model has {', '.join(counts)}")
        if head.number > count_heads(attention):
            raise ConfigError(f"there is no head {head}: this layer has heads 1 to {count_heads(attention)}")
    return tuple(head for head in heads_of(model) if head in chosen)


@contextmanager
def heads_off(model: Any, heads: Iterable[Head | str]) -> Iterator[None]:
    """Switch heads of a model off within this context; see `masking_heads`. Without heads, nothing changes.

    Raises the errors of `check_heads`.
    """
    with masking_heads(head_masks(model, check_heads(model, heads))):
        yield


def head_masks(model: Any, heads: Iterable[Head]) -> dict[nn.Module, Tensor]:
    """Return the masks that switch heads off, one per attention layer that has some of these heads."""
    masks: dict[nn.Module, Tensor] = {}
    layers = attention_layers(model) if (heads := tuple(heads)) else {}
    device = next(model.parameters()).device
    for head in heads:
        attention = layers[head.kind, head.layer]
        masks.setdefault(attention, torch.ones(count_heads(attention), device=device))[head.number - 1] = 0.0
    return masks
