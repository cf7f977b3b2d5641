"""Peak anonymous memory and time of learning vocabularies from text with and without spaces between words.

    python benchmarks/vocabulary_memory.py --megabytes 40 --kinds bpe unigram --scripts latin thai

Each text consists of made-up words of 2 to 6 letters, drawn from 30,000 words by Zipf's law, 10 to 30 words per line.
The words of a script without spaces are written without spaces. Each text is cleaned, a vocabulary is learned from it,
and it is tokenised, in a separate process. The benchmark prints the peak of anonymous memory (as in corpus_memory.py)
and the processor time of all its processes, and their ratios to the first script. The processor time depends less than
the elapsed time on other programs. Every round measures all scripts, one after another.
"""

import argparse
import itertools
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from corpus_memory import anonymous_memory, process_family

SCRIPTS = {
    "latin": ("abcdefghijklmnopqrstuvwxyz", " "),
    "thai": ("".join(map(chr, range(0x0E01, 0x0E2F))), ""),
    "burmese": ("".join(map(chr, range(0x1000, 0x1021))), ""),
    "khmer": ("".join(map(chr, range(0x1780, 0x17A3))), ""),
    "japanese": ("".join(map(chr, range(0x3042, 0x3094))) + "".join(map(chr, range(0x4E00, 0x5200))), ""),
    "chinese": ("".join(map(chr, range(0x4E00, 0x5A00))), ""),
}
"""The letters of each script, and the separator of words."""
WORDS = 30_000


def main() -> None:
    """Measure each kind and script; with --child, run as the measured process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=40, help="size of each text")
    parser.add_argument("--kinds", nargs="+", default=["bpe", "unigram"], help="kinds of vocabularies")
    parser.add_argument("--scripts", nargs="+", choices=SCRIPTS, default=["latin", "thai"])
    parser.add_argument("--size", type=int, default=8000, help="vocabulary size")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=None, help="folder of the temporary texts (default: TMPDIR)")
    parser.add_argument("--child", nargs=2, default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        _prepare(Path(arguments.child[0]), json.loads(arguments.child[1]))
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="dragoman-vocabulary-") as name:
        folder = Path(name)
        for script in arguments.scripts:
            write_text(folder / f"{script}.txt", script, arguments.megabytes * 1e6)
        for kind in arguments.kinds:
            subword = {"kind": kind, "merges" if kind == "subword_nmt" else "size": arguments.size}
            found: dict[str, list[tuple[float, float]]] = {script: [] for script in arguments.scripts}
            for _ in range(arguments.rounds):
                for script in arguments.scripts:
                    found[script].append(_measure(folder / f"{script}.txt", subword))
            first = found[arguments.scripts[0]]
            for script, values in found.items():
                memory, seconds = (statistics.median(each) for each in zip(*values, strict=True))
                base_memory, base_seconds = (statistics.median(each) for each in zip(*first, strict=True))
                print(
                    f"{kind}, {arguments.megabytes:g} MB of {script}: {memory:.0f} MB (× {memory / base_memory:.2f}), "
                    f"{seconds:.1f} s (× {seconds / base_seconds:.2f})",
                    flush=True,
                )


def write_text(path: Path, script: str, size: float) -> None:
    """Write a text of about `size` bytes."""
    draw = random.Random(1)
    letters, separator = SCRIPTS[script]
    words = ["".join(draw.choices(letters, k=draw.randint(2, 6))) for _ in range(WORDS)]
    weights = list(itertools.accumulate(1 / (number + 1) for number in range(WORDS)))
    written = 0
    with path.open("w", encoding="utf-8") as file:
        while written < size:
            line = separator.join(draw.choices(words, cum_weights=weights, k=draw.randint(10, 30))) + "\n"
            written += len(line.encode())
            file.write(line)


def _measure(text: Path, subword: dict[str, object]) -> tuple[float, float]:
    """Return the peak of anonymous memory in MB, and the seconds of processor time."""
    before, peak = _processor_time(), 0.0
    command = [sys.executable, __file__, "--child", str(text), json.dumps(subword)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak = max(peak, sum(map(anonymous_memory, process_family(process.pid))) / 1e6)
            time.sleep(0.05)
    if process.returncode:
        raise SystemExit(f"the measured process has failed ({process.returncode})")
    return peak, _processor_time() - before


def _processor_time() -> float:
    """Return the processor time of all child processes that have ended, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _prepare(text: Path, subword: dict[str, object]) -> None:
    """Prepare a text as for a language model."""
    from dragoman.data.cleaning.rules import TextCleaningConfig
    from dragoman.data.corpora.corpus import TextCorpusConfig
    from dragoman.data.preparation.prepare import prepare_texts
    from dragoman.text.tokenizers import TextConfig

    settings = TextConfig.model_validate({"subword": subword})
    with tempfile.TemporaryDirectory(dir=text.parent) as folder:
        prepare_texts(TextCorpusConfig(text=text), TextCleaningConfig(), settings, Path(folder), 256)


if __name__ == "__main__":
    main()
