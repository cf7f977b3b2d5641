"""Tensors of which each rank holds a share (FSDP2), and whole ones."""

from torch import Tensor


def full(tensor: Tensor) -> Tensor:
    """A sharded tensor gathered from all ranks; another one as it is."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def share(tensor: Tensor, held: Tensor) -> Tensor:
    """This rank's share of `tensor`, which is the same in full on every rank, if `held` of its shape is sharded."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    if not isinstance(held, DTensor) or tensor.shape != held.shape:
        return tensor
    return distribute_tensor(tensor, held.device_mesh, held.placements, src_data_rank=None)
