"""Estimating a run's memory before it starts, instead of being killed in the middle of it."""

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.base.errors import ResourceError
from dragoman.base.log import info, warn
from dragoman.base.memory import available_memory
from dragoman.models.build import Seq2Seq, count_parameters
from dragoman.models.footprint import SHORT_TRIAL, Footprint, evaluate, measure, refined
from dragoman.train.config import RunConfig
from dragoman.train.decisions import Decisions
from dragoman.train.ranks.interface import Ranks

_FLOAT = 4
_ROWS_OF_LOGITS = 1024
_COPIES_OF_LOGITS = 4
_LONGER_BY_DROPOUT = 1.3
"""BPE-dropout at a rate of 0.1 splits sentences into so many times the planned pieces."""


def check_memory(
    config: RunConfig,
    model: Seq2Seq,
    lengths: NDArray[np.int32],
    decisions: Decisions,
    ranks: Ranks,
    threads: int = 1,
) -> None:
    """Compare an upper estimate with what is free (bytes); cut batches that would not fit, and remember the cut.

    A resumed run keeps its cut where that fits, though more would. Several ranks cut all alike. threads: how many each
    hold a gradient. Raises ResourceError when the parameters and the optimiser alone do not fit.
    """
    ranks.wait()  # before one of them takes what another counts as free
    on_cpu = ranks.device.type == "cpu"
    free = available_memory() // ranks.local_size if on_cpu else torch.cuda.mem_get_info(ranks.device)[0]
    ranks.wait()
    copies = 5.0 if config.train.ema is not None else 4.0  # parameters, gradients, two moments, their average
    if ranks.several and config.train.parallel == "fsdp":
        copies = 2 + copies / ranks.size  # parameters and gradients are whole during a pass
    copies += threads - 1
    fixed = int(count_parameters(model) * _FLOAT * copies)
    if fixed > free:
        raise ResourceError(
            f"the model needs about {fixed / 2**30:.1f} GiB for parameters, gradients and optimiser, but "
            f"{free / 2**30:.1f} GiB are free: choose a smaller model.preset or text.subword.size"
        )
    longest = int(lengths.max()) + 1
    tokens = max(config.data.batch.tokens, longest)
    if config.text.subword.resampling:
        tokens = int(tokens * _LONGER_BY_DROPOUT)
    if config.train.objective.r_drop is not None:
        tokens *= 2  # both passes are made at once
    if config.train.accumulate < ranks.size:  # batches are divided among ranks
        tokens = max(-(-tokens * config.train.accumulate // ranks.size), longest)
    vocabulary = model.decoder.projection.weight.size(0)
    footprint = measure(model, min(longest, SHORT_TRIAL), training=True)
    footprint = refined(footprint, model, longest, training=True, free=free - fixed)
    need = activation_bytes(footprint, tokens, longest, vocabulary)
    halvings = 0
    while fixed + need / 2**halvings > free and tokens / 2**halvings > longest:
        halvings += 1
    halvings = ranks.most(halvings)
    known = decisions.made("halvings of all", 0)
    if known is not None and halvings > known:
        warn(
            f"less memory is free than when the run began, so batches are computed in {2**halvings} parts, no longer "
            f"in {2**known}: sums are rounded otherwise, and dropout may differ, so the result is not that of an "
            "uninterrupted run bit for bit"
        )
    elif known is not None and halvings < known:
        info(f"Batches are computed in {2**known} parts, as since the run began.")
    elif halvings:
        info(f"Batches are computed in {2**halvings} parts, because {free / 2**30:.1f} GiB are free.")
    if known is None or halvings > known:
        decisions.record("halvings of all", 0, halvings)


def activation_bytes(footprint: Footprint, tokens: int, longest: int, vocabulary: int) -> int:
    """An estimate of the bytes that a forward pass over `tokens` source and target tokens holds at its end."""
    sentences = tokens / longest
    logits = min(tokens, _ROWS_OF_LOGITS) * vocabulary * _COPIES_OF_LOGITS
    return int(sentences * evaluate(footprint.training, longest)) + logits * _FLOAT
