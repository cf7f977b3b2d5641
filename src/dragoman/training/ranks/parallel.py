"""Strategies for distributing a model over ranks: `SingleProcess`, `Replicated` (DDP) and `Sharded` (FSDP2)."""

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
    """The strategy for one process, which holds the whole model, and the base class of the distributed strategies.

    trained: the module that is trained. model: the module used for validation; the same module unless the model is
    sharded. whole_batches: whether the result of a sentence depends on the rest of its batch, so that batches must not
    be cut. sharded: whether each rank holds only a shard of the parameters.
    """

    whole_batches = False
    sharded = False

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        self.trained = self.model = model
        self.objective = objective

    @contextmanager
    def micro_batch(self, last: bool) -> Iterator[None]:
        """Return the context for the passes of a micro-batch.

        last: whether this is the last micro-batch of the update, in which ranks exchange gradients.
        """
        yield

    def loss(self, batch: Any, point: TrainingPoint) -> Loss:
        """Compute the loss of a batch."""
        return self.objective(self.model, batch, point)

    def gather(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Gather tensors that are distributed like the parameters of the same names. All ranks must call this."""
        return dict(tensors)

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Load parameters and buffers, as returned by `gather` or read from a model folder, into `model`."""
        fill(model_parameters(self.model), tensors)

    def release(self) -> None:
        """Release the tensors loaded by `load`; called after a validation."""

    def shard_like(self, tensor: Tensor, trained: Tensor) -> Tensor:
        """Distribute `tensor`, which is complete on every rank, like the parameter `trained`."""
        return tensor

    def check_equal(self) -> None:
        """Warn once if the parameters of the ranks differ. All ranks must call this."""


class _Distributed(SingleProcess):
    """Wraps model and objective in one module whose forward computes the loss, as torch's wrappers require."""

    _wrapped: Any  # a module with more methods than torch's types declare

    def __init__(self, model: nn.Module, objective: Objective, ranks: Ranks, whole_batches: bool) -> None:
        super().__init__(model, objective)
        self.loss_module = LossModule(model, objective)
        self.whole_batches = whole_batches
        self.ranks = ranks

    def loss(self, batch: Any, point: TrainingPoint) -> Loss:
        """Compute the loss of a batch through torch's wrapper."""
        total = self._wrapped(batch, point)
        last = self.loss_module.last
        return replace(last, total=total)


class LossModule(nn.Module):
    """A module that contains model and objective. last: the most recent loss, whose total is returned by `forward`."""

    last: Loss

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, batch: Any, point: TrainingPoint) -> Tensor:
        """Return the total loss of a batch, a scalar."""
        self.last = self.objective(self.model, batch, point)
        return self.last.total


class Replicated(_Distributed):
    """A strategy in which every rank holds the whole model and optimiser (DDP).

    Gradients are averaged during the backward pass. DDP searches for unused parameters in each micro-batch, so that
    ranks never wait forever for gradients that a variant of the model does not compute. This also keeps gradients in
    the same buckets in every step, so that a resumed run sums them in the same order.
    """

    def __init__(self, model: nn.Module, objective: Objective, ranks: Ranks, whole_batches: bool) -> None:
        super().__init__(model, objective, ranks, whole_batches)
        from torch.nn.parallel import DistributedDataParallel

        # DDP warns on every rank if there is no unused parameter, so one is added.
        self.loss_module.register_parameter("never_used", nn.Parameter(torch.zeros(1, device=ranks.device)))
        with warnings.catch_warnings():  # torch 2.13 has a new name for broadcast_buffers, which 2.11 lacks
            warnings.simplefilter("ignore", FutureWarning)
            self._wrapped = DistributedDataParallel(
                self.loss_module, broadcast_buffers=False, find_unused_parameters=True
            )
        self._warned = False

    @contextmanager
    def micro_batch(self, last: bool) -> Iterator[None]:
        """Exchange gradients only in the last micro-batch."""
        if last:
            yield
            return
        with self._wrapped.no_sync():
            yield

    @torch.no_grad()
    def check_equal(self) -> None:
        """Warn once if the ranks' parameters differ, because each rank applies the common gradients separately.

        The ranks compare sums over the bytes of the parameters.
        """
        parameters = [each.contiguous().view(-1).view(torch.uint8) for each in self.model.parameters()]
        sums = [int(each.sum(dtype=torch.int64)) for each in parameters]
        different = [rank for rank, other in enumerate(self.ranks.gather(sums)) if other != sums]
        if different and self.ranks.is_main and not self._warned:
            warn(
                f"the parameters of rank {different[0]} differ from those of rank 0, because its machine computes "
                "differently or wrongly. The parameters of rank 0 are saved"
            )
            self._warned = True


class Sharded(_Distributed):
    """A strategy in which every rank holds a shard of parameters, gradients and optimiser state (FSDP2).

    Modules found by `shardable_modules` gather their parameters while they run. All other parameters are gathered for
    the whole pass. `model` is an unsharded copy that occupies memory only between `load` and `release`.
    """

    sharded = True

    def __init__(
        self, model: nn.Module, objective: Objective, ranks: Ranks, whole_batches: bool, shardable: list[nn.Module]
    ) -> None:
        super().__init__(model, objective, ranks, whole_batches)
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import FSDPModule, fully_shard

        # In-place operations on these views would lose gradients. A test that compares parameters would detect this.
        warnings.filterwarnings("ignore", message=".*returned a view tensor")
        self.model = deepcopy(model)
        self.release()
        self._mesh = init_device_mesh(ranks.device.type, (ranks.size,))
        for module in (*shardable, self.loss_module):
            fully_shard(module, mesh=self._mesh)
        assert isinstance(self.loss_module, FSDPModule)
        self._wrapped = self.loss_module
        if hasattr(self._wrapped, "set_reduce_scatter_unused_params"):  # torch 2.13
            self._wrapped.set_reduce_scatter_unused_params(True)

    @contextmanager
    def micro_batch(self, last: bool) -> Iterator[None]:
        """Keep gradients complete on each rank until the last micro-batch, which reduces and scatters them."""
        self._wrapped.set_requires_gradient_sync(last)
        yield

    @torch.no_grad()
    def gather(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Gather tensors from all ranks, one by one, into CPU memory."""
        return {name: gather_full(tensor.detach()).cpu() for name, tensor in tensors.items()}

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Load tensors into the unsharded copy."""
        for name, value in model_parameters(self.model).items():
            value.data = tensors[name].to(self.ranks.device)

    @torch.no_grad()
    def release(self) -> None:
        """Release the parameters of the unsharded copy."""
        for parameter in self.model.parameters():
            parameter.data = parameter.data.new_empty(0)

    def shard_like(self, tensor: Tensor, trained: Tensor) -> Tensor:
        """Return this rank's shard of `tensor`."""
        return local_shard(tensor.to(self.ranks.device), trained)


@dataclass(frozen=True)
class ParallelSettings:
    """The settings of a strategy for several ranks.

    kind: as in `LoopConfig.parallel`. batches: number of planned batches per update. find_shardable: a function that
    returns the modules that FSDP may shard separately.
    """

    kind: Literal["ddp", "fsdp"]
    batches: int
    find_shardable: Callable[[], list[nn.Module]]


def build_parallel(settings: ParallelSettings, ranks: Ranks, model: nn.Module, objective: Objective) -> SingleProcess:
    """Build the strategy of this run. Raises ConfigError for a model that cannot be trained by several ranks."""
    if not ranks.distributed:
        return SingleProcess(model, objective)
    whole_batches = check_statistics(model, ranks, settings.batches)
    if settings.kind == "ddp":
        return Replicated(model, objective, ranks, whole_batches)
    return Sharded(model, objective, ranks, whole_batches, settings.find_shardable())


def check_statistics(model: nn.Module, ranks: Ranks, accumulate: int) -> bool:
    """Return whether batches must not be cut, because a module's result for a sentence depends on the whole batch.

    Raises ConfigError if a module has running statistics, or if some ranks would be idle because batches are not cut.
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
            f"computed per batch), so {ranks.size} processes need as many batches per update: set "
            f"train.accumulate={ranks.size} or more"
        )
    return whole


def gather_full(tensor: Tensor) -> Tensor:
    """Gather a sharded tensor from all ranks. Other tensors are returned unchanged."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def local_shard(tensor: Tensor, like: Tensor) -> Tensor:
    """Return this rank's shard of `tensor`, which is complete on every rank.

    The tensor is sharded like `like`. If that is not sharded, or has a different shape, `tensor` is returned unchanged.
    """
    from torch.distributed.tensor import DTensor, distribute_tensor

    if not isinstance(like, DTensor) or tensor.shape != like.shape:
        return tensor
    return distribute_tensor(tensor, like.device_mesh, like.placements, src_data_rank=None)
