"""Ensembles, which predict the mean of the probability distributions of several models."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.models.interface import Decoder, LengthLimit, LengthLimits, Memory, Output, SourceModel, State, Trial


@dataclass(frozen=True)
class EnsembleOutput:
    """The combined `Output` of N models: the log-probabilities log (1/N · Σ_m p_m) and the mean attention."""

    members: Sequence[Output]

    @property
    def attention(self) -> Tensor | None:
        """The mean attention of the members that attend to the source; None if no member does."""
        weights = [each.float() for member in self.members if (each := member.attention) is not None]
        return torch.stack(weights).mean(0) if weights else None

    def logits(self, positions: Tensor | None = None) -> Tensor:
        """See `Output`."""
        return _log_mean([member.logits(positions) for member in self.members])

    def last_logits(self) -> Tensor:
        """See `Output`."""
        return _log_mean([member.last_logits() for member in self.members])


class EnsembleDecoder(nn.Module):
    """Several decoders with the same vocabulary. The cache of its state is the list of the members' states."""

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
        """Start all members. memory: one memory per member. The other arguments are those of `Decoder.start`."""
        # Decoders without support for left padding do not have the argument.
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
            output, after = member.step(tokens, own.with_capacity(state.capacity))
            outputs.append(output)
            states.append(after)
        return EnsembleOutput(outputs), state.after(tokens.size(1), states)


class Ensemble(nn.Module):
    """Models with the same vocabularies, of any families, whose probabilities are averaged at each step.

    The memory of an ensemble is the tuple of the memories of its members.
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
        """Return a trial of the first member. All members have the same inputs."""
        return self._models[0].trial(length)

    def encode_source(self, source: tuple[Tensor, ...]) -> tuple[Memory, ...]:
        """See `encode`."""
        return self.encode(*source)

    def encode(self, tokens: Tensor, mask: Tensor) -> tuple[Memory, ...]:
        """Return the memory of each member. The arguments are those of `SourceModel.encode`."""
        return tuple(member.encode(tokens, mask) for member in self._models)

    def forward(self, source: Tensor, source_mask: Tensor, inputs: Tensor) -> EnsembleOutput:
        """Predict the token after each target input (B, T) by teacher forcing. source, source_mask: as in `encode`."""
        output, _ = self.decoder.step(inputs, self.decoder.start(self.encode(source, source_mask)))
        return output


def _log_mean(logits: Sequence[Tensor]) -> Tensor:
    """Return the logarithm of the mean softmax of N tensors, over their last dimension."""
    return torch.stack([each.log_softmax(-1) for each in logits]).logsumexp(0) - log(len(logits))


def _shortest(limits: Iterable[LengthLimit]) -> LengthLimit:
    return min(limits, key=lambda limit: float("inf") if limit.positions is None else limit.positions)
