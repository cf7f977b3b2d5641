"""`Engine`: the computation of a parameter update from one or more micro-batches."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Self

import torch
from torch import Tensor, nn

from dragoman.base.errors import ResourceError
from dragoman.base.log import warn
from dragoman.base.machine.memory import is_out_of_memory
from dragoman.nn.auxiliary import Auxiliary
from dragoman.nn.dropout import scale_dropout
from dragoman.nn.kernels.cpu import sum_widened
from dragoman.nn.randomness import use_generator
from dragoman.training.config import LoopConfig
from dragoman.training.machine.compilation import explain_compiler_errors
from dragoman.training.machine.journal import Journal
from dragoman.training.machine.precision import LossScale
from dragoman.training.machine.threads import Threads, one_core_for
from dragoman.training.objectives.objective import Loss, TrainingPoint
from dragoman.training.optimisers.layers import set_rate
from dragoman.training.profiling.profile import NullProfiler
from dragoman.training.ranks.parallel import SingleProcess, gather_full
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.task import Batch
from dragoman.training.updates.captured import CapturedPasses
from dragoman.training.updates.copies import NotStatic, ParameterCopies, static_sums
from dragoman.training.updates.update import LateScalars, LaunchedUpdate, MicroBatch, StepResult, Tokens, Update


@dataclass(frozen=True)
class _MicroBatchLoss:
    """The loss of a micro-batch, with its task and number of target tokens. real: False for a placeholder."""

    loss: Loss
    task: str
    tokens: int
    real: bool = True

    @property
    def scalars(self) -> list[Tensor]:
        """The values of the loss that are tensors."""
        return [each for each in (self.loss.total, self.loss.cross_entropy) if isinstance(each, Tensor)]

    def with_scalars(self, scalars: Sequence[Tensor]) -> Self:
        """Return the loss with other tensors for `scalars`."""
        total, *others = scalars
        return replace(self, loss=replace(self.loss, total=total, cross_entropy=[*others, self.loss.cross_entropy][0]))


class Engine:
    """Runs the forward and backward pass, gradient clipping and the optimiser.

    For each task, the loss is summed over all batches of an update on all ranks and divided by their number of target
    tokens, so that the gradient does not depend on how batches are cut. Random generators are seeded from (seed, step,
    micro-batch), so that a resumed run needs no stored random state.

    parallel: distributes model and objective over the ranks. threads: the pool whose threads share every batch, or
    None: all cores work on one operation at a time. captured: repeats passes on a GPU as graphs, or None. copies: the
    parameters in half precision, with which a CPU computes packed batches, or None.
    """

    def __init__(
        self,
        config: LoopConfig,
        parallel: SingleProcess,
        optimiser: torch.optim.Optimizer,
        runtime: Runtime,
        *,
        journal: Journal,
        threads: Threads | None = None,
        captured: CapturedPasses | None = None,
        copies: ParameterCopies | None = None,
    ) -> None:
        self.parallel, self.optimiser, self.runtime = parallel, optimiser, runtime
        self.clip, self.seed = config.clip, config.seed
        self.journal, self.threads, self.captured, self.copies = journal, threads, captured, copies
        self.profile = NullProfiler()
        self._scale = 1.0  # the current loss scale
        self._elements = sum(each.numel() for each in parallel.trained.parameters())
        stored = parallel.trained.state_dict(keep_vars=True).values()
        self._statistics = [tensor for tensor in stored if not isinstance(tensor, nn.Parameter)]

    @property
    def model(self) -> nn.Module:
        """The model used for validation."""
        return self.parallel.model

    @property
    def halvings(self) -> int:
        """Number of times that every batch is halved, according to the memory estimate made before the run."""
        return self.journal.get("halvings of all", 0) or 0

    def step(
        self, update: Update, point: TrainingPoint, learning_rate: float, loss_scale: LossScale | None = None
    ) -> StepResult:
        """Make one update: forward and backward pass, clipping, and the optimiser's step.

        See `launch`.
        """
        return self.launch(update, point, learning_rate, loss_scale).result()

    def launch(
        self, update: Update, point: TrainingPoint, learning_rate: float, loss_scale: LossScale | None = None
    ) -> LaunchedUpdate:
        """Make one update without waiting for its result, so that a GPU computes it while the next one is prepared.

        Updates of several processes, and those with scaled losses, are waited for, because the next one depends on
        their numbers.

        loss_scale: the scale for float16, which is adjusted after the update; None: the loss is not scaled.

        Raises ResourceError if single examples or the optimiser's state do not fit in memory. With several ranks, it is
        raised as soon as one batch does not fit, because the other ranks have already continued. Raises ConfigError if
        layers cannot be compiled.
        """
        tokens = update.tokens or _count_tokens(update.batches)
        with explain_compiler_errors():
            self._scale = 1.0 if loss_scale is None else loss_scale.value
            losses = self._forward_and_backward(update, point, tokens)
        with self.profile.phase("clipping"), one_core_for(self._elements):
            norm = gather_full(self._clip_gradients())
        overflowed = loss_scale is not None and not norm.isfinite()
        if loss_scale is not None:
            loss_scale.update(overflowed, point.step)
        with self.profile.phase("optimiser"), one_core_for(self._elements):
            if overflowed:
                self.optimiser.zero_grad(set_to_none=True)
            else:
                self._apply_gradients(learning_rate, point.step)
        late = LateScalars([*(scalar for each in losses for scalar in each.scalars), norm])
        distributed = update.micro_batches is not None

        def result() -> StepResult:
            scalars = iter(late.read())
            read = [each.with_scalars([next(scalars) for _ in each.scalars]) for each in losses]
            built = self._build_result(read, next(scalars), tokens, distributed)
            if not overflowed:
                return built
            return replace(built, gradient_norm=0.0, counts={**built.counts, "overflowed updates": [1.0]})

        if distributed or loss_scale is not None:
            completed = result()
            return LaunchedUpdate(completed.target_tokens, lambda: completed)
        return LaunchedUpdate(sum(tokens.values()), result)

    def _clip_gradients(self) -> Tensor:
        """Divide the gradients by the loss scale and clip them. Return their norm before clipping."""
        parameters = [each for each in self.parallel.trained.parameters() if each.grad is not None]
        if self._scale != 1:
            torch._foreach_div_([each.grad for each in parameters if each.grad is not None], self._scale)
        return nn.utils.clip_grad_norm_(parameters, self.clip or float("inf"))

    def _forward_and_backward(self, update: Update, point: TrainingPoint, tokens: Tokens) -> list[_MicroBatchLoss]:
        """Accumulate the gradients of all batches, computed in micro-batches that fit in memory."""
        if update.micro_batches is not None:
            return self._uncut_gradients(update.batches, update.micro_batches, point, tokens)
        statistics = [tensor.clone() for tensor in self._statistics]
        step = point.step
        recorded = self.journal.get("halvings", step) or self.halvings
        halvings = recorded
        while True:
            parts = [part for batch in update.batches for part in batch.split(2**halvings)]
            try:
                losses = self._gradients(parts, None, point, tokens)
                break
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if all(len(part.rows) == 1 for part in parts):
                    raise ResourceError(
                        f"not enough memory for a single pair at step {step}: lower data.cleaning's length limits or "
                        "the model's size"
                    ) from None
            for tensor, previous in zip(self._statistics, statistics, strict=True):
                tensor.copy_(previous)  # a resumed run does not repeat the failed attempt
            halvings += 1
            warn(f"step {step} does not fit in memory; its batches are cut into {2**halvings} parts")
        if halvings != recorded:
            self.journal.record("halvings", step, halvings)
        return losses

    def _uncut_gradients(
        self, batches: Sequence[Batch], micro_batches: Sequence[MicroBatch], point: TrainingPoint, tokens: Tokens
    ) -> list[_MicroBatchLoss]:
        """Accumulate the gradients of this rank's batches without cutting them."""
        try:
            return self._gradients(batches, micro_batches, point, tokens)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise ResourceError(
                f"not enough memory for a batch at step {point.step}. A single process of a distributed run cannot cut "
                "its batch: lower data.batch.tokens, raise train.accumulate instead, and start a new run"
            ) from None

    def _gradients(
        self, batches: Sequence[Batch], micro_batches: Sequence[MicroBatch] | None, point: TrainingPoint, tokens: Tokens
    ) -> list[_MicroBatchLoss]:
        """Accumulate the gradients of batches, one batch after another unless there are threads."""
        self.optimiser.zero_grad(set_to_none=True)
        self.parallel.trained.train()
        if self.copies is not None and all(getattr(batch, "packing", None) is not None for batch in batches):
            try:
                return self._in_parts(batches, point, tokens, self.copies)
            except NotStatic:  # a property of the model, so that a resumed run decides the same
                self.copies = None
        if self.threads is not None:
            return self._in_parts(batches, point, tokens, None)
        losses = []
        ranks = self.runtime.ranks.size
        for index, batch in enumerate(batches):
            micro = None if micro_batches is None else micro_batches[index]
            seed = _combine_seeds(self.seed, point.step, *((index,) if micro is None else micro.key))
            self._seed(seed)
            with self.profile.phase("transfer"):
                batch = batch.to(self.runtime.device)
            if self.captured is not None and not self.profile.active:
                captured = self.captured.run(batch, point, self._scale / tokens[batch.task], seed)
                if captured is not None:
                    losses.append(_MicroBatchLoss(captured, batch.task, batch.target_tokens))
                    continue
                torch.manual_seed(seed)
            with self.parallel.micro_batch(last=index == len(batches) - 1):
                with self.profile.phase("forward"), self.runtime.autocast(), scale_dropout(point.dropout):
                    loss = self.parallel.loss(batch, point)
                count = tokens[batch.task]
                # torch's wrappers average over ranks
                mean = loss.total / count if micro is None else loss.total * (micro.real * ranks / count)
                with self.profile.phase("backward"):
                    (mean * self._scale).backward()  # type: ignore[no-untyped-call]
            loss = replace(loss, total=loss.total.detach())
            losses.append(_MicroBatchLoss(loss, batch.task, batch.target_tokens, micro is None or micro.real))
        return losses

    def _seed(self, seed: int) -> None:
        """Seed the generators of the CPU and of the device.

        `torch.manual_seed` formats the call stack for each kind of GPU that is missing, which takes a quarter of a
        millisecond, several percent of an update of a small model.
        """
        if self.runtime.device.type == "cpu":
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)

    def _in_parts(
        self, batches: Sequence[Batch], point: TrainingPoint, tokens: Tokens, copies: ParameterCopies | None
    ) -> list[_MicroBatchLoss]:
        """Accumulate gradients in threads, each with a part of every batch, and sum them in a fixed order.

        copies: computes in half precision throughout, with these parameters; None: autocast chooses the precisions.
        """
        parameters = [parameter for parameter in self.parallel.trained.parameters() if parameter.requires_grad]
        inputs = parameters if copies is None else copies.refreshed(parameters)
        count = 1 if self.threads is None else self.threads.count
        shares: list[list[tuple[tuple[int, int], Batch]]] = [[] for _ in range(count)]
        for index, batch in enumerate(batches):
            for number, part in enumerate(batch.split(count) if count > 1 else [batch]):
                shares[number].append(((index, number), part))

        def loss_of(part: Batch) -> Loss:
            if copies is None:
                with self.runtime.autocast():
                    return self.parallel.loss(part, point)
            total, cross_entropy = static_sums(self.model, self.parallel.objective, part, point.step)
            return Loss(total, float(cross_entropy), part.target_tokens)

        def compute(
            share: Sequence[tuple[tuple[int, int], Batch]],
        ) -> tuple[list[Tensor | None], list[_MicroBatchLoss]]:
            sums: list[Tensor | None] = [None] * len(parameters)
            losses = []
            for key, part in share:
                generator = torch.Generator().manual_seed(_combine_seeds(self.seed, point.step, *key))
                with use_generator(generator), scale_dropout(point.dropout), self.profile.phase("forward"):
                    loss = loss_of(part)
                with self.profile.phase("backward"):
                    mean = loss.total / tokens[part.task]
                    gradients = torch.autograd.grad(mean * self._scale, inputs, allow_unused=True)
                sums = [
                    new if before is None else before if new is None else before + new
                    for before, new in zip(sums, gradients, strict=True)
                ]
                losses.append(_MicroBatchLoss(replace(loss, total=loss.total.detach()), part.task, part.target_tokens))
            return sums, losses

        with nullcontext() if copies is None else copies.replaced():
            if self.threads is None:
                results = [compute(share) for share in shares]
            else:
                results = self.threads.map(compute, shares, parallel=not self.profile.active)
        for parameter, *gradients in zip(parameters, *(gradients for gradients, _ in results), strict=True):
            found = [each for each in gradients if each is not None]
            parameter.grad = sum_widened(found) if found and copies is not None else _sum_gradients(found)
        return [each for _, losses in results for each in losses]

    def _apply_gradients(self, learning_rate: float, step: int) -> None:
        """Apply the optimiser's step."""
        set_rate(self.optimiser, learning_rate)
        try:
            self.optimiser.step()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise ResourceError(
                f"not enough memory for the optimiser's state at step {step}: choose a smaller model.preset or "
                "text.subword.size"
            ) from None
        self.optimiser.zero_grad(set_to_none=True)

    def _build_result(
        self, losses: Sequence[_MicroBatchLoss], norm: Tensor, tokens: Tokens, distributed: bool
    ) -> StepResult:
        """Build the result of an update. distributed: whether other ranks have computed parts of the update."""
        sums = _sum_losses(losses, tokens)
        if distributed:
            sums = _add_sums(self.runtime.ranks.gather(sums))
        means = {task: value / tokens[task] for task, value in sums["cross_entropy"].items()}
        return StepResult(
            sum(value / tokens[task] for task, value in sums["total"].items()),
            sum(means.values()),
            float(norm),
            sum(tokens.values()),
            sums["auxiliary"],
            sums["counts"],
            means if len(tokens) > 1 else {},
        )


_Sums = dict[str, dict[str, Any]]
"""Sums as plain values: `total` and `cross_entropy` by task, and `auxiliary` (contributions to means) and `counts` by
name."""


def _sum_losses(losses: Sequence[_MicroBatchLoss], tokens: Tokens) -> _Sums:
    sums: _Sums = {"total": {}, "cross_entropy": {}, "auxiliary": {}, "counts": {}}
    counters = Auxiliary()
    for each in losses:
        loss = each.loss
        for name, values in (
            ("total", {each.task: each.real * float(loss.total)}),
            ("cross_entropy", {each.task: each.real * float(loss.cross_entropy)}),
            (
                "auxiliary",
                {name: each.real * mean * each.tokens / tokens[each.task] for name, mean in loss.auxiliary.items()},
            ),
        ):
            for key, value in values.items():
                sums[name][key] = sums[name].get(key, 0.0) + value
        for key, count in loss.counts.items():
            counters.count(key, count * each.real)
    sums["counts"] = {key: counts.tolist() for key, counts in counters.counts.items()}
    return sums


def _add_sums(all_sums: Sequence[_Sums]) -> _Sums:
    """Return the sums over all ranks."""
    totals: _Sums = {"total": {}, "cross_entropy": {}, "auxiliary": {}, "counts": {}}
    for sums in all_sums:
        for name in ("total", "cross_entropy", "auxiliary"):
            for key, value in sums[name].items():
                totals[name][key] = totals[name].get(key, 0.0) + value
        for key, counts in sums["counts"].items():
            before = totals["counts"].get(key, [0.0] * len(counts))
            totals["counts"][key] = [a + b for a, b in zip_longest(before, counts, fillvalue=0.0)]
    return totals


def _count_tokens(batches: Sequence[Batch]) -> Tokens:
    tokens: Counter[str] = Counter()
    for batch in batches:
        tokens[batch.task] += batch.target_tokens
    return tokens


def _sum_gradients(gradients: Sequence[Tensor]) -> Tensor | None:
    """Return the sum as a new tensor, because autograd may return tensors that share memory; None if there are none."""
    if len(gradients) < 2:
        return gradients[0].clone() if gradients else None
    total = gradients[0] + gradients[1]
    for gradient in gradients[2:]:
        total += gradient
    return total


def _combine_seeds(*numbers: int) -> int:
    digest = hashlib.blake2b(" ".join(map(str, numbers)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
