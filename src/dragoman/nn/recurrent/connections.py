"""Connections between stacked recurrent layers: plain, residual and fast-forward."""

from typing import Annotated, Literal

from pydantic import Field

from dragoman.base.settings.config import Config


class Connections(Config):
    """The base class of connections.

    In the formulas, h^k is the hidden state of layer k, x^k is its output, and f^k is its drive (see `Cell`).
    """

    def check(self, layers: int) -> None:
        """Raise ValueError if these connections have no effect in a stack of `layers` layers."""

    def is_residual(self, layer: int) -> bool:
        """Return whether the input of layer number `layer`, counted from 1, is added to its hidden state."""
        return False

    def forwarded_width(self, drive_width: int) -> int:
        """Return the number of leading components of f^k, of width `drive_width`, that are an input of layer k + 1."""
        return 0

    def output_width(self, hidden: int, drive_width: int) -> int:
        """Return the width of the output of a stack with states of width `hidden`."""
        return hidden


class PlainConfig(Connections):
    """x^k = h^k is the input of layer k + 1."""

    kind: Literal["plain"] = "plain"


PLAIN = PlainConfig()


class ResidualConfig(Connections):
    """x^k = h^k + x^(k−1) (Wu et al. 2016, equation 6). The input is added without dropout.

    In the paper, the third layer is the first with a residual connection. A layer whose input is wider than its states
    has none, such as the second layer of an encoder in which only the first layer is bidirectional.
    """

    kind: Literal["residual"] = "residual"
    first_layer: int = Field(
        2, ge=2, description="Number of the first layer with a residual connection (paper: 3), counted from 1."
    )

    def check(self, layers: int) -> None:
        """Raise ValueError if the stack ends below the first residual connection."""
        if layers < self.first_layer:
            raise ValueError(
                f"residual connections begin at layer {self.first_layer}, but there "
                f"{'is only 1 layer' if layers == 1 else f'are only {layers} layers'}: "
                "set more layers, or connections: {kind: plain}"
            )

    def is_residual(self, layer: int) -> bool:
        """Return whether `layer` is not below the first layer with a residual connection."""
        return layer >= self.first_layer


class FastForwardConfig(Connections):
    """f^k = W[h^(k−1); the first half of f^(k−1)] + b, with output [h^K; f^K] of the last layer K (Zhou et al. 2016).

    The path along f has no recurrence and no activation, so gradients reach low layers of a deep stack. As in the
    paper, dropout applies to h only, and the first half of f suffices. The half depends on the order of the gates,
    which is that of `Cell`. The paper's LSTM also has peephole connections, which dragoman's cells do not have.
    """

    kind: Literal["fast_forward"] = "fast_forward"

    def forwarded_width(self, drive_width: int) -> int:
        """Return half the width of the drive."""
        return drive_width // 2

    def output_width(self, hidden: int, drive_width: int) -> int:
        """Return the width of [h; f]."""
        return hidden + drive_width


ConnectionsConfig = Annotated[PlainConfig | ResidualConfig | FastForwardConfig, Field(discriminator="kind")]
