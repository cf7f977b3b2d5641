"""`Engine`: device, precision and one optimiser step, however many parts its batches come in."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import torch
from torch import nn

from dragoman.base.errors import ResourceError
from dragoman.base.log import warn
from dragoman.base.memory import is_out_of_memory
from dragoman.data.batch import Batch
from dragoman.models.seq2seq import Seq2Seq
from dragoman.nn.auxiliary import Auxiliary
from dragoman.train.decisions import Decisions
from dragoman.train.objective import Objective
from dragoman.train.r_drop import RDrop


@dataclass(frozen=True)
class StepResult:
    """Means over the step's target tokens (nats), the gradient's norm before clipping, and the token count.

    auxiliary: means of what modules add to the loss or report of it, by name; counts: sums of what modules count.
    """

    loss: float
    cross_entropy: float
    gradient_norm: float
    target_tokens: int
    auxiliary: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, Sequence[float]] = field(default_factory=dict)


class Engine:
    """Runs forward, backward and update.

    The loss is the sum over all batches of a step divided by their target tokens, so that one big batch and its
    parts give the same gradient. The random generators are seeded from (seed, step, part): a resumed run needs no
    stored random state.
    """

    def __init__(
        self,
        model: Seq2Seq,
        objective: Objective | RDrop,
        optimiser: torch.optim.Optimizer,
        decisions: Decisions,
        device: torch.device,
        precision: torch.dtype,
        clip: float | None,
        seed: int,
    ) -> None:
        self.model, self.objective, self.optimiser, self.decisions = model, objective, optimiser, decisions
        self.device, self.precision, self.clip, self.seed = device, precision, clip, seed
        stored = model.state_dict(keep_vars=True).values()
        self._statistics = [tensor for tensor in stored if not isinstance(tensor, nn.Parameter)]

    def autocast(self) -> AbstractContextManager[object]:
        """The context in which the model runs at the engine's precision."""
        return torch.autocast(self.device.type, self.precision, enabled=self.precision != torch.float32)

    def step(self, step: int, batches: Sequence[Batch], learning_rate: float, teacher_ratio: float = 1.0) -> StepResult:
        """One update from `batches`; see `Objective` for the ratio.

        Raises ResourceError when even single pairs do not fit the memory.
        """
        statistics = [tensor.clone() for tensor in self._statistics]
        known = self.decisions.made("halvings", step) or self.decisions.made("halvings of all", 0) or 0
        halvings = known
        while True:
            parts = [part for batch in batches for part in _halved(batch, halvings)]
            try:
                result = self._gradients(step, parts, teacher_ratio)
                break
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if all(len(part.rows) == 1 for part in parts):
                    raise ResourceError(
                        f"not enough memory for a single pair at step {step}: lower data.cleaning's length limits or "
                        "the model's size"
                    ) from None
            for tensor, before in zip(self._statistics, statistics, strict=True):
                tensor.copy_(before)  # a resumed run does not repeat the part that failed
            halvings += 1
            warn(f"step {step} does not fit the memory; its batches are cut into {2**halvings} parts")
        if halvings != known:
            self.decisions.record("halvings", step, halvings)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return result

    def _gradients(self, step: int, parts: Sequence[Batch], teacher_ratio: float) -> StepResult:
        self.optimiser.zero_grad(set_to_none=True)
        self.model.train()
        tokens = sum(part.target_tokens for part in parts)
        total = cross_entropy = 0.0
        means: dict[str, float] = {}
        counted = Auxiliary()
        for index, part in enumerate(parts):
            torch.manual_seed(_mix(self.seed, step, index))
            with self.autocast():
                loss = self.objective(self.model, part.to(self.device), teacher_ratio)
            (loss.total / tokens).backward()  # type: ignore[no-untyped-call]
            total += float(loss.total.detach())
            cross_entropy += loss.cross_entropy
            for name, mean in loss.auxiliary.items():
                means[name] = means.get(name, 0.0) + mean * part.target_tokens / tokens
            for name, counts in loss.counts.items():
                counted.count(name, counts)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.clip or float("inf"))
        sums = {name: counts.tolist() for name, counts in counted.counts.items()}
        return StepResult(total / tokens, cross_entropy / tokens, float(norm), tokens, means, sums)


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """The type of matrix products; `auto` is bfloat16 where this machine multiplies it at least 1.3 times as fast.

    The choice is stored with the run, because it comes from a measurement.
    """
    if name != "auto":
        return torch.bfloat16 if name == "bfloat16" else torch.float32
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    return torch.bfloat16 if _product_seconds(torch.bfloat16) * 1.3 < _product_seconds(torch.float32) else torch.float32


def _product_seconds(kind: torch.dtype) -> float:
    """The least time of a few products of a feed-forward layer's size, after one to warm up."""
    states, weight = torch.ones(1024, 512, dtype=kind), torch.ones(512, 1024, dtype=kind)
    times = []
    for _ in range(6):
        begin = time.perf_counter()
        states @ weight
        times.append(time.perf_counter() - begin)
    return min(times[1:])


def _halved(batch: Batch, times: int) -> list[Batch]:
    parts = [batch]
    for _ in range(times):
        parts = [half for part in parts for half in (part.split() if len(part.rows) > 1 else (part,))]
    return parts


def _mix(*numbers: int) -> int:
    digest = hashlib.blake2b(" ".join(map(str, numbers)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
