"""Training throughput of dragoman's "small" model beside a plain `torch.nn.Transformer` loop, in one process.

    python benchmarks/training.py            # Multi30k under $DRAGOMAN_DATA; or --source FILE --target FILE

Both train the same sizes on the same tokens in the same batches: width 256, 3 + 3 layers, 4 heads, feed-forward 1024,
post-norm, one joint table of 10k pieces for source, target and projection, dropout 0.1, label smoothing 0.1, fused
Adam, gradient clipping. Batches hold sentences of like length, at most 4096 padded target tokens each. Both profit
from the same allocator settings. The contenders take turns, window by window (A B A B …), so that a machine which
slows down slows both. Printed: target tokens a second without padding, end-of-sentence counted; medians over windows.
"""

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.memory import keep_large_tensors_on_heap
from dragoman.data.batch import Batch, collate
from dragoman.data.plan import BatchConfig, plan_epoch
from dragoman.data.lines import open_lines
from dragoman.models.build import ModelConfig, build_model, count_parameters
from dragoman.text.bpe import BPEConfig
from dragoman.text.special import PAD
from dragoman.text.tokenizers import TextConfig, train_tokenizers
from dragoman.train.decisions import Decisions
from dragoman.train.engine import Engine
from dragoman.train.objective import Objective, ObjectiveConfig
from dragoman.train.optimiser import AdamConfig, build_optimiser

WIDTH, LAYERS, HEADS, FEEDFORWARD, DROPOUT, SMOOTHING, PIECES, TOKENS = 256, 3, 4, 1024, 0.1, 0.1, 10_000, 4096
LEARNING_RATE, CLIP = 1e-4, 1.0
Step = Callable[[Batch], float]
"""One update on a batch; gives the loss a token."""


class PlainTransformer(nn.Module):
    """What a user would write from torch's own layers."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, WIDTH, padding_idx=PAD)
        nn.init.normal_(self.table.weight, 0, WIDTH**-0.5)
        angles = torch.arange(512)[:, None] / 10000 ** (torch.arange(0, WIDTH, 2) / WIDTH)
        positions = torch.stack((angles.sin(), angles.cos()), -1).flatten(1)
        self.register_buffer("positions", positions, persistent=False)
        self.dropout = nn.Dropout(DROPOUT)
        sizes = (WIDTH, HEADS, FEEDFORWARD, DROPOUT)
        encoder_layer = nn.TransformerEncoderLayer(*sizes, batch_first=True)
        self.encoder = nn.TransformerEncoder(encoder_layer, LAYERS, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(*sizes, batch_first=True), LAYERS)
        for module in (self.encoder, self.decoder):
            for parameter in module.parameters():
                if parameter.dim() > 1:
                    nn.init.xavier_uniform_(parameter)

    def embed(self, tokens: Tensor) -> Tensor:
        """(B, L) → (B, L, d)."""
        embedded = self.table(tokens) * WIDTH**0.5 + self.positions[: tokens.size(1)]
        return self.dropout(embedded)  # type: ignore[no-any-return]

    def forward(self, source: Tensor, inputs: Tensor) -> Tensor:
        """source (B, S), inputs (B, T) → logits (B, T, V)."""
        padding = source == PAD
        memory = self.encoder(self.embed(source), src_key_padding_mask=padding)
        length = inputs.size(1)
        causal = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
        states = self.decoder(
            self.embed(inputs), memory, tgt_mask=causal, memory_key_padding_mask=padding, tgt_is_causal=True
        )
        return functional.linear(states, self.table.weight)


def plain_step(vocabulary: int, bf16: bool) -> Step:
    """An update of the plain loop."""
    model = PlainTransformer(vocabulary).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def step(batch: Batch) -> float:
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            logits = model(batch.source, batch.inputs)
            loss = functional.cross_entropy(
                logits.flatten(0, 1), batch.labels.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING
            )
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        return loss.item()

    return step


def dragoman_step(vocabulary: int, bf16: bool, folder: Path) -> Step:
    """An update as `dragoman train` makes it; `folder` is for its journal."""
    model = build_model(ModelConfig.model_validate({"preset": "small"}), vocabulary, vocabulary)
    engine = Engine(
        model,
        Objective(ObjectiveConfig(label_smoothing=SMOOTHING)),
        build_optimiser(AdamConfig(), model),
        Decisions(folder / "decisions.jsonl"),
        torch.device("cpu"),
        torch.bfloat16 if bf16 else torch.float32,
        clip=CLIP,
        seed=1,
    )
    numbers = itertools.count(1)
    return lambda batch: engine.step(next(numbers), [batch], LEARNING_RATE).loss


def tokenise(source: Path, target: Path) -> tuple[list[list[int]], list[list[int]], int]:
    """Ids of both sides under a joint vocabulary learned from them, and its size."""
    sources, targets = list(open_lines(source)), list(open_lines(target))
    tokenizer = train_tokenizers(TextConfig(subword=BPEConfig(size=PIECES), shared=True), sources, targets).source
    return tokenizer.encode_batch(sources), tokenizer.encode_batch(targets), tokenizer.size


def make_batches(sources: list[list[int]], targets: list[list[int]]) -> list[Batch]:
    """Sentences of like length together, sentences times the longer side at most TOKENS, in random order."""
    lengths = np.array([(len(source), len(target)) for source, target in zip(sources, targets, strict=True)], np.int32)
    plan = plan_epoch(lengths, BatchConfig(tokens=TOKENS), seed=1, epoch=0)
    return [collate([sources[row] for row in rows], [targets[row] for row in rows], rows) for rows in plan.batches]


def windows(batches: list[Batch], steps: int) -> Iterator[list[Batch]]:
    """Runs of `steps` batches, over and over."""
    start = 0
    while True:
        yield [batches[(start + step) % len(batches)] for step in range(steps)]
        start += steps


def throughput(step: Step, window: list[Batch]) -> tuple[float, float]:
    """Target tokens a second over a window, and its last loss."""
    loss = 0.0
    begin = time.perf_counter()
    for batch in window:
        loss = step(batch)
    return sum(batch.target_tokens for batch in window) / (time.perf_counter() - begin), loss


def corpus(arguments: argparse.Namespace) -> tuple[Path, Path]:
    """The two files to train on."""
    if arguments.source and arguments.target:
        return arguments.source, arguments.target
    if "DRAGOMAN_DATA" not in os.environ:
        sys.exit("give --source and --target, or set DRAGOMAN_DATA to the folder that holds multi30k/")
    folder = Path(os.environ["DRAGOMAN_DATA"]) / "multi30k"
    return folder / "train.en.gz", folder / "train.de.gz"


def measure(arguments: argparse.Namespace, folder: Path) -> None:
    """Build the contenders, let them take turns, print."""
    torch.manual_seed(1)
    sources, targets, vocabulary = tokenise(*corpus(arguments))
    train = make_batches(sources, targets)
    contenders: dict[str, Step] = {}
    for precision in arguments.precisions:
        contenders[f"dragoman {precision}"] = dragoman_step(vocabulary, precision == "bf16", folder)
        contenders[f"plain {precision}"] = plain_step(vocabulary, precision == "bf16")
    size = count_parameters(build_model(ModelConfig.model_validate({"preset": "small"}), vocabulary, vocabulary))
    plain = sum(parameter.numel() for parameter in PlainTransformer(vocabulary).parameters())
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {len(train)} batches, {vocabulary} pieces")
    print(f"parameters: dragoman {size:,}, plain {plain:,}", flush=True)

    speeds: dict[str, list[float]] = {name: [] for name in contenders}
    for number, window in zip(range(arguments.windows + 1), windows(train, arguments.steps), strict=False):
        for name, step in contenders.items():
            speed, loss = throughput(step, window)
            if number:  # the first window warms up: kernels are chosen, memory is taken
                speeds[name].append(speed)
                print(f"window {number} {name:14} {speed:8,.0f} target tokens/s, loss {loss:.3f}", flush=True)

    for precision in arguments.precisions:
        ours, theirs = speeds[f"dragoman {precision}"], speeds[f"plain {precision}"]
        ratios = [our / their for our, their in zip(ours, theirs, strict=True)]
        print(
            f"RESULT {precision}: dragoman {statistics.median(ours):,.0f} target tokens/s, "
            f"plain nn.Transformer {statistics.median(theirs):,.0f}, ratio {statistics.median(ratios):.2f} "
            f"(windows {min(ratios):.2f} to {max(ratios):.2f})"
        )
    best = max(statistics.median(speeds[name]) for name in speeds if name.startswith("plain"))
    ours_best = max(statistics.median(speeds[name]) for name in speeds if name.startswith("dragoman"))
    print(f"RESULT best of each: dragoman {ours_best:,.0f}, plain {best:,.0f}, ratio {ours_best / best:.2f}")


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, help="source side, one sentence a line (plain, gz, xz, zst)")
    parser.add_argument("--target", type=Path, help="target side")
    parser.add_argument("--windows", type=int, default=7, help="measured windows a contender (default 7)")
    parser.add_argument("--steps", type=int, default=8, help="updates a window (default 8)")
    parser.add_argument("--precisions", nargs="+", choices=("fp32", "bf16"), default=["fp32", "bf16"])
    arguments = parser.parse_args()
    keep_large_tensors_on_heap()
    with tempfile.TemporaryDirectory() as folder:
        measure(arguments, Path(folder))


if __name__ == "__main__":
    main()
