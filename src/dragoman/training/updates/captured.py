"""`CapturedPasses`: forward and backward passes that a GPU repeats as CUDA graphs, without launching each operation."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.base.log import warn
from dragoman.nn.auxiliary import collecting
from dragoman.nn.dropout import scale_dropout
from dragoman.training.objectives.objective import Loss, StaticObjective, TrainingPoint
from dragoman.training.ranks.ranks import Runtime

DROPOUT_LEVELS = 8
"""Number of steps in which dropout rates rise at the start of a run, because a graph contains the rates."""

MAX_GRAPHS = 128
"""Maximum number of graphs, one per shape. Further shapes are computed without graphs."""

_MAX_DIFFERENCE = 0.01
"""Maximum relative difference between the results with and without a graph. Both compute the same operations with the
same random numbers, so that only the order of atomic additions may differ."""

Replay = Callable[[], None]
Capture = Callable[[Callable[[], "_Results"]], tuple["_Results", Replay]]
"""Runs a function and records its operations. Returns its results, and a function that repeats the operations and
overwrites the results."""


@dataclass(frozen=True)
class _Results:
    """The summed loss, the summed cross-entropy, and the gradient of each parameter of a batch."""

    total: Tensor
    cross_entropy: Tensor
    gradients: tuple[Tensor | None, ...]

    @property
    def values(self) -> list[Tensor]:
        return [self.total, self.cross_entropy, *(each for each in self.gradients if each is not None)]


@dataclass
class _Graph:
    """A recorded pass. batch: the tensors that it reads. proven: whether its results have been compared."""

    batch: Any
    results: _Results
    replay: Replay
    proven: bool = False


class NotCapturable(Exception):
    """The pass cannot be recorded. The message completes "because …"."""


class CudaGraphs:
    """Records passes as CUDA graphs, which share their memory. They are replayed one at a time."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool: Any = None

    def __call__(self, function: Callable[[], _Results]) -> tuple[_Results, Replay]:
        """See `Capture`. The function runs once before it is recorded, so that libraries can allocate their buffers."""
        stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            function()
        torch.cuda.current_stream(self._device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # Other threads allocate page-locked memory for the next batches meanwhile.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            results = function()
        self._pool = self._pool or graph.pool()
        return results, graph.replay


@dataclass
class CapturedPasses:
    """Computes the gradients of batches of few shapes by replaying recorded passes.

    A pass is recorded when a shape of batches occurs for the second time with the same dropout rates, which should
    therefore change rarely (`DROPOUT_LEVELS`), and the same trained parameters. Its first results are compared with
    those of the same pass without a graph; if they differ, or if a pass cannot be recorded, no further graphs are used.
    Learning rate and optimiser are not part of the recording. Random numbers come from the device's default generator,
    which the caller seeds before each pass.

    objective: a loss with `is_static`. capture: records a pass.
    """

    model: nn.Module
    objective: StaticObjective
    runtime: Runtime
    capture: Capture
    active: bool = True
    _graphs: dict[Any, _Graph | None] = field(default_factory=dict)
    _dropout: float | None = None
    _gradients: tuple[Tensor, ...] = ()
    """The memory of the gradients of all recordings, which would otherwise hold a copy of the model's size each."""

    def __post_init__(self) -> None:
        self._parameters: list[nn.Parameter] = []
        self._factor = torch.ones((), device=self.runtime.device)

    def run(self, batch: Any, point: TrainingPoint, factor: float, seed: int) -> Loss | None:
        """Add the gradient of factor · loss to the parameters, and return the loss.

        Returns None, without any effect, for batches that must be computed without a graph.
        """
        if not self.active:
            return None
        self._discard_outdated(point.dropout)
        key = batch.task, tuple(each.shape for each in _tensors(batch))
        graph = self._graphs.get(key)
        if graph is None:
            if key not in self._graphs and len(self._graphs) < MAX_GRAPHS:
                self._graphs[key] = None
                return None
            if key not in self._graphs or (graph := self._record(batch, point, seed)) is None:
                return None
            self._graphs[key] = graph
        self._factor.fill_(factor)
        for stored, new in zip(_tensors(graph.batch), _tensors(batch), strict=True):
            stored.copy_(new, non_blocking=True)
        torch.manual_seed(seed)
        graph.replay()
        results = graph.results
        if not graph.proven:
            torch.manual_seed(seed)
            expected = self._compute(batch, point)
            if not _agree(results, expected):
                self._stop("its results differ from those without it")
                results = expected
            graph.proven = True
        self._add(results.gradients)
        return Loss(results.total.clone(), results.cross_entropy.clone(), batch.target_tokens)

    def _discard_outdated(self, dropout: float) -> None:
        """Discard the recordings with other dropout rates or other trained parameters, as after unfreezing."""
        trained = [each for each in self.model.parameters() if each.requires_grad]
        if dropout == self._dropout and len(trained) == len(self._parameters):
            return
        self._graphs.clear()
        self._dropout, self._parameters, self._gradients = dropout, trained, ()

    def _record(self, batch: Any, point: TrainingPoint, seed: int) -> _Graph | None:
        """Record the pass of a batch. Return None, and use no further graphs, if this fails."""
        own = batch.to(self.runtime.device).map_tensors(torch.clone)
        torch.manual_seed(seed)
        try:
            self._gradients = self._gradients or tuple(torch.empty_like(each) for each in self._parameters)
            results, replay = self.capture(lambda: self._share(self._compute(own, point)))
        except (RuntimeError, NotCapturable) as error:  # including out-of-memory errors
            self._stop(str(error).strip().partition("\n")[0])
            return None
        return _Graph(own, results, replay)

    def _compute(self, batch: Any, point: TrainingPoint) -> _Results:
        """Compute the loss and the gradients of a batch with operations that do not wait for the device."""
        with self.runtime.autocast(), scale_dropout(point.dropout), collecting(point.step) as auxiliary:
            total, cross_entropy = self.objective.static_sums(self.model, batch)
        if auxiliary.penalties or auxiliary.decisions or auxiliary.counts:
            raise NotCapturable("the model has auxiliary losses or counters")
        gradients = torch.autograd.grad(total * self._factor, self._parameters, allow_unused=True)
        return _Results(total.detach(), cross_entropy.detach(), gradients)

    def _share(self, results: _Results) -> _Results:
        """Move the gradients to the memory that all recordings share."""
        own = tuple(
            None if each is None else shared for shared, each in zip(self._gradients, results.gradients, strict=True)
        )
        torch._foreach_copy_(
            [each for each in own if each is not None], [each for each in results.gradients if each is not None]
        )
        return replace(results, gradients=own)

    def _add(self, gradients: Sequence[Tensor | None]) -> None:
        """Add copies of the gradients, which the next replay overwrites, to those of the parameters."""
        first: list[tuple[nn.Parameter, Tensor]] = []
        others: list[tuple[Tensor, Tensor]] = []
        for parameter, new in zip(self._parameters, gradients, strict=True):
            if new is not None and parameter.grad is None:
                first.append((parameter, new))
            elif new is not None and parameter.grad is not None:
                others.append((parameter.grad, new))
        if first:
            copies = torch._foreach_mul([new for _, new in first], 1.0)
            for (parameter, _), copy in zip(first, copies, strict=True):
                parameter.grad = copy
        if others:
            torch._foreach_add_([before for before, _ in others], [new for _, new in others])

    def _stop(self, reason: str) -> None:
        self.active = False
        self._graphs.clear()
        self._gradients = ()
        warn(f"updates are computed without CUDA graphs, because a graph could not be used: {reason}")


def captured_passes(model: nn.Module, objective: Any, runtime: Runtime, few_shapes: bool) -> CapturedPasses | None:
    """Return the passes of a run on one GPU, or None if its updates cannot be recorded.

    They cannot if the model has running statistics, which recording would change, or if batches have many shapes.
    """
    has_statistics = any(not isinstance(each, nn.Parameter) for each in model.state_dict(keep_vars=True).values())
    if runtime.device.type != "cuda" or runtime.ranks.distributed or has_statistics or not few_shapes:
        return None
    if not isinstance(objective, StaticObjective) or not objective.is_static:
        return None
    return CapturedPasses(model, objective, runtime, CudaGraphs(runtime.device))


def _tensors(batch: Any) -> Iterator[Tensor]:
    """Yield the tensors of a batch in a fixed order."""
    found: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    batch.map_tensors(keep)
    return iter(found)


def _agree(results: _Results, expected: _Results) -> bool:
    """Return whether the losses and the gradients differ by less than rounding can explain."""
    if len(results.values) != len(expected.values):
        return False
    for own, other in ((results.values[:1], expected.values[:1]), (results.values[2:], expected.values[2:])):
        difference = sum(float((a.double() - b.double()).square().sum()) for a, b in zip(own, other, strict=True))
        size = sum(float(each.double().square().sum()) for each in other)
        if not difference <= _MAX_DIFFERENCE**2 * size:
            return False
    return True
