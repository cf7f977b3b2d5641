"""Stacked recurrent layers: left-to-right for decoders, in one or both directions for encoders."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from dragoman.nn.dropout import Dropout
from dragoman.nn.recurrent.cell import Cell, States
from dragoman.nn.recurrent.connections import PLAIN, Connections
from dragoman.nn.recurrent.experts import BuildExperts, experts_between

Directions = bool | Literal["first", "interleaved"]
"""True: both directions in each layer. False: left-to-right. first: both directions in the first layer only.

interleaved: two stacks whose layers alternate between the directions; the first layers run in opposite directions.
"""


class Stack(nn.Module):
    """Left-to-right layers with dropout between them. inputs: widths of the inputs of the first layer.

    context: width of an additional input of every other layer; 0: none. experts: builds experts between layers.
    output_width: width of the output.
    """

    def __init__(
        self,
        cell: type[Cell],
        inputs: Sequence[int],
        hidden: int,
        layers: int,
        *,
        dropout: float,
        connections: Connections = PLAIN,
        context: int = 0,
        experts: BuildExperts | None = None,
    ) -> None:
        super().__init__()
        self.connections = connections
        self.forwarded = connections.forwarded_width(cell.gates * hidden)
        self.output_width = connections.output_width(hidden, cell.gates * hidden)
        upper = [width for width in (hidden, self.forwarded, context) if width]
        self.layers = nn.ModuleList(cell(upper if layer else inputs, hidden) for layer in range(layers))
        self.experts = experts_between(experts, [hidden] * layers)
        self.dropout = Dropout(dropout)

    def drive(self, inputs: Tensor, index: int = 0) -> Tensor:
        """Return the contribution (…, gates·H) of input number `index` (…, width) to the drive of the first layer."""
        return self.layers[0].drive(inputs, index)  # type: ignore[operator,no-any-return]

    def forward(
        self, drive: Tensor, states: Sequence[States], mask: Tensor | None = None
    ) -> tuple[Tensor, list[States]]:
        """Run all layers of a stack without context; returns the output (T, R, output_width) and each layer's states.

        drive: drive of the first layer (T, R, gates·H). states: initial states of each layer (R, H). mask: (T, R) bool,
        False at padding, for experts.
        """
        steps = self.layers[0](drive, states[0])
        outputs, upper = self.run_upper(steps[0], drive, states[1:], mask=mask)
        return outputs, [tuple(step[-1] for step in steps), *upper]

    def step(self, drive: Tensor, states: Sequence[States]) -> tuple[Tensor, list[States]]:
        """Process one token; returns the output (R, output_width) and the next states of each layer.

        drive: drive of the first layer (R, gates·H).
        """
        after = [self.step_lowest(drive, states[0])]
        outputs = self._mix(after[0][0], 1)
        for number, (layer, before) in enumerate(zip(self.layers[1:], states[1:], strict=True), 2):
            drive = _drive(layer, self._upper_inputs(outputs, drive))
            after.append(tuple(state.squeeze(0) for state in layer(drive.unsqueeze(0), before)))
            outputs = after[-1][0] + outputs if self.connections.is_residual(number) else after[-1][0]
            outputs = self._mix(outputs, number)
        return self._output(outputs, drive), after

    def step_lowest(self, drive: Tensor, states: States) -> States:
        """Process one token in the first layer; returns its next states (R, H). drive: (R, gates·H)."""
        return tuple(state.squeeze(0) for state in self.layers[0](drive.unsqueeze(0), states))

    def run_upper(
        self,
        hidden: Tensor,
        drive: Tensor,
        states: Sequence[States],
        context: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, list[States]]:
        """Run all layers but the first; returns the output (T, R, output_width) and the final states of each layer.

        hidden: h of the first layer (T, R, H). drive: drive of the first layer (T, R, gates·H). states: initial states
        of the other layers. context: the additional input of the other layers (T, R, context), or None. mask: (T, R)
        bool, False at padding, for experts.
        """
        outputs, after = self._mix(hidden, 1, mask), []
        for number, (layer, before) in enumerate(zip(self.layers[1:], states, strict=True), 2):
            drive = _drive(layer, self._upper_inputs(outputs, drive, context))
            steps = layer(drive, before)
            outputs = steps[0] + outputs if self.connections.is_residual(number) else steps[0]
            outputs = self._mix(outputs, number, mask)
            after.append(tuple(step[-1] for step in steps))
        return self._output(outputs, drive), after

    def _mix(self, outputs: Tensor, number: int, mask: Tensor | None = None) -> Tensor:
        """Apply the experts after layer `number`, counted from 1, if there are any: (…, H) → (…, H)."""
        key = str(number)
        return self.experts[key](outputs, mask) if key in self.experts else outputs

    def _upper_inputs(self, outputs: Tensor, drive: Tensor, context: Tensor | None = None) -> list[Tensor]:
        """Return the inputs of a layer above one with these outputs (…, H) and this drive (…, gates·H)."""
        inputs = [self.dropout(outputs)]
        if self.forwarded:
            inputs.append(drive[..., : self.forwarded])
        if context is not None:
            inputs.append(context)
        return inputs

    def _output(self, outputs: Tensor, drive: Tensor) -> Tensor:
        return torch.cat((outputs, drive), -1) if self.forwarded else outputs


class _Stream(NamedTuple):
    """The output (T, R, ·) of a layer in one direction, and its drive (T, R, gates·H) if the next layer needs it."""

    outputs: Tensor
    drive: Tensor | None = None


class Reader(nn.Module):
    """Recurrent layers over whole sentences, with dropout between them.

    A layer reads the concatenated outputs of all directions of the previous layer or, if the directions are
    interleaved, the output of the opposite direction. experts: builds experts between layers, which process the
    concatenated outputs of all directions. output_width: the width of the output, for two directions twice that of one
    (left-to-right first).
    """

    def __init__(
        self,
        cell: type[Cell],
        width: int,
        hidden: int,
        layers: int,
        *,
        bidirectional: Directions,
        dropout: float,
        connections: Connections = PLAIN,
        experts: BuildExperts | None = None,
    ) -> None:
        super().__init__()
        self.connections, self.interleaved = connections, bidirectional == "interleaved"
        self.forwarded = connections.forwarded_width(cell.gates * hidden)
        first_only = bidirectional == "first"
        directions = [1 if bidirectional is False or (first_only and layer) else 2 for layer in range(layers)]
        sources = [1 if self.interleaved else count for count in directions[:-1]]
        upper = [[count * part for part in (hidden, self.forwarded) if part] for count in sources]
        inputs = [[width], *upper]
        self.output_width = directions[-1] * connections.output_width(hidden, cell.gates * hidden)
        self.forward_layers = nn.ModuleList(cell(widths, hidden) for widths in inputs)
        self.backward_layers = nn.ModuleList(
            cell(widths, hidden) for widths, count in zip(inputs, directions, strict=True) if count == 2
        )
        self.experts = experts_between(experts, [count * hidden for count in directions])
        self.dropout = Dropout(dropout)

    def forward(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Encode inputs (B, S, width); mask: (B, S) bool, False at padding, which must follow the text.

        Returns the states (B, S, output_width) and the final states (B, output_width) of the last layer. Final states
        are those after the last token (left-to-right) and after the first token (right-to-left); they are zero for an
        empty text.
        """
        rows, length = mask.shape
        lengths = mask.sum(1)
        positions = torch.arange(length, device=mask.device)[:, None]
        mirror = torch.where(positions < lengths, lengths - 1 - positions, positions) * rows
        mirror = (mirror + torch.arange(rows, device=mask.device)).flatten()
        streams = [_Stream(inputs.transpose(0, 1).contiguous())]
        for number in range(len(self.forward_layers)):
            streams = self._mix(number, self._run_layer(number, streams, mirror), mask)
        sides = [
            stream.outputs if stream.drive is None else torch.cat((stream.outputs, stream.drive), 2)
            for stream in streams
        ]
        last = (lengths - 1).clamp_min(0)[None, :, None]
        ends = [last, torch.zeros_like(last)]
        finals = [side.gather(0, end.expand(1, rows, side.size(2)))[0] for side, end in zip(sides, ends, strict=False)]
        outputs = sides[0] if len(sides) == 1 else torch.cat(sides, 2)
        return outputs.transpose(0, 1), torch.cat(finals, 1) * (lengths > 0)[:, None]

    def _run_layer(self, number: int, below: list[_Stream], mirror: Tensor) -> list[_Stream]:
        """Run layer `number`, counted from 0, in each of its directions. below: the outputs of the previous layer."""
        cells = [self.forward_layers[number], *self.backward_layers[number : number + 1]]
        if self.interleaved and number:
            below = below[::-1]
            inputs = [self._inputs([stream], number) for stream in below]
        else:
            inputs = [self._inputs(below, number)] * len(cells)
        is_residual = self.connections.is_residual(number + 1) and len(below) == len(cells)
        streams = []
        for direction, (cell, parts) in enumerate(zip(cells, inputs, strict=True)):
            if direction:
                parts = [_Permuted.apply(part, mirror) for part in parts]  # type: ignore[no-untyped-call]
            drive = _drive(cell, parts)
            outputs = _run(cell, drive)
            if direction:
                outputs = _Permuted.apply(outputs, mirror)  # type: ignore[no-untyped-call]
            if is_residual:
                outputs = outputs + below[direction].outputs
            if not self.forwarded:
                streams.append(_Stream(outputs))
            else:
                natural = _Permuted.apply(drive, mirror) if direction else drive  # type: ignore[no-untyped-call]
                streams.append(_Stream(outputs, natural))
        return streams

    def _mix(self, number: int, streams: list[_Stream], mask: Tensor) -> list[_Stream]:
        """Apply the experts after layer `number`, counted from 0, if there are any. mask: (B, S)."""
        key = str(number + 1)
        if key not in self.experts:
            return streams
        mixed = self.experts[key](torch.cat([stream.outputs for stream in streams], 2), mask.t())
        parts = mixed.chunk(len(streams), 2)
        return [stream._replace(outputs=part) for stream, part in zip(streams, parts, strict=True)]

    def _inputs(self, below: Sequence[_Stream], number: int) -> list[Tensor]:
        """Return the inputs of layer `number` that reads the streams `below`: their outputs, and parts of drives."""
        outputs = below[0].outputs if len(below) == 1 else torch.cat([stream.outputs for stream in below], 2)
        if number == 0:
            return [outputs]
        forwarded = [stream.drive[..., : self.forwarded] for stream in below if stream.drive is not None]
        return [self.dropout(outputs), *([torch.cat(forwarded, 2)] if forwarded else [])]


def _drive(cell: nn.Module, inputs: Sequence[Tensor]) -> Tensor:
    """Return the drive (…, gates·H) of a cell from all its inputs (…, ·)."""
    assert isinstance(cell, Cell)
    drive = cell.drive(inputs[0])
    for index, each in enumerate(inputs[1:], 1):
        drive = drive + cell.drive(each, index)
    return drive


def _run(cell: nn.Module, drive: Tensor) -> Tensor:
    """Run a cell from zero initial states; returns h (T, R, H)."""
    assert isinstance(cell, Cell)
    zeros = cell.recurrent_weight.new_zeros(drive.size(1), cell.hidden)
    return cell(drive, (zeros,) * cell.components)[0]  # type: ignore[no-any-return]


class _Permuted(torch.autograd.Function):
    """Permute time steps and rows (T, R, ·) by a self-inverse permutation, which the gradient therefore shares.

    The gradient of torch's index_select accumulates row by row, which is slow on a CPU.
    """

    @staticmethod
    def forward(context: Any, values: Tensor, rows: Tensor) -> Tensor:
        context.save_for_backward(rows)
        return values.flatten(0, 1).index_select(0, rows).view_as(values)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (rows,) = context.saved_tensors
        gradient = gradients[0]
        return gradient.flatten(0, 1).index_select(0, rows).view_as(gradient), None
