"""Training throughput of recurrent translators compared with plain torch loops and Joey NMT's model, in one process.

    python benchmarks/recurrent.py           # Multi30k under $DRAGOMAN_DATA; or --source FILE --target FILE

All have a bidirectional GRU encoder, a GRU decoder, one attention head, width 256, one joint embedding of 10k pieces
for source, target and projection, dropout 0.1, label smoothing 0.1, fused Adam, gradient clipping, and the same
batches.

    luong     Luong et al. 2015 with the general scorer. Peer: nn.GRU over all tokens, then one batched attention.
    feeding   the same with input feeding. Peers: a loop over nn.GRUCell; Joey NMT's "luong" attention.
    bahdanau  the additive scorer; attention before the step. Peers: a loop over nn.GRUCell; Joey NMT's "bahdanau"
              attention, which steps before it attends, and feeds the context.

Joey NMT's encoder, decoder, loss and optimiser builder are included if `joeynmt` is installed, in fp32 (it does not
support bf16 on CPUs). The programs alternate, window by window (A B A B …), so that a change in machine speed affects
all. Printed: target tokens per second without padding, with end-of-sentence; medians over windows.
"""

import argparse
import importlib.util
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from training.corpus import corpus, make_batches, tokenise, windows
from training.sizes import CLIP, DROPOUT, PIECES, SMOOTHING

from dragoman.base.machine.startup import keep_large_tensors_on_heap
from dragoman.data.batches.batch import Batch
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.models.parts import count_parameters
from dragoman.text.symbols import BOS, EOS, PAD, UNK
from dragoman.training.config import LoopConfig
from dragoman.training.machine.journal import Journal
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.optimisers.adam import AdamConfig
from dragoman.training.ranks.parallel import SingleProcess
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.updates.engine import Engine
from dragoman.training.updates.update import Update

WIDTH, TOKENS, LEARNING_RATE = 256, 4096, 1e-4
Step = Callable[[Batch], float]
"""One update on a batch; returns the loss per token."""
WIRINGS: dict[str, dict[str, Any]] = {
    "luong": {"wiring": {"kind": "luong"}, "attention": {"scorer": {"kind": "general"}}},
    "feeding": {"wiring": {"kind": "luong", "input_feeding": True}, "attention": {"scorer": {"kind": "general"}}},
    "bahdanau": {"wiring": {"kind": "bahdanau"}},
}


class PlainRecurrent(nn.Module):
    """A translator from torch's own layers, as a user would write it."""

    def __init__(self, vocabulary: int, wiring: str) -> None:
        super().__init__()
        self.wiring = wiring
        self.table = nn.Embedding(vocabulary, WIDTH, padding_idx=PAD)
        nn.init.normal_(self.table.weight, 0, WIDTH**-0.5)
        self.dropout = nn.Dropout(DROPOUT)
        self.encoder = nn.GRU(WIDTH, WIDTH, batch_first=True, bidirectional=True)
        self.memory = nn.Linear(2 * WIDTH, WIDTH)
        self.bridge = nn.Linear(WIDTH, WIDTH)
        if wiring == "luong":
            self.decoder: nn.Module = nn.GRU(WIDTH, WIDTH, batch_first=True)
        else:
            self.decoder = nn.GRUCell(2 * WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)
        if wiring == "bahdanau":
            self.query = nn.Linear(WIDTH, WIDTH, bias=False)
            self.vector = nn.Linear(WIDTH, 1, bias=False)
        self.readout = nn.Linear((3 if wiring == "bahdanau" else 2) * WIDTH, WIDTH)

    def embed(self, tokens: Tensor) -> Tensor:
        """(B, L) → (B, L, d)."""
        return self.dropout(self.table(tokens) * WIDTH**0.5)  # type: ignore[no-any-return]

    def attend(self, queries: Tensor, keys: Tensor, states: Tensor, padding: Tensor) -> Tensor:
        """queries (B, T, d), prepared keys and states (B, S, d), padding (B, 1, S) bool → (B, T, d)."""
        if self.wiring == "bahdanau":
            scores = self.vector(torch.tanh(self.query(queries) + keys)).transpose(1, 2)
        else:
            scores = queries @ keys.transpose(1, 2)
        return torch.softmax(scores.masked_fill(padding, float("-inf")), -1) @ states  # type: ignore[no-any-return]

    def forward(self, source: Tensor, inputs: Tensor) -> Tensor:
        """source (B, S), inputs (B, T) → logits (B, T, V)."""
        padding = (source == PAD)[:, None]
        states, last = self.encoder(self.embed(source))  # without packing, which would be slower
        states, keys = self.memory(states), None
        hidden = torch.tanh(self.bridge(self.memory(torch.cat((last[0], last[1]), 1))))
        keys, embedded = self.key(states), self.embed(inputs)
        if self.wiring == "luong":
            outputs, _ = self.decoder(embedded, hidden[None])
            read = torch.cat((self.attend(outputs, keys, states, padding), outputs), 2)
        elif self.wiring == "bahdanau":
            hiddens, contexts = [], []
            for word in embedded.unbind(1):
                context = self.attend(hidden[:, None], keys, states, padding)[:, 0]
                hidden = self.decoder(torch.cat((word, context), 1), hidden)
                hiddens.append(hidden)
                contexts.append(context)
            read = torch.cat((torch.stack(hiddens, 1), embedded, torch.stack(contexts, 1)), 2)
        else:
            feed, feeds = torch.zeros_like(hidden), []
            for word in embedded.unbind(1):
                hidden = self.decoder(torch.cat((word, feed), 1), hidden)
                context = self.attend(hidden[:, None], keys, states, padding)[:, 0]
                feed = torch.tanh(self.readout(torch.cat((context, hidden), 1)))
                feeds.append(feed)
            return functional.linear(self.dropout(torch.stack(feeds, 1)), self.table.weight)
        return functional.linear(self.dropout(torch.tanh(self.readout(read))), self.table.weight)


def updates(model: nn.Module, optimiser: torch.optim.Optimizer, bf16: bool, loss_of: Callable[[Batch], Tensor]) -> Step:
    """The usual training loop for a per-token loss."""

    def step(batch: Batch) -> float:
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss = loss_of(batch)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        return loss.item()

    return step


def plain_step(vocabulary: int, wiring: str, bf16: bool) -> Step:
    """Make an update of the plain loop."""
    model = PlainRecurrent(vocabulary, wiring).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def loss_of(batch: Batch) -> Tensor:
        logits = model(batch.source, batch.inputs)
        return functional.cross_entropy(
            logits.flatten(0, 1), batch.labels.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING
        )

    return updates(model, optimiser, bf16, loss_of)


def joey_step(vocabulary: int, attention: str) -> Step:
    """Make an update with Joey NMT's model, loss and optimiser."""
    from joeynmt.builders import build_optimizer
    from joeynmt.model import build_model as build_joey
    from joeynmt.vocabulary import Vocabulary

    special = SimpleNamespace(
        unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", sep_token=None,
        unk_id=0, pad_id=1, bos_id=2, eos_id=3, sep_id=None, lang_tags=[],
    )  # fmt: skip
    words = Vocabulary([f"piece{number}" for number in range(4, vocabulary)], special)
    ids = torch.arange(vocabulary)
    ids[[UNK, PAD, BOS, EOS]] = torch.arange(4)  # its special symbols have another order
    side = {
        "type": "recurrent", "rnn_type": "gru", "hidden_size": WIDTH, "num_layers": 1, "dropout": DROPOUT,
        "embeddings": {"embedding_dim": WIDTH, "scale": True, "dropout": DROPOUT},
    }  # fmt: skip
    decoder = {
        **side,
        "attention": attention,
        "input_feeding": True,
        "init_hidden": "bridge",
        "hidden_dropout": DROPOUT,
    }
    config = {
        "encoder": {**side, "bidirectional": True},
        "decoder": decoder,
        "tied_embeddings": True,
        "tied_softmax": True,
    }
    model = build_joey(config, words, words).train()
    model.loss_function = ("crossentropy", SMOOTHING)
    settings = {"optimizer": "adam", "learning_rate": LEARNING_RATE, "adam_betas": (0.9, 0.98)}
    optimiser = build_optimizer(settings, parameters=model.parameters())

    def loss_of(batch: Batch) -> Tensor:
        lengths, order = batch.source_mask.sum(1).sort(descending=True)  # as in its batches
        total, *_ = model(
            return_type="loss",
            src=ids[batch.source[order]],
            src_length=lengths,
            src_mask=batch.source_mask[order].unsqueeze(1),
            trg_input=ids[batch.inputs[order]],
            trg=ids[batch.labels[order]],
            trg_mask=batch.target_mask[order].unsqueeze(1),
        )
        return total / batch.target_tokens  # type: ignore[no-any-return]

    return updates(model, optimiser, False, loss_of)


def config_of(wiring: str) -> ModelConfig:
    """Our model with the same sizes."""
    decoder = {"kind": "recurrent", **WIRINGS[wiring]}
    settings = {"preset": "rnn", "width": WIDTH, "decoder": decoder, "dropout": DROPOUT}
    return ModelConfig.model_validate(settings)


def dragoman_step(vocabulary: int, wiring: str, bf16: bool, folder: Path) -> Step:
    """Make an update like `dragoman train`; `folder` is for its journal."""
    model = config_of(wiring).build(vocabulary, vocabulary)
    objective = CrossEntropy(label_smoothing=SMOOTHING)
    engine = Engine(
        LoopConfig(clip=CLIP),
        SingleProcess(model, objective),
        AdamConfig().build(model, torch.float32),
        Runtime(torch.device("cpu"), torch.bfloat16 if bf16 else torch.float32),
        journal=Journal(folder / "decisions.jsonl"),
    )
    numbers = itertools.count(1)
    return lambda batch: engine.step(Update([batch]), TrainingPoint(next(numbers)), LEARNING_RATE).loss


def measure(arguments: argparse.Namespace, folder: Path) -> None:
    """Build the programs, let them alternate, print the results."""
    torch.manual_seed(1)
    sources, targets, vocabulary = tokenise(*corpus(arguments), PIECES)
    train = make_batches(sources, targets, TOKENS)
    clock = time.process_time if arguments.cpu_seconds else time.perf_counter
    joey = importlib.util.find_spec("joeynmt") is not None
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {len(train)} batches, {vocabulary} pieces")
    for wiring in arguments.wirings:
        contenders: dict[str, Step] = {}
        peers: list[tuple[str, str]] = []
        for precision in arguments.precisions:
            bf16 = precision == "bf16"
            contenders[f"dragoman {precision}"] = dragoman_step(vocabulary, wiring, bf16, folder)
            contenders[f"plain {precision}"] = plain_step(vocabulary, wiring, bf16)
            peers.append((f"dragoman {precision}", f"plain {precision}"))
            if joey and wiring != "luong" and not bf16:
                contenders["joey fp32"] = joey_step(vocabulary, {"feeding": "luong"}.get(wiring, wiring))
                peers.append(("dragoman fp32", "joey fp32"))
        if {"dragoman bf16", "joey fp32"} <= contenders.keys():
            peers.append(("dragoman bf16", "joey fp32"))  # the faster of both
        ours = count_parameters(config_of(wiring).build(vocabulary, vocabulary))
        plain = sum(parameter.numel() for parameter in PlainRecurrent(vocabulary, wiring).parameters())
        print(f"{wiring}: parameters: dragoman {ours:,}, plain {plain:,}", flush=True)
        speeds: dict[str, list[float]] = {name: [] for name in contenders}
        for number, window in zip(range(arguments.windows + 1), windows(train, arguments.steps), strict=False):
            for name, step in contenders.items():
                begin = clock()
                loss = [step(batch) for batch in window][-1]
                speed = sum(batch.target_tokens for batch in window) / (clock() - begin)
                if number:  # the first window is a warm-up: kernels are chosen, memory is allocated
                    speeds[name].append(speed)
                    print(
                        f"{wiring} window {number} {name:14} {speed:8,.0f} target tokens/s, loss {loss:.3f}", flush=True
                    )
        for one, other in peers:
            ratios = [our / their for our, their in zip(speeds[one], speeds[other], strict=True)]
            print(
                f"RESULT {wiring}: {one} {statistics.median(speeds[one]):,.0f} target tokens/s, {other} "
                f"{statistics.median(speeds[other]):,.0f}, ratio {statistics.median(ratios):.2f} "
                f"(windows {min(ratios):.2f} to {max(ratios):.2f})",
                flush=True,
            )


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, help="source side, one sentence per line (plain, gz, xz, zst)")
    parser.add_argument("--target", type=Path, help="target side")
    parser.add_argument("--windows", type=int, default=5, help="measured windows per program (default 5)")
    parser.add_argument("--steps", type=int, default=3, help="updates per window (default 3)")
    parser.add_argument(
        "--cpu-seconds",
        action="store_true",
        help="measure CPU time instead of wall time: for one thread on a shared machine",
    )
    parser.add_argument("--wirings", nargs="+", choices=tuple(WIRINGS), default=list(WIRINGS))
    parser.add_argument("--precisions", nargs="+", choices=("fp32", "bf16"), default=["fp32", "bf16"])
    arguments = parser.parse_args()
    keep_large_tensors_on_heap()
    with tempfile.TemporaryDirectory() as folder:
        measure(arguments, Path(folder))


if __name__ == "__main__":
    main()
