"""The guard: findings in human translations and in corrupted ones, repairs of a model's translations, and their cost.

    python benchmarks/guard.py references --source newstest2013.en.gz --reference newstest2013.de.gz
    python benchmarks/guard.py model runs/multi30k --source val.en.gz --reference val.de.gz --lines 200

`references` inspects the references as they are (findings are false alarms, except for true mistakes), and then each
reference corrupted in every applicable way. `model` translates with and without guard, alternately; times are medians
of --rounds. Nothing is trained.
"""

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import regex

from dragoman.data.files.lines import open_lines
from dragoman.inference.translation.guard.guard import Guard
from dragoman.inference.translation.translator import Translator
from dragoman.metrics.bleu import BLEU

_NUMBER = regex.compile(r"(?<!\d)[1-9]\d+(?!\d)")


def other_number(source: str, reference: str) -> str:
    """Change the last digit of the reference's last number with two or more digits that is in the source too."""
    found = [match for match in _NUMBER.finditer(reference) if match[0] in source]
    if not found:
        return reference
    end = found[-1].end()
    return f"{reference[: end - 1]}{(int(reference[end - 1]) + 3) % 10}{reference[end:]}"


BREAKS: dict[str, Callable[[str, str], str]] = {
    "another last digit": other_number,
    "its last word 3 times": lambda source, reference: " ".join([reference, *reference.split()[-1:] * 2]),
    "its last three words 3 times": lambda source, reference: " ".join([reference, *reference.split()[-3:] * 2]),
    "twice": lambda source, reference: f"{reference} {reference}",
    "its first half twice": lambda source, reference: " ".join(
        [*reference.split()[: len(reference.split()) // 2], *reference.split()]
    ),
    "the source": lambda source, reference: source,
    "blank": lambda source, reference: "",
    "a Greek word": lambda source, reference: f"{reference} λόγος",
}


def counts(guard: Guard, sources: list[str], outputs: list[str]) -> Counter[str]:
    """Return the number of lines by kind of finding."""
    return Counter(each.kind for pair in zip(sources, outputs, strict=True) for each in guard.findings(*pair))


def inspect_references(guard: Guard, sources: list[str], references: list[str]) -> None:
    """Print the findings in references, and the fraction of corrupted references that is detected."""
    began = time.perf_counter()
    found = counts(guard, sources, references)
    each = 1e6 * (time.perf_counter() - began) / len(sources)
    said = ", ".join(f"{kind} {count} ({count / len(sources):.2%})" for kind, count in found.items())
    print(f"{len(sources)} references, {each:.0f} µs each: {said or 'nothing'}")
    for name, damaged in BREAKS.items():
        pairs = [(source, damaged(source, text), text) for source, text in zip(sources, references, strict=True)]
        broken = [(source, output) for source, output, text in pairs if output != text]
        caught = sum(bool(guard.findings(*pair)) for pair in broken)
        print(f"| {name} | {len(broken)} | {caught / max(len(broken), 1):.1%} |")


def inspect_translations(arguments: argparse.Namespace, sources: list[str], references: list[str]) -> None:
    """Print the findings in translations, the repairs, and the seconds without and with guard."""
    translator = Translator.load(arguments.model, "cpu", arguments.engine, threads=1)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(arguments.rounds):
        for guarded in seconds:
            request = translator.request(guard=guarded)
            began = time.perf_counter()
            best = [each[0] for each in translator.translate_nbest(sources, request)]
            seconds[guarded].append(time.perf_counter() - began)
            if not guarded:
                plain = best
    results = [each.guarded for each in best if each.guarded is not None]
    found = Counter(kind for each in results for kind in {finding.kind for finding in each.found})
    left = Counter(kind for each in results for kind in {finding.kind for finding in each.left})
    repaired = sum(not each.left for each in results)
    print(f"{len(sources)} lines; findings in {len(results)}, of which {repaired} have a translation without findings")
    for kind, count in found.items():
        print(f"| {kind} | {count} | {count - left[kind]} |")
    print("by", dict(Counter(each.search for each in results if each.search)))
    for name, outputs, which in (("without", plain, False), ("with", best, True)):
        score = BLEU().score([each.text for each in outputs], references)
        print(f"| {name} | {score.value:.2f} | {statistics.median(seconds[which]):.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["references", "model"])
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--lines", type=int)
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    sources, references = (
        list(islice(open_lines(path), arguments.lines)) for path in (arguments.source, arguments.reference)
    )
    if arguments.what == "references":
        inspect_references(Guard(frozenset({"LATIN"})), sources, references)
    else:
        inspect_translations(arguments, sources, references)


if __name__ == "__main__":
    main()
