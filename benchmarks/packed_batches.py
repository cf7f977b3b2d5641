"""CPU seconds of forward and backward passes with padded and with packed batches, by turns in one process.

    python benchmarks/packed_batches.py --source train.en.gz --target train.de.gz
    python benchmarks/packed_batches.py --source train.en.gz --target train.de.gz --model tiny --tokens 4096 --parts 2

The lengths are those of the texts in words, times 1.15, as with subwords; the tokens are random. Each kind of batch
runs through its own epoch, as in a training run, so that new shapes occur as often. --parts: the number of parts of
each batch, as for that many threads. Printed: target tokens per CPU second, and the median of the ratios of
neighbouring windows.
"""

import argparse
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.base.machine.startup import find_tcmalloc
from dragoman.data.batches.batch import Batch, collate
from dragoman.data.batches.plan import BatchConfig, plan_epoch
from dragoman.data.files.lines import open_lines
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.training.objectives.cross_entropy import CrossEntropy

SUBWORDS_PER_WORD, LONGEST, VOCABULARY = 1.15, 120, 10_000


def lengths_of(paths: list[Path]) -> NDArray[np.int32]:
    """Return the number of tokens of each side of the pairs without long sentences, (N, 2)."""
    sides = []
    for path in paths:
        sides.append([round(SUBWORDS_PER_WORD * len(line.split())) + 1 for line in open_lines(path)])
    lengths = np.array(sides, np.int32).T
    return lengths[lengths.max(1) <= LONGEST]


def batches(lengths: NDArray[np.int32], tokens: int, packed: bool) -> Iterator[Batch]:
    """Yield the batches of an epoch, with random tokens."""
    draw = np.random.default_rng(0)
    for rows in plan_epoch(lengths, BatchConfig(tokens=tokens, packed=packed), 1, 0).batches:
        sides = [[draw.integers(4, VOCABULARY, size=count) for count in lengths[rows, side]] for side in (0, 1)]
        batch = collate(sides[0], sides[1], rows.tolist())
        yield batch.with_packing() if packed else batch


def main() -> None:
    """Parse the arguments, measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True, help="source file, plain or compressed")
    parser.add_argument("--target", type=Path, required=True, help="target file")
    parser.add_argument("--model", default="small", help="preset")
    parser.add_argument("--tokens", type=int, default=1024, help="budget of a batch")
    parser.add_argument("--precision", choices=("bfloat16", "float32"), default="bfloat16", help="of products")
    parser.add_argument("--parts", type=int, default=1, help="parts of each batch")
    parser.add_argument("--windows", type=int, default=8, help="windows of each kind of batch")
    parser.add_argument("--updates", type=int, default=8, help="batches per window")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lengths = lengths_of([arguments.source, arguments.target])
    model = ModelConfig.model_validate({"preset": arguments.model}).build(VOCABULARY, VOCABULARY).train()
    parameters, objective = list(model.parameters()), CrossEntropy()

    def window(source: Iterator[Batch]) -> float:
        read = [next(source) for _ in range(arguments.updates)]
        start = time.process_time()
        for batch in read:
            for part in batch.split(arguments.parts):
                with torch.autocast("cpu", torch.bfloat16, enabled=arguments.precision == "bfloat16"):
                    loss = objective(model, part)
                torch.autograd.grad(loss.total / part.target_tokens, parameters)
        return sum(batch.target_tokens for batch in read) / (time.process_time() - start)

    kinds = {"padded": batches(lengths, arguments.tokens, False), "packed": batches(lengths, arguments.tokens, True)}
    speeds = {kind: [window(source)] for kind, source in kinds.items()}
    for _ in range(arguments.windows):
        for kind, source in kinds.items():
            speeds[kind].append(window(source))
    found = {kind: values[1:] for kind, values in speeds.items()}  # the first window warms up
    ratios = [packed / padded for padded, packed in zip(found["padded"], found["packed"], strict=True)]
    print(
        f"{arguments.model}, {arguments.precision}, {arguments.tokens} tokens, {arguments.parts} parts: padded "
        f"{statistics.median(found['padded']):,.0f} and packed {statistics.median(found['packed']):,.0f} target tokens "
        f"per CPU second, ratio {statistics.median(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f})"
        f"{'' if find_tcmalloc() and 'tcmalloc' in os.environ.get('LD_PRELOAD', '') else ' (without tcmalloc)'}"
    )


main()
