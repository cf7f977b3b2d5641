"""The cost of each search rule relative to a plain beam of 5, alternately in one process.

    python benchmarks/search_rules.py MODEL SOURCE [--lines 200] [--turns 7] [--batch-size 32] [--other ../other/src]

A trained model translates the first lines of a text with PyTorch on the CPU, with one thread. In each turn every rule
translates all lines once; the order is reversed every second turn. Printed for each rule: the median CPU time (seconds)
and the median ratio to the plain search of the same turn. --other: includes the plain search of another checkout of
this project, which shows the cost of rules that are not used.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from decoding import imported

PLAIN = "plain beam 5"
RULES: dict[str, dict[str, Any]] = {
    PLAIN: {},
    "shrinking beam": {"shrinking": True},
    "no repeated 3-gram": {"no_repeat_ngram": 3},
    "lengths relative to the source": {"minimum_factor": 0.5, "length_factor": 1.5, "length_margin": 5},
    "coverage penalty 0.2": {"coverage_penalty": 0.2},
    "5-best": {"nbest": 5},
    "5 groups of 1": {"diversity": {"groups": 5}},
    "5 groups of 1, 5-best": {"diversity": {"groups": 5}, "nbest": 5},
    "token scores": {"token_scores": True},
    "tree": {"tree": True},
    "plain beam 10": {"beam": 10},
    "5 groups of 2": {"beam": 10, "diversity": {"groups": 5}},
}


def translation(source: Path, model: Path, lines: list[str], batch_size: int) -> Callable[[dict[str, Any]], float]:
    """Return the CPU time (seconds) that a checkout takes to translate the lines with given search settings."""
    imported(source)
    from dragoman.inference.translation.request import Request
    from dragoman.inference.translation.translator import Translator

    translator = Translator.load(model, "cpu", engine="torch")

    def seconds(settings: dict[str, Any]) -> float:
        config = translator.search_config().model_dump(mode="json") | settings
        request = Request(type(translator.search_config()).model_validate(config))
        began = time.process_time()
        translator.translate_nbest(lines, request, batch_size)
        return time.process_time() - began

    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--other", type=Path, help="the src folder of another checkout")
    given = parser.parse_args()
    torch.set_num_threads(1)
    lines = given.source.read_text(encoding="utf-8").split("\n")[: given.lines]
    checkouts = {"": Path(__file__).parents[1] / "src"}
    if given.other is not None:
        checkouts = {" of the other checkout": given.other, **checkouts}  # ours last, because it is used afterwards
    cases: dict[str, Callable[[], float]] = {}
    for name, source in checkouts.items():
        seconds = translation(source, given.model, lines, given.batch_size)
        for rule, settings in RULES.items() if not name else [(PLAIN, {})]:
            cases[rule + name] = lambda seconds=seconds, settings=settings: seconds(settings)
    for name in cases:
        cases[name]()  # warm-up
    found: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(given.turns):
        for name in list(cases)[:: -1 if turn % 2 else 1]:
            found[name].append(cases[name]())
    print(f"{len(lines)} lines, {given.turns} turns: median seconds, median ratio to the {PLAIN}")
    for name, took in found.items():
        ratios = [one / plain for one, plain in zip(took, found[PLAIN], strict=True)]
        print(f"{name}: {median(took):.2f} s, {median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main()
