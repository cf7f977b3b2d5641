"""`NativeEncoder`: the encoder of a model with a head, with packed weights, in compiled code."""

import ctypes
from contextlib import nullcontext
from threading import Lock

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dragoman.base.cancellation import active_cancellation, check_cancelled
from dragoman.base.errors import DataError, ModelError
from dragoman.engines.native.embeddings import PositionTables, UnsupportedModelError, group_numbers
from dragoman.engines.native.packing import Packing, Precision, check_finite
from dragoman.models.families.causal import CausalEncoder
from dragoman.models.families.transformer import TransformerDecoder, TransformerEncoder
from dragoman.models.interface import Memory
from dragoman.models.kinds.encoder_only import EncoderOnly
from dragoman.native import library
from dragoman.native.build import best_library, compiled_library
from dragoman.native.compiler import InstructionSet

_GROUP_TOKENS = 256
"""Number of tokens that a thread encodes together, so that their activations fit into the caches of a core."""


class NativeEncoder:
    """The encoder of a model with a head. It implements `Encoder`.

    Texts are encoded without padding, so the states of a text are bit for bit independent of the other texts and of the
    number of threads. The parameters of the model must not change. Calls from several threads are computed one after
    another.
    """

    def __init__(
        self,
        model: EncoderOnly,
        precision: Precision = "float32",
        threads: int = 1,
        instructions: InstructionSet | None = None,
    ) -> None:
        """threads: the number of threads of a call. instructions: the instruction set; None for the best available one.

        Raises UnsupportedModelError for a model that the engine cannot compute and ModelError for parameters that are
        not finite, both of which are checked before the library is compiled; NoLibraryError if there is no library;
        ResourceError if the packed weights do not fit into memory.
        """
        stack = encoder_stack(model.encoder)
        packing = Packing(stack)
        check_finite(model)
        self._library = library.load(compiled_library(instructions) if instructions else best_library())
        self._packed = packing.open(self._library, precision)
        self._engine = self._packed.start(self, threads)
        self._positions, self._width, self._size = PositionTables(stack), model.width, self._packed.sizes[0]
        self._embedding = stack.embedding
        self._is_causal = isinstance(stack, TransformerDecoder)
        self._lock = Lock()

    def __call__(self, tokens: Tensor, mask: Tensor) -> Memory:
        """Return the states (B, S, d) of tokens (B, S) int64, which are zero at padding.

        mask: (B, S) bool, False at padding, which follows the text. Raises DataError for a text that is longer than the
        model's positions, ModelError for ids that are not in the vocabulary and for states that are not finite,
        ResourceError if memory runs out, and Cancelled between two groups of texts.
        """
        is_token = mask.numpy()
        lengths = is_token.sum(1)
        ids = tokens.numpy()[is_token].astype(np.int32)
        if ids.view(np.uint32).max(initial=0) >= self._size:  # negative ids are large without a sign
            invalid = next(each for each in ids.tolist() if not 0 <= each < self._size)
            raise ModelError(f"token {invalid} is not in the vocabulary of {self._size} entries")
        longest = int(lengths.max(initial=0))
        table = self._positions.table(longest)
        if longest > table.length:
            raise DataError(f"a text has {longest} tokens, but the model has only {table.length} positions: shorten it")
        numbers = group_numbers(self._embedding, tokens)
        groups = None if numbers is None else numbers.numpy()[is_token].astype(np.int32)
        starts = np.zeros(len(lengths) + 1, np.int32)
        lengths.cumsum(out=starts[1:])
        states = torch.zeros(*tokens.shape, self._width)
        self._run(
            library.EncoderCall(
                tokens=_address(ids),
                segments=None if groups is None else _address(groups),
                starts=_address(starts),
                states=states.data_ptr(),
                positions=table,
                texts=len(lengths),
                stride=tokens.size(1),
                width=self._width,
                batch=_GROUP_TOKENS,
            )
        )
        if not self._is_causal:
            return Memory(states, mask)
        last = torch.from_numpy(lengths).clamp_min(1) - 1
        return Memory(states, mask, states[torch.arange(len(last)), last])

    def _run(self, call: library.EncoderCall) -> None:
        def cancel() -> None:
            call.cancelled = 1

        cancellation = active_cancellation()
        with self._lock, nullcontext() if cancellation is None else cancellation.callback(cancel):
            outcome = self._library.dragoman_encode(self._engine, ctypes.byref(call))
        check_cancelled()
        library.check(outcome, "states", "a smaller batch size")


def encoder_stack(encoder: nn.Module) -> TransformerEncoder | TransformerDecoder:
    """Return the layers of an encoder. Raises UnsupportedModelError unless they are those of a Transformer."""
    if isinstance(encoder, CausalEncoder) and isinstance(encoder.decoder, TransformerDecoder):
        return encoder.decoder
    if isinstance(encoder, TransformerEncoder):
        return encoder
    setting = "model.encoder.decoder" if isinstance(encoder, CausalEncoder) else "model.encoder"
    raise UnsupportedModelError(f"the native engine requires {setting}.kind=transformer")


def _address(array: NDArray[np.int32]) -> int:
    """Return the address of the first number. The caller keeps the array alive."""
    address: int = array.__array_interface__["data"][0]  # `array.ctypes` takes ten times as long
    return address
