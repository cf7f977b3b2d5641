"""Mixtures of experts between stacked recurrent layers (Shazeer et al. 2017)."""

from collections.abc import Callable

from pydantic import Field
from torch import Tensor, nn

from dragoman.nn.dropout import Dropout
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.mixture import ExpertsConfig

BuildExperts = Callable[[int, int], nn.Module | None]
"""Builds the module after a layer from its number, counted from 1, and the width of its output; None: no module."""


class LayerExpertsConfig(ExpertsConfig):
    """x^k + dropout(y(x^k)) is the input of layer k + 1, with the experts' result y for the output x^k of layer k.

    Each expert has one hidden layer with ReLU. Shazeer et al. 2017, section 5.3, has three LSTM layers with experts
    after the second in the encoder, and two layers with experts after the first in the decoder.

    YAML: `encoder: {kind: recurrent, layers: 3, experts: {after_layers: [2], feedforward: 2048, noise: {}}}`
    """

    after_layers: tuple[int, ...] = Field(
        (1,), min_length=1, description="Numbers of the layers with experts after them, counted from 1 (paper: 2, 1)."
    )
    feedforward: int = Field(2048, ge=1, description="Inner width of each expert (paper: 2048).")

    def check_layers(self, layers: int) -> None:
        """Raise ValueError if the experts are not between two layers of a stack of `layers` layers."""
        if not all(1 <= layer < layers for layer in self.after_layers):
            after = ", ".join(map(str, self.after_layers))
            raise ValueError(
                f"experts are between two layers, but experts.after_layers is [{after}] and layers is {layers}: set "
                "more layers, or numbers below that of the last layer"
            )

    def build_after(self, layer: int, width: int, *, residual: float, feedforward: float) -> "ExpertLayer | None":
        """Build the experts after layer number `layer`, whose output has this width; None if there are none.

        residual, feedforward: dropout rates.
        """
        if layer not in self.after_layers:
            return None
        mixture = self.build(width, lambda: FeedForward(width, self.feedforward, "relu", feedforward))
        return ExpertLayer(mixture, residual)


class ExpertLayer(nn.Module):
    """A mixture of experts with dropout inside a residual connection."""

    def __init__(self, mixture: nn.Module, dropout: float) -> None:
        super().__init__()
        self.mixture, self.dropout = mixture, Dropout(dropout)

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return x + dropout(y(x)): (…, width) → (…, width). mask: (…) bool, False at padding."""
        return states + self.dropout(self.mixture(states, mask))  # type: ignore[no-any-return]


def experts_between(build: BuildExperts | None, widths: list[int]) -> nn.ModuleDict:
    """Build the experts of a stack, by the number of the layer before them. widths: the width of each layer's output.

    There are none after the last layer.
    """
    built = {} if build is None else {layer: build(layer, width) for layer, width in enumerate(widths[:-1], 1)}
    return nn.ModuleDict({str(layer): module for layer, module in built.items() if module is not None})
