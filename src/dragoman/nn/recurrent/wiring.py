"""Wirings: where attention stands in a recurrent decoder, what each step reads, and what the prediction reads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.settings.config import Config
from dragoman.nn.recurrent.cell import Cell, States
from dragoman.nn.recurrent.stack import Stack

Look = Callable[[Tensor, int], Tensor]
"""Attention over the source: queries (R, t, q), the first at that time → contexts (R, t, c)."""


@dataclass(frozen=True)
class WiringSizes:
    """width: d, of embeddings and of the read-out; hidden: H; context: c, 0 without attention; summary: d or 0.

    dropout: rate between layers.
    """

    width: int
    hidden: int
    context: int
    summary: int
    cell: type[Cell]
    layers: int
    dropout: float

    def stack(self, *inputs: int) -> Stack:
        """The layers, the first of which reads `inputs`, and the summary as the last one."""
        widths = [*inputs, *([self.summary] if self.summary else [])]
        return Stack(self.cell, widths, self.hidden, self.layers, self.dropout)


class Wiring(nn.Module):
    """The recurrence, the looks at the source, and the read-out. Sequences are time-major here."""

    stack: Stack

    def summarise(self, summary: Tensor) -> Tensor:
        """The part of the drive that the source's summary (B, d) makes at all times: (B, gates·H)."""
        return self.stack.drive(summary, -1)

    def initial_feed(self, like: Tensor) -> Tensor | None:
        """What is fed to the first step beside the states: (B, d) for a state `like` (B, H), or nothing."""
        return None

    def forward(
        self, embedded: Tensor, constant: Tensor | None, look: Look | None, states: list[States], feed: Tensor | None
    ) -> tuple[Tensor, list[States], Tensor | None]:
        """embedded (T, R, d), constant (R, gates·H) of the summary → read-out (T, R, d), states, feed."""
        raise NotImplementedError

    def drives(self, inputs: Tensor, constant: Tensor | None) -> Tensor:
        """What the first layer's first input (T, R, ·) and the summary give to its drive."""
        drives = self.stack.drive(inputs)
        return drives if constant is None else drives + constant


class BahdanauConfig(Config):
    """c_t looks from h'_{t−1}; h'_t = f(h'_{t−1}, [y_{t−1}; c_t]); read-out tanh(W[h'_t; y_{t−1}; c_t] + b).

    Deck 002; Bahdanau et al. 2015, section 3.1, with a tanh layer where they take the maximum of pairs (A.2.2).
    """

    kind: Literal["bahdanau"] = "bahdanau"

    def query_width(self, width: int, hidden: int) -> int:
        """Of what looks at the source."""
        return hidden

    def build(self, sizes: WiringSizes) -> Wiring:
        """The module."""
        return Bahdanau(sizes)


class Bahdanau(Wiring):
    """Look, then step. Without attention h'_t = f(h'_{t−1}, y_{t−1}) and read-out tanh(W[h'_t; y_{t−1}] + b)."""

    def __init__(self, sizes: WiringSizes) -> None:
        super().__init__()
        self.stack = sizes.stack(sizes.width, *([sizes.context] if sizes.context else []))
        self.readout = nn.Linear(sizes.hidden + sizes.width + sizes.context, sizes.width)

    def forward(
        self, embedded: Tensor, constant: Tensor | None, look: Look | None, states: list[States], feed: Tensor | None
    ) -> tuple[Tensor, list[States], Tensor | None]:
        """One look and one step a token; without attention the whole recurrence at once."""
        drives = self.drives(embedded, constant)
        if look is None:
            hidden, states = self.stack(drives, states)
            return torch.tanh(self.readout(torch.cat((hidden, embedded), 2))), states, feed
        hiddens, contexts = [], []
        for time, drive in enumerate(drives.unbind(0)):
            context = look(states[-1][0].unsqueeze(1), time).squeeze(1)
            states = self.stack.step(drive + self.stack.drive(context, 1), states)
            hiddens.append(states[-1][0])
            contexts.append(context)
        read = torch.cat((torch.stack(hiddens), embedded, torch.stack(contexts)), 2)
        return torch.tanh(self.readout(read)), states, feed


class LuongConfig(Config):
    """h_t = f(h_{t−1}, y_{t−1}); c_t looks from h_t; read-out h̃_t = tanh(W[c_t; h_t] + b) (Luong et al. 2015, eq. 5).

    Without input feeding the whole recurrence is one scan and all looks are one call, so this is the fastest wiring.
    """

    kind: Literal["luong"] = "luong"
    input_feeding: bool = Field(
        False, description="h̃_{t−1} is concatenated to y_{t−1}, so that looks know of earlier ones (section 3.3)"
    )

    def query_width(self, width: int, hidden: int) -> int:
        """Of what looks at the source."""
        return hidden

    def build(self, sizes: WiringSizes) -> Wiring:
        """The module."""
        return Luong(sizes, self.input_feeding)


class Luong(Wiring):
    """Step, then look. Without attention h̃_t = tanh(Wh_t + b)."""

    def __init__(self, sizes: WiringSizes, input_feeding: bool) -> None:
        super().__init__()
        self.input_feeding, self.width = input_feeding, sizes.width
        self.stack = sizes.stack(sizes.width, *([sizes.width] if input_feeding else []))
        self.readout = nn.Linear(sizes.context + sizes.hidden, sizes.width)

    def initial_feed(self, like: Tensor) -> Tensor | None:
        """Zeros, with input feeding."""
        return like.new_zeros(like.size(0), self.width) if self.input_feeding else None

    def forward(
        self, embedded: Tensor, constant: Tensor | None, look: Look | None, states: list[States], feed: Tensor | None
    ) -> tuple[Tensor, list[States], Tensor | None]:
        """All at once, or with input feeding token by token."""
        drives = self.drives(embedded, constant)
        if feed is None:
            hidden, states = self.stack(drives, states)
            contexts = None if look is None else look(hidden.transpose(0, 1), 0).transpose(0, 1)
            return self._read(hidden, contexts), states, None
        outputs = []
        for time, drive in enumerate(drives.unbind(0)):
            states = self.stack.step(drive + self.stack.drive(feed, 1), states)
            hidden = states[-1][0]
            feed = self._read(hidden, None if look is None else look(hidden.unsqueeze(1), time).squeeze(1))
            outputs.append(feed)
        return torch.stack(outputs), states, outputs[-1]

    def _read(self, hidden: Tensor, context: Tensor | None) -> Tensor:
        return torch.tanh(self.readout(hidden if context is None else torch.cat((context, hidden), -1)))


class TutorialConfig(Config):
    """c_t looks from [y_{t−1}; h_{t−1}]; h_t = f(h_{t−1}, relu(W[y_{t−1}; c_t] + b)); the prediction reads h_t.

    The "NLP from scratch" tutorial of PyTorch that deck 003's homework starts from. Its score is a table over
    positions, which no sentence may outgrow; here any scorer serves.
    """

    kind: Literal["tutorial"] = "tutorial"

    def query_width(self, width: int, hidden: int) -> int:
        """Of what looks at the source."""
        return width + hidden

    def build(self, sizes: WiringSizes) -> Wiring:
        """The module."""
        return Tutorial(sizes)


class Tutorial(Wiring):
    """Look, combine, step. Without attention relu(Wy_{t−1} + b) is read. Where H is not d, a linear layer follows."""

    def __init__(self, sizes: WiringSizes) -> None:
        super().__init__()
        self.combine = nn.Linear(sizes.width + sizes.context, sizes.width)
        self.stack = sizes.stack(sizes.width)
        self.readout = nn.Identity() if sizes.hidden == sizes.width else nn.Linear(sizes.hidden, sizes.width)

    def forward(
        self, embedded: Tensor, constant: Tensor | None, look: Look | None, states: list[States], feed: Tensor | None
    ) -> tuple[Tensor, list[States], Tensor | None]:
        """One look and one step a token; without attention the whole recurrence at once."""
        if look is None:
            hidden, states = self.stack(self.drives(torch.relu(self.combine(embedded)), constant), states)
            return self.readout(hidden), states, feed
        hiddens = []
        for time, token in enumerate(embedded.unbind(0)):
            context = look(torch.cat((token, states[-1][0]), 1).unsqueeze(1), time).squeeze(1)
            combined = torch.relu(self.combine(torch.cat((token, context), 1)))
            states = self.stack.step(self.drives(combined, constant), states)
            hiddens.append(states[-1][0])
        return self.readout(torch.stack(hiddens)), states, feed


WiringConfig = Annotated[BahdanauConfig | LuongConfig | TutorialConfig, Field(discriminator="kind")]
