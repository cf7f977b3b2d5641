"""What decoders of several layers that attend the source have in common."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor, nn

from dragoman.models.interface import Memory, State, TensorTree
from dragoman.nn.attention.recording import mean_over_heads, recording
from dragoman.nn.embedding import Embedding
from dragoman.nn.mask import CausalSpan, Mask
from dragoman.text.symbols import PAD


@dataclass(frozen=True)
class HeldSource:
    """mask: (B, S) bool, True at source tokens; layers: what each layer's attention memorised, None where it has none.

    Without a source mask is None, and so is every layer's part.
    """

    mask: Tensor | None
    layers: Sequence[TensorTree | None]

    @cached_property
    def padding(self) -> Mask | None:
        """Which source tokens may be attended; made once for all steps that have the same sentences."""
        return None if self.mask is None else Mask.padding(self.mask)


@dataclass(frozen=True)
class Step:
    """What all layers share that read the same tokens: which tokens they are, and embedded (R, T, d).

    padding: of the source, None without one. mask: (R, T) bool, False at padding, None where all are taken for tokens,
    as in translation.
    """

    causal: CausalSpan
    embedded: Tensor
    padding: Mask | None
    mask: Tensor | None


class LayeredDecoder(nn.Module):
    """Starts, and leads a step through the layers; a family embeds before it and projects after it.

    A layer is called with states (R, T, d), its part of the cache, its part of the source, and the `Step`, and gives
    states and its part of the cache. Its `cross_attention` is None, or an `Attention`.
    """

    embedding: Embedding
    layers: nn.ModuleList

    def start(
        self,
        memory: Memory | None,
        attention: bool = False,
        left_padding: Tensor | None = None,
        capacity: int | None = None,
    ) -> State:
        """Project the memory once for every layer.

        attention: `step` also gives the last layer's attention over the source, averaged over its heads.
        """
        with recording() if attention else nullcontext():  # whose weights will be asked for holds what they need
            source = self.hold(memory)
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

    def hold(self, memory: Memory | None) -> HeldSource:
        """What the layers need of the source."""
        if memory is None:
            return HeldSource(None, [None] * len(self.layers))
        padding, states = Mask.padding(memory.mask), self.held_states(memory)
        attentions = [layer.cross_attention for layer in self.layers]
        return HeldSource(
            memory.mask,
            [None if each is None else each.project_memory(states, padding) for each in attentions],  # type: ignore[union-attr,operator]
        )

    def held_states(self, memory: Memory) -> Tensor:
        """What every layer memorises of."""
        return memory.states

    def read(self, tokens: Tensor, state: State) -> Step:
        """The tokens (R, T) that come after those that `state` has seen."""
        causal = CausalSpan(state.position, tokens.size(1), tokens.device, state.left_padding, state.capacity)
        mask = tokens != PAD if self.training else None
        embedded = self.embedding(tokens, state.position, left_padding=state.left_padding)
        return Step(causal, embedded, state.memory.padding, mask)

    def through_layers(self, states: Tensor, state: State, step: Step) -> tuple[Tensor, Tensor | None, State]:
        """states (R, T, d) → those behind the last layer, `Output.attention`, the state after the step."""
        cache: list[TensorTree] = []
        with recording() if state.attention else nullcontext() as weights:
            for layer, memory, past in zip(self.layers, state.memory.layers, state.cache, strict=True):
                states, past = layer(states, past, memory, step)
                cache.append(past)
        attention = None if weights is None else mean_over_heads(weights, layer.cross_attention, len(states))  # type: ignore[arg-type]
        return states, attention, state.after(step.causal.new, cache)
