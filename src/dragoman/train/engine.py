"""`Engine`: device, precision and one optimiser step, however many parts its batches come in."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from dragoman.base.errors import ResourceError
from dragoman.base.log import warn
from dragoman.base.memory import is_out_of_memory
from dragoman.data.batches.batch import Batch
from dragoman.models.seq2seq import Seq2Seq
from dragoman.nn.auxiliary import Auxiliary
from dragoman.nn.randomness import drawing_from
from dragoman.train.compilation import compilation_explained
from dragoman.train.decisions import Decisions
from dragoman.train.objectives.loss import Loss
from dragoman.train.objectives.objective import Objective
from dragoman.train.objectives.r_drop import RDrop
from dragoman.train.profiling.profile import NoProfile
from dragoman.train.ranks.interface import Ranks
from dragoman.train.ranks.parallel import Alone
from dragoman.train.ranks.sharded import full
from dragoman.train.ranks.shares import Part
from dragoman.train.threads import Threads


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


_Told = tuple[Loss, int, bool]
"""The loss of a part of an update, its target tokens, and whether it counts."""


class Engine:
    """Runs forward, backward and update.

    The loss is the sum over all batches of a step, of all ranks, divided by their target tokens, so that one big batch
    and its parts give the same gradient. The random generators are seeded from (seed, step, part): a resumed run needs
    no stored random state.

    parallel: how several ranks hold the model; None for one. threads: what divides every batch among cores; None
    where all cores work at one operation after another.
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
        ranks: Ranks | None = None,
        parallel: Alone | None = None,
        threads: Threads | None = None,
    ) -> None:
        self.threads = threads
        self.parallel = parallel or Alone(model, objective)
        self.model, self.optimiser, self.decisions = self.parallel.model, optimiser, decisions
        self.device, self.precision, self.clip, self.seed = device, precision, clip, seed
        self.ranks = ranks or Ranks(str(device))
        self.profile = NoProfile()
        stored = model.state_dict(keep_vars=True).values()
        self._statistics = [tensor for tensor in stored if not isinstance(tensor, nn.Parameter)]

    def autocast(self) -> AbstractContextManager[object]:
        """The context in which the model runs at the engine's precision."""
        return torch.autocast(self.device.type, self.precision, enabled=self.precision != torch.float32)

    @property
    def halvings(self) -> int:
        """How often every batch is halved, by the estimate made before the run."""
        return self.decisions.made("halvings of all", 0) or 0

    def step(
        self,
        step: int,
        batches: Sequence[Batch],
        learning_rate: float,
        teacher_ratio: float = 1.0,
        parts: Sequence[Part] | None = None,
        tokens: int | None = None,
    ) -> StepResult:
        """One update from `batches`; see `Objective` for the ratio.

        parts, tokens: with several ranks, what each of this rank's batches is, and the target tokens of all ranks.
        Raises ResourceError when even single pairs, or the optimiser's state, do not fit the memory; with several ranks
        as soon as a batch does not, because the others have gone on. Raises ConfigError where layers to be compiled
        cannot be.
        """
        with compilation_explained():
            if parts is None:
                read = self._halving(step, batches, teacher_ratio)
            else:
                read = self._shared(step, batches, teacher_ratio, parts, tokens)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate
        try:
            with self.profile.phase("optimiser"):
                self.optimiser.step()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise ResourceError(
                f"not enough memory for the optimiser's state at step {step}: choose a smaller model.preset or "
                "text.subword.size"
            ) from None
        self.optimiser.zero_grad(set_to_none=True)
        return read()

    def _shared(
        self, step: int, batches: Sequence[Batch], teacher_ratio: float, parts: Sequence[Part], tokens: int | None
    ) -> Callable[[], StepResult]:
        """The gradients of this rank's batches, none of which it may cut."""
        try:
            return self._gradients(step, batches, teacher_ratio, parts, tokens)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise ResourceError(
                f"not enough memory for a batch at step {step}, which one of several processes cannot cut by "
                "itself: lower data.batch.tokens, raise train.accumulate instead, and start anew"
            ) from None

    def _halving(self, step: int, batches: Sequence[Batch], teacher_ratio: float) -> Callable[[], StepResult]:
        """The gradients, from ever smaller parts until they fit the memory."""
        statistics = [tensor.clone() for tensor in self._statistics]
        known = self.decisions.made("halvings", step) or self.halvings
        halvings = known
        while True:
            cut = [part for batch in batches for part in batch.cut(2**halvings)]
            try:
                read = self._gradients(step, cut, teacher_ratio)
                break
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if all(len(part.rows) == 1 for part in cut):
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
        return read

    def _gradients(
        self,
        step: int,
        batches: Sequence[Batch],
        teacher_ratio: float,
        parts: Sequence[Part] | None = None,
        tokens: int | None = None,
    ) -> Callable[[], StepResult]:
        """What reads the result off the device: done last, since on a GPU it waits for all that was started before."""
        self.optimiser.zero_grad(set_to_none=True)
        self.parallel.trained.train()
        tokens = tokens or sum(batch.target_tokens for batch in batches)
        if self.threads is not None:
            told = self._by_threads(self.threads, step, batches, teacher_ratio, tokens)
        else:
            told = self._one_by_one(step, batches, teacher_ratio, parts, tokens)
        with self.profile.phase("clipping"):
            norm = full(nn.utils.clip_grad_norm_(self.parallel.trained.parameters(), self.clip or float("inf")))
        return lambda: self._result(told, norm, tokens, parts is not None)

    def _one_by_one(
        self, step: int, batches: Sequence[Batch], teacher_ratio: float, parts: Sequence[Part] | None, tokens: int
    ) -> list[_Told]:
        """Gradients are added up where the optimiser looks for them."""
        told = []
        for index, batch in enumerate(batches):
            key, counts = ((index,), True) if parts is None else (parts[index].key, parts[index].counts)
            torch.manual_seed(_mix(self.seed, step, *key))
            with self.profile.phase("transfer"):
                batch = batch.to(self.device)
            with self.parallel.part(last=index == len(batches) - 1):
                with self.profile.phase("forward"), self.autocast():
                    loss = self.parallel.loss(batch, teacher_ratio)
                # torch's wrappers take the mean over ranks
                scaled = loss.total / tokens if parts is None else loss.total * (counts * self.ranks.size / tokens)
                with self.profile.phase("backward"):
                    scaled.backward()  # type: ignore[no-untyped-call]
            told.append((replace(loss, total=loss.total.detach()), batch.target_tokens, counts))
        return told

    def _by_threads(
        self, threads: Threads, step: int, batches: Sequence[Batch], teacher_ratio: float, tokens: int
    ) -> list[_Told]:
        """The same, every thread taking its share of each batch. Shares are added in the same order every time."""
        learned = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        shares: list[list[tuple[tuple[int, int], Batch]]] = [[] for _ in range(threads.count)]
        for index, batch in enumerate(batches):
            for number, piece in enumerate(batch.cut(threads.count)):
                shares[number].append(((index, number), piece))

        def compute(share: Sequence[tuple[tuple[int, int], Batch]]) -> tuple[list[Tensor | None], list[_Told]]:
            gradients: list[Tensor | None] = [None] * len(learned)
            told = []
            for key, piece in share:
                draws = torch.Generator().manual_seed(_mix(self.seed, step, *key))
                with drawing_from(draws), self.profile.phase("forward"), self.autocast():
                    loss = self.parallel.loss(piece, teacher_ratio)
                with self.profile.phase("backward"):
                    found = torch.autograd.grad(loss.total / tokens, learned, allow_unused=True)
                gradients = [
                    new if before is None else before if new is None else before + new
                    for before, new in zip(gradients, found, strict=True)
                ]
                told.append((replace(loss, total=loss.total.detach()), piece.target_tokens, True))
            return gradients, told

        results = threads.map(compute, shares, together=not self.profile.active)
        for parameter, *gradients in zip(learned, *(gradients for gradients, _ in results), strict=True):
            parameter.grad = _total([each for each in gradients if each is not None])
        return [each for _, told in results for each in told]

    def _result(self, told: list[_Told], norm: Tensor, tokens: int, shared: bool) -> StepResult:
        """shared: among ranks."""
        total = cross_entropy = 0.0
        means: dict[str, float] = {}
        counted = Auxiliary()
        for loss, own, counts in told:
            total += counts * float(loss.total)
            cross_entropy += counts * float(loss.cross_entropy)
            for name, mean in loss.auxiliary.items():
                means[name] = means.get(name, 0.0) + counts * mean * own / tokens
            for name, each in loss.counts.items():
                counted.count(name, each * counts)
        sums = {name: counts.tolist() for name, counts in counted.counts.items()}
        if shared:
            total, cross_entropy, means, sums = _summed(self.ranks, total, cross_entropy, means, sums)
        return StepResult(total / tokens, cross_entropy / tokens, float(norm), tokens, means, sums)


def _summed(
    ranks: Ranks, total: float, cross_entropy: float, means: dict[str, float], counts: dict[str, list[float]]
) -> tuple[float, float, dict[str, float], dict[str, list[float]]]:
    """All ranks' sums, in one message: the names and lengths are the same on each."""
    flat = [total, cross_entropy, *means.values(), *(value for values in counts.values() for value in values)]
    sums = iter(ranks.sum(flat))
    total, cross_entropy = next(sums), next(sums)
    means = {name: next(sums) for name in means}
    return total, cross_entropy, means, {name: [next(sums) for _ in values] for name, values in counts.items()}


def _total(gradients: Sequence[Tensor]) -> Tensor | None:
    """The sum as a tensor of its own: what autograd gives for one parameter may lie where another's lies too."""
    if len(gradients) < 2:
        return gradients[0].clone() if gradients else None
    total = gradients[0] + gradients[1]
    for gradient in gradients[2:]:
        total += gradient
    return total


def _mix(*numbers: int) -> int:
    digest = hashlib.blake2b(" ".join(map(str, numbers)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
