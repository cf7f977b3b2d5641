"""Quality per minute: results of variations of a recipe on the validation set in a given training time.

    python benchmarks/quality.py                # every variation, 20 minutes per run; --list shows them
    python benchmarks/quality.py --only r_drop=3 dropout=0.3+r_drop=3 --minutes 90
    python benchmarks/quality.py --report       # the table of finished runs

A variation is a name below, or several joined by `+`, or `centre` for the unchanged recipe. Every run has the same time
on one thread, so that settings with slower updates make fewer of them. With two workers on two idle cores, double the
minutes correspond to one run on both cores. The schedule ends with the time. Only the validation set is used: its loss
(nats per token), the greedy BLEU of the training's own validation, and BLEU with the model's beam, cased (sacreBLEU
13a), and lowercased, normalised and Moses-tokenised as in papers on Multi30k.

Each finished run is appended to `results.jsonl` and not repeated; the command can be stopped and run again. Time is
wall time, so use no more workers than there are idle cores.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

VARIATIONS: dict[str, list[str]] = {
    **{f"preset={preset}": [f"model.preset={preset}"] for preset in ("tiny", "small")},
    **{f"width={width}": [f"model.width={width}"] for width in (192, 256)},
    **{f"layers={layers}": [f"model.{side}.layers={layers}" for side in ("encoder", "decoder")] for layers in (3, 6)},
    "deep_encoder": ["model.encoder.layers=6", "model.decoder.layers=2"],
    "feedforward=512": [f"model.{side}.feedforward=512" for side in ("encoder", "decoder")],
    "norm=post": ["model.encoder.norm=post", "model.decoder.norm=post"],
    "swiglu": [f"model.{side}.activation=swiglu" for side in ("encoder", "decoder")],
    **{f"positions={kind}": [f"model.positions.kind={kind}"] for kind in ("sinusoidal", "relative")},
    **{f"dropout={rate}": [f"model.dropout={rate}"] for rate in (0.1, 0.2, 0.3, 0.4)},
    "dropout_inside=0.1": ["model.dropout={embedding: 0.3, residual: 0.3, attention: 0.1, feedforward: 0.1}"],
    **{f"r_drop={alpha}": ["train.objective.kind=r_drop", f"train.objective.alpha={alpha}"] for alpha in (1, 3, 5)},
    **{f"bpe_dropout={rate}": [f"text.subword.dropout={rate}"] for rate in (0.05, 0.1)},
    **{f"vocabulary={size}": [f"text.subword.size={size}"] for size in (3000, 4000, 8000, 10000)},
    **{f"batch={tokens}": [f"data.batch.tokens={tokens}"] for tokens in (1024, 4096)},
    **{f"peak={rate}": [f"train.schedule.peak={rate}"] for rate in (0.002, 0.005)},
    **{f"warmup={steps}": [f"train.schedule.warmup={steps}"] for steps in (1000, 2000)},
    "schedule=null": ["train.schedule=null"],
    # without a decay to an end, like a run without a limit
    "inverse_sqrt": ["train.schedule={kind: inverse_sqrt, warmup: 500, peak: 0.002}"],
    "averages=0": ["train.average.count=0"],
    **{f"label_smoothing={mass}": [f"train.objective.label_smoothing={mass}"] for mass in (0.05, 0.2)},
    "untied_projection": ["model.tie_projection=false"],
    "adam": ["train.optimiser.kind=adam"],
    "ema=0.999": ["train.ema=0.999"],
}


def main() -> None:
    """Make the missing runs, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", type=Path, default=Path(__file__).parents[1] / "recipes" / "multi30k-en-de.yaml")
    parser.add_argument("--out", type=Path, default=Path("runs/quality"))
    parser.add_argument("--only", nargs="+", default=["centre", *VARIATIONS], metavar="VARIATION")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1, help="number of simultaneous runs, one thread each (1)")
    parser.add_argument("--list", action="store_true", help="list the variations without running any")
    parser.add_argument("--report", action="store_true", help="print the table of finished runs without running any")
    arguments = parser.parse_args()
    if arguments.list:
        for name, settings in VARIATIONS.items():
            print(name, *settings)
        return
    unknown = [part for name in arguments.only for part in name.split("+") if part not in {"centre", *VARIATIONS}]
    if unknown:
        parser.error(f"no such variation: {', '.join(unknown)}; --list shows them")
    arguments.out.mkdir(parents=True, exist_ok=True)
    if not arguments.report:
        make(arguments)
    print(table(read(arguments.out)))


def make(arguments: argparse.Namespace) -> None:
    """Train and evaluate, `workers` runs at a time."""
    done = {key(line) for line in read(arguments.out)}
    lock = threading.Lock()

    def one(name: str) -> None:
        line = {
            "variation": name,
            "minutes": arguments.minutes,
            "seed": arguments.seed,
            "recipe": arguments.recipe.name,
        }
        if key(line) in done:
            return
        line |= judged(train(line, arguments.recipe, arguments.out))
        with lock, (arguments.out / "results.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        said = f"loss {line['loss']:.4f}, BLEU {line['greedy']:.2f}, beam {line['beam']:.2f}"
        print(f"{time.strftime('%H:%M:%S')} {name}: {said}", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(arguments.workers) as pool:
        for result in [pool.submit(one, name) for name in arguments.only]:
            result.result()


def train(line: dict[str, Any], recipe: Path, out: Path) -> Path:
    """Make a run in a separate process; an unfinished earlier one is restarted. Returns its folder."""
    folder = out / f"{line['variation']}-{line['minutes']:g}-{line['seed']}".replace("=", "-")
    shutil.rmtree(folder, ignore_errors=True)
    variations = [part for part in line["variation"].split("+") if part != "centre"]
    settings = [
        *(setting for part in variations for setting in VARIATIONS[part]),
        f"train.max_minutes={line['minutes']:g}",
        f"train.seed={line['seed']}",
        "train.threads=1",
        "train.device=cpu",
        f"out={folder}",
    ]
    command = [sys.executable, "-m", "dragoman", "train", str(recipe), *settings]
    with (out / f"{folder.name}.log").open("w", encoding="utf-8") as log:
        subprocess.run(command, check=True, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return folder


def judged(folder: Path) -> dict[str, Any]:
    """Return the results of a run's model on its validation set."""
    import torch

    from dragoman.base.settings.load import load_settings
    from dragoman.inference.translation.translator import Translator
    from dragoman.metrics.bleu import BLEU
    from dragoman.metrics.moses_bleu import TokenisedBLEU
    from dragoman.tasks.translation.config import TranslationRun
    from dragoman.tasks.translation.validation import read_held_out

    torch.set_num_threads(1)
    config = load_settings(folder / "config.yaml", [], TranslationRun)
    held_out = read_held_out(config, config.data.valid_sets)[0]
    translations = Translator.load(folder, device="cpu").translate(held_out.sources)
    cased = BLEU().score(translations, held_out.targets)
    tokenised = TokenisedBLEU(config.data.target_language or "en").score(translations, held_out.targets)
    log = [json.loads(text) for text in (folder / "log.jsonl").read_text("utf-8").splitlines()]
    judgements = [entry for entry in log if "valid_loss" in entry]
    last = judgements[-1]
    trained = [entry for entry in log if "target_tokens" in entry]
    return {
        "loss": last["valid_loss"],
        "greedy": max(entry["valid_bleu"] for entry in judgements),
        "beam": cased.value,
        "tokenised": tokenised.value,
        "signatures": [cased.signature, tokenised.signature],
        "steps": last["step"],
        "target_tokens": trained[-1]["target_tokens"] if trained else None,
    }


def read(out: Path) -> list[dict[str, Any]]:
    """The finished runs."""
    path = out / "results.jsonl"
    return [json.loads(text) for text in path.read_text("utf-8").splitlines()] if path.is_file() else []


def key(line: dict[str, Any]) -> tuple[Any, ...]:
    """Return the key that identifies a run."""
    return tuple(line[name] for name in ("recipe", "minutes", "seed", "variation"))


def table(lines: list[dict[str, Any]]) -> str:
    """Return the table in Markdown: for each recipe, time and seed the centre first, then the variations by loss."""
    rows = ["| recipe | minutes | seed | variation | updates | loss | greedy BLEU | beam BLEU | beam, tokenised |"]
    rows.append("| --- " * 9 + "|")
    for line in sorted(lines, key=lambda line: (*key(line)[:3], line["variation"] != "centre", line["loss"])):
        shown = [*key(line), f"{line['steps']:,}", f"{line['loss']:.4f}"]
        shown += [f"{line[name]:.2f}" for name in ("greedy", "beam", "tokenised")]
        rows.append("| " + " | ".join(map(str, shown)) + " |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
