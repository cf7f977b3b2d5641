"""Training throughput of dragoman's "small" model beside a plain `torch.nn.Transformer` loop, in one process.

    python benchmarks/training.py            # Multi30k under $DRAGOMAN_DATA; or --source FILE --target FILE

Both train the same sizes on the same tokens in the same batches: width 256, 3 + 3 layers, 4 heads, feed-forward 1024,
post-norm, one joint table of 10k pieces for source, target and projection, dropout 0.1, label smoothing 0.1, fused
Adam, gradient clipping. Batches hold sentences of like length, at most 4096 padded target tokens each. Both profit
from the same allocator settings. The contenders take turns, window by window (A B A B …), so that a machine which
slows down slows both. Printed: target tokens a second without padding, end-of-sentence counted; medians over windows.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.memory import keep_large_tensors_on_heap
from dragoman.data.batch import Batch, collate
from dragoman.data.readers import open_lines
from dragoman.models.build import ModelConfig, build_model, count_parameters
from dragoman.text.bpe import BPEConfig
from dragoman.text.special import PAD
from dragoman.text.tokenizers import TextConfig, train_tokenizers
from dragoman.train.objective import Objective, ObjectiveConfig

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


def adam(model: nn.Module) -> torch.optim.Adam:
    """The optimiser of both contenders."""
    return torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98), eps=1e-9, fused=True)


def plain_step(vocabulary: int, bf16: bool) -> Step:
    """An update of the plain loop."""
    model = PlainTransformer(vocabulary).train()
    optimiser = adam(model)

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


def dragoman_step(vocabulary: int, bf16: bool) -> Step:
    """An update of dragoman's model and objective."""
    model = build_model(ModelConfig.model_validate({"preset": "small"}), vocabulary, vocabulary).train()
    objective = Objective(ObjectiveConfig(label_smoothing=SMOOTHING))
    optimiser = adam(model)

    def step(batch: Batch) -> float:
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss = objective(model, batch)
        optimiser.zero_grad()
        (loss.total / loss.tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        return loss.total.item() / loss.tokens

    return step


def lines(path: Path) -> list[str]:
    """The text of a corpus side."""
    return [line.decode("utf-8") if isinstance(line, bytes) else line for line in open_lines(path)]


def tokenise(source: Path, target: Path) -> tuple[list[list[int]], list[list[int]], int]:
    """Ids of both sides under a joint vocabulary learned from them, and its size."""
    sources, targets = lines(source), lines(target)
    config = TextConfig(subword=BPEConfig(size=PIECES), shared=True)
    tokenizers = train_tokenizers(config, iter(sources), iter(targets))
    return tokenizers.source.encode_batch(sources), tokenizers.target.encode_batch(targets), tokenizers.target.size


def batches(sources: list[list[int]], targets: list[list[int]], seed: int) -> list[Batch]:
    """Sentences of like length together, the longer side times the sentences at most TOKENS, in random order."""
    generator = np.random.default_rng(seed)
    order = sorted(generator.permutation(len(sources)), key=lambda row: (len(targets[row]), len(sources[row])))
    groups: list[list[int]] = [[]]
    longest = 0
    for row in order:
        length = max(len(sources[row]), len(targets[row])) + 1
        longest = max(longest, length)
        if groups[-1] and longest * (len(groups[-1]) + 1) > TOKENS:
            groups.append([])
            longest = length
        groups[-1].append(int(row))
    generator.shuffle(groups)
    return [collate([sources[row] for row in group], [targets[row] for row in group], group) for group in groups]


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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, help="source side, one sentence a line (plain, gz, xz, zst)")
    parser.add_argument("--target", type=Path, help="target side")
    parser.add_argument("--windows", type=int, default=7, help="measured windows a contender (default 7)")
    parser.add_argument("--steps", type=int, default=8, help="updates a window (default 8)")
    parser.add_argument("--precisions", nargs="+", choices=("fp32", "bf16"), default=["fp32", "bf16"])
    arguments = parser.parse_args()
    keep_large_tensors_on_heap()
    torch.manual_seed(1)

    sources, targets, vocabulary = tokenise(*corpus(arguments))
    train = batches(sources, targets, seed=1)
    contenders: dict[str, Step] = {}
    for precision in arguments.precisions:
        contenders[f"dragoman {precision}"] = dragoman_step(vocabulary, precision == "bf16")
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


if __name__ == "__main__":
    main()
