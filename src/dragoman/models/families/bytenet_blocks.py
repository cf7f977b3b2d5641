"""The residual blocks of ByteNet (Kalchbrenner et al. 2016, section 3.6 and figure 3), and their settings."""

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.settings.config import Config
from dragoman.models.families.family import SideContext
from dragoman.nn.convolution import Convolution
from dragoman.nn.dropout import Dropout
from dragoman.nn.normalisation import LayerNormConfig, NormConfig

Dilation = Annotated[int, Field(ge=1, le=4096)]
BlockKind = Literal["relu", "multiplicative"]


class BlockSettings(Config):
    """Settings of the blocks, which the encoder and the decoder share."""

    kind: Literal["bytenet"] = "bytenet"
    layers: int = Field(5, ge=1, description="Number of residual blocks (paper: 30).")
    kernel: int = Field(3, ge=1, le=1024, description="Kernel size of the convolutions, in tokens (paper: 3).")
    dilations: tuple[Dilation, ...] = Field(
        (1, 2, 4, 8, 16),
        min_length=1,
        description="Dilations of the layers, in order. They are repeated if there are more layers.",
    )
    inner: int | None = Field(None, ge=1, description="Width inside a block; null: half the model width (paper).")
    block: BlockKind = Field(
        "relu",
        description="Non-linearity of the blocks: relu, as in the paper's translation model, or multiplicative, as in "
        "its language model.",
    )
    normalisation: NormConfig = Field(LayerNormConfig(), description="Normalisation before each ReLU.")

    def build_block(self, layer: int, context: SideContext) -> "Block":
        """Build block number `layer`, counted from 0."""
        return BLOCKS[self.block](self, layer, context)


class Block(nn.Module):
    """A residual block: projection d → inner, dilated convolution, projection inner → d.

    Subclasses determine the operations after the convolution. norm_count: number of normalisations. channels: output
    width of the convolution, as a multiple of its input width. gain: see `Convolution`.
    """

    norm_count: ClassVar[int]
    channels: ClassVar[int]
    gain: ClassVar[float]

    def __init__(self, config: BlockSettings, layer: int, context: SideContext) -> None:
        super().__init__()
        width = context.width
        inner = config.inner or max(1, width // 2)
        dilation = config.dilations[layer % len(config.dilations)]
        sizes = (width, inner, inner)[: self.norm_count]
        self.norms = nn.ModuleList(config.normalisation.build(size) for size in sizes)
        self.narrow = nn.Linear(width, inner)
        self.convolution = Convolution(inner, self.channels * inner, config.kernel, dilation, gain=self.gain)
        self.widen = nn.Linear(inner, width)
        self.dropout = Dropout(context.dropout.residual)

    def encode(self, states: Tensor, mask: Tensor) -> Tensor:
        """Apply the block with context on both sides: states (B, S, d) → (B, S, d)."""
        narrow = self._reduce(states, mask)
        convolved = self.convolution.centred(narrow, mask)
        return states + self.dropout(self.widen(self.activate(convolved, narrow, mask)))  # type: ignore[no-any-return]

    def decode(
        self, states: Tensor, past: Tensor | None, mask: Tensor | None, real: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Apply the block with context on the left: states (R, T, d) → (R, T, d), and `past` for the next call.

        past: (R, (kernel − 1)·dilation, inner). real: the mask of `Convolution.causal`.
        """
        narrow = self._reduce(states, mask)
        convolved, past = self.convolution.causal(narrow, past, real)
        return states + self.dropout(self.widen(self.activate(convolved, narrow, mask))), past

    def _reduce(self, states: Tensor, mask: Tensor | None) -> Tensor:
        narrow = self.narrow(functional.relu(self.norms[0](states, mask)))
        return functional.relu(self.norms[1](narrow, mask))

    def activate(self, convolved: Tensor, narrow: Tensor, mask: Tensor | None) -> Tensor:
        """Return the input (B, S, inner) of the last projection.

        convolved: output of the convolution (B, S, channels·inner). narrow: its input (B, S, inner).
        """
        raise NotImplementedError


class ReLUBlock(Block):
    """h + W₂ ReLU(LN(conv(ReLU(LN(W₁ ReLU(LN(h))))))): a norm and a ReLU before each of the three operations."""

    norm_count: ClassVar[int] = 3
    channels: ClassVar[int] = 1
    gain: ClassVar[float] = 2.0  # for ReLU (He et al. 2015)

    def activate(self, convolved: Tensor, narrow: Tensor, mask: Tensor | None) -> Tensor:
        """Apply a norm and a ReLU."""
        return functional.relu(self.norms[2](convolved, mask))


class MultiplicativeBlock(Block):
    """h + W₂ MU(MU_conv(ReLU(LN(W₁ ReLU(LN(h)))))), with a multiplicative unit of the convolution and one of kernel 1.

    The residual multiplicative block of Kalchbrenner et al. 2016b ("Video Pixel Networks").
    """

    norm_count: ClassVar[int] = 2
    channels: ClassVar[int] = 4
    gain: ClassVar[float] = 1.0

    def __init__(self, config: BlockSettings, layer: int, context: SideContext) -> None:
        super().__init__(config, layer, context)
        inner = self.narrow.out_features
        self.pointwise = nn.Linear(inner, self.channels * inner)

    def activate(self, convolved: Tensor, narrow: Tensor, mask: Tensor | None) -> Tensor:
        """Apply both multiplicative units."""
        first = multiplicative_unit(narrow, convolved)
        return multiplicative_unit(first, self.pointwise(first))


def multiplicative_unit(states: Tensor, gates: Tensor) -> Tensor:
    """Return σ(g₁) ⊙ tanh(σ(g₂) ⊙ h + σ(g₃) ⊙ tanh(g₄)) for states h (…, n) and gates [g₁; g₂; g₃; g₄] (…, 4n)."""
    output, keep, update, new = gates.chunk(4, -1)
    return torch.sigmoid(output) * torch.tanh(torch.sigmoid(keep) * states + torch.sigmoid(update) * torch.tanh(new))


BLOCKS: dict[str, type[Block]] = {"relu": ReLUBlock, "multiplicative": MultiplicativeBlock}
