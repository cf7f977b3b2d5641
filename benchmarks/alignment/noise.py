"""How well the scores of `dragoman align --scores` find wrong pairs: Tatoeba en–de with planted noise of four kinds.

    python benchmarks/alignment/noise.py --share 0.1 0.2 0.3 --pairs 155366 --method hmm

DRAGOMAN_DATA is the folder of the data sets. A quarter of the noise is of each kind: shuffled targets, French sentences
of Multi30k as targets, targets without their second half, and copies of the source. The targets of noisy pairs had at
least four words. The aligner is trained on the noisy text itself. The table contains the area under the ROC curve (AUC)
of each kind against the clean pairs, and the fraction of its pairs with a score below the second percentile of the
clean pairs. The last column is the share that `data.cleaning.mismatched` drops. The other cleaning rules are disabled.
"""

import argparse
import gzip
import os
import random
import tempfile
import time
from pathlib import Path

import numpy as np

from dragoman import align, check_data


def main() -> None:
    """Print the table of each share of noise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, nargs="+", default=[0.2], help="shares of noise")
    parser.add_argument("--pairs", type=int, default=155_366)
    parser.add_argument("--method", default="hmm")
    arguments = parser.parse_args()
    for share in arguments.share:
        measure(arguments.pairs, share, arguments.method)


def measure(pairs: int, share: float, method: str) -> None:
    """Plant noise, align, and print the table."""
    sources, targets, kinds = noisy_text(Path(os.environ["DRAGOMAN_DATA"]), pairs, share)
    start = time.process_time()
    scores = np.array(align(sources, targets, method=method, threads=1, quiet=True).scores)
    seconds = time.process_time() - start
    clean = np.sort(scores[kinds == ""])
    threshold = np.quantile(clean, 0.02)
    print(f"{method}, {len(sources):,} pairs, {share:.0%} noise, {seconds:.0f} CPU seconds")
    print(f"2% of the clean pairs are below {threshold:.2f}")
    dropped, detail = dropped_pairs(sources, targets)
    print(f"{detail}; {100 * dropped[kinds == ''].mean():.2f}% of the clean pairs are dropped")
    print("| noise | pairs | AUC | found, % | dropped, % |\n| --- | ---: | ---: | ---: | ---: |")
    for kind in (*KINDS, "all"):
        chosen = (kinds != "") if kind == "all" else (kinds == kind)
        noise = scores[chosen]
        area = (np.searchsorted(clean, noise, side="right") + np.searchsorted(clean, noise)).mean() / 2 / len(clean)
        found = 100 * (noise < threshold).mean()
        print(f"| {kind} | {len(noise):,} | {1 - area:.3f} | {found:.1f} | {100 * dropped[chosen].mean():.1f} |")


def dropped_pairs(sources: list[str], targets: list[str]) -> tuple[np.ndarray, str]:
    """Return whether `data.cleaning.mismatched` drops each pair, and its explanation."""
    rules = {"mismatched": True, "wrong_script": False, "duplicates": False, "max_ratio": None, "copied_words": None}
    with tempfile.TemporaryDirectory() as name:
        paths = {side: Path(name) / side for side in ("source", "target")}
        for path, texts in zip(paths.values(), (sources, targets), strict=True):
            path.write_text("".join(f"{text}\n" for text in texts))
        report = check_data(paths, rules, quiet=True)
    dropped = np.zeros(len(sources), bool)
    dropped[report.dropped["mismatched"] - 1] = True
    return dropped, report.details["mismatched"]


KINDS = ("shuffled", "French", "truncated", "copied")


def noisy_text(data: Path, size: int, share: float) -> tuple[list[str], list[str], np.ndarray]:
    """Return sources, targets and the kind of noise of each pair; empty for clean pairs."""
    chance = random.Random(1)
    rows = [line.split("\t") for line in read(data / "tatoeba/train.en-de.tsv.gz")]
    rows = chance.sample(rows, min(size, len(rows)))
    sources, targets = [row[0] for row in rows], [row[1] for row in rows]
    french = read(data / "multi30k/train.fr.gz")
    kinds = np.full(len(rows), "", dtype="U9")
    chosen = chance.sample(
        [row for row, text in enumerate(targets) if len(text.split()) >= 4], round(share * len(rows))
    )
    parts = [chosen[number::4] for number in range(4)]
    for kind, part in zip(KINDS, parts, strict=True):
        kinds[part] = kind
    moved = [targets[row] for row in parts[0][1:] + parts[0][:1]]
    for row, text in zip(parts[0], moved, strict=True):
        targets[row] = text
    for row in parts[1]:
        targets[row] = chance.choice(french)
    for row in parts[2]:
        words = targets[row].split()
        targets[row] = " ".join(words[: len(words) // 2])
    for row in parts[3]:
        targets[row] = sources[row]
    return sources, targets, kinds


def read(path: Path) -> list[str]:
    """Return the lines of a compressed file."""
    return gzip.decompress(path.read_bytes()).decode("utf-8").rstrip("\n").split("\n")


if __name__ == "__main__":
    main()
