"""`CapturedSlots`: slots whose step a GPU replays as one graph, without waiting for Python between kernels."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from dragoman.base.log import warn
from dragoman.base.machine.cuda_graphs import GraphRecorder
from dragoman.base.machine.memory import is_out_of_memory
from dragoman.engines.cuda.slots import Slots

_WARM_UP = 2
"""Number of steps before the capture, during which libraries allocate their workspaces."""

_TOLERANCE = {torch.float32: 1e-3, torch.float16: 5e-2, torch.bfloat16: 5e-1}
"""Maximum difference between the summed log-probabilities of a step with and without the graph."""


class CapturedSlots:
    """`Slots` whose step is captured as a CUDA graph. On a CPU, or if the capture fails, steps run without a graph.

    The first replay is compared with the same step without the graph. If the results disagree, the graph is dropped.
    """

    def __init__(self, slots: Slots, recorder: GraphRecorder | None = None) -> None:
        """slots: empty slots. recorder: records the engine's graphs; None: steps run without a graph."""
        self.slots = slots
        self._replay: Callable[[], None] | None = None
        self._verified = False
        self._device = slots.decoder.projection.weight.device
        if recorder is not None:
            self._capture(recorder)

    def run(self, steps: int) -> None:
        """Launch a number of steps. The device may still be computing when this method returns."""
        self.slots.record_steps(steps)
        with self._current_device():
            if self._replay is not None and not self._verified:
                self._verify()
                steps -= 1
            for _ in range(steps):
                self._step()

    def _current_device(self) -> AbstractContextManager[None]:
        """Make the slots' GPU the current device, on which kernels are launched and graphs captured."""
        return torch.cuda.device(self._device) if self._device.type == "cuda" else nullcontext()

    def _step(self) -> None:
        (self._replay or self.slots.step)()

    def _capture(self, recorder: GraphRecorder) -> None:
        try:
            _, self._replay = recorder.record(self.slots.step, _WARM_UP)
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise
            warn(
                "a decoding step could not be captured as a CUDA graph, so decoding runs without graphs: "
                f"{str(error).splitlines()[0]}"
            )

    def _verify(self) -> None:
        """Compute the first step twice from the same state, with and without the graph."""
        state, replay = self.slots.state, self._replay
        assert replay is not None
        before = {name: tensor.clone() for name, tensor in state.items()}
        replay()
        replayed = state["totals"].clone()
        _restore(state, before)
        self.slots.step()
        self._verified = True
        tolerance = _TOLERANCE.get(self.slots.decoder.projection.weight.dtype, 1e-3)
        if not torch.allclose(replayed, state["totals"], rtol=0, atol=tolerance, equal_nan=True):
            warn("a CUDA graph of a decoding step returns wrong results on this GPU, so decoding runs without graphs")
            self._replay = None


def _restore(state: dict[str, Tensor], before: dict[str, Tensor]) -> None:
    for name, tensor in before.items():
        state[name].copy_(tensor)
