"""Ensembles: several models combined into one that predicts the mean of their probability distributions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.models.interface import Decoder, LengthLimit, LengthLimits, Memory, Output, SourceModel, State, Trial


@dataclass(frozen=True)
class EnsembleOutput:
    """The combined `Output` of N models: log (1/N · Σ_m p_m), which is normalised, and their mean attention."""

    members: Sequence[Output]

    @property
    def attention(self) -> Tensor | None:
        """The mean attention of the members that attend to the source; None if no member does."""
        found = [each for member in self.members if (each := member.attention) is not None]
        return torch.stack([each.float() for each in found]).mean(0) if found else None

    def logits(self, positions: Tensor | None = None) -> Tensor:
        """See `Output`."""
        return _log_mean([member.logits(positions) for member in self.members])

    def last_logits(self) -> Tensor:
        """See `Output`."""
        return _log_mean([member.last_logits() for member in self.members])


class EnsembleDecoder(nn.Module):
    """Decoders with the same vocabulary that read the same tokens; the state holds the states of all members."""

    def __init__(self, members: Sequence[Decoder]) -> None:
        super().__init__()
        self._members = tuple(members)

    def start(
        self,
        memory: Sequence[Memory],
        attention: bool = False,
        left_padding: Tensor | None = None,
        capacity: int | None = None,
    ) -> State:
        """Start every member. memory: one per member; the other arguments are as in `Decoder.start`."""
        # Decoders that do not support left padding do not accept the argument.
        options: dict[str, Any] = {} if left_padding is None else {"left_padding": left_padding}
        states = [
            member.start(own, attention, capacity=capacity, **options)
            for member, own in zip(self._members, memory, strict=True)
        ]
        max_length = min((state.max_length for state in states if state.max_length is not None), default=None)
        return State(
            None, states, attention=attention, max_length=max_length, left_padding=left_padding, capacity=capacity
        )

    def step(self, tokens: Tensor, state: State) -> tuple[EnsembleOutput, State]:
        """See `Decoder.step`."""
        outputs, states = [], []
        for member, own in zip(self._members, state.cache, strict=True):
            own = own if own.capacity == state.capacity else replace(own, capacity=state.capacity)
            output, after = member.step(tokens, own)
            outputs.append(output)
            states.append(after)
        return EnsembleOutput(outputs), state.after(tokens.size(1), states)


class Ensemble(nn.Module):
    """Models of any families with the same vocabularies, whose probabilities are averaged at every step.

    The memory of an ensemble is the tuple of its members' memories.
    """

    def __init__(self, members: Sequence[SourceModel]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)  # type: ignore[arg-type]
        self._models = tuple(members)
        self.decoder = EnsembleDecoder([member.decoder for member in members])
        self.limits = LengthLimits(
            _shortest([member.limits.source for member in members]),
            _shortest([member.limits.target for member in members]),
        )

    def trial(self, length: int) -> Trial:
        """Return a trial of the first member; all members read the same inputs."""
        return self._models[0].trial(length)

    def remember(self, source: tuple[Tensor, ...]) -> tuple[Memory, ...]:
        """See `encode`."""
        return self.encode(*source)

    def encode(self, tokens: Tensor, mask: Tensor) -> tuple[Memory, ...]:
        """The memory of each member; arguments as in `SourceModel.encode`."""
        return tuple(member.encode(tokens, mask) for member in self._models)

    def forward(self, source: Tensor, source_mask: Tensor, inputs: Tensor) -> EnsembleOutput:
        """Teacher forcing: predict the next token after each target input (B, T); the source is as in `encode`."""
        output, _ = self.decoder.step(inputs, self.decoder.start(self.encode(source, source_mask)))
        return output


def _log_mean(logits: Sequence[Tensor]) -> Tensor:
    """log (1/N · Σ softmax) of N tensors, over their last dimension."""
    return torch.stack([each.log_softmax(-1) for each in logits]).logsumexp(0) - log(len(logits))


def _shortest(limits: Iterable[LengthLimit]) -> LengthLimit:
    return min(limits, key=lambda limit: float("inf") if limit.positions is None else limit.positions)
