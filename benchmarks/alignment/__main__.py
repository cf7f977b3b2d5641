"""The alignment error rate of dragoman's aligners, of sil-thot and of eflomal on the same texts.

    python -m venv judges && judges/bin/pip install sil-thot cython numpy && judges/bin/pip install eflomal
    python benchmarks/alignment --judges judges/bin/python              # all programs and texts
    python benchmarks/alignment --programs fertility eflomal --texts hansards --seeds 3
    python benchmarks/alignment --report                                # the tables of all results so far

DRAGOMAN_DATA is the folder of the data sets; corpora.py describes the three texts. --out is the folder of the texts,
the links and results.jsonl. A program runs in a process of its own with one thread and aligns both directions. Its CPU
seconds and its peak memory include reading the text. Results that exist are not repeated. eflomal has no seed, so its
runs differ; dragoman's and sil-thot's sampler are run with the seeds 1, 2, …
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

from corpora import CORPORA, Corpus, write_corpus

from dragoman import evaluate_alignments
from dragoman.statistical.alignment.links import format_pharaoh
from dragoman.statistical.alignment.symmetrization import symmetrize

OURS = ("ibm1", "ibm2", "diagonal", "hmm", "fertility")
THOT = ("thot-ibm1", "thot-ibm2", "thot-ibm2-compact", "thot-fast_align", "thot-hmm", "thot-eflomal")
SAMPLED = ("fertility", "thot-eflomal", "eflomal")
HEURISTICS = ("forward", "reverse", "intersection", "union", "grow-diag", "grow-diag-and", "grow-diag-final-and")
FOLDER = Path(__file__).parent


def main() -> None:
    """Complete the chosen measurements, and print the tables."""
    arguments = options()
    out: Path = arguments.out.absolute()
    results = out / "results.jsonl"
    records = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    if not arguments.report:
        data = Path(os.environ["DRAGOMAN_DATA"])
        for corpus in [corpus for corpus in CORPORA if corpus.name in arguments.texts]:
            write_corpus(corpus, data, out)
            for program in arguments.programs:
                for seed in range(1, arguments.seeds + 1 if program in SAMPLED else 2):
                    key = {"text": corpus.name, "program": program, "seed": seed}
                    if any(key.items() <= record.items() for record in records):
                        continue
                    record = {**key, **run(program, seed, corpus, out, arguments.judges)}
                    record["aer"] = error_rates(corpus, out / f"{corpus.name}.{program}-{seed}", data)
                    records.append(record)
                    with results.open("a") as file:
                        file.write(f"{json.dumps(record)}\n")
    print(report(records))


def options() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("alignment-results"))
    parser.add_argument("--judges", help="Python interpreter of an environment with sil-thot and eflomal")
    names = [corpus.name for corpus in CORPORA]
    parser.add_argument("--texts", nargs="+", default=names, choices=names)
    programs = (*OURS, *THOT, "eflomal")
    parser.add_argument("--programs", nargs="+", default=programs, choices=programs)
    parser.add_argument("--seeds", type=int, default=3, help="runs of each program with random numbers")
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    if not arguments.report and not arguments.judges and not set(arguments.programs) <= set(OURS):
        parser.error("--judges is needed for sil-thot and eflomal")
    return arguments


def run(program: str, seed: int, corpus: Corpus, out: Path, judges: str | None) -> dict[str, float]:
    """Align a text in a process of its own. Returns its CPU seconds and its peak memory in MiB."""
    source, target = corpus.paths(out)
    links = out / f"{corpus.name}.{program}-{seed}"
    if program == "eflomal":
        assert judges is not None
        command = [judges, str(Path(judges).with_name("eflomal-align")), "-s", source, "-t", target, "--overwrite"]
        command += ["-f", f"{links}.forward", "-r", f"{links}.reverse"]
    elif program in THOT:
        assert judges is not None
        command = [judges, FOLDER / "thot_judge.py", program.removeprefix("thot-"), source, target, links, seed]
    else:
        command = [sys.executable, FOLDER / "dragoman_links.py", program, source, target, links, seed]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(list(map(str, command)), env={**os.environ, "OMP_NUM_THREADS": "1"})
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{program} failed on {corpus.name}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu_seconds": round(cpu, 1), "memory_mib": round(usage.ru_maxrss / 1024)}


def error_rates(corpus: Corpus, links: Path, data: Path) -> dict[str, float]:
    """Return the AER of the test part with each heuristic."""
    forward, reverse = (read_links(Path(f"{links}.{side}"), corpus.tests) for side in ("forward", "reverse"))
    rates = {}
    for heuristic in HEURISTICS:
        pairs = zip(forward, reverse, strict=True)
        lines = [format_pharaoh(symmetrize(one, other, heuristic)) for one, other in pairs]
        result = evaluate_alignments(data / corpus.gold, {heuristic: lines}, gold_base=1, hypothesis_base=0, quiet=True)
        rates[heuristic] = round(result["aer"], 2)
    return rates


def read_links(path: Path, tests: int) -> list[list[tuple[int, int]]]:
    """Return the links of the last lines of a file."""
    lines = path.read_text("utf-8").split("\n")[:-1][-tests:]
    return [[(int(i), int(j)) for i, j in (link.split("-") for link in line.split())] for line in lines]


def report(records: list[dict]) -> str:
    """Return a table per text. Values of several runs are their mean, followed by their range."""
    lines = []
    for corpus in CORPORA:
        ours = [record for record in records if record["text"] == corpus.name]
        lines += ["", corpus.name, f"| program | runs | {' | '.join(HEURISTICS)} | CPU seconds | MiB |"]
        lines.append(f"| --- |{' ---: |' * (len(HEURISTICS) + 3)}")
        for program in (*THOT, "eflomal", *OURS):
            runs = [record for record in ours if record["program"] == program]
            if runs:
                cells = [spread([record["aer"][each] for record in runs]) for each in HEURISTICS]
                cost = [round(statistics.mean(record[key] for record in runs)) for key in ("cpu_seconds", "memory_mib")]
                lines.append(f"| {' | '.join([program, str(len(runs)), *cells, *map(str, cost)])} |")
    return "\n".join(lines)


def spread(values: list[float]) -> str:
    """Return the mean of values, and their range if there are several."""
    mean = f"{statistics.mean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.2f}–{max(values):.2f})"


if __name__ == "__main__":
    main()
