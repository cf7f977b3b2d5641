"""Train and evaluate systems in separate processes, and record the results."""

import gzip
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from systems import Corpus, System

Line = dict[str, Any]
"""The result of a system, a line of results.jsonl."""


def finished(folder: Path) -> list[Line]:
    """Return the results in a folder, without the incomplete line of a killed process."""
    path = folder / "results.jsonl"
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            lines.append(json.loads(text))
        except ValueError:
            continue
    return lines


def measure(corpus: Corpus, system: System, minutes: float, folder: Path) -> None:
    """Train and evaluate a system with this limit in minutes, unless its result is known, and record the result.

    Raises CalledProcessError if a command fails. Its messages are in the log of the system.
    """
    limit = minutes if system.is_timed else None
    key = {"corpus": corpus.name, "system": system.name, "minutes": limit}
    if any(all(line.get(name) == value for name, value in key.items()) for line in finished(folder)):
        return
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"{corpus.name}-{system.name}{'' if limit is None else f'-{limit:g}'}"
    log = out.with_name(f"{out.name}.log")
    print(f"{time.strftime('%H:%M:%S')} {corpus.name}: {system.title}", file=sys.stderr, flush=True)
    if system.is_timed or not (out / "config.yaml").exists():
        _train(_training_command(system, limit, out), out, log)
    times = _times(out)
    evaluation_started = time.monotonic()
    values = json.loads(_run(_evaluation_command(corpus, system, out, folder), log))
    line = {
        **key,
        "title": system.title,
        "source": system.source,
        "corpus_title": corpus.title,
        "measure": corpus.measure,
        "training_minutes": times["wall_seconds"] / 60,
        "cpu_minutes": times["cpu_seconds"] / 60,
        "evaluation_seconds": time.monotonic() - evaluation_started,
        **(_bleu(values) if corpus.measure == "bleu" else _perplexity(values)),
    }
    with (folder / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _train(command: list[str], out: Path, log: Path) -> None:
    """Run a training command, and add its time to that of earlier, interrupted commands of the same run."""
    times, started, cpu_seconds = _times(out), time.monotonic(), _cpu_seconds()
    try:
        _run(command, log)
    finally:
        times["wall_seconds"] += time.monotonic() - started
        times["cpu_seconds"] += _cpu_seconds() - cpu_seconds
        _times_path(out).write_text(json.dumps(times), encoding="utf-8")


def _times(out: Path) -> dict[str, float]:
    """Return the seconds of training of a run so far, of the clock and of the processors."""
    path = _times_path(out)
    return json.loads(path.read_text("utf-8")) if path.exists() else {"wall_seconds": 0.0, "cpu_seconds": 0.0}


def _times_path(out: Path) -> Path:
    return out.with_name(f"{out.name}.times.json")


def _training_command(system: System, limit: float | None, out: Path) -> list[str]:
    if system.is_timed and (out / "training").is_dir():
        return ["train", "--out", str(out), "--resume"]
    limits = [] if limit is None else [f"train.max_minutes={limit:g}", "train.seed=1", "train.threads=1"]
    settings = map(os.path.expandvars, system.settings)
    return ["train", str(system.recipe), *settings, *limits, f"out={out}"]


def _evaluation_command(corpus: Corpus, system: System, out: Path, folder: Path) -> list[str]:
    data = Path(os.environ["DRAGOMAN_DATA"])
    files = [data / name for name in corpus.test]
    common = ["evaluate", str(out), "--json", "--threads", "1"]
    if corpus.measure == "perplexity":
        return [*common, "--reference", str(files[0]), "--documents", system.documents]
    if len(files) == 1:
        files = _split_pairs(files[0], folder / corpus.name)
    return [*common, "--source", str(files[0]), "--reference", str(files[1]), "--metric", "bleu", "--tokenized", "de"]


def _split_pairs(path: Path, prefix: Path) -> list[Path]:
    """Write the two columns of a compressed file of tab-separated pairs to two files; returns their paths."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t")[:2] for line in file]
    paths = [prefix.with_suffix(suffix) for suffix in (".source", ".reference")]
    for column, each in enumerate(paths):
        each.write_text("".join(row[column] + "\n" for row in rows), encoding="utf-8")
    return paths


def _run(arguments: list[str], log: Path) -> str:
    """Run a dragoman command with its messages appended to `log`; returns its standard output."""
    with log.open("a", encoding="utf-8") as messages:
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", *arguments],
            check=True,
            stdout=subprocess.PIPE,
            stderr=messages,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    return done.stdout


def _cpu_seconds() -> float:
    """Return the CPU seconds of all finished child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _bleu(values: dict[str, Any]) -> dict[str, Any]:
    """Return the BLEU scores of an evaluation: of the plain text, and of lowercased, tokenised text."""
    (system,) = values["systems"]
    plain, tokenised = system["scores"]
    return {"value": plain["value"], "tokenised": tokenised["value"], "signature": plain["signature"]}


def _perplexity(values: dict[str, Any]) -> dict[str, Any]:
    """Return the perplexity per word of an evaluation, and the numbers of words and unknown tokens."""
    (text,) = values["texts"]
    return {"value": text["per_word"], "words": text["words"], "unknown": text["unknown"]}
