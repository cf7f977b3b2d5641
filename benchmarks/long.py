"""Time and memory per token of long texts: window and linear attention compared with full attention, on one CPU thread.

    python benchmarks/long.py                # about 5 minutes; --lengths 1024 4096 for a quick look

For each length n, one sentence of n tokens (width 128, two layers per side, 4 heads, window 128):

- encoder: forward and backward pass of the encoder.
- decoder: forward and backward pass of the decoder in training, over a source of 64 tokens.
- whole: forward and backward pass of a training step, including the loss, with source and target of n tokens each;
  attention over the source is linear as well, except in the case of full attention.
- cached step: the decoder reads one more token after n others (one hypothesis, source of 64 tokens). Time and memory
  are those of the step and of its state, not divided by n.

Time is CPU time of this process, the minimum of several runs that alternate between lengths, so that other load hardly
affects it. Memory is the peak allocated by torch during a separate run, by torch's profiler. Full attention is measured
up to 4096 tokens. The last column is the ratio of the largest value to the smallest.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from dragoman.base.machine.startup import keep_large_tensors_on_heap
from dragoman.data.batches.batch import collate
from dragoman.models.interface import State, tree_map
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.training.objectives.cross_entropy import CrossEntropy

VOCABULARY, SHORT_SOURCE, FULL_UP_TO, DECODED, REPEATED = 1000, 64, 4096, 32, 8192
KINDS = ("window", "linear", "soft")
Run = Callable[[], object]


def model(kind: str) -> Seq2Seq:
    """A model with one kind of attention; attention over the source is linear, or full if all is full."""
    stack = {"layers": 2, "heads": 4, "feedforward": 256, "norm": "pre", "attention": {"kind": kind}}
    cross = {"cross_attention": {"kind": "soft" if kind == "soft" else "linear"}}
    settings = {"preset": None, "width": 128, "encoder": stack, "decoder": {**stack, **cross}, "dropout": 0.1}
    torch.manual_seed(1)
    return ModelConfig.model_validate(settings).build(VOCABULARY, VOCABULARY)


def tokens(length: int) -> Tensor:
    """Return one sentence (1, length)."""
    return torch.randint(4, VOCABULARY, (1, length))


def encoder(model: Seq2Seq, length: int) -> Run:
    """Forward and backward pass of the encoder."""
    source = tokens(length)
    return lambda: model.encode(source, torch.ones_like(source, dtype=torch.bool)).states.sum().backward()


def decoder(model: Seq2Seq, length: int) -> Run:
    """Forward and backward pass of the decoder."""
    source, inputs = tokens(SHORT_SOURCE), tokens(length)
    with torch.no_grad():
        memory = model.encode(source, torch.ones_like(source, dtype=torch.bool))
    return lambda: model.decoder.step(inputs, model.decoder.start(memory))[0].hidden.sum().backward()


def whole(model: Seq2Seq, length: int) -> Run:
    """Forward and backward pass of a training step."""
    batch = collate([tokens(length - 1)[0].numpy()], [tokens(length - 1)[0].numpy()], [0])
    objective = CrossEntropy()
    return lambda: objective(model, batch).total.backward()


def cached_steps(model: Seq2Seq, length: int) -> tuple[Run, int]:
    """Return several steps of one token after `length` others, and the bytes of the state between them."""
    source = tokens(SHORT_SOURCE)
    with torch.no_grad():
        memory = model.encode(source, torch.ones_like(source, dtype=torch.bool))
        _, first = model.decoder.step(tokens(length), model.decoder.start(memory))
    following = tokens(1)

    @torch.no_grad()
    def run() -> None:
        state: State = first
        for _ in range(DECODED):
            _, state = model.decoder.step(following, state)

    sizes: list[int] = []
    tree_map(lambda tensor: sizes.append(tensor.numel() * tensor.element_size()) or tensor, first.cache)
    return run, sum(sizes)


def peak_bytes(run: Run) -> int:
    """Return the peak memory of torch's CPU allocator during `run`, relative to its start."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        run()
    with tempfile.TemporaryDirectory() as folder:
        profile.export_chrome_trace(str(trace := Path(folder) / "trace.json"))
        events = json.loads(trace.read_text())["traceEvents"]
    changes = [(each["ts"], each["args"]["Bytes"]) for each in events if each.get("name") == "[memory]"]
    held = most = 0
    for _, change in sorted(changes, key=lambda each: each[0]):
        held += change
        most = max(most, held)
    return most


def seconds(runs: dict[int, Run], rounds: int) -> dict[int, float]:
    """Return the minimum CPU time of each run, after a warm-up; the runs alternate.

    Short runs are repeated within their turn, because the first one after a very long run is slowed by its effect on
    the heap.
    """
    times: dict[int, list[float]] = {length: [] for length in runs}
    for turn in range(rounds + 1):
        for length, run in runs.items():
            for _ in range(max(1, REPEATED // length)):
                begin = time.process_time()
                run()
                if turn:
                    times[length].append(time.process_time() - begin)
    return {length: min(each) for length, each in times.items()}


def row(title: str, values: dict[int, float], lengths: list[int]) -> None:
    """Print one line of the table."""
    cells = "".join(f"{values[length]:>12.3f}" if length in values else f"{'–':>12}" for length in lengths)
    print(f"{title:<34}{cells}{max(values.values()) / min(values.values()):>10.2f}", flush=True)


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[1024, 4096, 16384, 65536])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    keep_large_tensors_on_heap()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread, float32")
    print(f"{'tokens':<34}" + "".join(f"{length:>12}" for length in arguments.lengths) + f"{'ratio':>10}")
    for name, part in (("encoder", encoder), ("decoder", decoder), ("whole", whole)):
        for kind in KINDS:
            lengths = [length for length in arguments.lengths if kind != "soft" or length <= FULL_UP_TO]
            built = model(kind).train()
            runs = {length: part(built, length) for length in lengths}
            times = seconds(runs, arguments.rounds)
            memory = {length: peak_bytes(run) / length / 1024 for length, run in runs.items()}
            row(f"{name} {kind}, ms per token", {n: 1000 * each / n for n, each in times.items()}, arguments.lengths)
            row(f"{name} {kind}, KiB per token", memory, arguments.lengths)
    for kind in KINDS:
        lengths = [length for length in arguments.lengths if kind != "soft" or length <= FULL_UP_TO]
        built = model(kind).eval()
        steps = {length: cached_steps(built, length) for length in lengths}
        times = seconds({length: run for length, (run, _) in steps.items()}, arguments.rounds)
        peaks = {length: peak_bytes(partial(run)) / 1024 for length, (run, _) in steps.items()}
        row(f"cached step {kind}, ms", {n: 1000 * each / DECODED for n, each in times.items()}, arguments.lengths)
        row(f"cached step {kind}, KiB during the step", peaks, arguments.lengths)
        row(f"cached step {kind}, KiB of cache", {n: held / 1024 for n, (_, held) in steps.items()}, arguments.lengths)


if __name__ == "__main__":
    main()
