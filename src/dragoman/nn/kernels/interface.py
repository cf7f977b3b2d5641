"""`Kernels`: operations of training that are computed in one pass over memory, on a GPU or on a CPU."""

from typing import NamedTuple, Protocol

from torch import Tensor


class Geometry(NamedTuple):
    """The sizes of an attention over packed rows.

    longest: upper bounds of the numbers of queries and keys of a sentence. heads: h. key_width, value_width: d_k, d_v.
    scale: factor of the scores. causal: whether a token attends only to itself and to earlier ones.
    """

    longest: tuple[int, int]
    heads: int
    key_width: int
    value_width: int
    scale: float
    causal: bool


class Rotation(NamedTuple):
    """The rotation of vectors by their positions (Su et al. 2021): e^(jθ), (L, d_k/2) complex64, and positions (N,)."""

    table: Tensor
    positions: Tensor


class DropoutDraw(NamedTuple):
    """Random numbers of a dropout: hashes of the seed and an element's index.

    They are computed again in the backward pass, so that no mask is stored.
    seed: (1,) int64. rate, and a factor on it (scalar), both on the device except the rate.
    """

    seed: Tensor
    rate: float
    factor: Tensor


class NormInputs(NamedTuple):
    """States (…, d), the result of a sublayer of the same shape or None, gain (d,) and offset (d,)."""

    states: Tensor
    result: Tensor | None
    weight: Tensor
    bias: Tensor


class NormResults(NamedTuple):
    """The rounded sums (…, d), their norms (…, d), and means and 1/√(variance + ε) of all rows in float32.

    Without a result of a sublayer, `sums` are the states.
    """

    sums: Tensor
    out: Tensor
    means: Tensor
    deviations: Tensor


class Kernels(Protocol):
    """The operations. All tensors but views of heads are contiguous; results are written to tensors of the caller."""

    def attend(
        self,
        inputs: tuple[Tensor, Tensor, Tensor],
        out: Tensor,
        starts: tuple[Tensor, Tensor],
        geometry: Geometry,
        /,
    ) -> None:
        """Write the contexts of all heads to out (N, h · d_v), and zeros at filler.

        inputs: queries (N, h · d_k), keys (M, h · d_k), values (M, h · d_v), views of columns of contiguous tensors.
        starts: see `packed_attention`.
        """
        ...

    def differentiate_attention(
        self,
        inputs: tuple[Tensor, Tensor, Tensor],
        gradient: Tensor,
        gradients: tuple[Tensor, Tensor, Tensor],
        starts: tuple[Tensor, Tensor],
        geometry: Geometry,
        /,
    ) -> None:
        """Write the gradients with respect to queries, keys and values. gradient: that with respect to `out`."""
        ...

    def rotate(self, vectors: Tensor, rotation: Rotation, heads: tuple[int, int], inverse: bool, /) -> None:
        """Rotate the first vectors of each row of (N, n), in place. heads: number and width of the vectors.

        inverse: rotate back, which is also how a gradient is rotated.
        """
        ...

    def drop(self, values: Tensor, out: Tensor, draw: DropoutDraw, /) -> None:
        """Write dropout(values)."""
        ...

    def add(self, states: Tensor, result: Tensor, out: Tensor, draw: DropoutDraw, /) -> None:
        """Write states + dropout(result)."""
        ...

    def normalise(self, inputs: NormInputs, results: NormResults, epsilon: float, draw: DropoutDraw, /) -> None:
        """Write the layer normalisation of states + dropout(result)."""
        ...

    def differentiate_norm(
        self,
        gradient: Tensor,
        saved: tuple[Tensor, Tensor, Tensor, Tensor],
        gradients: tuple[Tensor, Tensor | None, Tensor],
        draw: DropoutDraw,
        /,
    ) -> None:
        """Write the gradients with respect to the states, to the result if it differs, and to gain and offset (2, d).

        saved: sums, gain, means, deviations.
        """
        ...

    def sum_rows(self, gradient: Tensor, activations: Tensor | None, change: Tensor, sums: Tensor, /) -> None:
        """Write the sum of the rows of a gradient (N, n) to sums (n,).

        activations: those of a ReLU, (N, n); the gradient is zero where they are, and written to `change`.
        """
        ...

    def differentiate_logits(
        self, logits: Tensor, labels: Tensor, kept: Tensor, losses: tuple[Tensor, Tensor], smoothing: float, /
    ) -> None:
        """See `cross_entropy.differentiate_logits`."""
        ...
