"""`Slots`: parallel search of a fixed number of sentences, in tensors whose shapes never change.

Every step consists of the same operations on the same tensors for all sentences, so a GPU can replay it as a graph.
Sizes: B slots, K hypotheses per sentence, S source tokens, C output tokens, V vocabulary entries.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from dragoman.decode.search import Hypothesis
from dragoman.engines.cuda.attention import (
    Positions,
    SlotCrossAttention,
    SlotSelfAttention,
    triton_kernels,
)
from dragoman.engines.cuda.completed import completed_hypotheses
from dragoman.engines.native.request import NativeRequest
from dragoman.models.families.transformer import DecoderLayer, TransformerDecoder
from dragoman.models.interface import Memory
from dragoman.nn.attention.soft import SoftAttention
from dragoman.nn.mask import Mask
from dragoman.text.symbols import BOS, EOS, PAD

MAX_FORBIDDEN = 8
"""Maximum number of forbidden tokens per request."""

_GROUP_SIZE = 64
"""Number of neighbouring vocabulary entries in a group, whose maximum is computed first."""


class SlotSizes(NamedTuple):
    """The sizes B, K, S and C of a set of slots."""

    slots: int
    beam: int
    source: int
    target: int


class Slots:
    """B slots for sentences with the same beam size, which may be at different output positions.

    A slot is free until `admit` puts a sentence into it. Each `step` then appends one token per hypothesis, until the
    sentence is completed and `collect` returns its hypotheses. The results are those of `dragoman.decode.search.search`
    with the settings of a `NativeRequest`.
    """

    def __init__(self, decoder: TransformerDecoder, vocabulary: int, sizes: SlotSizes) -> None:
        """vocabulary: V. Tensors are on the decoder's device; hidden states have the decoder's dtype."""
        self.decoder, self.sizes, self._vocabulary = decoder, sizes, vocabulary
        weight = decoder.projection.weight
        self._device, self._dtype = weight.device, weight.dtype
        slots, beam, source, target = sizes
        self.requests: list[NativeRequest | None] = [None] * slots
        self._steps_left = [0] * slots  # maximum number of tokens still to be written
        integer_shapes: dict[str, tuple[int, ...]] = {
            "position": (slots,),
            "limit": (slots,),
            "minimum": (slots,),
            "prefix_length": (slots,),
            "nbest": (slots,),
            "prefix": (slots, target),
            "forbidden": (slots, MAX_FORBIDDEN),
            "tokens": (slots, beam),
            "sequences": (slots, beam, target),
            "branches": (slots, beam, target),
            "ended_lengths": (slots, beam),
            "ended_sequences": (slots, beam, target),
        }
        float_shapes: dict[str, tuple[int, ...]] = {
            "totals": (slots, beam),
            "divisors": (slots, target + 1),
            "largest": (slots,),
            "forbidden_bias": (slots, MAX_FORBIDDEN),
            "ended_scores": (slots, beam),
            "ended_totals": (slots, beam),
        }
        self.state = {
            name: torch.zeros(shape, dtype=torch.int64, device=self._device) for name, shape in integer_shapes.items()
        }
        self.state |= {name: torch.zeros(shape, device=self._device) for name, shape in float_shapes.items()}
        self.state["active"] = torch.zeros(slots, dtype=torch.bool, device=self._device)
        self.state["source_mask"] = torch.ones(slots, source, dtype=torch.bool, device=self._device)
        self.self_attentions = [SlotSelfAttention.of(each, slots, beam, target) for each, _ in attentions(decoder)]
        self.cross_attentions = [SlotCrossAttention.of(each, slots, source) for _, each in attentions(decoder)]

    @property
    def free(self) -> list[int]:
        """Indices of the slots without a sentence."""
        return [slot for slot, request in enumerate(self.requests) if request is None]

    @property
    def occupied(self) -> list[int]:
        """Indices of the slots with a sentence that is not yet collected."""
        return [slot for slot, request in enumerate(self.requests) if request is not None]

    @property
    def remaining(self) -> int:
        """Number of steps after which every sentence is completed."""
        return max((self._steps_left[slot] for slot in self.occupied), default=0)

    def record_steps(self, steps: int) -> None:
        """Record that a number of steps were computed, with or without a graph."""
        self._steps_left = [max(0, left - steps) for left in self._steps_left]

    def admit(self, requests: Sequence[NativeRequest], memory: Memory) -> None:
        """Start sentences in free slots, of which there must be enough. memory: encoded sources padded to S tokens."""
        slots = self.free[: len(requests)]
        initial = self._initial(requests)  # runs on the CPU while the device is still encoding
        index = torch.tensor(slots, device=self._device)
        mask = Mask.padding(memory.mask)
        for each in self.cross_attentions:
            projected = each.attention.project_memory(memory.states, mask)
            each.memory.keys.index_copy_(0, index, projected.keys)
            each.memory.values.index_copy_(0, index, projected.values)
        for name, values in initial.items():
            self.state[name].index_copy_(0, index, torch.from_numpy(values).to(self._device))
        self.state["source_mask"].index_copy_(0, index, memory.mask)
        for name in ("position", "sequences", "branches", "ended_lengths", "ended_totals"):
            self.state[name].index_fill_(0, index, 0)
        self.state["ended_scores"].index_fill_(0, index, -torch.inf)
        self.state["tokens"].index_fill_(0, index, BOS)
        self.state["totals"].index_fill_(0, index, -torch.inf)
        self.state["totals"][:, 0].index_fill_(0, index, 0.0)
        self.state["active"].index_fill_(0, index, True)
        for slot, request in zip(slots, requests, strict=True):
            self.requests[slot], self._steps_left[slot] = request, request.limit

    def _initial(self, requests: Sequence[NativeRequest]) -> dict[str, np.ndarray]:
        count, target = len(requests), self.sizes.target
        prefix = np.full((count, target), PAD, np.int64)
        forbidden = np.full((count, MAX_FORBIDDEN), EOS, np.int64)
        forbidden_bias = np.zeros((count, MAX_FORBIDDEN), np.float32)
        divisors = np.ones((count, target + 1), np.float32)
        cached_divisors: dict[tuple[int, int], np.ndarray] = {}
        for row, request in enumerate(requests):
            if request.prefix:
                prefix[row, : len(request.prefix)] = request.prefix
            if request.forbidden:
                forbidden[row, : len(request.forbidden)] = request.forbidden
                forbidden_bias[row, : len(request.forbidden)] = -np.inf
            key = id(request.penalty), request.limit
            if key not in cached_divisors:
                cached_divisors[key] = np.array(
                    [request.penalty.divisor(length) for length in range(request.limit + 1)]
                )
            divisors[row, : request.limit + 1] = cached_divisors[key]
        limits = np.array([request.limit for request in requests], np.int64)
        return {
            "prefix": prefix,
            "forbidden": forbidden,
            "forbidden_bias": forbidden_bias,
            "divisors": divisors,
            "largest": divisors[np.arange(count), limits],
            "limit": limits,
            "minimum": np.array([request.minimum for request in requests], np.int64),
            "prefix_length": np.array([len(request.prefix) for request in requests], np.int64),
            "nbest": np.array([request.nbest for request in requests], np.int64),
        }

    def drop(self, slot: int) -> None:
        """Free the slot of a sentence that is not needed any more."""
        self.state["active"][slot].fill_(False)
        self.requests[slot] = None

    def clear(self) -> None:
        """Drop all sentences."""
        self.state["active"].fill_(False)
        self.requests = [None] * self.sizes.slots

    def take_over(self, other: "Slots") -> dict[int, int]:
        """Move all sentences of `other` to free slots; returns the new slot of each old slot.

        Beam size and S must be equal, C must be at least as large as in `other`, and enough slots must be free.
        """
        old, new = other.occupied, self.free[: len(other.occupied)]
        new_index, old_index = torch.tensor(new, device=self._device), torch.tensor(old, device=self._device)
        pairs = [(self.state[name], other.state[name]) for name in self.state]
        for own, others in zip(self.self_attentions, other.self_attentions, strict=True):
            pairs += zip(own.cache, others.cache, strict=True)
        for own_attention, other_attention in zip(self.cross_attentions, other.cross_attentions, strict=True):
            pairs += zip(own_attention.memory, other_attention.memory, strict=True)
        for tensor, source in pairs:
            rows = source.index_select(0, old_index)
            tensor[(slice(None), *(slice(size) for size in rows.shape[1:]))][new_index] = rows
        for slot, target in zip(old, new, strict=True):
            self.requests[target], self._steps_left[target] = other.requests[slot], other._steps_left[slot]
        return dict(zip(old, new, strict=True))

    def step(self) -> None:
        """Append one token to every hypothesis in every active slot; other slots stay unchanged."""
        if self.sizes.beam > 1:
            self._mark_branches()
        logits = self._next_logits()  # (B · K, V)
        kernels = triton_kernels(self._device)
        normaliser = logits.logsumexp(1, keepdim=True) if kernels is None else kernels.logsumexp(logits)
        forced = self.state["prefix"].gather(1, self._current_position[:, None])
        forced = forced.repeat_interleave(self.sizes.beam, 0)  # (B · K, 1)
        forced_values = logits.gather(1, forced) - normaliser
        self._restrict(logits)
        if self.sizes.beam == 1:
            self._greedy(logits, normaliser, forced, forced_values)
        else:
            self._beam(logits, normaliser, forced, forced_values)

    @property
    def _current_position(self) -> Tensor:
        """Position of each sentence's input token (B,), clamped to C − 1 for sentences that have written C tokens."""
        return self.state["position"].clamp(max=self.sizes.target - 1)

    def _mark_branches(self) -> None:
        """Record that each hypothesis stores its current token in its own row of the cache."""
        branches = self.state["branches"]
        own = torch.arange(self.sizes.beam, device=self._device).view(1, -1, 1)
        position = self._current_position.view(-1, 1, 1).expand(-1, self.sizes.beam, 1)
        branches.scatter_(2, position, own.expand_as(position))

    def _next_logits(self) -> Tensor:
        """Run the decoder on the current tokens; returns the logits (B · K, V) of the next tokens, in float32."""
        decoder, state, (_, beam, _, target) = self.decoder, self.state, self.sizes
        limit = decoder.embedding.positions.limit
        start = (target if limit is None else min(target, limit)) - 1
        left_padding = (start - self._current_position).repeat_interleave(beam)
        positions = Positions(self._current_position, state["branches"], state["active"], start, left_padding)
        mask, active = state["source_mask"], state["active"]
        states = decoder.embedding(state["tokens"].view(-1, 1), start, left_padding=left_padding)  # (B · K, 1, d)
        attending = zip(_layers(decoder), self.self_attentions, self.cross_attentions, strict=True)
        for layer, over_output, over_source in attending:
            states = layer.around_self_attention(states, partial(over_output, positions=positions))
            states = layer.around_cross_attention(states, partial(over_source, mask=mask, active=active))
            states = layer.around_feedforward(states, layer.feedforward)
        return _logits(decoder.output_states(states)[:, -1], decoder.projection.weight, decoder.projection.bias)

    def _restrict(self, logits: Tensor) -> None:
        """Set the logits of forbidden tokens, and of EOS before the minimum length, to −∞."""
        beam, state = self.sizes.beam, self.state
        forbidden = state["forbidden"].repeat_interleave(beam, 0)
        forbidden_bias = state["forbidden_bias"].repeat_interleave(beam, 0)
        logits.scatter_(1, forbidden, logits.gather(1, forbidden) + forbidden_bias)
        short = state["position"] + 1 <= state["minimum"]
        logits[:, EOS].masked_fill_(short.repeat_interleave(beam), -torch.inf)

    def _greedy(self, logits: Tensor, normaliser: Tensor, forced: Tensor, forced_values: Tensor) -> None:
        """Choose the next tokens for a beam size of one, without sorting."""
        state = self.state
        active, length = state["active"], state["position"] + 1
        best, tokens = logits.max(1, keepdim=True)  # (B, 1), the first of equal maxima
        in_prefix = (length <= state["prefix_length"])[:, None]
        tokens = torch.where(in_prefix, forced, tokens)
        totals = state["totals"] + torch.where(in_prefix, forced_values, best - normaliser)
        ended = (tokens[:, 0] == EOS) & active & (totals[:, 0] > -torch.inf)
        state["ended_lengths"].copy_(torch.where(ended[:, None], length[:, None], state["ended_lengths"]))
        self._write(state["sequences"], tokens, active)
        state["totals"].copy_(torch.where(active[:, None], totals, state["totals"]))
        state["tokens"].copy_(torch.where(active[:, None], tokens, state["tokens"]))
        state["position"].add_(active)
        active.logical_and_(~ended & (length < state["limit"]) & (totals[:, 0] > -torch.inf))

    def _beam(self, logits: Tensor, normaliser: Tensor, forced: Tensor, forced_values: Tensor) -> None:
        """Choose the next tokens for a beam size greater than one."""
        state, beam = self.state, self.sizes.beam
        active, length = state["active"], state["position"] + 1
        expansions = min(2 * beam, self._vocabulary)
        values, tokens = _largest(logits, expansions)  # (B · K, 2K)
        values = values - normaliser
        in_prefix = (length <= state["prefix_length"]).repeat_interleave(beam)[:, None]
        first = torch.arange(expansions, device=self._device) == 0
        tokens = torch.where(in_prefix, forced, tokens)
        values = torch.where(in_prefix, torch.where(first, forced_values, -torch.inf), values)
        sums = (state["totals"].view(-1, 1) + values).view(-1, beam * expansions)
        totals, order = sums.sort(dim=1, descending=True, stable=True)
        totals, order = totals[:, : 2 * beam], order[:, : 2 * beam]  # (B, 2K)
        parents, tokens = order // expansions, tokens.view(-1, beam * expansions).gather(1, order)
        ends = tokens == EOS
        self._finish(totals, parents, ends, length, active)
        continuing = ends.int().argsort(dim=1, stable=True)[:, :beam]  # continuations that do not end, best first
        totals = totals.masked_fill(ends, -torch.inf).gather(1, continuing)
        parents, tokens = parents.gather(1, continuing), tokens.gather(1, continuing)
        is_active = active[:, None]
        sources = torch.where(is_active, parents, torch.arange(beam, device=self._device))[:, :, None]
        for name in ("sequences", "branches"):
            state[name].copy_(state[name].gather(1, sources.expand_as(state[name])))
        self._write(state["sequences"], tokens, active)
        state["totals"].copy_(torch.where(is_active, totals, state["totals"]))
        state["tokens"].copy_(torch.where(is_active, tokens, state["tokens"]))
        threshold = state["ended_scores"].gather(1, (state["nbest"][:, None] - 1).clamp(min=0))[:, 0]
        can_improve = totals[:, 0] / state["largest"] > threshold  # False for NaN, which ends the search
        state["position"].add_(active)
        active.logical_and_(can_improve & (length < state["limit"]) & (totals[:, 0] > -torch.inf))

    def _finish(self, totals: Tensor, parents: Tensor, ends: Tensor, length: Tensor, active: Tensor) -> None:
        """Update the K best finished hypotheses with the ends among the first K ranked continuations."""
        state, beam = self.state, self.sizes.beam
        divisors = state["divisors"].gather(1, length[:, None].clamp(max=self.sizes.target))
        scores = (totals / divisors).masked_fill(~(ends & active[:, None]), -torch.inf)[:, :beam]
        ended_sequences = state["sequences"].gather(1, parents[:, :beam, None].expand_as(state["sequences"]))
        merged, order = torch.cat([state["ended_scores"], scores], 1).sort(dim=1, descending=True, stable=True)
        order = order[:, :beam]
        state["ended_scores"].copy_(merged[:, :beam])
        for name, new in (
            ("ended_totals", totals[:, :beam]),
            ("ended_lengths", length[:, None].expand(-1, beam)),
            ("ended_sequences", ended_sequences),
        ):
            both = torch.cat([state[name], new], 1)
            selected = order if both.dim() == 2 else order[:, :, None].expand(-1, -1, both.size(2))
            state[name].copy_(both.gather(1, selected))

    def _write(self, sequences: Tensor, tokens: Tensor, active: Tensor) -> None:
        """Write tokens (B, K) to sequences (B, K, C), at the current position of each active sentence."""
        position = self._current_position.view(-1, 1, 1).expand(-1, sequences.size(1), 1)
        before = sequences.gather(2, position)
        sequences.scatter_(2, position, torch.where(active[:, None, None], tokens[:, :, None], before))

    def collect(self) -> dict[int, list[Hypothesis]]:
        """Wait for the device, free the slots of completed sentences, and return their hypotheses by slot.

        The list is empty for a sentence whose log-probabilities are NaN or whose continuations are all forbidden.
        """
        active = self.state["active"].tolist()
        done = [slot for slot in self.occupied if not active[slot]]
        if not done:
            return {}
        index = torch.tensor(done, device=self._device)
        names = ["position", "totals", "sequences", "ended_lengths"]
        if self.sizes.beam > 1:
            names += ["ended_totals", "ended_scores", "ended_sequences"]
        values = {name: self.state[name].index_select(0, index).cpu().tolist() for name in names}
        hypotheses = {}
        for row, slot in enumerate(done):
            request = self.requests[slot]
            assert request is not None
            hypotheses[slot] = completed_hypotheses(request, {name: each[row] for name, each in values.items()})
            self.requests[slot] = None
        return hypotheses


def _largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the `count` largest values of each row of (R, V), largest first, and their columns.

    In wide rows, only the groups of neighbours with the largest maxima are searched, since these groups contain all of
    the largest values. Sorting whole rows takes several times as long.
    """
    rows, width = values.shape
    groups = width // _GROUP_SIZE
    if groups <= count:
        return values.topk(count, dim=1)
    grouped_width = groups * _GROUP_SIZE
    group_indices = (
        values[:, :grouped_width].view(rows, groups, _GROUP_SIZE).amax(2).topk(count, dim=1, sorted=False).indices
    )  # (R, count)
    grouped_columns = (
        group_indices.unsqueeze(2) * _GROUP_SIZE + torch.arange(_GROUP_SIZE, device=values.device)
    ).flatten(1)
    remaining_columns = torch.arange(grouped_width, width, device=values.device).expand(rows, -1)
    columns = torch.cat([grouped_columns, remaining_columns], 1)
    best, indices = values.gather(1, columns).topk(count, dim=1)
    return best, columns.gather(1, indices)


def _layers(decoder: TransformerDecoder) -> list[DecoderLayer]:
    return [cast(DecoderLayer, layer) for layer in decoder.layers]


def attentions(decoder: TransformerDecoder) -> list[tuple[SoftAttention, SoftAttention]]:
    """Return the self-attention and the cross-attention of each layer."""
    return [
        (cast(SoftAttention, each.self_attention), cast(SoftAttention, each.cross_attention)) for each in decoder.layers
    ]


def _logits(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return hidden · weightᵀ + bias in float32, because half precision is too coarse for logits.

    hidden: (R, d), weight: (V, d), bias: (V,).
    """
    if hidden.dtype == torch.float32:
        return torch.nn.functional.linear(hidden, weight, bias)
    if hidden.device.type == "cuda":
        logits = torch.mm(hidden, weight.t(), out_dtype=torch.float32)
    else:
        logits = hidden.float() @ weight.float().t()
    return logits if bias is None else logits + bias
