"""`GraphRecorder`: functions recorded as CUDA graphs, which a GPU repeats without launching each operation."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakSet

import torch

Result = TypeVar("Result")


class GraphRecorder:
    """Records functions as CUDA graphs of one device. The graphs share their memory, so they run one at a time."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._graphs: WeakSet[torch.cuda.CUDAGraph] = WeakSet()
        self._pool: Any = None
        self._stream: torch.cuda.Stream | None = None

    def record(self, function: Callable[[], Result], warm_up: int = 1) -> tuple[Result, Callable[[], None]]:
        """Record the operations of a function. Return its result, and a function that repeats the operations.

        The repeated operations read and write the same memory, so they overwrite the tensors of the result.

        warm_up: how many times the function runs before it is recorded, so that libraries can allocate their buffers.
        They do so for each stream, therefore the recording uses the same one: buffers that are allocated while
        recording would outlive the graphs and block their memory. Raises RuntimeError if the function cannot be
        recorded. The device can be used as before then.
        """
        with torch.cuda.device(self._device):
            if self._stream is None:
                self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            current = torch.cuda.current_stream()
            self._stream.wait_stream(current)
            with torch.cuda.stream(self._stream):
                for _ in range(warm_up):
                    function()
            current.wait_stream(self._stream)
            # A pool whose graphs have all been deleted must not be used again (an assertion in torch 2.11).
            pool = self._pool if len(self._graphs) else torch.cuda.graph_pool_handle()
            graph = torch.cuda.CUDAGraph()
            try:
                # Other threads allocate page-locked memory for the next batches meanwhile.
                with torch.cuda.graph(graph, pool, self._stream, capture_error_mode="thread_local"):
                    result = function()
            except BaseException:
                self._recover(current)
                raise
            self._pool = pool
            self._graphs.add(graph)
            return result, graph.replay

    def _recover(self, stream: torch.cuda.Stream) -> None:
        """Undo what torch leaves behind when a recording fails: its stream, and a generator that is still recorded."""
        torch.cuda.set_stream(stream)
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        generator.graphsafe_set_state(generator.clone_state())
        with suppress(RuntimeError):  # reports the failure of the recording again
            torch.cuda.synchronize()
