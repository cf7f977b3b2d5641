"""Stacked recurrent layers: left-to-right for decoders, unidirectional or bidirectional for encoders."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.nn.dropout import Dropout
from dragoman.nn.recurrent.cell import Cell, States


class Stack(nn.Module):
    """Left-to-right layers with dropout between them. inputs: widths of the inputs of the first layer."""

    def __init__(self, cell: type[Cell], inputs: Sequence[int], hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(cell([hidden] if layer else inputs, hidden) for layer in range(layers))
        self.dropout = Dropout(dropout)

    def drive(self, inputs: Tensor, index: int = 0) -> Tensor:
        """Return the contribution (…, gates·H) of input number `index` (…, width) to the drive of the first layer."""
        return self.layers[0].drive(inputs, index)  # type: ignore[operator,no-any-return]

    def forward(self, drive: Tensor, states: Sequence[States]) -> tuple[Tensor, list[States]]:
        """Run all layers; returns h of the last layer (T, R, H) and the final states of each layer.

        drive: drive of the first layer (T, R, gates·H). states: initial states of each layer (R, H).
        """
        outputs, after = drive, []
        for number, (layer, before) in enumerate(zip(self.layers, states, strict=True)):
            if number:
                drive = layer.drive(self.dropout(outputs))  # type: ignore[operator]
            steps = layer(drive, before)
            outputs = steps[0]
            after.append(tuple(step[-1] for step in steps))
        return outputs, after

    def step(self, drive: Tensor, states: Sequence[States]) -> list[States]:
        """Process one token; returns the next states of each layer. drive: drive of the first layer (R, gates·H)."""
        after: list[States] = []
        for number, (layer, before) in enumerate(zip(self.layers, states, strict=True)):
            if number:
                drive = layer.drive(self.dropout(after[-1][0]))  # type: ignore[operator]
            after.append(tuple(state.squeeze(0) for state in layer(drive.unsqueeze(0), before)))
        return after


class Reader(nn.Module):
    """Recurrent layers over whole sentences, with dropout between them.

    The input of each bidirectional layer is the concatenation of both directions of the previous layer. output_width:
    H, or 2H for two directions (left-to-right first).
    """

    def __init__(self, cell: type[Cell], width: int, hidden: int, layers: int, both: bool, dropout: float) -> None:
        super().__init__()
        self.output_width = hidden * (2 if both else 1)
        widths = [width] + [self.output_width] * (layers - 1)
        self.forward_layers = nn.ModuleList(cell([each], hidden) for each in widths)
        self.backward_layers = nn.ModuleList(cell([each], hidden) for each in widths if both)
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
        outputs = inputs.transpose(0, 1).contiguous()
        for number, layer in enumerate(self.forward_layers):
            if number:
                outputs = self.dropout(outputs)
            ends = [_run(layer, outputs)]
            if self.backward_layers:
                mirrored = _run(self.backward_layers[number], _Permuted.apply(outputs, mirror))  # type: ignore[no-untyped-call]
                ends.append(mirrored)
                outputs = torch.cat((ends[0], _Permuted.apply(mirrored, mirror)), 2)  # type: ignore[no-untyped-call]
            else:
                outputs = ends[0]
        last = (lengths - 1).clamp_min(0)
        indices = last[None, :, None].expand(1, rows, ends[0].size(2))
        final = torch.cat([end.gather(0, indices)[0] for end in ends], 1) * (lengths > 0)[:, None]
        return outputs.transpose(0, 1), final


def _run(cell: nn.Module, inputs: Tensor) -> Tensor:
    """Run a cell from zero initial states; returns h (T, R, H)."""
    assert isinstance(cell, Cell)
    zeros = cell.recurrent_weight.new_zeros(inputs.size(1), cell.hidden)
    return cell(cell.drive(inputs), (zeros,) * cell.components)[0]  # type: ignore[no-any-return]


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
