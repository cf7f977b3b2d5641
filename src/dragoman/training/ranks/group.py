"""`Group`: several processes connected by torch.distributed (gloo between CPUs, NCCL between GPUs); `open_ranks`."""

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
from dragoman.base.machine.attention_kernels import keep_fast_attention_kernels
from dragoman.training.ranks.ranks import RankLost, Ranks

Value = TypeVar("Value")

_AGREED = (Interrupted, DivergenceError)
"""Errors that every rank raises at the same step, so that only the first rank reports them."""

JOINING = timedelta(minutes=5)
"""Timeout for connecting at the start: if the first rank was killed before it listens, the others would hang."""

_POLL, _POLLS = 0.05, 100
"""Polling interval (seconds), and the number of polls before the first rank exits."""
_DONE = "done"


class Group(Ranks):
    """The processes of a distributed run, as seen by one of them.

    Messages use gloo between CPUs, so that they never wait for a GPU; NCCL is used for gradients and parameters only.
    Messages are JSON; nothing is pickled.
    """

    def __init__(self, device: str) -> None:
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.local_size = int(os.environ.get("LOCAL_WORLD_SIZE", self.size))
        self.device = _own_device(device, int(os.environ.get("LOCAL_RANK", self.rank)), self.local_size)
        if "MASTER_ADDR" not in os.environ or "MASTER_PORT" not in os.environ:
            raise ConfigError(
                f"WORLD_SIZE={self.size} means several processes, but MASTER_ADDR and MASTER_PORT, their meeting "
                "point, are not set: start the run with torchrun, or unset RANK and WORLD_SIZE"
            )
        store, _, _ = next(rendezvous("env://", timeout=JOINING))
        # torchrun keeps its store when it restarts processes, including the addresses of the killed ones
        self._store = PrefixStore(f"restart {os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", store)
        backend = "gloo" if self.device.type == "cpu" else "cpu:gloo,cuda:nccl"
        dist.init_process_group(backend, store=PrefixStore("group", self._store), rank=self.rank, world_size=self.size)
        self.group = dist.new_group(backend="gloo")
        self._turns = 0

    def sum(self, values: Sequence[float]) -> list[float]:
        """Sum over all ranks with one small all-reduce."""
        sums = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(sums, group=self.group)
        return sums.tolist()

    def max(self, value: int) -> int:
        """Find the maximum over all ranks with one small all-reduce."""
        highest = torch.tensor(value)
        dist.all_reduce(highest, dist.ReduceOp.MAX, group=self.group)
        return int(highest)

    def broadcast(self, value: Value) -> Value:
        """Broadcast in two steps: the length, then the content."""
        content = _bytes(value) if self.is_main else torch.empty(0, dtype=torch.uint8)
        length = torch.tensor(len(content))
        dist.broadcast(length, 0, group=self.group)
        content = content if self.is_main else torch.empty(int(length), dtype=torch.uint8)
        dist.broadcast(content, 0, group=self.group)
        return value if self.is_main else _value(content)

    def gather(self, value: Value) -> list[Value]:
        """Gather in two steps: the lengths, then the contents."""
        content = _bytes(value)
        lengths = [torch.tensor(0) for _ in range(self.size)]
        dist.all_gather(lengths, torch.tensor(len(content)), group=self.group)
        longest = max(int(length) for length in lengths)
        padded = torch.zeros(longest, dtype=torch.uint8)
        padded[: len(content)] = content
        found = [torch.empty_like(padded) for _ in range(self.size)]
        dist.all_gather(found, padded, group=self.group)
        return [_value(each[: int(length)]) for each, length in zip(found, lengths, strict=True)]

    def wait(self) -> None:
        """Compute a sum and ignore its result, as gloo's barrier does."""
        self.sum([0.0])

    def leave(self) -> None:
        """Close the connection once all ranks have ended in the same way.

        gloo's threads end with the last reference to the group. A thread that is still freeing its messages while the
        interpreter exits would abort the process (pytorch/pytorch#179291).
        """
        dist.destroy_process_group()
        del self.group

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        """Run the body on the first rank first; the others poll the rendezvous store, so no collective times out."""
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
        """Wait until the others have read the outcome: the store may be in this process, which is about to exit."""
        for _ in range(_POLLS):
            if self._store.add(f"{key}/seen", 0) == self.size - 1:
                return
            time.sleep(_POLL)


@contextmanager
def open_group(device: str) -> Iterator[Group]:
    """Join the group. All ranks but the first print nothing except their own errors."""
    rank, quiet = int(os.environ["RANK"]), console.quiet
    console.quiet = rank > 0
    try:
        group = Group(device)
        try:
            yield group
        except _AGREED:
            group.leave()
            raise
        group.leave()
    except _AGREED as error:
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
            f"rank {rank}: another process of this run has ended or cannot be reached ({_brief(error)}), so this one "
            "ends too. Look for the cause in the output of the other process. Resume with the same command and "
            "--resume; with torchrun --max-restarts=N the run resumes from its newest snapshot automatically"
        ) from None
    finally:
        console.quiet = quiet


def _own_device(name: str, local_rank: int, local_size: int) -> torch.device:
    """Return the CPU, or the GPU of this rank. Raises ConfigError if there are fewer GPUs than ranks."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cpu":
        return torch.device("cpu")
    if name != "cuda":
        raise ConfigError(
            f"train.device={name} with several processes: each uses the GPU of its own rank. Set auto, cuda or cpu"
        )
    found = torch.cuda.device_count()
    if local_rank >= found:
        raise ConfigError(
            f"{local_size} processes were started on this machine, which has {found} GPU(s): start torchrun with "
            f"--nproc-per-node {max(found, 1)}, or set train.device=cpu"
        )
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    keep_fast_attention_kernels(device)
    return device


def _is_lost(error: RuntimeError) -> bool:
    """Return whether a collective failed because of the connection; torch has no class for gloo's errors."""
    message = str(error).lower()
    return isinstance(error, dist.DistError) or "gloo" in message or "nccl" in message or "connection " in message


def _brief(error: RuntimeError) -> str:
    line = str(error).strip().splitlines()[0]
    return (line.rpartition("] ")[2] or line).partition(". ")[0]


def _bytes(value: Any) -> Tensor:
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def _value(content: Tensor) -> Any:
    return json.loads(content.numpy().tobytes())


@contextmanager
def open_ranks(device: str) -> Iterator[Ranks]:
    """Join the processes that torchrun started (RANK and WORLD_SIZE in the environment), or run alone.

    Raises ConfigError if the device is not available to all processes, RankLost if one of them has ended.
    """
    if "RANK" not in os.environ or int(os.environ.get("WORLD_SIZE", "1")) < 2:
        yield Ranks(device)
        return
    with open_group(device) as group:
        yield group


def restarted() -> bool:
    """Return whether torchrun has restarted this process after a failure; the run is then resumed."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
