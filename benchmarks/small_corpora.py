"""Every system that `dragoman train` builds by default on the first pairs of a corpus, scored on a test set.

    python benchmarks/small_corpora.py PAIRS.tsv --test TEST.tsv --size 4000 --out FOLDER [KEY=VALUE ...]

One run with the defaults on the first `--size` pairs holds out its own validation and test sets. Each of its systems
translates the separate test set with the search settings that users get. Printed: a row of BLEU and chrF for each
system, the best first by the run's own validation; the first row is therefore what `dragoman translate` uses. A second
call continues an interrupted run. KEY=VALUE settings are passed to the training, such as train.threads=1.
"""

import argparse
import itertools
import resource
import subprocess
import sys
from pathlib import Path

import dragoman
from dragoman.checkpoint.folder import read_meta


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("settings", nargs="*")
    arguments = parser.parse_intermixed_args()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    corpus, run = out / "pairs.tsv", out / "run"
    with arguments.pairs.open(encoding="utf-8", newline="\n") as lines:
        corpus.write_text("".join(itertools.islice(lines, arguments.size)), encoding="utf-8", newline="\n")
    command = [sys.executable, "-m", "dragoman", "train", "--pairs", str(corpus), "--out", str(run)]
    resumes = ["--resume"] if (run / "training").exists() else []
    with (out / "log").open("a", encoding="utf-8") as log:
        subprocess.run([*command, *resumes, *arguments.settings], check=True, stdout=log, stderr=log)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    records = read_meta(run).systems
    print(f"{corpus}: {arguments.size:,} pairs, {seconds:.0f} CPU s")
    print("| system | validation: BLEU | test: BLEU | test: chrF2 |\n| --- | ---: | ---: | ---: |")
    for record in records:
        found = dragoman.evaluate(
            run,
            pairs=arguments.test,
            system=record.name,
            metric=["bleu", "chrf"],
            verdict=False,
            examples=0,
            threads=1,
            quiet=True,
        )
        validation = record.score("BLEU")
        value = "–" if validation is None else f"{validation.value:.2f}"
        print(f"| {record.title} | {value} | {found['bleu'].value:.2f} | {found['chrf'].value:.2f} |", flush=True)


if __name__ == "__main__":
    main()
