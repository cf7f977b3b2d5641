"""Attention weights: of all attention layers for one text or pair, and over the source for many pairs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from dragoman.base.errors import ConfigError
from dragoman.data.batches.batch import collate, pad
from dragoman.models.interface import Model, SourceModel
from dragoman.nn.attention.interface import Attention
from dragoman.nn.attention.recording import recording
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizers import Tokenizers

START, END = "<s>", "</s>"
KINDS = ("encoder.self_attention", "decoder.self_attention", "decoder.cross_attention")


@dataclass(frozen=True)
class AttentionMap:
    """The weights (heads, T, S) float32 of one attention layer; rows sum to 1. queries, keys: their labels."""

    name: str
    weights: np.ndarray
    queries: tuple[str, ...]
    keys: tuple[str, ...]

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        parts = self.name.split(".")
        return f"{parts[0]}.{parts[-1]}"

    @property
    def layer(self) -> int | None:
        """The layer, counted from 1; None without a stack of layers, as in a recurrent decoder."""
        parts = self.name.split(".")
        return int(parts[-2]) + 1 if parts[-2].isdigit() else None

    @property
    def mean(self) -> np.ndarray:
        """The mean (T, S) over the heads."""
        return np.asarray(self.weights.mean(0))


def without_weights(model: Model) -> list[str]:
    """List what cannot be shown of a model: sides without attention, and layers without weights per token."""
    modules = {name: module for name, module in model.named_modules() if name}
    attentions = {name: module for name, module in modules.items() if isinstance(module, Attention)}
    lines = []
    for kind in KINDS if "encoder" in modules else ("decoder.self_attention",):
        side, _, what = kind.partition(".")
        found = [module for name, module in attentions.items() if name.split(".")[0] == side and name.endswith(what)]
        reasons = dict.fromkeys(module.weightless for module in found if module.weightless is not None)
        if not found:
            lines.append(f"{kind}: the {side}, a {type(modules[side]).__name__}, has none")
        lines += [f"{kind}: {reason}" for reason in reasons]
    return lines


def capture(model: Model, target: Sequence[int], source: Sequence[int] | None = None) -> dict[str, np.ndarray]:
    """Run the model on the ids of one text or pair, without special symbols; returns all attention weights by name.

    Names are module paths. In a Transformer: `encoder.layers.N.self_attention` (heads, S, S),
    `decoder.layers.N.self_attention` (heads, T, T) and `decoder.layers.N.cross_attention` (heads, T, S); in a language
    model, only the second. Other families have `cross_attention` only. S includes the source's EOS and T the target's
    BOS. Row t of the target's maps belongs to the prediction of the piece after input t.
    """
    names: dict[nn.Module, str] = {module: name for name, module in model.named_modules()}
    device = next(model.parameters()).device
    read = () if source is None else tuple(each.to(device) for each in pad([source], after=(EOS,)))
    inputs = torch.tensor([[BOS, *target]], device=device)
    training = model.training
    model.eval()
    try:
        with torch.inference_mode(), recording() as weights:
            model(*read, inputs)
    finally:
        model.train(training)
    return {names[module]: torch.cat(calls, 2)[0].float().cpu().numpy() for module, calls in weights.items()}


def attention_maps(
    model: Model, tokenizers: Tokenizers, target: Sequence[int], source: Sequence[int] | None = None
) -> list[AttentionMap]:
    """Return the weights of `capture` with labels of queries and keys.

    A decoder's query is labelled with the piece that it predicts, a key of its self-attention with the piece that was
    read.
    """
    read = () if source is None else (*tokenizers.source.pieces(source), END)
    written = tuple(tokenizers.target.pieces(target))
    maps = []
    for name, weights in capture(model, target, source).items():
        inside_encoder = name.startswith("encoder.")
        queries = read if inside_encoder else (*written, END)
        keys = read if inside_encoder or name.endswith("cross_attention") else (START, *written)
        maps.append(AttentionMap(name, weights, queries, keys))
    return maps


def source_attentions(model: SourceModel) -> list[Attention]:
    """Return the decoder's cross-attention layers that have weights per token, in order."""
    return [
        module
        for name, module in model.named_modules()
        if name.startswith("decoder.")
        and name.endswith("cross_attention")
        and isinstance(module, Attention)
        and module.weightless is None
    ]


def select_attention(model: SourceModel, layer: int | None = None) -> nn.Module:
    """Return the cross-attention of a layer, counted from 1.

    Default: the last layer but one (Garg et al. 2019, section 3.1), or the only one. Raises ConfigError if the decoder
    has no attention to the source, or no such layer.
    """
    found = source_attentions(model)
    if not found:
        raise ConfigError("this model's decoder has no attention weights over source tokens")
    if layer is None:
        return found[max(0, len(found) - 2)]
    if not 1 <= layer <= len(found):
        raise ConfigError(
            f"there is no layer {layer} that attends to the source: this model has layers 1 to {len(found)}"
        )
    return found[layer - 1]


def source_attention(
    model: SourceModel,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    layer: int | None = None,
    head: int | None = None,
) -> list[np.ndarray]:
    """Return cross-attention weights (T, S) float32 for each pair of source and target ids without special symbols.

    Row t belongs to the prediction of target token t. Columns are source tokens without the end symbol, so rows sum to
    at most 1. layer: as in `select_attention`; head: one of its heads, counted from 1; None: their mean. The model
    should be in evaluation mode. Raises ConfigError for an unknown layer or head.
    """
    attention = select_attention(model, layer)
    device = next(model.parameters()).device
    batch = collate([source for source, _ in pairs], [target for _, target in pairs], range(len(pairs))).to(device)
    with torch.inference_mode(), recording() as recorded:
        model(*batch.model_inputs)
    weights = torch.cat(recorded[attention], 2)  # (B, heads, T + 1, S + 1)
    if head is not None and not 1 <= head <= weights.size(1):
        raise ConfigError(
            f"there is no head {head} that attends to the source: this layer has heads 1 to {weights.size(1)}"
        )
    chosen = (weights.mean(1) if head is None else weights[:, head - 1]).float().cpu().numpy()
    return [chosen[row, : len(target), : len(source)] for row, (source, target) in enumerate(pairs)]
