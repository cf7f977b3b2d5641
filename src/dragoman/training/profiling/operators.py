"""The time of torch operators, by operator and by group."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

_GROUPS: tuple[tuple[str, str], ...] = (
    ("communication between processes", r"^c10d::|gloo|nccl|^_?all_?(reduce|gather)|reduce_scatter"),
    ("optimiser and clipping", r"_fused_adam|_foreach|Optimizer|linalg_vector_norm|clip_grad"),
    ("fused attention", r"scaled_dot_product|flash_attention|efficient_attention"),
    ("matrix products", r"(^|_)(mm|bmm|mv|dot|addr)$|addmm|baddbmm|matmul|linear|conv|einsum"),
    ("softmax and loss", r"softmax|cross_?entropy|nll_loss|logsumexp|CrossEntropy|Divergence"),
    ("dropout and random numbers", r"dropout|bernoulli|random_|rand|uniform_|normal_"),
    ("norms", r"(layer|rms|batch|group)_norm"),
    ("embedding and look-up", r"embedding|gather|scatter|index"),
    ("recurrences", r"gru|lstm|rnn"),
    ("copies, casts and fills", r"copy|clone|contiguous|^cat$|stack|fill|zero|ones|full|^to$|pad"),
    ("sums and means", r"^sum|^mean|max|min|cumsum|^any$|^all$"),
    (
        "element-wise",
        r"^(add|sub|mul|div|neg|exp|log|pow|sqrt|rsqrt|where|clamp|threshold|relu|gelu|silu|sigmoid|tanh|ge|gt|le|lt|eq|ne"
        r"|bitwise|logical|addcmul|addcdiv|lerp|abs|reciprocal|tril|triu|masked)",
    ),
)
_BOOKKEEPING = "views, bookkeeping, others"
"""The group for operators that compute nothing, for autograd's bookkeeping, and for all operators without a group."""


@dataclass(frozen=True)
class Operator:
    """A torch operator. seconds: time per update, excluding the operators that it calls; calls: calls per update."""

    name: str
    group: str
    seconds: float
    calls: float


def operator_group(name: str) -> str:
    """Return the group of an operator. name: the operator's name in torch's profiler."""
    plain = name.removeprefix("aten::").removeprefix("mkldnn::")
    if name.startswith(("autograd::", "torch::autograd")) or re.search(r"Backward\d*$", name):
        return _BOOKKEEPING
    return next((group for group, pattern in _GROUPS if re.search(pattern, plain)), _BOOKKEEPING)


class Tracer:
    """Runs torch.profiler during several updates. It measures CPU time on a CPU and kernel time on a GPU."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        # Kineto, the profiler's library, would log its own progress to stderr between the messages of the run.
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
        self._profile = profile(activities=activities)

    def start(self) -> None:
        """Start recording."""
        self._profile.start()

    def stop(self, updates: int) -> Sequence[Operator]:
        """Stop recording and return the operators, slowest first. updates: number of recorded updates."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self._profile.stop()
        operators = []
        for event in self._profile.key_averages():
            if event.device_type != DeviceType.CPU:  # a kernel, whose time is included in that of its operator
                continue
            time = event.self_device_time_total if self.device.type == "cuda" else event.self_cpu_time_total
            if time > 0:
                group = operator_group(event.key)
                operators.append(Operator(event.key, group, time / 1e6 / updates, event.count / updates))
        return sorted(operators, key=lambda each: -each.seconds)


def seconds_by_group(operators: Sequence[Operator]) -> dict[str, float]:
    """Return the seconds per update of each group, slowest first."""
    seconds: dict[str, float] = {}
    for operator in operators:
        seconds[operator.group] = seconds.get(operator.group, 0.0) + operator.seconds
    return dict(sorted(seconds.items(), key=lambda item: -item[1]))
