"""Peak anonymous memory of preparing a corpus and of training on it, for several corpus sizes.

    python benchmarks/corpus_memory.py --megabytes 50 200     # 2000 took 40 minutes on two busy cores

Each corpus consists of synthetic words whose vocabulary grows like that of real text (Heaps' law: about k · n^0.6 types
among n words), so that larger corpora do not repeat smaller ones. It is written to a temporary folder, cleaned, split
into subwords and trained on for some steps, in a separate process. It prints the peaks of anonymous memory (RssAnon
of /proc, summed over the process and its children, sampled every 50 ms; without file-backed pages, which the system
reclaims when needed) in preparation and in training, and their ratios to those of the smallest corpus.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np

WORDS, AT_ONCE = 12, 20_000
HEAPS_FACTOR, HEAPS_POWER = 20.0, 0.6
SETTINGS = {
    "model": {
        "preset": None,
        "width": 64,
        "encoder": {"layers": 1, "heads": 4, "feedforward": 128},
        "decoder": {"layers": 1, "heads": 4, "feedforward": 128},
    },
    "train": {"max_steps": 20, "validate_every": 20, "checkpoint_every": 20, "log_every": 10, "metric": "loss"},
}
"""A tiny model, because the memory of the corpus is measured."""


def main() -> None:
    """Measure each size; with --child, run as the measured process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--megabytes", type=int, nargs="+", default=[50, 200], help="sizes of the text, both sides together"
    )
    parser.add_argument("--folder", type=Path, default=None, help="folder of the temporary corpora (default: TMPDIR)")
    parser.add_argument("--dropout", type=float, default=0.0, help="BPE-dropout in training")
    parser.add_argument("--child", type=Path, default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        _train(arguments.child, arguments.dropout)
        return
    smallest: dict[str, float] = {}
    for size in arguments.megabytes:
        with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="dragoman-memory-") as folder:
            found = _measured(Path(folder), size * 10**6, arguments.dropout)
        for name in ("preparation", "training"):
            smallest.setdefault(name, found[name])
        peak = max(found["preparation"], found["training"])
        smallest.setdefault("both", peak)
        print(
            f"{size} MB, {found['pairs']:,.0f} pairs, {found['types']:,.0f} types: peak of anonymous memory in "
            f"preparation {found['preparation']:.0f} MB (× {found['preparation'] / smallest['preparation']:.3f}), in "
            f"training {found['training']:.0f} MB (× {found['training'] / smallest['training']:.3f}), of both "
            f"{peak:.0f} MB (× {peak / smallest['both']:.3f}); {found['seconds']:.0f} s, {found['disk']:.1f} × the "
            "text on disk",
            flush=True,
        )


def write_corpus(folder: Path, size: int) -> tuple[int, int]:
    """Write about `size` bytes of train.a and train.b, and valid.a, valid.b; returns the numbers of pairs and of types.

    The n-th word is new with the probability that yields k · n^0.6 types; otherwise it is drawn from the old ones by
    Zipf's law. The target has the words of the source in another spelling and order, so that a model can learn it.
    """
    rng = np.random.default_rng(1)
    words = types = pairs = written = 0
    with (folder / "train.a").open("w") as source, (folder / "train.b").open("w") as target:
        while written < size:
            count = AT_ONCE * WORDS
            ranks, types = _ranks(rng, words, count, types)
            words += count
            lengths = rng.integers(3, 2 * WORDS - 2, AT_ONCE)
            texts = list(_sentences(ranks, lengths))
            pairs += len(texts)
            written += sum(source.write(one) + target.write(other) for one, other in texts)
    for name, place in (("valid.a", 0), ("valid.b", 1)):
        (folder / name).write_text("".join(pair[place] for pair in texts[:50]))
    return pairs, types


def _ranks(rng: np.random.Generator, words: int, count: int, types: int) -> tuple[np.ndarray, int]:
    """Return the numbers of the next words: new types and old ones, early ones being more frequent."""
    places = np.arange(words + 1, words + count + 1, dtype=np.float64)
    growth = np.floor(np.minimum(HEAPS_FACTOR * places**HEAPS_POWER, places)).astype(np.int64)
    new = np.diff(growth, prepend=types) > 0
    known = np.maximum(growth, 1)
    old = np.minimum(np.exp(rng.random(count) * np.log(known)).astype(np.int64), known - 1)
    return np.where(new, growth - 1, old), int(growth[-1])


def _sentences(ranks: np.ndarray, lengths: np.ndarray) -> Iterator[tuple[str, str]]:
    numbers, start = ranks.tolist(), 0
    for length in lengths.tolist():
        part = numbers[start : start + length]
        start += length
        if part:
            source = " ".join(map(_word, part))
            yield f"{source}.\n", " ".join(_word(number)[::-1] for number in part[::-1]) + ".\n"


@lru_cache(maxsize=1 << 20)
def _word(number: int) -> str:
    """Return a pronounceable word for each number; words share syllables."""
    value = number * 2654435761 % 2**32 if number > 500 else number
    word = ""
    while True:
        value, syllable = divmod(value, 70)
        word += "bdfgklmnprstvz"[syllable // 5] + "aeiou"[syllable % 5]
        if not value:
            return word + "x" * (number > 500 and len(word) < 4)


def _measured(folder: Path, size: int, dropout: float) -> dict[str, float]:
    pairs, types = write_corpus(folder, size)
    text = sum((folder / name).stat().st_size for name in ("train.a", "train.b"))
    command = [sys.executable, __file__, "--child", str(folder), "--dropout", str(dropout)]
    began = time.monotonic()
    peaks, disk = {"preparation": 0.0, "training": 0.0}, 0
    with subprocess.Popen(command) as process:
        looked = 0.0
        while process.poll() is None:
            phase = "training" if (folder / "prepared.done").exists() else "preparation"
            peaks[phase] = max(peaks[phase], sum(anonymous_memory(pid) for pid in process_family(process.pid)) / 1e6)
            if time.monotonic() - looked > 5:
                looked = time.monotonic()
                disk = max(disk, _disk(folder / "prepared"))
            time.sleep(0.05)
    if process.returncode:
        raise SystemExit(f"the measured process has failed ({process.returncode})")
    seconds = time.monotonic() - began
    return {**peaks, "pairs": pairs, "types": types, "seconds": seconds, "disk": max(disk, _disk(folder)) / text}


def process_family(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    found = [pid]
    for parent in found:
        try:
            for path in Path(f"/proc/{parent}/task").iterdir():
                found += [int(child) for child in (path / "children").read_text().split()]
        except OSError:
            continue
    return found


def anonymous_memory(pid: int) -> int:
    """Return the anonymous memory in bytes."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def _disk(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(parent) / name).stat().st_size
            except OSError:
                continue
    return total


def _train(folder: Path, dropout: float) -> None:
    """Prepare the corpus, report that, and train on the prepared corpus."""
    from dragoman.base.settings.load import parse_settings
    from dragoman.data.preparation.prepare import prepare
    from dragoman.tasks.train import train
    from dragoman.tasks.translation.config import TranslationRun

    corpora = {
        part: {"source": str(folder / f"{part}.a"), "target": str(folder / f"{part}.b")} for part in ("train", "valid")
    }
    text = {"subword": {"size": 8000, "dropout": dropout}}
    settings = {**json.loads(json.dumps(SETTINGS)), "data": corpora, "text": text, "out": str(folder / "run")}
    config = parse_settings(settings, TranslationRun, "of the benchmark")
    prepare(config.data.corpora, config.data.cleaning, config.text, folder / "prepared")
    (folder / "prepared.done").write_text("")
    train(config)


if __name__ == "__main__":
    main()
