"""An estimate of a run's memory before the run starts, so that it is not killed later."""

import torch
from torch import nn

from dragoman.base.errors import ResourceError
from dragoman.base.log import info, warn
from dragoman.base.machine.memory import available_memory
from dragoman.models.parts import count_parameters
from dragoman.training.machine.journal import Journal
from dragoman.training.ranks.ranks import Ranks
from dragoman.training.task import Job

_FLOAT = 4


def check_memory(job: Job, model: nn.Module, journal: Journal, ranks: Ranks, threads: int = 1) -> None:
    """Compare an upper estimate of the memory with the free memory, and record into how many parts batches are cut.

    A resumed run keeps its number of parts if these fit, even if fewer parts would also fit. All ranks use the same
    number of parts. threads: number of threads, each of which holds a gradient. Raises ResourceError if parameters and
    optimiser do not fit.
    """
    ranks.wait()  # otherwise, one rank could allocate memory that another counts as free
    on_cpu = ranks.device.type == "cpu"
    free = available_memory() // ranks.local_size if on_cpu else torch.cuda.mem_get_info(ranks.device)[0]
    ranks.wait()
    config = job.run.train
    copies = 5.0 if config.ema is not None else 4.0  # parameters, gradients, two moments, moving average
    if ranks.distributed and config.parallel == "fsdp":
        copies = 2 + copies / ranks.size  # parameters and gradients are complete during a pass
    copies += threads - 1
    fixed = int(count_parameters(model) * _FLOAT * copies)
    if fixed > free:
        raise ResourceError(
            f"the model needs about {fixed / 2**30:.1f} GiB for parameters, gradients and optimiser, but "
            f"{free / 2**30:.1f} GiB are free: choose a smaller model.preset or text.subword.size"
        )
    longest = int(job.lengths.max()) + 1
    tokens = job.peak_tokens()
    if job.batches_per_update < ranks.size:  # batches are divided among ranks
        tokens = max(-(-tokens * job.batches_per_update // ranks.size), longest)
    need = job.activation_bytes(model, tokens, free - fixed)
    halvings = 0
    while fixed + need / 2**halvings > free and tokens / 2**halvings > longest:
        halvings += 1
    halvings = ranks.max(halvings)
    previous = journal.get("halvings of all", 0)
    if previous is not None and halvings > previous:
        warn(
            f"less memory is free than when the run started, so batches are computed in {2**halvings} parts instead of "
            f"{2**previous}: sums round differently and dropout may differ, so the result is not bit-identical to that "
            "of an uninterrupted run"
        )
    elif previous is not None and halvings < previous:
        info(f"Batches are computed in {2**previous} parts, as before the run was resumed.")
    elif halvings:
        info(f"Batches are computed in {2**halvings} parts, because only {free / 2**30:.1f} GiB are free.")
    if previous is None or halvings > previous:
        journal.record("halvings of all", 0, halvings)
