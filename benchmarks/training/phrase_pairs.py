"""What neural training on a small corpus gains from what statistical models know about the same pairs.

    python benchmarks/training/phrase_pairs.py PAIRS.tsv --out FOLDER [--updates 800] [--seed 1] [--systems NAME ...]

The pairs are split by `dragoman data split`. Each system is trained with the same number of updates and the same batch
size on the training part: on the sentence pairs alone; with guided attention; with the most frequent translation of
each word as further pairs; with phrase pairs of up to 4 words that occur at least twice; with the translations of both
sides by phrase-based models (Nguyen et al. 2020, "Data diversification"). Words are aligned by `dragoman align`, and
phrase pairs are those that are consistent with its links (Och and Ney 2004). A sentence is translated by a phrase-based
model that was trained on the other three quarters of the pairs, because it knows its own training pairs by heart.
Printed: BLEU and chrF of the test part, the number of training pairs, and the CPU time.
"""

import argparse
import csv
import re
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dragoman

WORD = re.compile(r"\w+|[^\w\s]")
GUIDED = "train.objective={kind: guided_alignment}"
SYSTEMS = {"sentences": "", "guided": "", "words": "words", "phrases": "phrases", "diversified": "translations"}
"""The file of further pairs of each system."""
Spans = list[tuple[int, int]]


def phrases(links: set[tuple[int, int]], length: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the first and last words of both sides of the tightest phrase pairs that are consistent with the links."""
    rows = sorted({i for i, _ in links})
    for first in rows:
        for last in (row for row in rows if first <= row < first + length):
            inside = [j for i, j in links if first <= i <= last]
            low, high = min(inside), max(inside)
            if high - low < length and all(first <= i <= last for i, j in links if low <= j <= high):
                yield first, last, low, high


def phrase_counts(sources: list[str], targets: list[str], length: int) -> Counter[tuple[str, str]]:
    """Return how often each phrase pair occurs, as it is written in the texts."""
    spans: list[list[Spans]] = [[[m.span() for m in WORD.finditer(t)] for t in side] for side in (sources, targets)]
    words = [
        [" ".join(text[a:b] for a, b in each) for text, each in zip(side, found, strict=True)]
        for side, found in zip((sources, targets), spans, strict=True)
    ]
    aligned = dragoman.align(words[0], words[1], quiet=True)
    counts = Counter[tuple[str, str]]()
    for row, links in enumerate(aligned.alignments):
        source, target = spans[0][row], spans[1][row]
        for first, last, low, high in phrases(set(links), length):
            counts[
                sources[row][source[first][0] : source[last][1]], targets[row][target[low][0] : target[high][1]]
            ] += 1
    return counts


def written(path: Path, pairs: list[tuple[str, str]]) -> int:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None).writerows(pairs)
    return len(pairs)


def translations(out: Path, folds: int) -> list[tuple[str, str]]:
    """Return each training pair twice: with its target, and with its source, translated by a phrase-based model."""
    sides = {side: lines(out / "split" / f"train.{side}") for side in ("source", "target")}
    found: list[tuple[str, str]] = []
    for source, target in (("source", "target"), ("target", "source")):
        for fold in range(folds):
            rows = zip(sides[source], sides[target], strict=True)
            written(out / "others.tsv", [pair for row, pair in enumerate(rows) if row % folds != fold])
            folder = out / f"phrase-based-{target}-{fold}"
            shutil.rmtree(folder, ignore_errors=True)
            run(
                out,
                *("train", "task.kind=statistical_translation", "model.method.kind=phrase_based", f"out={folder}"),
                f"data.train={{pairs: {out}/others.tsv}}",
                f"data.valid={{source: {out}/split/valid.{source}, target: {out}/split/valid.{target}}}",
            )
            texts = sides[source][fold::folds]
            outputs = dragoman.load(folder).translate(texts)
            pairs = zip(texts, outputs, strict=True) if target == "target" else zip(outputs, texts, strict=True)
            found += pairs
    return found


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def run(out: Path, *arguments: str) -> None:
    with (out / "log").open("a", encoding="utf-8") as log:
        subprocess.run([sys.executable, "-m", "dragoman", *arguments], check=True, stdout=log, stderr=log)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--updates", type=int, default=800)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--systems", nargs="*", choices=SYSTEMS, default=SYSTEMS)
    arguments = parser.parse_args()
    out: Path = arguments.out
    if not (out / "split").exists():
        dragoman.split_data({"pairs": arguments.pairs}, out / "split")
    sides = [lines(out / "split" / f"train.{side}") for side in ("source", "target")]
    counts = phrase_counts(sides[0], sides[1], 4)
    words: dict[str, tuple[str, str]] = {}
    for (source, target), _ in counts.most_common():
        if WORD.fullmatch(source) and WORD.fullmatch(target) and source[0].isalpha():
            words.setdefault(source, (source, target))
    added = {"": 0, "words": written(out / "words.tsv", list(words.values()))}
    added["phrases"] = written(out / "phrases.tsv", [pair for pair, count in counts.items() if count > 1])
    if "diversified" in arguments.systems:
        added["translations"] = written(out / "translations.tsv", translations(out, 4))
    print("| system | pairs | BLEU | chrF2 | CPU s |\n| --- | ---: | ---: | ---: | ---: |", flush=True)
    for name in arguments.systems:
        more = SYSTEMS[name]
        train = f"{{source: {out}/split/train.source, target: {out}/split/train.target}}"
        command = [
            *("train", "systems=[]", "model.preset=tiny", "data.batch.tokens=512", "train.threads=1"),
            f"data.train=[{train}{f', {{pairs: {out}/{more}.tsv}}' if more else ''}]",
            f"data.valid={{source: {out}/split/valid.source, target: {out}/split/valid.target}}",
            *(f"train.max_steps={arguments.updates}", f"train.validate_every={arguments.updates // 4}"),
            *("data.cleaning.max_ratio=null", "data.cleaning.wrong_script=false", f"train.seed={arguments.seed}"),
            *([GUIDED] if name == "guided" else []),
            f"out={out}/{name}-{arguments.seed}",
        ]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        run(out, *command)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        found = dragoman.evaluate(
            command[-1].removeprefix("out="),
            source=out / "split" / "test.source",
            reference=out / "split" / "test.target",
            metric=["bleu", "chrf"],
            verdict=False,
            examples=0,
            quiet=True,
        )
        scores = f"{found['bleu'].value:.2f} | {found['chrf'].value:.2f}"
        print(f"| {name} | {len(sides[0]) + added[more]:,} | {scores} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
