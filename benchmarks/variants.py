"""Every variant under one budget: one factor at a time around two centres, then all pairs of factors.

    python benchmarks/variants.py                     # the singles, then a design in which all pairs of levels occur
    python benchmarks/variants.py --only scorer norm  # of these factors; --list shows all factors and runs
    python benchmarks/variants.py --singles           # without the pairs
    python benchmarks/variants.py --full              # the full product of the factors named by --only
    python benchmarks/variants.py --multi30k          # a chosen dozen on Multi30k under $DRAGOMAN_DATA

The factors are read off the settings themselves (`dragoman.base.choices`), so a new variant is a new run. Both sides of
a model get the same level, where both have the field. The budget is the data: every run reads the same sentence pairs
in `--epochs` passes, with one schedule, on one thread, from one seed; speed is reported beside the quality. The corpus
is dragoman's own (`dragoman.grammar`, English to German); its test sentences show combinations that training never
showed. Settings that the config refuses are listed as refused, runs that fail as failed, each with its message.

Each run is appended to `results.jsonl` when it is over, and one that is there already, unless it failed, is not made
again, so the command may be stopped and given again. `table.md`, `table.csv` and `picture.png` are written from all
results after each run.
"""

import argparse
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from variants_report import write_report

from dragoman.base.choices import Choice, assemble, choices
from dragoman.base.covering import cover
from dragoman.base.errors import DragomanError
from dragoman.base.schema import kinds, union_members
from dragoman.base.settings import parse_settings
from dragoman.models.build import ModelConfig
from dragoman.train.config import RunConfig

SIZES = {"layers": 2, "heads": 4, "feedforward": 256}
"""Of either side, where its family has such a setting."""
NORM = "pre"
"""Of the centre: post, the paper's, needs more steps than this budget has."""
WIDTH, EPOCHS, TRAIN, VALID, TEST = 128, 4, 12000, 100, 500
MULTI30K_EPOCHS = 8
FACTORS = (
    "encoder",
    "decoder",
    "attention",
    "cross_attention",
    "scorer",
    "normaliser",
    "projections",
    "combine",
    "tie_keys_and_values",
    "positions",
    "positions.join",
    "norm",
    "normalisation",
    "activation",
    "experts",
    "residual",
    "tie_embeddings",
    "tie_projection",
    "subword",
    "teacher_forcing",
)
"""Beside these, every choice inside a family other than the Transformer is a factor: `recurrent.cell`, …"""
CENTRES = {"transformer": {}, "recurrent": {"encoder": "recurrent", "decoder": "recurrent"}}
BOTH_CENTRES = ("scorer", "teacher_forcing")
"""What is varied around the recurrent centre although it is varied around the Transformer too."""
NEEDED = {"positions.join": {"positions": "sinusoidal"}}
"""What else is set to vary a factor that the centres do not have."""
SAME = {"positions": "sinusoidal", "combine": "project"}
"""What null means at the centre."""
NOT_PAIRED = ("combine", "projections", "tie_keys_and_values", "tie_embeddings", "tie_projection", "normaliser")
"""Factors whose pairs are left out of the design, which would be twice as long with them; --only brings them back."""
DOZEN: tuple[dict[str, str], ...] = (
    {},
    {"positions": "rotary"},
    {"positions": "alibi"},
    {"positions": "relative"},
    {"scorer": "additive"},
    {"normalisation": "rms", "activation": "swiglu"},
    {"experts": "set"},
    {"encoder": "recurrent", "decoder": "recurrent"},
    {"encoder": "recurrent", "decoder": "recurrent", "scorer": "additive"},
    {"decoder": "recurrent"},
    {"encoder": "convolutional", "decoder": "convolutional"},
    {"encoder": "mean"},
)
Levels = dict[str, str]
"""Levels by factor; a factor that is not named has its usual one."""


@dataclass(frozen=True)
class Plan:
    """One run to make. group: the design and centre it belongs to; varied: what it shows, as text."""

    group: str
    factor: str
    varied: str
    levels: Levels
    settings: dict[str, Any]


def name(choice: Choice) -> str | None:
    """The factor that a choice belongs to, the same on both sides; None for what is no factor here."""
    if choice.path[:2] == ("text", "subword") or choice.path[:2] == ("train", "teacher_forcing"):
        return choice.path[1] if len(choice.path) == 2 else None
    if choice.path[0] != "model" or choice.path[1] == "target_positions":
        return None
    path = choice.path[1:]
    if path[0] not in ("encoder", "decoder") or len(path) == 1:
        factor = ".".join(path)
        return factor if factor in FACTORS else None
    family = dict(choice.within).get(choice.path[:2], "transformer")
    if len(path) == 3 and path[1] in ("attention", "cross_attention") and path[2] in FACTORS:
        return path[2]
    if family != "transformer":
        return f"{family}.{path[1]}" if len(path) == 2 else None
    return path[1] if len(path) == 2 and path[1] in FACTORS else None


def factors() -> dict[str, list[str]]:
    """The levels of each factor."""
    found: dict[str, list[str]] = {}
    for choice in choices(RunConfig):
        factor = name(choice)
        if factor is not None:
            known = found.setdefault(factor, [])
            known += [level for level in choice.levels if level not in known]
    return found


def build(levels: Levels) -> tuple[dict[str, Any], Levels]:
    """Settings in which `levels` hold, and the levels of all factors that these settings have."""
    effective: Levels = {}

    def pick(choice: Choice) -> str | None:
        factor = name(choice)
        if factor is None:
            return "sinusoidal" if choice.path == ("model", "target_positions") and _reads_length(levels) else None
        level = levels.get(factor, NORM if factor == "norm" else None)
        effective[factor] = choice.usual if level not in choice.levels else level
        return level if level in choice.levels else None

    settings, _ = assemble(RunConfig, pick, SIZES)
    settings.setdefault("model", {}).update(preset=None, width=WIDTH, dropout=0.1)
    return settings, effective


def _reads_length(levels: Levels) -> bool:
    """Whether the position scheme needs the whole text's length, which only an encoder knows."""
    schemes = union_members(ModelConfig.model_fields["positions"].annotation)
    return any(scheme.needs_length for scheme in schemes if levels.get("positions") in kinds(scheme))


def refusal(settings: dict[str, Any]) -> str | None:
    """Why there can be no such run, or None."""
    corpus = {"source": "none", "target": "none"}
    train = {"max_epochs": 1, **settings.get("train", {})}
    whole = {**settings, "train": train, "data": {"train": corpus, "valid": corpus}, "out": "none"}
    try:
        parse_settings(whole, RunConfig, "benchmark")
    except DragomanError as error:
        return str(error)
    return None


def singles() -> Iterator[Plan]:
    """The centres, each family of encoder with each of decoder, then one factor after another."""
    known = factors()
    varied: set[str] = {"encoder", "decoder"}
    for centre, base in CENTRES.items():
        if any(
            base.get(side, "transformer") not in known.get(side, ["transformer"]) for side in ("encoder", "decoder")
        ):
            continue
        settings, effective = build(base)
        yield Plan(f"around the {centre}", "centre", centre, base, settings)
        if centre == "transformer":
            for encoder, decoder in product(known.get("encoder", []), known.get("decoder", [])):
                if len({encoder, decoder, centre}) > 1 and (encoder, decoder) != ("recurrent", "recurrent"):
                    levels = {"encoder": encoder, "decoder": decoder}
                    yield Plan(f"around the {centre}", "family", f"{encoder} → {decoder}", levels, build(levels)[0])
        for factor in known:
            usual = effective.get(factor) or build({**base, **NEEDED.get(factor, {})})[1].get(factor)
            if usual is None or (factor in varied and factor not in BOTH_CENTRES):
                continue
            varied.add(factor)
            for level in known[factor]:
                levels = {**base, **NEEDED.get(factor, {}), factor: level}
                settings, now = build(levels)
                if level not in (usual, SAME.get(factor)) and now.get(factor) == level:
                    yield Plan(f"around the {centre}", factor, level, levels, settings)


def pairs(only: set[str]) -> tuple[list[Plan], dict[str, str]]:
    """Runs in which all pairs of levels of two factors occur, and the refused pairs with their reason."""
    known = {
        factor: [level for level in levels if level != SAME.get(factor)]
        for factor, levels in factors().items()
        if (factor in only if only else factor not in NOT_PAIRED)
    }
    everything = [(factor, level) for factor, levels in known.items() for level in levels]
    wanted = [
        (one, other) for place, one in enumerate(everything) for other in everything[:place] if one[0] != other[0]
    ]
    random = Random(1)
    random.shuffle(wanted)

    families = {
        sides: set(build(dict(zip(("encoder", "decoder"), sides, strict=True)))[1]) | set(NEEDED)
        for sides in product(known.get("encoder", ["transformer"]), known.get("decoder", ["transformer"]))
    }

    def propose(pair: tuple[tuple[str, str], tuple[str, str]]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        needed = {key: level for factor, _ in pair for key, level in NEEDED.get(factor, {}).items()}
        hosts = [sides for sides, inside in families.items() if {factor for factor, _ in pair} <= inside]
        for trial in range(40 if hosts else 0):
            share = (0.0, 1.0, 0.7, 0.4)[min(trial, 1 + trial % 3)]  # all levels drawn at once seldom go together
            drawn = {factor: random.choice(levels) for factor, levels in known.items() if random.random() < share}
            drawn |= dict(zip(("encoder", "decoder"), hosts[0] if trial == 0 else random.choice(hosts), strict=True))
            levels = {**drawn, **needed, **dict(pair)}
            settings, effective = build(levels)
            if all(effective.get(factor) == level for factor, level in pair):
                yield json.dumps([levels, settings]), [each for each in effective.items() if each[0] in known]

    design = cover(wanted, propose, lambda run: refusal(json.loads(run)[1]), candidates=10)
    plans = []
    for run, _ in design.runs:
        levels, settings = json.loads(run)
        shown = {factor: level for factor, level in build(levels)[1].items() if levels.get(factor) == level}
        plans.append(Plan("pairs", "", ", ".join(f"{key}={value}" for key, value in shown.items()), levels, settings))
    refused = {" with ".join("=".join(each) for each in pair): why for pair, why in design.refused.items()}
    return plans, refused


def full(only: set[str]) -> Iterator[Plan]:
    """Every combination of all levels."""
    known = {factor: levels for factor, levels in factors().items() if not only or factor in only}
    for combination in product(*known.values()):
        levels = dict(zip(known, combination, strict=True))
        settings, effective = build(levels)
        if all(effective.get(factor) == level for factor, level in levels.items()):
            yield Plan("full product", "", ", ".join(map("=".join, levels.items())), levels, settings)


def identity(plan: Plan, budget: dict[str, Any]) -> str:
    """Equal for equal settings under an equal budget, whatever design asks for them."""
    return hashlib.sha256(json.dumps([plan.settings, budget], sort_keys=True).encode()).hexdigest()[:12]


def execute(recipe: dict[str, Any], test: list[str]) -> dict[str, Any]:
    """Train, translate and measure in a process of its own; what was measured, and the translations."""
    from dragoman.models.build import count_parameters
    from dragoman.train.loop import run
    from dragoman.translator import Translator

    began = time.perf_counter()
    config = parse_settings(recipe, RunConfig, "benchmark")
    shutil.rmtree(config.out, ignore_errors=True)
    result = run(config)
    trained = time.perf_counter() - began
    lines = [json.loads(line) for line in (config.out / "log.jsonl").read_text("utf-8").splitlines()]
    speeds = sorted(line["target_tokens_per_second"] for line in lines if "target_tokens_per_second" in line)
    translator = Translator.load(config.out, device="cpu")
    translator.translate(test[:16])
    began = time.perf_counter()
    translations = translator.translate(test)
    return {
        "steps": result.step,
        "parameters": count_parameters(translator.model),
        "training_seconds": trained,
        "training_tokens_per_second": speeds[len(speeds) // 2],
        "sentences_per_second": len(test) / (time.perf_counter() - began),
        "valid_perplexity": result.validation.perplexity,
        "translations": translations,
    }


def main() -> None:
    """Plan, then run what is not in the results yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/variants"))
    parser.add_argument("--only", nargs="*", default=[], metavar="FACTOR")
    parser.add_argument("--singles", action="store_true", help="without the pairs")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--multi30k", action="store_true")
    parser.add_argument("--list", action="store_true", help="show factors and runs, and run nothing")
    parser.add_argument("--epochs", type=int, help=f"passes over the corpus ({EPOCHS}; {MULTI30K_EPOCHS} of Multi30k)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--precision", default="float32", choices=("float32", "bfloat16"))
    arguments = parser.parse_args()
    only, known = set(arguments.only), {**factors(), "family": []}
    if unknown := only - set(known) - {"centre"}:
        parser.error(f"no such factor: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    refused: dict[str, str] = {}
    if arguments.multi30k:
        plans = [
            Plan("Multi30k", "", ", ".join(map("=".join, levels.items())) or "centre", levels, build(levels)[0])
            for levels in DOZEN
        ]
    elif arguments.full:
        plans = list(full(only))
    else:
        plans = list(singles())
        groups = {plan.group for plan in plans if plan.factor in only}
        plans = [
            plan
            for plan in plans
            if not only or plan.factor in only or (plan.factor == "centre" and plan.group in groups)
        ]
        if not arguments.singles and len(only) != 1:
            more, refused = pairs(only)
            plans += more
    if arguments.list:
        for factor, levels in known.items():
            print(f"{factor}: {', '.join(levels)}")
        for plan in plans:
            print(f"{plan.group} · {plan.factor} · {plan.varied}")
        print(f"{len(plans)} runs, {len(refused)} refused pairs")
        return
    budget = {"epochs": arguments.epochs or (MULTI30K_EPOCHS if arguments.multi30k else EPOCHS)}
    budget |= {"seed": arguments.seed, "precision": arguments.precision}
    budget |= {"corpus": "multi30k" if arguments.multi30k else f"grammar {TRAIN}"}
    run_all(plans, refused, budget, arguments.out)


def run_all(plans: list[Plan], refused: dict[str, str], budget: dict[str, Any], out: Path) -> None:
    """Make the runs that are not there; write the table after each."""
    (out / "translations").mkdir(parents=True, exist_ok=True)
    corpus, test, references = write_corpus(out, budget["corpus"])
    results = out / "results.jsonl"
    before = [json.loads(line) for line in results.read_text("utf-8").splitlines()] if results.is_file() else []
    done = {line["id"] for line in before if line["status"] != "failed"}
    (out / "refused.json").write_text(json.dumps(refused, indent=1, ensure_ascii=False) + "\n", "utf-8")
    for number, plan in enumerate(plans, 1):
        key = identity(plan, budget)
        if key in done:
            continue
        done.add(key)
        print(f"[{number}/{len(plans)}] {plan.group} · {plan.factor} · {plan.varied}", file=sys.stderr, flush=True)
        line: dict[str, Any] = {"id": key, **asdict(plan), "budget": budget}
        why = refusal(plan.settings)
        if why is not None:
            line |= {"status": "refused", "message": why}
        else:
            try:
                # a process a run: what kills one (memory, a crash in native code) does not end the benchmark
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                    found = pool.submit(execute, recipe(plan, budget, corpus, out / "run"), test).result()
                text = "".join(translation + "\n" for translation in found.pop("translations"))
                (out / "translations" / f"{key}.txt").write_text(text, "utf-8")
                line |= {"status": "done", **found}
            except Exception as error:
                line |= {"status": "failed", "message": f"{type(error).__name__}: {error}"}
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        write_report(out, references)
    write_report(out, references)


def recipe(plan: Plan, budget: dict[str, Any], corpus: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The whole of a run's settings."""
    settings = json.loads(json.dumps(plan.settings))
    subword = settings.setdefault("text", {}).setdefault("subword", {})
    if subword.get("kind", "bpe") in ("bpe", "wordpiece", "unigram"):
        subword["size"] = 2000 if "grammar" in budget["corpus"] else 6000
    train = {
        "seed": budget["seed"],
        "max_epochs": budget["epochs"],
        "patience": None,
        "validate_every": 10**6,
        "checkpoint_every": 10**6,
        "log_every": 10,
        "metric": "loss",
        "average": {"count": 0},
        "schedule": {"kind": "cosine", "peak": 3e-3, "warmup": 0.1},
        "precision": budget["precision"],
        "threads": 1,
        "device": "cpu",
        **settings.get("train", {}),
    }
    return {**settings, "train": train, "data": {**corpus, "batch": {"tokens": 1024}}, "out": str(folder)}


def write_corpus(out: Path, corpus: str) -> tuple[dict[str, Any], list[str], list[str]]:
    """The data's settings, and the two sides of the test set."""
    if corpus == "multi30k":
        folder = Path(os.environ["DRAGOMAN_DATA"]) / "multi30k"
        from dragoman.data.readers import open_lines

        paths = {part: [str(folder / f"{part}.{side}.gz") for side in ("en", "de")] for part in ("train", "val")}
        test, references = (list(open_lines(folder / f"test_2016_flickr.{side}.gz")) for side in ("en", "de"))
    else:
        from dragoman.grammar.corpus import generate

        made = generate(seed=1, train=TRAIN, valid=VALID, test=TEST)
        paths = {part: [str(out / f"{part}.{side}") for side in ("en", "de")] for part in ("train", "val")}
        for sentences, files in ((made.train, paths["train"]), (made.valid, paths["val"])):
            for side, path in zip(("en", "de"), files, strict=True):
                Path(path).write_text("".join(getattr(each, side) + "\n" for each in sentences), "utf-8")
        test, references = [each.en for each in made.test], [each.de for each in made.test]
    train, valid = ({"source": source, "target": target} for source, target in (paths["train"], paths["val"]))
    return {"train": train, "valid": valid}, test, references


if __name__ == "__main__":
    main()
