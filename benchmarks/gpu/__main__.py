"""Speed on a GPU: attention kernels on new shapes, decoding beside transformers, training beside a plain loop.

    python benchmarks/gpu                                   # all parts but the last two
    python benchmarks/gpu --only kernels decoding           # some of them
    python benchmarks/gpu --only lines --model runs/ende --source test.en.gz --reference test.de.gz

kernels    seconds of PyTorch's attention kernels for shapes met for the first time and again
decoding   a Transformer base with random weights, sources of 20 tokens, outputs of 25: sentences per second of the cuda
           engine and of the torch engine's search, beside transformers' Marian model of the same size (pip install
           transformers), and the time of one captured step
training   benchmarks/training --device cuda, base with batches of 25,000 tokens and big with 50,000 (needs Multi30k
           under $DRAGOMAN_DATA)
lines      how many lines of a test set the cuda engine translates as the search in float32 does, and BLEU

Printed: medians of --turns turns after one that is not counted, one line per row of the table.
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

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("kernels", "decoding", "training", "lines")


def training() -> None:
    """The training benchmark with the sizes of the table."""
    if "DRAGOMAN_DATA" not in os.environ:
        print("SKIPPED training: set DRAGOMAN_DATA to the folder that holds multi30k/")
        return
    for model, tokens in (("base", 25_000), ("big", 50_000)):
        arguments = ["--device", "cuda", "--model", model, "--tokens", str(tokens), "--only", "dragoman", "plain"]
        subprocess.run([sys.executable, str(ROOT / "benchmarks" / "training"), *arguments], check=False)


def main() -> None:
    """Parse, and run the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, help="the parts to run")
    parser.add_argument("--turns", type=int, default=3, help="measurements per row")
    parser.add_argument("--model", type=Path, help="a model folder, for lines")
    parser.add_argument("--source", type=Path, help="a file of sources, for lines")
    parser.add_argument("--reference", type=Path, help="its reference translations")
    arguments = parser.parse_args()
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
