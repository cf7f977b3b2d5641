"""Denoising pre-training: parsing, translation and summarization from a pre-trained model and from scratch.

    python benchmarks/denoising.py --pretraining 45 --minutes 15
    python benchmarks/denoising.py --tasks multi30k scitldr --noise span_corruption --seeds 3
    python benchmarks/denoising.py --steps 2 --lines 20         # checks in minutes that everything runs

An encoder–decoder is pre-trained on plain text in $DRAGOMAN_DATA: books, both sides of tatoeba as separate sentences,
and the training texts of the tasks without their targets. Then each task is trained twice for the same number of
minutes, with the same model: once with `train.start`, and once from scratch with the vocabulary size of its recipe.

    parsing   treebank/, files 0001 to 0169; bracket F1 on 0170 to 0199 (dev and test)
    multi30k  the first 10,000 pairs, English to German; BLEU on test_2016_flickr
    scitldr   all papers; ROUGE-L on the test set

Test sets do not select checkpoints. --out keeps the texts and all runs; runs that exist there are not repeated. The
results are printed as a table and written to results.json in the same folder.
"""

import argparse
import json
import os
import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from dragoman import evaluate, evaluate_labels, evaluate_outputs, train
from dragoman.data.files.jsonl import read_objects
from dragoman.data.files.lines import open_lines
from dragoman.data.labelled.corpus import TreebankCorpusConfig
from dragoman.data.labelled.read import read_parsed

DATA = Path(os.environ.get("DRAGOMAN_DATA", "data"))
TREES = "treebank/treebank.zip/treebank/combined"
PAIRS = 10_000
STACK = {"kind": "transformer", "layers": 4, "heads": 4, "feedforward": 512, "norm": "pre"}
POSITIONS = {"kind": "rotary"}
BODY = {"preset": None, "width": 192, "encoder": STACK, "positions": POSITIONS}
MODEL = {**BODY, "decoder": STACK}
SCHEDULE = {"optimiser": {"kind": "muon"}, "schedule": {"kind": "cosine", "peak": 0.002, "warmup": 0.05}, "ema": None}
VOCABULARY = {"pretraining": 8000, "parsing": 4000, "multi30k": 6000, "scitldr": 4000}
DROPOUT = {"parsing": 0.3, "multi30k": 0.3, "scitldr": 0.3}
FINE_TUNING = {"schedule": {"kind": "cosine", "peak": 0.001, "warmup": 0.05}, "head_rate": 2}  # of the parser


def main() -> None:
    """Pre-train, train all tasks from the result and from scratch, and print the scores."""
    arguments = options()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    write_texts(out, arguments.lines)
    body = out / f"denoising-{arguments.noise}"
    limit = limits(arguments.pretraining, arguments.steps)
    if not (body / "model.safetensors").is_file():
        train(pretraining(out, body, arguments.noise, limit))
    scores: dict[str, dict[str, list[float]]] = {}
    for name in arguments.tasks:
        for start in (body, None):
            column = "scratch" if start is None else "denoising"
            for seed in range(1, arguments.seeds + 1):
                run = out / f"{name}-{body.name if start else column}-{seed}"
                if not (run / "model.safetensors").is_file():
                    limit = limits(arguments.minutes, arguments.steps)
                    settings = task(name, out, limit, start, is_trial=arguments.lines is not None)
                    settings["train"] |= {"seed": seed}
                    train({**settings, "out": str(run)})
                scores.setdefault(name, {}).setdefault(column, []).append(
                    score(name, run, out, arguments.lines is not None)
                )
    (out / "results.json").write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")
    print(table(scores))


def limits(minutes: float, steps: int | None) -> dict[str, Any]:
    """Return the limit of a run: minutes, or a number of updates for a trial."""
    return {"max_minutes": minutes} if steps is None else {"max_steps": steps}


def pretraining(out: Path, body: Path, noise: str, limit: dict[str, Any]) -> dict[str, Any]:
    """Return the recipe of the pre-training."""
    return {
        "task": {"kind": "denoising"},
        "data": {
            "train": [{"text": str(out / f"{name}.txt")} for name in ("books", "sentences", "tasks")],
            "valid": {"text": str(out / "valid.txt")},
            "noise": {"kind": noise},
            "temperature": 2,
        },
        "text": {"subword": {"kind": "bpe", "size": VOCABULARY["pretraining"]}},
        "model": {**MODEL, "dropout": 0.1},
        "train": {**SCHEDULE, **limit},
        "out": str(body),
    }


def task(name: str, out: Path, limit: dict[str, Any], start: Path | None, is_trial: bool) -> dict[str, Any]:
    """Return the recipe of a task. start: the pre-trained model, or None. is_trial: use a few trees."""
    data: dict[str, Any]
    if name == "parsing":
        files = {"train": ["wsj_00??.mrg", "wsj_01[0-6]?.mrg"], "valid": ["wsj_017?.mrg", "wsj_018[0-4].mrg"]}
        if is_trial:
            files = {"train": ["wsj_000?.mrg"], "valid": ["wsj_0170.mrg"]}
        data = {side: [{"path": str(DATA / TREES / each)} for each in names] for side, names in files.items()}
        settings = {"task": {"kind": "parsing"}, "data": {**data, "batch": {"tokens": 2000}}}
    elif name == "multi30k":
        pairs = {"source": str(out / "multi30k.en"), "target": str(out / "multi30k.de")}
        valid = {"source": str(out / "multi30k-val.en"), "target": str(out / "multi30k-val.de")}
        settings = {"data": {"train": pairs, "valid": valid, "target_language": "de", "batch": {"tokens": 2048}}}
    else:
        template = {"source": "{source}", "target": "{target}"}
        names = {"train": out / "scitldr.jsonl", "valid": out / "scitldr-dev.jsonl"}
        data = {side: {"pairs": str(path), "template": template} for side, path in names.items()}
        search = {"no_repeat_ngram": 3, "length_penalty": {"kind": "mean"}}
        settings = {"task": {"kind": "summarization"}, "data": data, "search": search}
    schedule = {**SCHEDULE, "dropout_epochs": 0}
    model = {**(BODY if name == "parsing" else MODEL), "dropout": DROPOUT[name]}
    if start is not None:
        schedule |= FINE_TUNING if name == "parsing" else {}
        return {**settings, "model": model, "train": {**schedule, **limit, "start": str(start)}}
    text = {"subword": {"kind": "bpe", "size": VOCABULARY[name]}}
    return {**settings, "text": text, "model": model, "train": {**schedule, **limit}}


def score(name: str, run: Path, out: Path, is_trial: bool) -> float:
    """Return the score of a trained model on the test set. is_trial: use one file of trees."""
    if name == "parsing":
        test = DATA / TREES / ("wsj_0171.mrg" if is_trial else "wsj_01[789]?.mrg")
        return next(each.value for each in evaluate_labels(run, test).reports[0].scores if each.key == "bracket_f1")
    if name == "multi30k":
        source, reference = (out / f"multi30k-test_2016_flickr.{side}" for side in ("en", "de"))
        return evaluate(run, source=source, reference=reference, metric=["bleu"])["bleu"].value
    return evaluate_outputs(run, out / "scitldr-test.jsonl")["rougeL"].value


def table(scores: dict[str, dict[str, list[float]]]) -> str:
    """Return a table with the means over seeds, and the differences."""
    rows = [f"{'task':<10} {'scratch':>8} {'denoising':>10} {'difference':>11}"]
    for name, columns in scores.items():
        one, other = statistics.mean(columns["scratch"]), statistics.mean(columns["denoising"])
        rows.append(f"{name:<10} {one:8.2f} {other:10.2f} {other - one:+11.2f}")
    return "\n".join(rows)


def write_texts(out: Path, lines: int | None) -> None:
    """Write the texts of the pre-training, and the training data of the tasks. lines: limit of each file."""
    write(out / "books.txt", (line for n in "123" for line in open_lines(DATA / f"books/train-{n}.txt.xz")), lines)
    write(out / "valid.txt", open_lines(DATA / "books/valid.txt.xz"), lines or 2000)
    pairs = (line.split("\t")[:2] for line in open_lines(DATA / "tatoeba/train.en-de.tsv.gz"))
    write(out / "sentences.txt", (text for pair in pairs for text in pair), lines)
    for side in ("en", "de"):
        write(out / f"multi30k.{side}", islice(open_lines(DATA / f"multi30k/train.{side}.gz"), PAIRS), lines)
        for part in ("val", "test_2016_flickr"):
            write(out / f"multi30k-{part}.{side}", open_lines(DATA / f"multi30k/{part}.{side}.gz"), lines)
    for part in ("dev", "test"):
        write(out / f"scitldr-{part}.jsonl", open_lines(DATA / f"scitldr/{part}.jsonl.gz", "json"), lines)
    papers = [entry for _, entry in read_objects(DATA / "scitldr/train.jsonl.gz") if entry is not None]
    write(out / "scitldr.jsonl", map(json.dumps, papers), lines)
    write(out / "tasks.txt", task_texts(out, papers), lines)


def task_texts(out: Path, papers: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the training texts of the tasks: both sides of the pairs, papers, and sentences of the treebank."""
    for side in ("en", "de"):
        yield from open_lines(out / f"multi30k.{side}")
    yield from (" ".join(paper["source"]) for paper in papers)
    names = ("wsj_00??.mrg", "wsj_01[0-6]?.mrg")
    for sentence in read_parsed([TreebankCorpusConfig(path=DATA / TREES / name) for name in names]):
        yield " ".join(sentence.words)


def write(path: Path, lines: Iterable[str], limit: int | None) -> None:
    """Write lines to a file, unless it exists."""
    if not path.is_file():
        path.write_text("".join(line.strip() + "\n" for line in islice(lines, limit)), encoding="utf-8")


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/denoising", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tasks = ("parsing", "multi30k", "scitldr")
    parser.add_argument("--tasks", nargs="+", choices=tasks, default=tasks, help="tasks to compare (all)")
    parser.add_argument("--noise", default="infilling", help="kind of noise (infilling)")
    parser.add_argument("--pretraining", type=float, default=45, help="minutes of the pre-training (45)")
    parser.add_argument("--minutes", type=float, default=15, help="minutes of each training (15)")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds (1)")
    parser.add_argument("--steps", type=int, help="number of updates instead of minutes, for a trial")
    parser.add_argument("--lines", type=int, help="number of lines of each file, for a trial")
    parser.add_argument("--out", type=Path, default=Path("runs/denoising-benchmark"), help="folder of all runs")
    return parser.parse_args()


if __name__ == "__main__":
    main()
