"""Every variant under one budget: one factor at a time around four centres, then all pairs of factors.

    python benchmarks/variants                     # the singles, then a design for the pairs that they do not hold
    python benchmarks/variants --singles           # without the pairs
    python benchmarks/variants --only scorer norm  # of these factors; --list shows all factors and runs
    python benchmarks/variants --full              # the full product of the factors (of --only); see --list first
    python benchmarks/variants --multi30k --out runs/multi30k   # a chosen dozen on Multi30k under $DRAGOMAN_DATA
    python benchmarks/variants --speed             # speed of the models that these commands kept; nothing beside it
    python benchmarks/variants --report            # table.md, table.csv, pairs.md and picture.png again

The factors are read off the settings themselves (`dragoman.lecture.choices`), so a new variant is a new run. Both
sides of a model get the same level, where both have the field. The budget is the data: every run reads the same
sentence pairs in the same number of passes, with one schedule, on one thread, from one seed. The corpus is dragoman's
own (`dragoman.lecture.grammar`, English to German); its test sentences show combinations that training never showed.
Settings
that the config refuses are listed as refused, runs that fail as failed, each with its message.

Each run is appended to `results.jsonl` when it is over, and one that is there already, unless it failed, is not made
again: the command may be stopped, or killed, and given again. The report is written when it ends. Quality may be
measured beside other work and by several `--workers`; seconds are of CPU time. Speed is measured apart, by turns with
the centre's model, one thread, and wants a quiet machine.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from budget import EMBEDDED, MULTI30K, Budget, Corpus, corpus, recipe
from design import Plan, dozen, full, pairs, singles
from factors import factors
from report import write_report
from runs import Results, finished, identity, make


def main() -> None:
    """Plan, then run what is not in the results yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/variants"))
    parser.add_argument("--only", nargs="+", default=[], metavar="FACTOR")
    parser.add_argument("--singles", action="store_true", help="without the pairs")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--multi30k", action="store_true")
    parser.add_argument("--list", action="store_true", help="show factors and runs, and run nothing")
    parser.add_argument("--speed", action="store_true", help="measure the speed of runs that are done")
    parser.add_argument("--report", action="store_true", help="write the report of what is done")
    parser.add_argument("--workers", type=int, default=1, help="runs at a time, a thread each (1)")
    parser.add_argument("--epochs", type=int, help=f"passes over the corpus ({EMBEDDED.epochs})")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    only, known = set(arguments.only), {**factors(), "family": []}
    if unknown := only - set(known):
        parser.error(f"no such factor: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    budget = MULTI30K if arguments.multi30k else EMBEDDED
    budget = replace(budget, epochs=arguments.epochs or budget.epochs, seed=arguments.seed)
    arguments.out.mkdir(parents=True, exist_ok=True)
    made = corpus(budget, arguments.out)
    if not arguments.report:
        plans, refused = choose(arguments, only, budget)
        if arguments.list:
            show(plans, refused, known)
            return
        if refused:
            path = arguments.out / "refused.json"
            path.write_text(json.dumps(refused, indent=1, ensure_ascii=False) + "\n", "utf-8")
        if arguments.speed:
            measure(plans, budget, made, arguments.out)
        else:
            make(plans, budget, made, arguments.out, arguments.workers)
    write_report(arguments.out, made.test[1])


def choose(arguments: argparse.Namespace, only: set[str], budget: Budget) -> tuple[list[Plan], dict[str, str]]:
    """The runs that the options ask for, and the pairs that there cannot be. A run that is over needs no other."""
    if arguments.multi30k:
        return dozen(), {}
    if arguments.full:
        return list(full(only)), {}
    plans = singles(only)
    if arguments.singles or len(only) == 1:
        return plans, {}
    over = finished(Results(arguments.out / "results.jsonl"), budget)
    if arguments.speed and not only:
        return over, {}
    more, refused = pairs(only, [plan.effective for plan in over + plans])
    return plans + more, refused


def show(plans: list[Plan], refused: dict[str, str], known: dict[str, list[str]]) -> None:
    """Print factors, runs and refused pairs."""
    for factor, levels in known.items():
        print(f"factor {factor}: {', '.join(levels)}")
    for plan in plans:
        print("run " + " · ".join(filter(None, (plan.group, plan.factor, plan.varied))))
    for pair, why in refused.items():
        print(f"refused {pair}: {why}")
    print(f"{len(plans)} runs, {len(refused)} refused pairs")


def measure(plans: list[Plan], budget: Budget, made: Corpus, out: Path) -> None:
    """Add the speeds to the lines of runs that are done and have none."""
    from speed import compare

    results = Results(out / "results.jsonl")
    lines = results.read()
    centres = {
        plan.group: plan for plan in (dozen() if budget.pairs is None else singles(set())) if plan.factor == "centre"
    }
    first = next(iter(centres.values()))
    for number, plan in enumerate(plans, 1):
        centre = centres.get(plan.group, first)
        own, other = identity(plan, budget), identity(centre, budget)
        if any(lines.get(key, {}).get("status") != "done" for key in (own, other)) or "decoding_ratio" in lines[own]:
            continue
        places = [out / "models" / key for key in (own, other)]
        recipes = [
            recipe(each.settings, budget, made.data, place) for each, place in zip((plan, centre), places, strict=True)
        ]
        found = compare(places[0], recipes[0], places[1], recipes[1], made.test[0])
        results.append({**lines[own], **found})
        print(
            f"[{number}/{len(plans)}] {plan.factor} {plan.varied}: training {found['training_ratio']:.2f}, "
            f"decoding {found['decoding_ratio']:.2f} times the centre's speed",
            file=sys.stderr,
            flush=True,
        )


if __name__ == "__main__":
    main()
