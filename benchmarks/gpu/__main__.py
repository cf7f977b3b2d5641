"""Speed on a GPU: attention kernels on new shapes, decoding vs. transformers, training vs. a plain loop.

    python benchmarks/gpu                                   # kernels, decoding, training
    python benchmarks/gpu --only kernels decoding           # some parts
    python benchmarks/gpu --only traffic                    # needs no GPU
    python benchmarks/gpu --only lines --model runs/ende --source test.en.gz --reference test.de.gz

kernels    time of PyTorch's attention kernels on new shapes and on repeated shapes
decoding   a Transformer base with random weights, sources of 20 tokens, outputs of 25: sentences per second of the cuda
           engine and of the torch engine's search, compared with transformers' Marian model of the same size (pip
           install transformers), and the time of one captured step
training   benchmarks/training --device cuda, base with batches of 25,000 tokens and big with 50,000 (needs Multi30k
           in $DRAGOMAN_DATA)
traffic    launches and memory traffic of an update, and the bound that follows from them, counted without a GPU
lines      number of lines of a test set that the cuda engine translates like the torch engine in float32, and BLEU

Prints medians of --turns measurements after a warm-up, one line per row of the table.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import torch
from decoding import decoding
from kernels import kernels
from lines import lines
from traffic import traffic

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("kernels", "decoding", "training", "traffic", "lines")


def training() -> None:
    """Run the training benchmark with the sizes of the table."""
    if "DRAGOMAN_DATA" not in os.environ:
        print("SKIPPED training: set DRAGOMAN_DATA to the folder that contains multi30k/")
        return
    for model, tokens in (("base", 25_000), ("big", 50_000)):
        arguments = ["--device", "cuda", "--model", model, "--tokens", str(tokens), "--only", "dragoman", "plain"]
        subprocess.run([sys.executable, str(ROOT / "benchmarks" / "training"), *arguments], check=False)


def main() -> None:
    """Parse the arguments and run the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, help="the parts to run")
    parser.add_argument("--turns", type=int, default=3, help="measurements per row")
    parser.add_argument("--model", type=Path, help="model folder, for lines")
    parser.add_argument("--source", type=Path, help="source file, for lines")
    parser.add_argument("--reference", type=Path, help="reference translations, for lines")
    arguments = parser.parse_args()
    if arguments.only == ["traffic"]:
        for model, tokens, vocabulary in (("base", 25_000, 10_000), ("big", 25_000, 32_000), ("base", 4_096, 32_000)):
            traffic(model, tokens, vocabulary)
        return
    if not torch.cuda.is_available():
        sys.exit("benchmarks/gpu needs a GPU: torch.cuda.is_available() is False")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    chosen = arguments.only or [*PARTS[:3], *(["lines"] if arguments.model else [])]
    if "kernels" in chosen:
        kernels()
    if "decoding" in chosen:
        decoding(arguments.turns)
    if "training" in chosen:
        training()
    if "lines" in chosen:
        if not (arguments.model and arguments.source and arguments.reference):
            parser.error("lines needs --model, --source and --reference")
        lines(arguments.model, arguments.source, arguments.reference)


main()
