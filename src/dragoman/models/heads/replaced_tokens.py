"""The head that detects replaced tokens, with which ELECTRA pre-trains an encoder (Clark et al. 2020)."""

from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from dragoman.base.settings.config import Config
from dragoman.models.interface import Memory
from dragoman.nn.feedforward import FUNCTIONS
from dragoman.nn.precision import to_at_least_float32


class ReplacedTokenHeadConfig(Config):
    """Whether each token was replaced: the logit w·gelu(W h_i + b) + c of its state h_i (Clark et al. 2020, section 2).

    The generator of the model draws the replacements. YAML: `head: {kind: replaced_token_detection}`.
    """

    kind: Literal["replaced_token_detection"] = "replaced_token_detection"
    activation: Literal["relu", "gelu", "gelu_tanh", "swish"] = Field(
        "gelu", description="Activation of the layer before the output layer."
    )

    def build(self, width: int, table: nn.Embedding) -> "ReplacedTokenHead":
        """Build the head for states of this width. table: the token vectors (V, d), which this head does not use."""
        return ReplacedTokenHead(width, self)


class ReplacedTokenHead(nn.Module):
    """Maps the state of each token to the logit of "replaced"."""

    timed = (("forward", "head"),)

    def __init__(self, width: int, config: ReplacedTokenHeadConfig) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, width)
        self.activation = FUNCTIONS[config.activation]
        self.output = nn.Linear(width, 1)

    def forward(self, memory: Memory) -> Tensor:
        """Return the logits (B, S) for states (B, S, d), in float32 or wider."""
        return to_at_least_float32(self.output(self.activation(self.hidden(memory.states)))).squeeze(2)
