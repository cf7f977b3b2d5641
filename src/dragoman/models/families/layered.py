"""The base class of decoders whose layers attend to the source."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor, nn

from dragoman.base.packing import Packing
from dragoman.models.interface import Memory, State, TensorTree
from dragoman.nn.attention.recording import mean_over_heads, recording
from dragoman.nn.embedding import Embedding, Projection
from dragoman.nn.mask import CausalSpan, Mask
from dragoman.text.symbols import PAD

_layer_states: ContextVar[list[list[Tensor]] | None] = ContextVar("recorded states of layers", default=None)


@contextmanager
def recording_layers() -> Iterator[list[list[Tensor]]]:
    """Record the states (R, T, d) of all layered decoders within this context.

    There is one list per step: the input of the first layer, and the output of each layer.
    """
    recorded: list[list[Tensor]] = []
    token = _layer_states.set(recorded)
    try:
        yield recorded
    finally:
        _layer_states.reset(token)


@dataclass(frozen=True)
class ProjectedSource:
    """The source, projected once for all layers.

    mask: (B, S) bool, True at source tokens; None without a source. layers: the projected memory for the attention of
    each layer; None for layers without attention and without a source.
    """

    mask: Tensor | None
    layers: Sequence[TensorTree | None]

    @cached_property
    def padding(self) -> Mask | None:
        """The mask of the source tokens, computed once for all steps."""
        return None if self.mask is None else Mask.padding(self.mask)


@dataclass(frozen=True)
class Step:
    """The input of a step, shared by all layers.

    causal: the positions of the tokens. embedded: the embedded tokens (R, T, d). padding: the mask of the source; None
    without a source. mask: (R, T) bool, False at padding; None if there is no padding, as in translation. query_mask:
    the same for attention. If the tokens are packed (`causal.packing`), `embedded` and `mask` are a single row, with
    False at filler, and `query_mask` remains padded.
    """

    causal: CausalSpan
    embedded: Tensor
    padding: Mask | None
    mask: Tensor | None
    query_mask: Tensor | None


class LayeredDecoder(nn.Module):
    """The base class of decoders with layers. It creates the state and runs the layers.

    Subclasses implement `step` and `output_states`. A layer is called with states (R, T, d), its cache, its projected
    source and the `Step`, and returns the new states and its new cache. Its attribute `cross_attention` is an
    `Attention` or None.
    """

    embedding: Embedding
    layers: nn.ModuleList
    projection: Projection

    def start(
        self,
        memory: Memory | None,
        attention: bool = False,
        left_padding: Tensor | None = None,
        capacity: int | None = None,
    ) -> State:
        """See `Decoder.start`. The memory is projected once for each layer.

        attention: `step` also returns the attention weights of the last layer over the source, averaged over heads.
        """
        with recording() if attention else nullcontext():  # to record weights, some attentions keep additional tensors
            source = self.project_source(memory)
        attended = any(layer is not None for layer in source.layers)
        cache: TensorTree = [None] * len(self.layers)
        max_length = self.embedding.positions.limit
        return State(
            source,
            cache,
            attention=attention and attended,
            max_length=max_length,
            left_padding=left_padding,
            capacity=capacity,
        )

    def project_source(self, memory: Memory | None) -> ProjectedSource:
        """Project the memory for the attention of each layer."""
        if memory is None:
            return ProjectedSource(None, [None] * len(self.layers))
        padding, states = Mask.padding(memory.mask, keys=memory.packing), self.source_states(memory)
        attentions = [layer.cross_attention for layer in self.layers]
        return ProjectedSource(
            memory.mask,
            [None if each is None else each.project_memory(states, padding) for each in attentions],  # type: ignore[union-attr,operator]
        )

    def source_states(self, memory: Memory) -> Tensor:
        """Return the states that each layer projects."""
        return memory.states

    def output_states(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the states (R, T, d) that are projected to logits, for the output of the last layer.

        mask: (R, T) bool, False at padding.
        """
        raise NotImplementedError

    def read(self, tokens: Tensor, state: State, packing: Packing | None = None) -> Step:
        """Embed the next tokens (R, T), which follow the tokens processed so far.

        packing: packs the embedded tokens, or None. Only for the first step of decoders that pack.
        """
        causal = CausalSpan(
            state.position,
            tokens.size(1),
            tokens.device,
            left_padding=state.left_padding,
            capacity=state.capacity,
            packing=packing,
        )
        mask = tokens != PAD if self.training else None
        embedded = self.embedding(tokens, state.position, mask, left_padding=state.left_padding)
        if packing is None:
            return Step(causal, embedded, state.memory.padding, mask, mask)
        padding = None if state.memory.mask is None else Mask.padding(state.memory.mask, queries=packing)
        return Step(causal, packing.pack(embedded), padding, packing.tokens, mask)

    def run_layers(self, states: Tensor, state: State, step: Step) -> tuple[Tensor, Tensor | None, State]:
        """Apply all layers to states (R, T, d); returns the states, `Output.attention` and the new decoder state."""
        cache: list[TensorTree] = []
        if (steps := _layer_states.get()) is not None:
            steps.append([states])
        with recording() if state.attention else nullcontext() as weights:
            for layer, memory, past in zip(self.layers, state.memory.layers, state.cache, strict=True):
                states, past = layer(states, past, memory, step)
                cache.append(past)
                if steps is not None:
                    steps[-1].append(states)
        attention = None if weights is None else mean_over_heads(weights, layer.cross_attention, len(states))  # type: ignore[arg-type]
        return states, attention, state.after(step.causal.new, cache)
