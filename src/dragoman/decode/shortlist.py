"""`ShortlistedDecoder`: a decoder whose outputs contain only the tokens of each sentence's shortlist."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.models.interface import Decoder, Output, State, TensorTree


@dataclass(frozen=True)
class ShortlistedOutput:
    """The `Output` of a decoder, with logits of −∞ for all tokens that are not in the shortlist of their row.

    excluded: (R, V) bool. steps: T, the number of tokens per row.
    """

    output: Output
    excluded: Tensor
    steps: int

    @property
    def attention(self) -> Tensor | None:
        """See `Output`."""
        return self.output.attention

    def logits(self, positions: Tensor | None = None) -> Tensor:
        """See `Output`."""
        logits = self.output.logits(positions)
        if positions is None:
            return logits.masked_fill(self.excluded.unsqueeze(1), -torch.inf)
        flat = positions.flatten().nonzero().squeeze(1) if positions.dtype == torch.bool else positions
        return logits.masked_fill(self.excluded[flat // self.steps], -torch.inf)

    def last_logits(self) -> Tensor:
        """See `Output`."""
        return self.output.last_logits().masked_fill(self.excluded, -torch.inf)


class ShortlistedDecoder:
    """A `Decoder` whose probabilities are normalised over the tokens of a sentence's shortlist.

    The cache of its state is the state of the decoder with the excluded tokens of each row.
    """

    def __init__(
        self, decoder: Decoder, shortlists: Sequence[NDArray[np.int32] | None], size: int, device: torch.device
    ) -> None:
        """shortlists: the tokens (N,) of each of the B sentences; None for all tokens. size: of the vocabulary (V)."""
        self._decoder = decoder
        self._excluded = torch.zeros(len(shortlists), size, dtype=torch.bool)
        for row, tokens in enumerate(shortlists):
            if tokens is not None:
                self._excluded[row] = True
                self._excluded[row, torch.as_tensor(tokens)] = False
        self._excluded = self._excluded.to(device)

    def start(
        self,
        memory: TensorTree | None,
        attention: bool = False,
        left_padding: Tensor | None = None,
        capacity: int | None = None,
    ) -> State:
        """See `Decoder.start`."""
        # Decoders without support for left padding do not have the argument.
        options: dict[str, Any] = {} if left_padding is None else {"left_padding": left_padding}
        inner = self._decoder.start(memory, attention, capacity=capacity, **options)
        return State(
            None,
            [inner, self._excluded],
            attention=attention,
            max_length=inner.max_length,
            left_padding=left_padding,
            capacity=capacity,
        )

    def step(self, tokens: Tensor, state: State) -> tuple[ShortlistedOutput, State]:
        """See `Decoder.step`."""
        inner, excluded = state.cache
        output, after = self._decoder.step(tokens, inner.with_capacity(state.capacity))
        steps = tokens.size(1)
        return ShortlistedOutput(output, excluded, steps), state.after(steps, [after, excluded])
