"""A translator whose cost per token does not grow with the text, and which retrieves information 8,192 tokens away.

    python benchmarks/retrieval.py                 # about 6 minutes on one thread; --quick: 1,024 tokens, one minute

The model is the tutorial's for long texts, with one layer per side and width 64: sliding windows of 128 tokens in
encoder and decoder, linear attention over the source, rotary positions. Nothing in it compares all pairs of tokens.

- Task: a source of n random letters contains eight terms at random positions, each followed by a letter; the
  translation consists of the letters after terms 1 to 8. To generate one, the decoder must find its term among all n
  tokens by content. The chance level is one in eight. Training texts grow from 32 to 8,192 tokens; texts of 16,384
  tokens are longer than any seen in training.
- Cost, measured on the trained model: time per token of encoding a source of n tokens, time per token of greedily
  decoding n target tokens after it, and the memory of the decoder state. Compared with soft attention everywhere.

Time is CPU time: the minimum of several runs for encoding, one run for decoding.
"""

import argparse
import math
import time
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from dragoman.base.machine.startup import keep_large_tensors_on_heap
from dragoman.data.batches.batch import Batch, collate, pad
from dragoman.models.interface import tensors
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.text.symbols import BOS, EOS
from dragoman.training.objectives.cross_entropy import CrossEntropy

TERMS = LETTERS = 8
FIRST, TERM, SIZE = 4, 4 + LETTERS, 4 + LETTERS + TERMS
"""Token ids: letters from 4 on, then terms."""
PHASES = ((32, 400, 64), (128, 150, 64), (512, 100, 32), (2048, 60, 8), (8192, 60, 2))
"""Length, updates, texts per update."""
LENGTHS = (1024, 2048, 4096, 8192, 16384)
PEAK, WARMUP, TEXTS, SOFT_UP_TO = 5e-3, 50, 32, 4096
KINDS = {
    "linear": ({"kind": "window", "window": 128}, {"kind": "linear"}),
    "soft": ({"kind": "soft"}, {"kind": "soft"}),
}


def model(kind: str, seed: int) -> Seq2Seq:
    """An untrained model. kind: `linear`, which compares no pairs, or `soft`."""
    itself, across = KINDS[kind]
    stack = {"layers": 1, "heads": 4, "feedforward": 128, "norm": "pre", "attention": itself}
    decoder = {**stack, "cross_attention": across}
    settings = {"preset": None, "width": 64, "encoder": stack, "decoder": decoder, "dropout": 0.0}
    torch.manual_seed(seed)
    return ModelConfig.model_validate({**settings, "positions": {"kind": "rotary"}}).build(SIZE, SIZE)


def draw(rng: np.random.Generator, rows: int, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw sources (rows, length), targets (rows, TERMS), and the positions of the terms (rows, TERMS)."""
    sources = rng.integers(FIRST, TERM, (rows, length))
    pairs = np.stack([rng.choice(length // 2, TERMS, replace=False) for _ in range(rows)])
    each = np.arange(rows)[:, None]
    sources[each, 2 * pairs] = TERM + np.arange(TERMS)
    return sources, sources[each, 2 * pairs + 1], 2 * pairs


def learn(model: Seq2Seq, seed: int, phases: tuple[tuple[int, int, int], ...]) -> None:
    """Train with Adam and a cosine schedule over all updates; texts grow from phase to phase."""
    rng, objective = np.random.default_rng(seed), CrossEntropy(label_smoothing=0.0)
    parameters = list(model.train().parameters())
    optimiser = torch.optim.Adam(parameters, PEAK)
    updates = sum(steps for _, steps, _ in phases)
    firsts = [0, *accumulate(steps for _, steps, _ in phases)]
    began = time.process_time()
    for first, (length, steps, rows) in zip(firsts, phases, strict=False):
        for step in range(first, first + steps):
            share = 0.05 + 0.95 * (1 + math.cos(math.pi * step / updates)) / 2
            optimiser.param_groups[0]["lr"] = PEAK * min(1.0, (step + 1) / WARMUP) * share
            sources, targets, _ = draw(rng, rows, length)
            batch: Batch = collate(list(sources), list(targets), range(rows))
            loss = objective(model, batch)
            (loss.total / loss.tokens).backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimiser.step()
            optimiser.zero_grad()
        nats = float(loss.cross_entropy) / loss.tokens
        print(f"{length:>6} tokens: {steps} updates, loss {nats:.3f}, {time.process_time() - began:.0f} s", flush=True)


def read(model: Seq2Seq, sources: np.ndarray) -> Tensor:
    """Encode sources; returns the memory."""
    return model.encode(*pad(list(sources), after=(EOS,)))


@torch.inference_mode()
def write(model: Seq2Seq, sources: np.ndarray, count: int) -> tuple[Tensor, int]:
    """Decode `count` tokens greedily (rows, count); returns them and the bytes of the final state."""
    state = model.decoder.start(read(model, sources), capacity=count)
    token, written = torch.full((len(sources), 1), BOS), []
    for _ in range(count):
        output, state = model.decoder.step(token, state)
        token = output.last_logits().argmax(1, keepdim=True)
        written.append(token)
    held = sum(part.numel() * part.element_size() for part in (*tensors(state.memory), *tensors(state.cache)))
    return torch.cat(written, 1), held


def found(model: Seq2Seq, length: int, texts: int) -> tuple[float, float]:
    """Return the fraction of correct letters, overall and for terms in the first eighth of the source."""
    rng, right, early = np.random.default_rng(99), [], []
    for _ in range(texts):
        sources, targets, places = draw(rng, 1, length)
        right.append(write(model, sources, TERMS)[0].numpy() == targets)
        early.append(places < length // 8)
    hits, first = np.concatenate(right), np.concatenate(early)
    return float(hits.mean()), float(hits[first].mean())


@torch.inference_mode()
def costs(model: Seq2Seq, length: int) -> tuple[float, float, float]:
    """Return microseconds per token of encoding and of decoding, and KiB of state per text."""
    sources, _, _ = draw(np.random.default_rng(1), 1, length)
    times = []
    for _ in range(1 + max(3, 8192 // length)):
        began = time.process_time()
        read(model, sources)
        times.append(time.process_time() - began)
    began = time.process_time()
    _, held = write(model, sources, length)
    writing = time.process_time() - began - min(times)
    return 1e6 * min(times) / length, 1e6 * writing / length, held / 1024


def main() -> None:
    """Train, then print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="texts of at most 1,024 tokens")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_large_tensors_on_heap()
    phases, lengths = (PHASES[:3], LENGTHS[:1]) if arguments.quick else (PHASES, LENGTHS)
    print(f"torch {torch.__version__}, one thread, float32")
    learned = model("linear", arguments.seed)
    learn(learned, arguments.seed, phases)
    learned.eval()
    rows: dict[str, list[str]] = {"found": [], "found, terms in the first eighth": []}
    for length in lengths:
        for name, share in zip(rows, found(learned, length, TEXTS), strict=True):
            rows[name].append(f"{share:.1%}")
    for kind in KINDS:
        built = learned if kind == "linear" else model(kind, 1).eval()
        for length in lengths:
            told = costs(built, length) if kind == "linear" or length <= SOFT_UP_TO else ()
            for name, value in zip(("reading, µs a token", "writing, µs a token", "held, KiB"), told, strict=False):
                rows.setdefault(f"{kind}: {name}", []).append(f"{value:,.1f}")
    print(f"{'tokens':<36}" + "".join(f"{length:>12,}" for length in lengths))
    for name, cells in rows.items():
        print(f"{name:<36}" + "".join(f"{cell:>12}" for cell in cells))


if __name__ == "__main__":
    main()
