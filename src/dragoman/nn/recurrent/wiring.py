"""Wirings of recurrent decoders: initial states, order of attention and recurrence, inputs of steps and read-out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.settings.config import Config
from dragoman.nn.recurrent.cell import Cell, States
from dragoman.nn.recurrent.connections import Connections
from dragoman.nn.recurrent.experts import BuildExperts
from dragoman.nn.recurrent.stack import Stack

Attend = Callable[[Tensor, int], Tensor]
"""Attention over the source: maps queries (R, t, q) and the time step of the first query to contexts (R, t, c)."""


BridgeKind = Literal["initial", "concatenate", "both", "none"]
"""Use of the source summary in a recurrent decoder: for the initial states, as an input of each step, both or none."""


class InitialStates(nn.Module):
    """tanh(Ws + b), one vector per state of each layer (Bahdanau et al. 2015, appendix A.2.2, without biases)."""

    def __init__(self, width: int, hidden: int, layers: int, components: int) -> None:
        super().__init__()
        self.layers, self.components = layers, components
        self.linear = nn.Linear(width, layers * components * hidden)

    def forward(self, summary: Tensor) -> list[States]:
        """Return the initial states (B, H) of each layer, from the source summary (B, d)."""
        chunks = torch.tanh(self.linear(summary)).to(self.linear.weight.dtype).chunk(self.layers * self.components, 1)
        return [tuple(chunks[layer * self.components : (layer + 1) * self.components]) for layer in range(self.layers)]


@dataclass(frozen=True)
class WiringSizes:
    """The sizes of a recurrent decoder.

    width: width d of embeddings and read-out. hidden: width H of hidden states. context: width c of the attention's
    context; 0 without attention. summary: width of the source summary; 0 without a summary. dropout: rate between
    layers. connections: connections between layers. experts: builds experts between layers.
    """

    width: int
    hidden: int
    context: int
    summary: int
    cell: type[Cell]
    layers: int
    dropout: float
    connections: Connections
    experts: BuildExperts | None = None

    def stack(self, *inputs: int, context: int = 0) -> Stack:
        """Build the layers. inputs: widths of the first layer's inputs, to which the source summary, if any, is added.

        The summary is the last input. context: width of an additional input of every other layer; 0: none.
        """
        widths = [*inputs, *([self.summary] if self.summary else [])]
        return Stack(
            self.cell,
            widths,
            self.hidden,
            self.layers,
            dropout=self.dropout,
            connections=self.connections,
            context=context,
            experts=self.experts,
        )


class Wiring(nn.Module):
    """The recurrence, the attention over the source, and the read-out. Sequences are time-major."""

    stack: Stack

    def summarise(self, summary: Tensor) -> Tensor:
        """Return the contribution (B, gates·H) of the summary (B, d) to the drive, which is constant over time."""
        return self.stack.drive(summary, -1)

    def initial_feed(self, like: Tensor) -> Tensor | None:
        """Return the fed input (B, d) of the first step for states like `like` (B, H); None without input feeding."""
        return None

    def forward(
        self,
        embedded: Tensor,
        constant: Tensor | None,
        attend: Attend | None,
        states: list[States],
        feed: Tensor | None,
        *,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, list[States], Tensor | None]:
        """Process T tokens; returns the read-out (T, R, d), the new states, and the fed input of the next step.

        embedded: (T, R, d). constant: contribution of the source summary to the drive (R, gates·H), or None. attend:
        attention over the source, or None. states: states of each layer. feed: fed input (R, d), or None. mask: (T, R)
        bool, False at padding, for experts.
        """
        raise NotImplementedError

    def drives(self, inputs: Tensor, constant: Tensor | None) -> Tensor:
        """Return the contribution of the first input (T, R, ·) and the source summary to the first layer's drive."""
        drives = self.stack.drive(inputs)
        return drives if constant is None else drives + constant


class BahdanauConfig(Config):
    """The attention query for c_t is h'_{t−1}. State: h'_t = f(h'_{t−1}, [y_{t−1}; c_t]). Read-out:
    tanh(W[h'_t; y_{t−1}; c_t] + b).

    Deck 002; Bahdanau et al. 2015, section 3.1, with a tanh layer instead of the maxout layer of appendix A.2.2.
    """

    kind: Literal["bahdanau"] = "bahdanau"

    def query_width(self, width: int, hidden: int) -> int:
        """Return the width of the attention queries."""
        return hidden

    def processes_tokens_singly(self, attends: bool) -> bool:
        """Return whether the layers process one token at a time, with (`attends`) or without attention."""
        return attends

    def build(self, sizes: WiringSizes) -> Wiring:
        """Build the module."""
        return Bahdanau(sizes)


class Bahdanau(Wiring):
    """Attend, then advance the recurrence.

    Without attention, h'_t = f(h'_{t−1}, y_{t−1}), with read-out tanh(W[h'_t; y_{t−1}] + b).
    """

    def __init__(self, sizes: WiringSizes) -> None:
        super().__init__()
        self.stack = sizes.stack(sizes.width, *([sizes.context] if sizes.context else []))
        self.readout = nn.Linear(self.stack.output_width + sizes.width + sizes.context, sizes.width)

    def forward(
        self,
        embedded: Tensor,
        constant: Tensor | None,
        attend: Attend | None,
        states: list[States],
        feed: Tensor | None,
        *,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, list[States], Tensor | None]:
        """Process tokens one by one or, without attention, all at once."""
        drives = self.drives(embedded, constant)
        if attend is None:
            hidden, states = self.stack(drives, states, mask)
            return torch.tanh(self.readout(torch.cat((hidden, embedded), 2))), states, feed
        outputs, contexts = [], []
        for time, drive in enumerate(drives.unbind(0)):
            context = attend(states[-1][0].unsqueeze(1), time).squeeze(1)
            output, states = self.stack.step(drive + self.stack.drive(context, 1), states)
            outputs.append(output)
            contexts.append(context)
        read = torch.cat((torch.stack(outputs), embedded, torch.stack(contexts)), 2)
        return torch.tanh(self.readout(read)), states, feed


class LuongConfig(Config):
    """State: h_t = f(h_{t−1}, y_{t−1}). The attention query for c_t is h_t. Read-out: h̃_t = tanh(W[c_t; h_t] + b)
    (Luong et al. 2015, equation 5).

    This is the fastest wiring: without input feeding, recurrence and attention process all tokens in one call each.
    """

    kind: Literal["luong"] = "luong"
    input_feeding: bool = Field(
        False,
        description="Use input feeding: concatenate h̃_{t−1} with y_{t−1}, so that attention takes earlier alignments "
        "into account (section 3.3).",
    )

    def query_width(self, width: int, hidden: int) -> int:
        """Return the width of the attention queries."""
        return hidden

    def processes_tokens_singly(self, attends: bool) -> bool:
        """See `BahdanauConfig`."""
        return self.input_feeding

    def build(self, sizes: WiringSizes) -> Wiring:
        """Build the module."""
        return Luong(sizes, self.input_feeding)


class Luong(Wiring):
    """Advance the recurrence, then attend. Without attention, h̃_t = tanh(Wh_t + b)."""

    def __init__(self, sizes: WiringSizes, input_feeding: bool) -> None:
        super().__init__()
        self.input_feeding, self.width, self.hidden = input_feeding, sizes.width, sizes.hidden
        self.stack = sizes.stack(sizes.width, *([sizes.width] if input_feeding else []))
        self.readout = nn.Linear(sizes.context + self.stack.output_width, sizes.width)

    def initial_feed(self, like: Tensor) -> Tensor | None:
        """Return zeros (B, d) with input feeding, and None without."""
        return like.new_zeros(like.size(0), self.width) if self.input_feeding else None

    def forward(
        self,
        embedded: Tensor,
        constant: Tensor | None,
        attend: Attend | None,
        states: list[States],
        feed: Tensor | None,
        *,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, list[States], Tensor | None]:
        """Process all tokens at once or, with input feeding, one by one."""
        drives = self.drives(embedded, constant)
        if feed is None:
            output, states = self.stack(drives, states, mask)
            queries = output[..., : self.hidden].transpose(0, 1)
            contexts = None if attend is None else attend(queries, 0).transpose(0, 1)
            return self._read(output, contexts), states, None
        outputs = []
        for time, drive in enumerate(drives.unbind(0)):
            output, states = self.stack.step(drive + self.stack.drive(feed, 1), states)
            query = output[:, : self.hidden].unsqueeze(1)
            feed = self._read(output, None if attend is None else attend(query, time).squeeze(1))
            outputs.append(feed)
        return torch.stack(outputs), states, outputs[-1]

    def _read(self, output: Tensor, context: Tensor | None) -> Tensor:
        return torch.tanh(self.readout(output if context is None else torch.cat((context, output), -1)))


class TutorialConfig(Config):
    """The attention query for c_t is [y_{t−1}; h_{t−1}]. State and read-out:
    h_t = f(h_{t−1}, relu(W[y_{t−1}; c_t] + b)).

    The decoder of PyTorch's tutorial "NLP From Scratch", on which the homework of deck 003 is based. The tutorial
    computes scores with a linear layer over a fixed number of positions. This wiring supports all scorers.
    """

    kind: Literal["tutorial"] = "tutorial"

    def query_width(self, width: int, hidden: int) -> int:
        """Return the width of the attention queries."""
        return width + hidden

    def processes_tokens_singly(self, attends: bool) -> bool:
        """See `BahdanauConfig`."""
        return attends

    def build(self, sizes: WiringSizes) -> Wiring:
        """Build the module."""
        return Tutorial(sizes)


class Tutorial(Wiring):
    """Attend, combine context and embedding, then advance the recurrence.

    Without attention, the input of the recurrence is relu(Wy_{t−1} + b). If H differs from d, a linear layer follows.
    """

    def __init__(self, sizes: WiringSizes) -> None:
        super().__init__()
        self.combine = nn.Linear(sizes.width + sizes.context, sizes.width)
        self.stack = sizes.stack(sizes.width)
        self.readout = _linear_readout(self.stack.output_width, sizes.width)

    def forward(
        self,
        embedded: Tensor,
        constant: Tensor | None,
        attend: Attend | None,
        states: list[States],
        feed: Tensor | None,
        *,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, list[States], Tensor | None]:
        """Process tokens one by one or, without attention, all at once."""
        if attend is None:
            output, states = self.stack(self.drives(torch.relu(self.combine(embedded)), constant), states, mask)
            return self.readout(output), states, feed
        outputs = []
        for time, token in enumerate(embedded.unbind(0)):
            context = attend(torch.cat((token, states[-1][0]), 1).unsqueeze(1), time).squeeze(1)
            combined = torch.relu(self.combine(torch.cat((token, context), 1)))
            output, states = self.stack.step(self.drives(combined, constant), states)
            outputs.append(output)
        return self.readout(torch.stack(outputs)), states, feed


class GNMTConfig(Config):
    """The attention query for c_t is h¹_{t−1}, the state of the lowest layer. State of layer k:
    h^k_t = f(h^k_{t−1}, [x^{k−1}_t; c_t]) with x⁰_t = y_{t−1}. Read-out: x^K_t of the last layer K.

    Wu et al. 2016, section 3. Only the lowest layer processes tokens one by one. The attention of Zhou et al. 2016
    differs in that only the lowest layer has the input c_t: `wiring: {kind: gnmt, context: first}`.
    """

    kind: Literal["gnmt"] = "gnmt"
    context: Literal["all", "first"] = Field(
        "all", description="Layers with the context vector c_t as an input: all (Wu et al.) or first (Zhou et al.)."
    )

    def query_width(self, width: int, hidden: int) -> int:
        """Return the width of the attention queries."""
        return hidden

    def processes_tokens_singly(self, attends: bool) -> bool:
        """See `BahdanauConfig`; False, because the layers with experts below them process all tokens at once."""
        return False

    def build(self, sizes: WiringSizes) -> Wiring:
        """Build the module."""
        return GNMT(sizes, self.context == "all")


class GNMT(Wiring):
    """Run the lowest layer and the attention token by token, then the other layers on all tokens.

    Without attention, only the first input of each layer remains. If the width of the output differs from d, a linear
    layer follows.
    """

    def __init__(self, sizes: WiringSizes, context_in_all_layers: bool) -> None:
        super().__init__()
        self.context_in_all_layers = context_in_all_layers
        self.stack = sizes.stack(
            sizes.width,
            *([sizes.context] if sizes.context else []),
            context=sizes.context if context_in_all_layers else 0,
        )
        self.readout = _linear_readout(self.stack.output_width, sizes.width)

    def forward(
        self,
        embedded: Tensor,
        constant: Tensor | None,
        attend: Attend | None,
        states: list[States],
        feed: Tensor | None,
        *,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, list[States], Tensor | None]:
        """Process tokens one by one in the lowest layer and all at once in the others."""
        drives = self.drives(embedded, constant)
        if attend is None:
            output, states = self.stack(drives, states, mask)
            return self.readout(output), states, feed
        lowest, hiddens, lowest_drives, contexts = states[0], [], [], []
        for time, drive in enumerate(drives.unbind(0)):
            context = attend(lowest[0].unsqueeze(1), time).squeeze(1)
            drive = drive + self.stack.drive(context, 1)
            lowest = self.stack.step_lowest(drive, lowest)
            hiddens.append(lowest[0])
            lowest_drives.append(drive)
            contexts.append(context)
        output, upper = self.stack.run_upper(
            torch.stack(hiddens),
            torch.stack(lowest_drives),
            states[1:],
            torch.stack(contexts) if self.context_in_all_layers else None,
            mask,
        )
        return self.readout(output), [lowest, *upper], feed


def _linear_readout(output: int, width: int) -> nn.Module:
    return nn.Identity() if output == width else nn.Linear(output, width)


WiringConfig = Annotated[BahdanauConfig | LuongConfig | TutorialConfig | GNMTConfig, Field(discriminator="kind")]
