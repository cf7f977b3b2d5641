"""`Group`: several processes connected by torch.distributed, with gloo between CPUs and NCCL between GPUs."""

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from dragoman.base.errors import ConfigError, DivergenceError, DragomanError, Interrupted
from dragoman.base.log import console
from dragoman.base.machine.device import check_gpu
from dragoman.base.machine.gpu import find_gpu
from dragoman.base.machine.kernels import keep_fast_attention_kernels
from dragoman.training.ranks.ranks import RankLost, Ranks

Value = TypeVar("Value")

_COMMON_ERRORS = (Interrupted, DivergenceError)
"""Errors that every rank raises at the same step, so that only the first rank reports them."""

JOIN_TIMEOUT = timedelta(minutes=5)
"""Timeout for connecting. Without it, the ranks would hang if the first rank were killed before it listened."""

_POLL, _POLLS = 0.05, 100
"""Polling interval (seconds), and number of polls before the first rank exits."""
_DONE = "done"


class Group(Ranks):
    """The connection of one process to the other processes of a distributed run.

    Messages are sent by gloo between CPUs, so that they never wait for a GPU. NCCL is used only for gradients and
    parameters. Messages are encoded as JSON; nothing is pickled.
    """

    def __init__(self, device: str) -> None:
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.local_size = int(os.environ.get("LOCAL_WORLD_SIZE", self.size))
        self.device = _own_device(device, int(os.environ.get("LOCAL_RANK", self.rank)), self.local_size)
        if "MASTER_ADDR" not in os.environ or "MASTER_PORT" not in os.environ:
            raise ConfigError(
                f"WORLD_SIZE={self.size} means several processes, but the rendezvous address, MASTER_ADDR and "
                "MASTER_PORT, is not set: start the run with torchrun, or unset RANK and WORLD_SIZE"
            )
        store, _, _ = next(rendezvous("env://", timeout=JOIN_TIMEOUT))
        # When torchrun restarts processes, its store still contains the addresses of the killed processes.
        self._store = PrefixStore(f"restart {os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", store)
        backend = "gloo" if self.device.type == "cpu" else "cpu:gloo,cuda:nccl"
        dist.init_process_group(backend, store=PrefixStore("group", self._store), rank=self.rank, world_size=self.size)
        self.group = dist.new_group(backend="gloo")
        self._turns = 0

    def sum(self, values: Sequence[float]) -> list[float]:
        """Return, on every rank, the sums over all ranks, computed by one small all-reduce."""
        sums = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(sums, group=self.group)
        return sums.tolist()

    def max(self, value: int) -> int:
        """Return, on every rank, the maximum over all ranks, computed by one small all-reduce."""
        highest = torch.tensor(value)
        dist.all_reduce(highest, dist.ReduceOp.MAX, group=self.group)
        return int(highest)

    def broadcast(self, value: Value) -> Value:
        """Broadcast the first rank's value in two steps: the length, then the content."""
        content = _encode(value) if self.is_main else torch.empty(0, dtype=torch.uint8)
        length = torch.tensor(len(content))
        dist.broadcast(length, 0, group=self.group)
        content = content if self.is_main else torch.empty(int(length), dtype=torch.uint8)
        dist.broadcast(content, 0, group=self.group)
        return value if self.is_main else _decode(content)

    def gather(self, value: Value) -> list[Value]:
        """Gather the values of all ranks in two steps: the lengths, then the contents."""
        content = _encode(value)
        lengths = [torch.tensor(0) for _ in range(self.size)]
        dist.all_gather(lengths, torch.tensor(len(content)), group=self.group)
        longest = max(int(length) for length in lengths)
        padded = torch.zeros(longest, dtype=torch.uint8)
        padded[: len(content)] = content
        contents = [torch.empty_like(padded) for _ in range(self.size)]
        dist.all_gather(contents, padded, group=self.group)
        return [_decode(each[: int(length)]) for each, length in zip(contents, lengths, strict=True)]

    def wait(self) -> None:
        """Wait for all ranks by computing a sum and ignoring the result, as gloo's barrier does."""
        self.sum([0.0])

    def leave(self) -> None:
        """Close the connection once all ranks have ended in the same way.

        gloo's threads end when the last reference to the group is deleted. A thread that is still freeing its messages
        while the interpreter exits would abort the process (pytorch/pytorch#179291).
        """
        dist.destroy_process_group()
        del self.group

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        """Run the block on the first rank, then on the others, which poll the rendezvous store while they wait.

        No collective is used for waiting, because it would time out.
        """
        key = f"turn/{self._turns}"
        self._turns += 1
        if not self.is_main:
            self._await_turn(key)
            yield
            return
        try:
            yield
        except BaseException as error:
            self._store.set(key, str(getattr(error, "exit_code", 1)))
            self._wait_for_readers(key)
            raise
        self._store.set(key, _DONE)

    def _await_turn(self, key: str) -> None:
        while not self._store.check([key]):
            time.sleep(_POLL)
        outcome = self._store.get(key).decode()
        if outcome != _DONE:
            self._store.add(f"{key}/seen", 1)
            raise SystemExit(int(outcome))

    def _wait_for_readers(self, key: str) -> None:
        """Wait until the others have read the outcome, because the store may be in this process, which will exit."""
        for _ in range(_POLLS):
            if self._store.add(f"{key}/seen", 0) == self.size - 1:
                return
            time.sleep(_POLL)


@contextmanager
def open_group(device: str) -> Iterator[Group]:
    """Join the group of processes. All ranks except the first print only their own errors."""
    rank, quiet = int(os.environ["RANK"]), console.quiet
    console.quiet = rank > 0
    try:
        group = Group(device)
        try:
            yield group
        except _COMMON_ERRORS:
            group.leave()
            raise
        group.leave()
    except _COMMON_ERRORS as error:
        if rank:
            raise SystemExit(error.exit_code) from None
        raise
    except DragomanError as error:
        if rank:
            error.args = (f"rank {rank}: {error}", *error.args[1:])
        raise
    except RuntimeError as error:
        if not _is_lost(error):
            raise
        raise RankLost(
            f"rank {rank}: another process of this run has ended or cannot be reached ({_brief(error)}), so this "
            "process ends too. The output of the other process shows the cause. Resume with the same command and "
            "--resume; with torchrun --max-restarts=N the run resumes from its newest snapshot automatically"
        ) from None
    finally:
        console.quiet = quiet


def _own_device(name: str, local_rank: int, local_size: int) -> torch.device:
    """Return the CPU, or the GPU of this rank.

    Raises ConfigError if there are fewer GPUs than ranks, or PyTorch cannot use the GPU.
    """
    if name == "auto":
        name = "cpu" if find_gpu() is None else "cuda"
    if name == "cpu":
        return torch.device("cpu")
    if name != "cuda":
        raise ConfigError(
            f"train.device={name} cannot be used with several processes, because each process uses the GPU of its own "
            "rank: set auto, cuda or cpu"
        )
    count = torch.cuda.device_count()
    if 0 < count <= local_rank:
        raise ConfigError(
            f"{local_size} processes were started on this machine, which has {count} GPU(s): start torchrun with "
            f"--nproc-per-node {count}, or set train.device=cpu"
        )
    device = torch.device("cuda", local_rank)
    check_gpu(device)
    torch.cuda.set_device(device)
    keep_fast_attention_kernels(device)
    return device


def _is_lost(error: RuntimeError) -> bool:
    """Return whether a collective failed because of the connection.

    The check reads the message, because torch has no class for gloo's errors.
    """
    message = str(error).lower()
    return isinstance(error, dist.DistError) or "gloo" in message or "nccl" in message or "connection " in message


def _brief(error: RuntimeError) -> str:
    line = str(error).strip().splitlines()[0]
    return (line.rpartition("] ")[2] or line).partition(". ")[0]


def _encode(value: Any) -> Tensor:
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def _decode(content: Tensor) -> Any:
    return json.loads(content.numpy().tobytes())


@contextmanager
def open_ranks(device: str) -> Iterator[Ranks]:
    """Join the processes that torchrun started (RANK and WORLD_SIZE in the environment), or run as a single process.

    Raises ConfigError if the device is not available to all processes, and RankLost if one of them has ended.
    """
    if "RANK" not in os.environ or int(os.environ.get("WORLD_SIZE", "1")) < 2:
        yield Ranks(device)
        return
    with open_group(device) as group:
        yield group


def restarted() -> bool:
    """Return whether torchrun has restarted this process after a failure, so that the run must be resumed."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
