"""How the ranks hold one model: `SingleProcess`, `Replicated` (DDP) or `Sharded` (FSDP2)."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.base.log import warn
from dragoman.checkpoint.tensors import fill, model_parameters
from dragoman.training.objectives.objective import Loss, Objective, TrainingPoint
from dragoman.training.ranks.ranks import Ranks


class SingleProcess:
    """One process, one model.

    trained: what is trained; model: what validation reads, the same wherever ranks hold whole models. whole_batches:
    whether the result of a sentence depends on others of its batch, so that batches are not cut. sharded: whether no
    rank has all of the parameters.
    """

    whole_batches = False
    sharded = False

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        self.trained = self.model = model
        self.objective = objective

    @contextmanager
    def micro_batch(self, last: bool) -> Iterator[None]:
        """Around forward and backward of a micro-batch; gradients are shared among ranks in an update's last one."""
        yield

    def loss(self, batch: Any, point: TrainingPoint) -> Loss:
        """The objective's."""
        return self.objective(self.model, batch, point)

    def whole(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Named tensors of the trained model, or shaped like its parameters, in full. Every rank must ask."""
        return dict(tensors)

    def show(self, tensors: Mapping[str, Tensor]) -> None:
        """Give `model` the parameters and buffers that `whole` gave, or a model folder."""
        fill(model_parameters(self.model), tensors)

    def hide(self) -> None:
        """Validation is over."""

    def like(self, tensor: Tensor, trained: Tensor) -> Tensor:
        """`tensor`, the same in full on every rank, held as the parameter `trained` is."""
        return tensor

    def compare(self) -> None:
        """Warn, once, where ranks that should hold the same parameters do not. Every rank must ask."""


class _Distributed(SingleProcess):
    """Model and objective as one module, whose forward computes the loss: that is what torch's wrappers wrap."""

    _wrapped: Any  # a module that torch's types know less of than it has

    def __init__(self, model: nn.Module, objective: Objective, ranks: Ranks, whole_batches: bool) -> None:
        super().__init__(model, objective)
        self.joined = JoinedLoss(model, objective)
        self.whole_batches = whole_batches
        self.ranks = ranks

    def loss(self, batch: Any, point: TrainingPoint) -> Loss:
        """The objective's, through torch's wrapper."""
        total = self._wrapped(batch, point)
        last = self.joined.last
        return replace(last, total=total)


class JoinedLoss(nn.Module):
    """last: the last loss, of which forward gives the total."""

    last: Loss

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, batch: Any, point: TrainingPoint) -> Tensor:
        """A scalar."""
        self.last = self.objective(self.model, batch, point)
        return self.last.total


class Replicated(_Distributed):
    """Every rank has the whole model and optimiser; gradients are averaged while backward goes on (DDP).

    Parameters that a micro-batch does not use are looked for each time, so that a variant without gradients for some of
    them cannot make ranks wait for one another for ever. It also keeps gradients in the same buckets in every step, so
    that a resumed run adds them in the same order.
    """

    def __init__(self, model: nn.Module, objective: Objective, ranks: Ranks, whole_batches: bool) -> None:
        super().__init__(model, objective, ranks, whole_batches)
        from torch.nn.parallel import DistributedDataParallel

        # DDP warns of looking in vain, on every rank, so there is something to find
        self.joined.register_parameter("never_used", nn.Parameter(torch.zeros(1, device=ranks.device)))
        with warnings.catch_warnings():  # torch 2.13 has another name for broadcast_buffers, 2.11 does not know it
            warnings.simplefilter("ignore", FutureWarning)
            self._wrapped = DistributedDataParallel(self.joined, broadcast_buffers=False, find_unused_parameters=True)
        self._warned = False

    @contextmanager
    def micro_batch(self, last: bool) -> Iterator[None]:
        """Gradients stay where they are but in the last micro-batch."""
        if last:
            yield
            return
        with self._wrapped.no_sync():
            yield

    @torch.no_grad()
    def compare(self) -> None:
        """By the sum of each parameter's bytes: all have the same gradients, but each makes its own updates of them."""
        parameters = [each.contiguous().view(-1).view(torch.uint8) for each in self.model.parameters()]
        sums = [int(each.sum(dtype=torch.int64)) for each in parameters]
        apart = [rank for rank, other in enumerate(self.ranks.gather(sums)) if other != sums]
        if apart and self.ranks.is_main and not self._warned:
            warn(
                f"rank {apart[0]} no longer holds the parameters of rank 0: its machine computes otherwise, or "
                "wrongly. What is stored is of rank 0"
            )
            self._warned = True


class Sharded(_Distributed):
    """Every rank keeps a share of parameters, gradients and optimiser state (FSDP2).

    Modules that `shardable_modules` names gather their parameters when they are read; all others' are gathered for the
    whole pass. `model` is a plain copy that takes memory only while it is shown something.
    """

    sharded = True

    def __init__(
        self, model: nn.Module, objective: Objective, ranks: Ranks, whole_batches: bool, separate: list[nn.Module]
    ) -> None:
        super().__init__(model, objective, ranks, whole_batches)
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import FSDPModule, fully_shard

        # An in-place operation on such a view would lose gradients; a test that compares parameters would see it.
        warnings.filterwarnings("ignore", message=".*returned a view tensor")
        self.model = deepcopy(model)
        self.hide()
        self._mesh = init_device_mesh(ranks.device.type, (ranks.size,))
        for module in (*separate, self.joined):
            fully_shard(module, mesh=self._mesh)
        assert isinstance(self.joined, FSDPModule)
        self._wrapped = self.joined
        if hasattr(self._wrapped, "set_reduce_scatter_unused_params"):  # torch 2.13
            self._wrapped.set_reduce_scatter_unused_params(True)

    @contextmanager
    def micro_batch(self, last: bool) -> Iterator[None]:
        """Gradients stay whole on each rank until the last micro-batch, where each gets the sum of its share."""
        self._wrapped.set_requires_gradient_sync(last)
        yield

    @torch.no_grad()
    def whole(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Gathered from all ranks, one by one, into the CPU's memory."""
        return {name: gather_full(tensor.detach()).cpu() for name, tensor in tensors.items()}

    @torch.no_grad()
    def show(self, tensors: Mapping[str, Tensor]) -> None:
        """The copy takes them as they are."""
        for name, value in model_parameters(self.model).items():
            value.data = tensors[name].to(self.ranks.device)

    @torch.no_grad()
    def hide(self) -> None:
        """The copy lets go of its parameters."""
        for parameter in self.model.parameters():
            parameter.data = parameter.data.new_empty(0)

    def like(self, tensor: Tensor, trained: Tensor) -> Tensor:
        """This rank's share."""
        return local_shard(tensor.to(self.ranks.device), trained)


@dataclass(frozen=True)
class ParallelSettings:
    """How several ranks shall hold a model. kind: see `LoopConfig.parallel`; batches: of a plan, an update.

    separate: finds the modules that FSDP may shard apart.
    """

    kind: Literal["ddp", "fsdp"]
    batches: int
    separate: Callable[[], list[nn.Module]]


def build_parallel(holding: ParallelSettings, ranks: Ranks, model: nn.Module, objective: Objective) -> SingleProcess:
    """The model as this rank holds it. Raises ConfigError for one that ranks cannot share."""
    if not ranks.distributed:
        return SingleProcess(model, objective)
    whole_batches = check_statistics(model, ranks, holding.batches)
    if holding.kind == "ddp":
        return Replicated(model, objective, ranks, whole_batches)
    return Sharded(model, objective, ranks, whole_batches, holding.separate())


def check_statistics(model: nn.Module, ranks: Ranks, accumulate: int) -> bool:
    """Whether batches must stay whole, because some module's result for a sentence depends on the batch's others.

    Raises ConfigError for modules that keep statistics of batches, and where whole batches would leave ranks idle.
    """
    stored = model.state_dict(keep_vars=True).items()
    statistics = [name for name, tensor in stored if not isinstance(tensor, nn.Parameter)]
    if statistics:
        raise ConfigError(
            f"{statistics[0]} keeps running statistics of whole batches (batch normalisation), which {ranks.size} "
            "processes cannot share: train this model with one process, or choose another normalisation"
        )
    whole = any(getattr(module, "reads_whole_batches", False) for module in model.modules())
    if whole and accumulate < ranks.size:
        raise ConfigError(
            f"this model has modules that read whole batches (a mixture of experts, whose capacity and balance are "
            f"of a batch), so {ranks.size} processes need as many batches an update: set train.accumulate={ranks.size} "
            "or more"
        )
    return whole


def gather_full(tensor: Tensor) -> Tensor:
    """A sharded tensor gathered from all ranks; another one as it is."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def local_shard(tensor: Tensor, held: Tensor) -> Tensor:
    """This rank's share of `tensor`, which is the same in full on every rank, if `held` of its shape is sharded."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    if not isinstance(held, DTensor) or tensor.shape != held.shape:
        return tensor
    return distribute_tensor(tensor, held.device_mesh, held.placements, src_data_rank=None)
