"""Attention weights of all layers for one text or sentence pair, and cross-attention weights for many pairs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.data.batches.batch import collate, pad
from dragoman.models.interface import Model, SourceModel
from dragoman.nn.attention.interface import Attention
from dragoman.nn.attention.recording import recording
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizers import Tokenizers

START, END = "<s>", "</s>"
AlignedStep = Literal["input", "output"]
KINDS = ("encoder.self_attention", "decoder.self_attention", "decoder.cross_attention")


def kind_of_attention(name: str) -> str:
    """Return the kind of the attention layer at a module path, such as `decoder.cross_attention`.

    The decoder of a head, which generates trees, counts as a decoder.
    """
    parts = name.removeprefix("head.").split(".")
    return f"{parts[0]}.{parts[-1]}"


def layer_of_attention(name: str) -> int | None:
    """Return the layer number, counted from 1, of a module path; None if there is no stack of layers."""
    parts = name.split(".")
    return int(parts[-2]) + 1 if parts[-2].isdigit() else None


@dataclass(frozen=True)
class AttentionMap:
    """The weights of one attention layer.

    name: module path. weights: (heads, T, S) float32; rows sum to 1. queries: labels of the T rows. keys: labels of the
    S columns.
    """

    name: str
    weights: np.ndarray
    queries: tuple[str, ...]
    keys: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The kind of attention, one of `KINDS`."""
        return kind_of_attention(self.name)

    @property
    def layer(self) -> int | None:
        """The layer number, counted from 1; None if there is no stack of layers, as in a recurrent decoder."""
        return layer_of_attention(self.name)

    @property
    def mean(self) -> np.ndarray:
        """The mean weights (T, S) over the heads."""
        return np.asarray(self.weights.mean(0))


@dataclass(frozen=True)
class AttentionChoice:
    """Selects the decoder attention that yields alignments. Layers and heads are numbered from 1.

    layer: None selects the penultimate layer (Garg et al. 2019, section 3.1), or the only layer. head: None averages
    all heads. step: the decoder step whose weights align a target token. output: the step that predicts the token;
    input: the next step, which reads it (Chen et al. 2020, "Accurate word alignment induction from neural machine
    translation", section 3).
    """

    layer: int | None = None
    head: int | None = None
    step: AlignedStep = "output"


@dataclass(frozen=True)
class NeighbourWeights:
    """The weights with which a node attends to its neighbours in one layer.

    ids: the n neighbours, and the node itself if the model has self-loops. labels: their predicted labels. weights:
    (heads, n) float32; rows sum to 1.
    """

    ids: tuple[str, ...]
    labels: tuple[str, ...]
    weights: NDArray[np.float32]

    @property
    def mean(self) -> NDArray[np.float32]:
        """The mean weights (n,) over the heads."""
        return np.asarray(self.weights.mean(0))

    @property
    def order(self) -> list[int]:
        """The indices of the neighbours by falling mean weight."""
        return [int(index) for index in np.argsort(-self.mean, kind="stable")]


@dataclass(frozen=True)
class SentenceWeights:
    """The weight of a sentence in its document, and the weights of its words in the sentence.

    The weights of all sentences sum to 1, as do those of the words and special symbols of a sentence.
    """

    weight: float
    words: tuple[str, ...]
    values: tuple[float, ...]


def without_weights(model: Model | nn.Module, kinds: Sequence[str] | None = None) -> list[str]:
    """List the kinds of attention without weights, each with the reason.

    kinds: the kinds to consider; None: all that the model could have.

    A kind has no weights if the side has no such layers, or if their mechanism has no weights per token.
    """
    modules = {name: module for name, module in model.named_modules() if name}
    attentions = {name: module for name, module in modules.items() if isinstance(module, Attention)}
    lines = []
    if kinds is None:
        kinds = KINDS if "encoder" in modules else ("decoder.self_attention",)
    for kind in kinds:
        side, _, suffix = kind.partition(".")
        layers = [module for name, module in attentions.items() if name.split(".")[0] == side and name.endswith(suffix)]
        reasons = dict.fromkeys(module.weightless for module in layers if module.weightless is not None)
        if not layers:
            lines.append(f"{kind}: the {side} does not have this kind of attention")
        lines += [f"{kind}: {reason}" for reason in reasons]
    return lines


def capture(model: Model, target: Sequence[int], source: Sequence[int] | None = None) -> dict[str, np.ndarray]:
    """Run the model on one text or sentence pair and return all attention weights by module path.

    target, source: token ids without special symbols. S includes the source's EOS, and T includes the target's BOS. A
    Transformer has `encoder.layers.N.self_attention` (heads, S, S), `decoder.layers.N.self_attention` (heads, T, T) and
    `decoder.layers.N.cross_attention` (heads, T, S). A language model has only `decoder.layers.N.self_attention`, and
    other families have only `cross_attention`. In a decoder's weights, row t belongs to the prediction of the token
    that follows input token t.
    """
    device = next(model.parameters()).device
    source_inputs = () if source is None else tuple(each.to(device) for each in pad([source], after=(EOS,)))
    inputs = torch.tensor([[BOS, *target]], device=device)
    was_training = model.training
    model.eval()
    try:
        return record_weights(model, *source_inputs, inputs)
    finally:
        model.train(was_training)


def record_weights(model: Any, *inputs: Tensor) -> dict[str, np.ndarray]:
    """Run the model, which is in evaluation mode, on one row, and return all attention weights by module path."""
    return {name: weights[0] for name, weights in record_rows(model, *inputs).items()}


def record_rows(model: Any, *inputs: Tensor) -> dict[str, np.ndarray]:
    """Run the model, which is in evaluation mode, and return all attention weights by module path.

    The first axis of the weights is that of the rows of its attention layers.
    """
    return record_calls(model, lambda: model(*inputs))


def record_calls(model: Any, run: Callable[[], object]) -> dict[str, np.ndarray]:
    """Call a function that runs parts of the model, and return the weights as `record_rows` does."""
    names: dict[nn.Module, str] = {module: name for name, module in model.named_modules()}
    with torch.inference_mode(), recording() as weights:
        run()
    return {names[module]: torch.cat(calls, 2).float().cpu().numpy() for module, calls in weights.items()}


def attention_maps(
    model: Model, tokenizers: Tokenizers, target: Sequence[int], source: Sequence[int] | None = None
) -> list[AttentionMap]:
    """Return the weights of `capture` with labelled queries and keys.

    A decoder query is labelled with the token that it predicts, and a key of decoder self-attention with its input
    token.
    """
    source_pieces = () if source is None else (*tokenizers.source.pieces(source), END)
    target_pieces = tuple(tokenizers.target.pieces(target))
    maps = []
    for name, weights in capture(model, target, source).items():
        is_encoder = name.startswith("encoder.")
        queries = source_pieces if is_encoder else (*target_pieces, END)
        keys = source_pieces if is_encoder or name.endswith("cross_attention") else (START, *target_pieces)
        maps.append(AttentionMap(name, weights, queries, keys))
    return maps


def cross_attention_layers(model: SourceModel) -> list[Attention]:
    """Return the decoder's cross-attention layers with weights per token, in order."""
    return [
        module
        for name, module in model.named_modules()
        if name.startswith("decoder.")
        and name.endswith("cross_attention")
        and isinstance(module, Attention)
        and module.weightless is None
    ]


def select_cross_attention(model: SourceModel, layer: int | None = None) -> nn.Module:
    """Return the cross-attention of a layer.

    layer: the layer number, counted from 1; None: the penultimate layer (Garg et al. 2019, section 3.1), or the only
    one. Raises ConfigError if the decoder has no cross-attention weights, or no such layer.
    """
    layers = cross_attention_layers(model)
    if not layers:
        raise ConfigError("this model's decoder has no attention weights over source tokens")
    if layer is None:
        return layers[max(0, len(layers) - 2)]
    if not 1 <= layer <= len(layers):
        raise ConfigError(f"there is no layer {layer} with cross-attention: this model has layers 1 to {len(layers)}")
    return layers[layer - 1]


def source_attention(
    model: SourceModel,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    choice: AttentionChoice | None = None,
) -> list[np.ndarray]:
    """Return the cross-attention weights (T, S) float32 of each sentence pair.

    Row t belongs to target token t. Columns are source tokens without EOS, so rows sum to at most 1. The model should
    be in evaluation mode. pairs: source and target ids without special symbols. Raises ConfigError for an unknown layer
    or head.
    """
    choice = choice or AttentionChoice()
    attention, head = select_cross_attention(model, choice.layer), choice.head
    device = next(model.parameters()).device
    batch = collate([source for source, _ in pairs], [target for _, target in pairs], range(len(pairs))).to(device)
    with torch.inference_mode(), recording() as recorded:
        model(*batch.model_inputs)
    weights = torch.cat(recorded[attention], 2)  # (B, heads, T + 1, S + 1)
    if head is not None and not 1 <= head <= weights.size(1):
        raise ConfigError(f"there is no cross-attention head {head}: this layer has heads 1 to {weights.size(1)}")
    selected = (weights.mean(1) if head is None else weights[:, head - 1]).float().cpu().numpy()
    first = 1 if choice.step == "input" else 0
    return [selected[row, first : first + len(target), : len(source)] for row, (source, target) in enumerate(pairs)]
