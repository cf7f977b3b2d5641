"""`CapturedPasses`: forward and backward passes that a GPU repeats as CUDA graphs, without launching each operation."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.base.log import warn
from dragoman.base.machine.cuda_graphs import GraphRecorder
from dragoman.base.machine.memory import is_out_of_memory
from dragoman.nn.attention.soft import SoftAttention
from dragoman.nn.dropout import scale_dropout
from dragoman.training.objectives.objective import Loss, StaticObjective, TrainingPoint
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.updates.copies import NotStatic, ParameterCopies, is_static, static_sums

DROPOUT_LEVELS = 8
"""Number of steps in which dropout rates rise at the start of a run, because a graph contains the rates."""

MAX_GRAPHS = 128
"""Maximum number of graphs, one per shape. The one that was not used for the longest time makes room for a new one."""

_PROOFS = 2
"""Number of batches for which a new graph is compared with the same pass without it."""

_PROVE_EVERY = 1000
"""Number of replays of a graph after which it is compared again."""

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
    """A recorded pass. batch: the tensors that it reads. replays: how many times it was repeated."""

    batch: Any
    results: _Results
    replay: Replay
    replays: int = 0


@dataclass
class CapturedPasses:
    """Computes the gradients of batches of few shapes by replaying recorded passes.

    A pass is recorded when a shape of batches occurs for the second time with the same trained parameters. In bfloat16,
    a recording reads the factor on dropout rates from the device; in other precisions, or with dropout of attention
    weights, it contains the rates, which should therefore change rarely (`DROPOUT_LEVELS`).

    Results for the first batches, and later for one in a thousand, are compared with those of the same pass without a
    graph; if they differ, or if a pass cannot be recorded, no further graphs are used. All passes, recorded or not,
    compute the same operations, so that a resumed run, which records passes at other steps, has the same results.

    Packed batches in bfloat16 are computed in bfloat16 throughout, including residual connections and norms, with
    copies of the parameters; PyTorch's norms, softmax and sums use float32 inside. In other passes, autocast chooses
    the precision of each operation. Learning rate and optimiser are not part of the recording. Random numbers come from
    the device's default generator, which the caller seeds before each pass.

    objective: a loss with `is_static`. capture: records a pass. static: whether passes of the model can be computed
    here. active: whether graphs are used. has_dropout_levels: whether recordings
    contain dropout rates. replays: number of passes that were repeated as graphs.
    """

    model: nn.Module
    objective: StaticObjective
    runtime: Runtime
    capture: Capture
    static: bool = True
    active: bool = True
    replays: int = 0
    _graphs: "OrderedDict[Any, _Graph | None]" = field(default_factory=OrderedDict)
    _dropout: float | None = None
    _gradients: tuple[Tensor, ...] = ()
    """The memory of the gradients of all passes; each recording would otherwise hold a copy of the model's size."""

    def __post_init__(self) -> None:
        self._copies = ParameterCopies(self.model, self.runtime.precision)
        self._parameters: list[nn.Parameter] = []
        self._factor = torch.ones((), device=self.runtime.device)
        self._dropout_factor = torch.ones((), device=self.runtime.device)
        weights = [each.dropout.rate for each in self.model.modules() if isinstance(each, SoftAttention)]
        self.has_dropout_levels = self.runtime.precision != torch.bfloat16 or any(weights)

    def run(self, batch: Any, point: TrainingPoint, factor: float, seed: int) -> Loss | None:
        """Add the gradient of factor · loss to the parameters, and return the loss.

        Returns None, without any effect, if the model has auxiliary losses or counters.
        """
        if not self.static:
            return None
        self._discard_outdated(point.dropout)
        self._factor.fill_(factor)
        self._dropout_factor.fill_(point.dropout)
        try:
            results = self._replayed(batch, point, seed) or self._computed(batch, point, seed)
        except NotStatic as error:
            self._stop(str(error))
            self.static = False
            return None
        except (RuntimeError, MemoryError) as error:
            if not (self._graphs and is_out_of_memory(error)):
                raise
            self._stop("the memory that graphs need in addition is not free")
            results = self._computed(batch, point, seed)
        self._add(results.gradients)
        return Loss(results.total.clone(), results.cross_entropy.clone(), batch.target_tokens)

    def _replayed(self, batch: Any, point: TrainingPoint, seed: int) -> _Results | None:
        """Compute a batch with a graph, which is recorded first if its shape has occurred before. None: without one."""
        if not self.active:
            return None
        key = batch.task, tuple(each.shape for each in _tensors(batch))
        graph = self._graphs.get(key)
        if graph is None:
            known = key in self._graphs
            self._graphs[key] = None
            if not known or (graph := self._record(batch, point, seed)) is None:
                return None
            self._graphs[key] = graph
            if len(self._graphs) > MAX_GRAPHS:
                self._graphs.popitem(last=False)
        self._graphs.move_to_end(key)
        for stored, new in zip(_tensors(graph.batch), _tensors(batch), strict=True):
            stored.copy_(new, non_blocking=True)
        if graph.replays < _PROOFS or graph.replays % _PROVE_EVERY == 0:
            return self._proven(graph, batch, point, seed)
        return self._repeat(graph, seed)

    def _repeat(self, graph: _Graph, seed: int) -> _Results:
        torch.manual_seed(seed)
        graph.replay()
        graph.replays += 1
        self.replays += 1
        return graph.results

    def _proven(self, graph: _Graph, batch: Any, point: TrainingPoint, seed: int) -> _Results:
        """Compute a batch with and without a graph, and use no further graphs if the results differ."""
        torch._foreach_zero_(graph.results.values)  # a graph that does nothing must not pass
        replayed = [each.clone() for each in self._repeat(graph, seed).values]
        expected = self._computed(batch, point, seed)
        if not _agree(replayed, expected.values):
            self._stop("its results differ from those without it")
        return expected

    def _computed(self, batch: Any, point: TrainingPoint, seed: int) -> _Results:
        """Compute a batch without a graph."""
        torch.manual_seed(seed)
        return self._compute(batch, point)

    def _discard_outdated(self, dropout: float) -> None:
        """Discard the recordings with other dropout rates or other trained parameters, as after unfreezing."""
        trained = [each for each in self.model.parameters() if each.requires_grad]
        other_level = self.has_dropout_levels and dropout != self._dropout
        if other_level or len(trained) != len(self._parameters):
            self._graphs.clear()
        if len(trained) != len(self._parameters):
            self._gradients = ()
        self._dropout, self._parameters = dropout, trained

    def _record(self, batch: Any, point: TrainingPoint, seed: int) -> _Graph | None:
        """Record the pass of a batch. Return None, and use no further graphs, if this fails."""
        own = batch.to(self.runtime.device).map_tensors(torch.clone)
        torch.manual_seed(seed)
        try:
            results, replay = self.capture(lambda: self._compute(own, point))
        except (RuntimeError, MemoryError) as error:
            self._stop(str(error).strip().partition("\n")[0])
            return None
        return _Graph(own, results, replay)

    def _compute(self, batch: Any, point: TrainingPoint) -> _Results:
        """Compute the loss and the gradients of a batch with operations that do not wait for the device."""
        inputs: list[Tensor] = list(self._parameters)
        with ExitStack() as stack:
            if self.runtime.precision == torch.bfloat16 and getattr(batch, "packing", None) is not None:
                inputs = self._copies.refreshed(self._parameters)
                stack.enter_context(self._copies.replaced())
            else:
                stack.enter_context(self.runtime.autocast())
            stack.enter_context(scale_dropout(point.dropout if self.has_dropout_levels else self._dropout_factor))
            total, cross_entropy = static_sums(self.model, self.objective, batch, point.step)
        gradients = torch.autograd.grad(total * self._factor, inputs, allow_unused=True)
        return _Results(total.detach(), cross_entropy.detach(), self._keep(gradients))

    def _keep(self, gradients: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
        """Move the gradients to the memory that all passes share, in the precision of the parameters."""
        self._gradients = self._gradients or tuple(torch.empty_like(each) for each in self._parameters)
        kept = tuple(None if new is None else shared for shared, new in zip(self._gradients, gradients, strict=True))
        with torch.no_grad():
            torch._foreach_copy_(
                [each for each in kept if each is not None], [each for each in gradients if each is not None]
            )
        return kept

    def _add(self, gradients: Sequence[Tensor | None]) -> None:
        """Add copies of the gradients, which the next pass overwrites, to those of the parameters."""
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
        if self.runtime.device.type == "cuda":
            torch.cuda.empty_cache()
        warn(f"updates are computed without CUDA graphs, because a graph could not be used: {reason}")


def captured_passes(model: nn.Module, objective: Any, runtime: Runtime, few_shapes: bool) -> CapturedPasses | None:
    """Return the passes of a run on one GPU, or None if its updates cannot be recorded.

    They cannot if batches have many shapes, or if recording would change the model; see `is_static`.
    """
    if runtime.device.type != "cuda" or not few_shapes or not is_static(model, objective, runtime):
        return None
    return CapturedPasses(model, objective, runtime, GraphRecorder(runtime.device).record)


def _tensors(batch: Any) -> Iterator[Tensor]:
    """Yield the tensors of a batch in a fixed order."""
    found: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    batch.map_tensors(keep)
    return iter(found)


def _agree(results: Sequence[Tensor], expected: Sequence[Tensor]) -> bool:
    """Return whether loss and gradients (see `_Results.values`) differ by less than rounding can explain.

    Results of float16 that overflow are not judged: infinities differ from each other. The device is read once.
    """
    if len(results) != len(expected):
        return False
    gradients = torch._foreach_sub(list(results[2:]), list(expected[2:]))
    norms = [torch.stack(torch._foreach_norm(each)).norm() for each in (gradients, list(expected[2:]))]
    loss = results[0] - expected[0], expected[0]
    values = torch.stack([*(each.float() for each in loss), *(each.float() for each in norms)]).abs().tolist()
    pairs = ((values[0], values[1]), (values[2], values[3]))
    return all(not isfinite(size) or difference <= _MAX_DIFFERENCE * size for difference, size in pairs)
