"""Training speed of dragoman and other programs on the same tokens, or its loss curve compared with a reference.

    python benchmarks/training                          # all installed programs, Multi30k under $DRAGOMAN_DATA
    python benchmarks/training --only dragoman plain    # only these programs; --list shows all
    python benchmarks/training --python joey=venv/bin/python --python fairseq=other/bin/python
    python benchmarks/training --curves                 # loss of 200 updates, compared with torch's layers in float32
    python benchmarks/training --device cuda --model base    # bf16 on a GPU, with model FLOPs utilisation
    python benchmarks/training --threads 1 --cpu-seconds     # on a shared machine

All train a post-norm Transformer ("small": width 256, 3 + 3 layers, 4 heads, feed-forward 1024; "base": 512, 6 + 6, 8,
2048) with a joint embedding of 10k pieces for source, target and projection, dropout 0.1, label smoothing 0.1, Adam,
gradients clipped at norm 1, batches of at most 4096 padded target tokens (the longer side of each pair counts). Token
ids come from one joint vocabulary: dragoman reads text, and is rejected if its ids differ; the others read ids.

dragoman    `dragoman train`, with padded batches, with packed batches (data.batch.packed) and, on a GPU, with packed
            batches and CUDA graphs (train.cuda_graphs), which is the default there, also with compiled layers
plain       a loop around torch.nn.Transformer's layers; sentences sorted by length
marian      the same loop around transformers' MarianMTModel
trainer     MarianMTModel under transformers' Seq2SeqTrainer, grouped by length
joey        Joey NMT (pip install joeynmt==2.3.0), its own training program
opennmt     OpenNMT-py (3.5.1), its own training program
fairseq     fairseq (0.12.2, or fairseq-fixed 0.12.3.1 for Python 3.11), its own training program

Complete programs make batches in their usual way: Joey NMT's are not sorted by length and end with the sentence that
fills them, Seq2SeqTrainer's have a fixed number of sentences. Each contender runs in a separate process. "tuned" ones
use tcmalloc if it is installed, as `dragoman train` does by default, and otherwise glibc settings that keep large
tensors on the heap. Contenders alternate, window by window (A B C A B C …), with `--together` peers beside dragoman at
a time, so that a change in machine speed affects all; all keep their memory meanwhile (Seq2SeqTrainer 6 GiB at 4096
tokens). The time of a window is that of whole updates, including waiting for data. Losses are as each program reports
them (Joey NMT's is a divergence, lower by the entropy of the smoothed labels). Tokens are target tokens without
padding, including the end of each sentence. Printed: medians over windows, and ratios of neighbouring windows. Programs
that are not installed are skipped, with the reason. MFU is relative to a large matrix product measured here in the
contender's precision, and counts the same products per token for all.

--curves: the mean losses of windows of 50 updates on the same batches in the same order with the same learning rates
and dropout: of dragoman in bf16 and fp32, and of torch's layers and loss in fp32 from dragoman's initial parameters,
each with several random seeds of dropout, whose standard deviation is the noise.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contender import Contender, Skipped
from corpus import corpus, lengths, write_corpus
from sizes import PIECES, SIZES

PATIENCE = 900.0
"""Timeout (seconds) of a program that does not answer."""


def contenders(cuda: bool) -> list[Contender]:
    """Return all possible contenders."""
    if cuda:
        return [
            Contender("dragoman bf16", "dragoman", True),
            Contender("dragoman bf16 without graphs", "dragoman", True, options={"cuda_graphs": False}),
            Contender("dragoman bf16 padded", "dragoman", True, options={"packed": False}),
            Contender("dragoman bf16 compiled", "dragoman", True, options={"compile": True}),
            Contender("plain bf16", "plain", True),
            Contender("marian bf16", "plain", True, options={"marian": True}),
            Contender("trainer bf16", "huggingface", True),
        ]
    found = [
        Contender(f"dragoman {precision}{name}", "dragoman", precision == "bf16", options={"packed": packed})
        for precision in ("bf16", "fp32")
        for name, packed in (("", False), (" packed", True))
    ]
    for name, program, precisions, options in (
        ("plain", "plain", ("bf16", "fp32"), {}),
        ("marian", "plain", ("bf16", "fp32"), {"marian": True}),
        ("trainer", "huggingface", ("bf16", "fp32"), {}),
        ("joey", "joey", ("fp32",), {}),
        ("opennmt", "opennmt", ("fp32",), {}),
        ("fairseq", "fairseq", ("fp32",), {}),
    ):
        found += [Contender(f"{name} {each} tuned", program, each == "bf16", True, options) for each in precisions]
        found.append(Contender(f"{name} fp32 as installed", program, options=options))
    return found


class Measurement:
    """One run of this benchmark: the corpus in a folder, and the windows of each contender."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.arguments, self.folder = arguments, folder
        self.pythons = dict(each.split("=", 1) for each in arguments.python)
        self.facts = write_corpus(folder, *corpus(arguments), PIECES)
        print(
            f"{self.facts['pairs']:,} pairs, {self.facts['target_tokens']:,} target tokens, "
            f"{self.facts['size']:,} pieces, model {arguments.model}, batches of {arguments.tokens}, "
            f"{arguments.threads} threads, {arguments.device}",
            flush=True,
        )

    def start(self, contender: Contender, number: int) -> bool:
        """Start a contender; returns False, and prints the reason, if it is not available."""
        task = {
            "folder": str(self.folder),
            "model": self.arguments.model,
            "tokens": self.arguments.tokens,
            "device": self.arguments.device,
            "threads": self.arguments.threads,
            "seed": 1,
            "clock": "cpu" if self.arguments.cpu_seconds else "wall",
        }
        name = contender.name.split()[0]
        try:
            contender.start(self.pythons.get(name, sys.executable), task, self.folder / "own" / f"{number}", PATIENCE)
        except Skipped as why:
            print(f"SKIPPED {contender.name}: {why}", flush=True)
            contender.stop()
            return False
        return True

    def heat(self, group: list[Contender], numbers: Iterator[int]) -> dict[str, list[dict[str, Any]]]:
        """Run windows of several contenders alternately."""
        running = [contender for contender in group if self.start(contender, next(numbers))]
        windows: dict[str, list[dict[str, Any]]] = {contender.name: [] for contender in running}
        try:
            for number in range(self.arguments.windows + 1):
                for contender in list(running):
                    try:
                        window = contender.window(self.arguments.updates, PATIENCE)
                    except Skipped as why:
                        print(f"FAILED {contender.name}: {why}", flush=True)
                        running.remove(contender)
                        continue
                    windows[contender.name].append(window)
                    warm = " (warm-up, not counted)" if number == 0 else ""
                    print(
                        f"window {number} {contender.name:24} {speed(window):9,.0f} target tokens/s, loss "
                        f"{window['loss']:.3f}{warm}",
                        flush=True,
                    )
        finally:
            for contender in group:
                contender.stop()
        return windows

    def flops(self) -> tuple[float, dict[bool, float]]:
        """Measure FLOPs per target token, and FLOP/s of a large product in fp32 and in bf16 (key True)."""
        import torch

        from dragoman.models.kinds.encoder_decoder import ModelConfig
        from dragoman.tasks.corpora.job import flops_per_target_token
        from dragoman.text.tokenizers import VocabularySizes
        from dragoman.training.profiling.utilisation import measure_rate

        torch.set_num_threads(self.arguments.threads)
        size, device = self.facts["size"], torch.device(self.arguments.device)
        model = ModelConfig.model_validate(SIZES[self.arguments.model].settings())
        rates = {bf16: measure_rate(device, torch.bfloat16 if bf16 else torch.float32) for bf16 in (False, True)}
        return flops_per_target_token(model, VocabularySizes(size, size), lengths(self.folder)), rates

    def speeds(self, chosen: list[Contender]) -> None:
        """Run all groups, then print the results."""
        a_token, rates = self.flops()
        print(f"large matrix product: fp32 {rates[False] / 1e9:,.0f}, bf16 {rates[True] / 1e9:,.0f} GFLOP/s")
        ours = [contender for contender in chosen if contender.program == "dragoman"]
        peers = [contender for contender in chosen if contender.program != "dragoman"]
        numbers = iter(range(10**6))
        size = self.arguments.together
        lines: list[dict[str, Any]] = []
        for first in range(0, max(1, len(peers)), size):
            group = [*ours, *peers[first : first + size]]
            windows = {name: found[1:] for name, found in self.heat(group, numbers).items() if len(found) > 1}
            best = max(
                (each.name for each in ours if each.name in windows),
                key=lambda name: statistics.median(map(speed, windows[name])),
                default=None,
            )
            for contender in group:
                if contender.name in windows:
                    line = result(contender, windows, best)
                    used = line["median"] * a_token / rates[contender.bf16]
                    line["mfu"] = None if self.arguments.cpu_seconds else used
                    lines.append(line)
        print(f"\n{'':26} {'tokens/s':>9} {'range':>15} {'dragoman is':>26} {'MFU':>6} {'MiB':>6} {'batch':>6}  loss")
        for line in lines:
            against = f"{line['ratio']:.2f}× ({line['ratios'][0]:.2f}–{line['ratios'][1]:.2f})" if line["ratio"] else ""
            share = "" if line["mfu"] is None else f"{line['mfu']:.1%}"
            print(
                f"RESULT {line['name']:19} {line['median']:9,.0f} {line['range'][0]:7,.0f}–{line['range'][1]:7,.0f} "
                f"{against:>26} {share:>6} {line['mebibytes']:6,} {line['largest']:6,}  "
                f"{line['first_loss']:.3f} → {line['last_loss']:.3f}"
            )
        if self.arguments.json:
            self.arguments.json.write_text(json.dumps({"corpus": self.facts, "results": lines}, indent=1) + "\n")

    def curves(self) -> None:
        """Return losses of 200 updates, window by window."""
        kinds: dict[str, tuple[bool, dict[str, Any]]] = {
            "dragoman bf16": (True, {"packed": True}),
            "dragoman fp32": (False, {"packed": True}),
            "reference": (False, {"reference": True, "packed": True}),
        }
        found: dict[str, list[list[float]]] = {kind: [] for kind in kinds}
        number = 0
        for draws in range(1, self.arguments.draws + 1):
            for kind, (bf16, options) in kinds.items():
                number += 1
                contender = Contender("dragoman", "dragoman", bf16, tuned=True, options={**options, "draws": draws})
                try:
                    if self.start(contender, number):
                        count = self.arguments.curve // 50
                        losses = [contender.window(50, 10 * PATIENCE)["loss"] for _ in range(count)]
                        found[kind].append(losses)
                        print(f"{kind:13} draws {draws}: {show(losses)}", flush=True)
                finally:
                    contender.stop()
        reference = found.pop("reference")
        if len(reference) < 2:
            sys.exit("the comparison needs at least two reference runs")
        print(f"RESULT reference: mean {show(means(reference))}, standard deviation {show(deviations(reference))}")
        for kind, curves in found.items():
            if len(curves) < 2:
                continue
            apart = [one - other for one, other in zip(means(curves), means(reference), strict=True)]
            errors = [
                (one**2 / len(curves) + other**2 / len(reference)) ** 0.5
                for one, other in zip(deviations(curves), deviations(reference), strict=True)
            ]
            print(f"RESULT {kind}: minus the reference {show(apart, '+')}, standard error {show(errors)}")


def means(curves: list[list[float]]) -> list[float]:
    """Return means over the random seeds, per window."""
    return [statistics.mean(each) for each in zip(*curves, strict=True)]


def deviations(curves: list[list[float]]) -> list[float]:
    """Return standard deviations over the random seeds, per window."""
    return [statistics.stdev(each) for each in zip(*curves, strict=True)]


def show(losses: list[float], sign: str = "") -> str:
    """Format the values of the windows."""
    return " / ".join(f"{loss:{sign}.4f}" for loss in losses)


def speed(window: dict[str, Any]) -> float:
    """Return target tokens per second."""
    return float(window["tokens"] / window["seconds"])


def result(contender: Contender, windows: dict[str, list[dict[str, Any]]], best: str | None) -> dict[str, Any]:
    """Return median and range of one contender; ratio: speed of dragoman's best relative to it, per window."""
    own = windows[contender.name]
    speeds = sorted(map(speed, own))
    ratios = []
    if best is not None and contender.program != "dragoman":
        ratios = sorted(speed(one) / speed(other) for one, other in zip(windows[best], own, strict=False))
    return {
        "name": contender.name,
        "median": statistics.median(speeds),
        "range": (speeds[0], speeds[-1]),
        "ratio": statistics.median(ratios) if ratios else None,
        "ratios": (ratios[0], ratios[-1]) if ratios else None,
        "against": best,
        "mebibytes": own[-1]["mebibytes"],
        "largest": max(window["largest"] for window in own),
        "tokens_an_update": statistics.mean(window["tokens"] / window["updates"] for window in own),
        "first_loss": own[0]["loss"],
        "last_loss": own[-1]["loss"],
        **contender.facts,
    }


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/training", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, help="source side, one sentence per line (plain, gz, xz, zst)")
    parser.add_argument("--target", type=Path, help="target side")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="names of programs, or parts of them")
    parser.add_argument("--list", action="store_true", help="list the contenders without running any")
    parser.add_argument("--python", action="append", default=[], metavar="PROGRAM=PATH", help="its interpreter")
    parser.add_argument("--model", choices=SIZES, default="small")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    parser.add_argument("--tokens", type=int, help="padded target tokens per batch (4096; 25000 on a GPU)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="CPU threads (one per core)")
    parser.add_argument("--windows", type=int, default=7, help="measured windows per contender (7)")
    parser.add_argument("--updates", type=int, default=8, help="updates per window (8)")
    parser.add_argument(
        "--together", type=int, default=2, help="number of peers that alternate with dragoman at a time (2)"
    )
    parser.add_argument(
        "--cpu-seconds", action="store_true", help="measure CPU time of the process instead of wall time"
    )
    parser.add_argument("--curves", action="store_true", help="compare loss curves instead of speeds")
    parser.add_argument("--curve", type=int, default=200, help="updates per curve (200)")
    parser.add_argument("--draws", type=int, default=4, help="random seeds of dropout per curve (4; at least 2)")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    if arguments.draws < 2:
        parser.error("one seed has no deviation: give --draws 2 or more")
    cuda = arguments.device != "cpu"
    arguments.tokens = arguments.tokens or (25_000 if cuda else 4096)
    chosen = contenders(cuda)
    if arguments.only:
        chosen = [each for each in chosen if any(word in each.name for word in arguments.only)]
    if arguments.list or not chosen:
        print("\n".join(each.name for each in chosen) or "no such contender; --list shows them")
        return
    with tempfile.TemporaryDirectory() as folder:
        measurement = Measurement(arguments, Path(folder))
        if arguments.curves:
            measurement.curves()
        else:
            measurement.speeds(chosen)


if __name__ == "__main__":
    main()
