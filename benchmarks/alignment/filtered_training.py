"""BLEU after training on a clean text, on the same text with planted noise, and on the noisy text after filtering.

    python benchmarks/alignment/filtered_training.py --share 0.2 --minutes 15 --out runs/filtered
    python benchmarks/alignment/filtered_training.py --share 0.2 --updates 900 --preset tiny --only clean filtered

The noise is that of noise.py: four kinds in equal numbers in the 155,366 pairs of Tatoeba en–de. A noisy pair loses its
true target, so the noisy text has fewer good pairs than the clean one. Each text is the training corpus of
recipes/tatoeba-en-de.yaml for the same number of minutes or updates. `noisy` and `clean` are cleaned with the default
rules; `mismatched` also with `data.cleaning.mismatched`, and `filtered` with `final_punctuation` in addition. The table
contains BLEU on the test set. DRAGOMAN_DATA is the folder of the data sets. Runs that exist in --out are not repeated,
and an unfinished run continues.
"""

import argparse
import os
from pathlib import Path
from typing import Any

from noise import noisy_text, read

from dragoman import Translator, evaluate, train

RECIPE = Path(__file__).parents[2] / "recipes" / "tatoeba-en-de.yaml"


RUNS: dict[str, dict[str, bool]] = {
    "clean": {},
    "noisy": {},
    "mismatched": {"mismatched": True},
    "filtered": {"mismatched": True, "final_punctuation": True},
}
"""The texts, with the cleaning rules that differ from the defaults."""


def main() -> None:
    """Train the missing models and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.2, help="share of noisy pairs (0.2)")
    parser.add_argument("--minutes", type=float, default=15, help="time limit of a training run (15)")
    parser.add_argument("--updates", type=int, help="number of updates instead of minutes, on a busy machine")
    parser.add_argument("--pairs", type=int, default=155_366)
    parser.add_argument("--preset", default="small", help="size of the model (small)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=RUNS, default=list(RUNS))
    parser.add_argument("--out", type=Path, default=Path("runs/filtered"))
    arguments = parser.parse_args()
    folder: Path = arguments.out
    data = Path(os.environ["DRAGOMAN_DATA"])
    test = [row.split("\t") for row in read(data / "tatoeba/test.en-de.tsv.gz")]
    print("| training text | updates | BLEU | chrF2 |\n| --- | ---: | ---: | ---: |")
    for name in arguments.only:
        run = folder / f"{name}-{arguments.seed}"
        if not (run / "model.safetensors").exists():
            text = write_text(folder, arguments.pairs, 0.0 if name == "clean" else arguments.share)
            train(RECIPE, settings(text, run, RUNS[name], arguments), resume=(run / "training").exists())
        result = evaluate(
            run,
            source=[row[0] for row in test],
            reference=[row[1] for row in test],
            metric=["bleu", "chrf"],
            quiet=True,
        )
        updates = Translator.load(run).meta.step
        print(f"| {name} | {updates:,} | {result['bleu'].value:.2f} | {result['chrf'].value:.2f} |", flush=True)


def write_text(folder: Path, pairs: int, share: float) -> Path:
    """Write the training text with a share of noise as tab-separated pairs, unless it exists; returns its path."""
    path = folder / f"train-{share:g}.tsv"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        sources, targets, _ = noisy_text(Path(os.environ["DRAGOMAN_DATA"]), pairs, share)
        path.write_text("".join(f"{pair[0]}\t{pair[1]}\n" for pair in zip(sources, targets, strict=True)), "utf-8")
    return path


def settings(text: Path, run: Path, rules: dict[str, bool], arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that differ from those of the recipe."""
    return {
        "data.train": {"pairs": str(text)},
        "data.cleaning": rules,
        "train.max_minutes": arguments.minutes if arguments.updates is None else None,
        "train.max_steps": arguments.updates,
        "train.seed": arguments.seed,
        "model.preset": arguments.preset,
        "out": str(run),
    }


if __name__ == "__main__":
    main()
