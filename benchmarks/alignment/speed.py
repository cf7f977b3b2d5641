"""Time and memory of word aligners.

    python benchmarks/alignment/speed.py SOURCE TARGET [--methods ibm1 hmm] [--threads N] [--pairs N]

Each method is trained in a separate process, in both directions. The table shows the wall time and the CPU time of the
training, without reading the files; the largest amount of memory of the process; and, after saving the aligner, its
size, the CPU time for loading it, and the CPU time per pair for aligning pairs one by one.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dragoman.base.log import quietly
from dragoman.data.corpora.inputs import read_parallel
from dragoman.statistical.alignment.word_aligner import AlignerConfig, WordAligner

ALIGNED_ALONE = 500


def measure(source: Path, target: Path, method: str, threads: int | None, pairs: int | None) -> dict[str, float]:
    """Return the measurements of one method."""
    sources, targets = (lines[:pairs] for lines in read_parallel(("source", source), ("target", target)))
    config = AlignerConfig.model_validate({"method": {"kind": method}})
    wall, processor = time.perf_counter(), time.process_time()
    with quietly():
        aligner, _ = WordAligner.train(sources, targets, config, threads)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as folder:
        aligner.save(Path(folder) / "aligner")
        size = sum(path.stat().st_size for path in (Path(folder) / "aligner").iterdir()) / 2**20
        start = time.process_time()
        loaded = WordAligner.load(Path(folder) / "aligner")
        load = time.process_time() - start
    start = time.process_time()
    for pair in zip(sources[:ALIGNED_ALONE], targets[:ALIGNED_ALONE], strict=True):
        loaded.align([pair[0]], [pair[1]])
    alone = (time.process_time() - start) / min(ALIGNED_ALONE, len(sources))
    return {"wall": wall, "cpu": processor, "memory": memory, "size": size, "load": load, "alone": alone * 1000}


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--methods", nargs="+", default=["ibm1", "ibm2", "diagonal", "hmm"])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        one = measure(arguments.source, arguments.target, arguments.one, arguments.threads, arguments.pairs)
        print(json.dumps(one))
        return
    print("| method | wall, s | CPU, s | memory, MiB | folder, MiB | load, CPU s | one pair, CPU ms |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for method in arguments.methods:
        command = [sys.executable, *sys.argv, "--one", method]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        one = json.loads(output.splitlines()[-1])
        print(
            f"| {method} | {one['wall']:.1f} | {one['cpu']:.1f} | {one['memory']:,.0f} | {one['size']:,.0f} | "
            f"{one['load']:.2f} | {one['alone']:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
