"""Small decoders that implement the `Decoder` protocol, for tests of the search."""

import torch
from given_logits import GivenLogits
from torch import Tensor

from dragoman.models.interface import Memory, State


def toy_memory(sources: list[list[int]], extra: int = 0) -> Memory:
    """Memory whose states (B, S, 1) are the source's numbers, with `extra` columns of padding that contain garbage."""
    width = max(map(len, sources)) + extra
    states = torch.full((len(sources), width, 1), 77.0)
    keep = torch.zeros(len(sources), width, dtype=torch.bool)
    for row, source in enumerate(sources):
        states[row, : len(source), 0] = torch.tensor(source, dtype=torch.float32)
        keep[row, : len(source)] = True
    return Memory(states, keep)


def reading(state: State, count: int) -> Tensor:
    """Return (T, R or 1, 1) bool: whether a row's text has begun at each of the next `count` tokens."""
    positions = torch.arange(state.position, state.position + count).view(-1, 1, 1)
    return positions >= (torch.zeros(1, 1) if state.left_padding is None else state.left_padding.unsqueeze(1))


class MarkovToy:
    """Logits from a random table, by the source's sum and the last two tokens."""

    def __init__(self, size: int, seed: int, levels: int | None = None) -> None:
        generator = torch.Generator().manual_seed(seed)
        shape = (5, size, size, size)
        if levels is None:
            self.table = 2 * torch.randn(shape, generator=generator)
        else:  # few different logits, hence many ties
            self.table = torch.randint(levels, shape, generator=generator).float()

    def start(self, memory: Memory, attention: bool = False, left_padding: Tensor | None = None) -> State:
        kinds = (memory.states.squeeze(2) * memory.mask).sum(1).long() % 5
        return State(
            memory={"kind": kinds},
            cache=[torch.zeros(len(kinds), 2, dtype=torch.int64), None],
            left_padding=left_padding,
        )

    def step(self, tokens: Tensor, state: State) -> tuple[GivenLogits, State]:
        kinds = state.memory["kind"].repeat_interleave(state.beam_size)
        assert len(tokens) == len(kinds)
        last, steps = state.cache[0], []
        for column, begun in zip(tokens.T, reading(state, tokens.shape[1]), strict=True):
            last = torch.where(begun, torch.stack([last[:, 1], column], 1), last)
            steps.append(torch.where(begun, self.table[kinds, last[:, 0], last[:, 1]], torch.nan))
        return GivenLogits(torch.stack(steps, 1)), state.after(tokens.shape[1], [last, None])


class RecurrentToy:
    """A recurrent decoder that also averages all its past vectors, so that every cache tensor matters in every step.

    A state that was passed in is invalidated, as by a decoder that writes its cache in place.
    """

    width = 6

    def __init__(self, size: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)

        def table(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator)

        self.embedding, self.out = table(size, self.width), 2 * table(self.width, size)
        self.recurrent, self.look = table(self.width, self.width), table(self.width, self.width)
        self.source = table(1, self.width)

    def start(self, memory: Memory, attention: bool = False, left_padding: Tensor | None = None) -> State:
        total = (memory.states * memory.mask.unsqueeze(2)).sum(1, keepdim=True)
        mean = total / memory.mask.sum(1).view(-1, 1, 1).clamp(min=1)
        count = len(memory.mask)
        cache = {"hidden": torch.zeros(count, self.width), "past": torch.zeros(count, 0, self.width)}
        return State(memory=(torch.sin(mean @ self.source),), cache=cache, left_padding=left_padding)

    def step(self, tokens: Tensor, state: State) -> tuple[GivenLogits, State]:
        source = state.memory[0].squeeze(1).repeat_interleave(state.beam_size, 0)
        hidden, past = state.cache["hidden"].clone(), state.cache["past"].clone()
        state.cache["hidden"].fill_(torch.nan)
        state.cache["past"].fill_(torch.nan)
        steps = []
        left_padding = torch.zeros(1, 1) if state.left_padding is None else state.left_padding.unsqueeze(1)
        for column, begun in zip(tokens.T, reading(state, tokens.shape[1]), strict=True):
            past = torch.cat([past, (self.embedding[column] * begun).unsqueeze(1)], 1)
            mean = past.sum(1) / (past.shape[1] - left_padding)
            after = torch.tanh(hidden @ self.recurrent + self.embedding[column] + source + mean @ self.look)
            hidden = torch.where(begun, after, hidden)
            steps.append(torch.where(begun, hidden, torch.nan))
        cache = {"hidden": hidden, "past": past}
        return GivenLogits(torch.stack(steps, 1) @ self.out), state.after(tokens.shape[1], cache)


class AttendingToy:
    """A recurrent decoder with sharp attention to the source, which it returns on request."""

    width = 6

    def __init__(self, size: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)

        def table(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator)

        self.embedding, self.out = table(size, self.width), 2 * table(self.width, size)
        self.recurrent, self.query, self.source = (table(self.width, self.width) for _ in range(3))
        self.place = table(100, self.width)

    def start(self, memory: Memory, attention: bool = False, left_padding: Tensor | None = None) -> State:
        positions = self.place[: memory.states.shape[1]]
        keys = torch.sin(memory.states + positions)
        cache = [torch.zeros(len(memory.mask), self.width)]
        return State(
            memory={"keys": keys, "keep": memory.mask}, cache=cache, attention=attention, left_padding=left_padding
        )

    def step(self, tokens: Tensor, state: State) -> tuple[GivenLogits, State]:
        keys, keep = (state.memory[name].repeat_interleave(state.beam_size, 0) for name in ("keys", "keep"))
        (hidden,), steps, weights = state.cache, [], []
        for column, begun in zip(tokens.T, reading(state, tokens.shape[1]), strict=True):
            after = torch.tanh(hidden @ self.recurrent + self.embedding[column])
            scores = torch.einsum("rw,rsw->rs", after @ self.query, keys).masked_fill(~keep, -torch.inf)
            weights.append(scores.softmax(1).where(begun, torch.nan))
            after = torch.tanh(after + torch.einsum("rs,rsw->rw", scores.softmax(1), keys) @ self.source)
            hidden = torch.where(begun, after, hidden)
            steps.append(torch.where(begun, hidden, torch.nan))
        attention = torch.stack(weights, 1) if state.attention else None
        return GivenLogits(torch.stack(steps, 1) @ self.out, attention), state.after(tokens.shape[1], [hidden])
