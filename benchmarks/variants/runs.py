"""Makes runs: each in a process that may die; its result is appended at the end, and its model is kept."""

import hashlib
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, fields
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from budget import Budget, Corpus, as_text, recipe
from design import Plan
from factors import refusal

Line = dict[str, Any]


def identity(plan: Plan, budget: Budget) -> str:
    """Return a key that is equal for equal settings under an equal budget, in every design."""
    return hashlib.sha256(json.dumps([plan.settings, as_text(budget)], sort_keys=True).encode()).hexdigest()[:12]


class Results:
    """results.jsonl: one line per run; the last line of a run counts, so that a failed run can be repeated."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def read(self) -> dict[str, Line]:
        """Return the lines by run. Incomplete lines are ignored."""
        found: dict[str, Line] = {}
        for text in self.path.read_text("utf-8").splitlines() if self.path.is_file() else ():
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                continue
            found[line["id"]] = line
        return found

    def append(self, line: Line) -> None:
        """Append a line, also after an incomplete one."""
        with self._lock, self.path.open("a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                broken = file.read(1) != b"\n"
                file.write(b"\n" if broken else b"")
            file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")


def finished(results: Results, budget: Budget) -> list[Plan]:
    """Return the plans of the finished runs under this budget."""
    lines = [line for line in results.read().values() if line["status"] == "done" and line["budget"] == as_text(budget)]
    return [Plan(**{field.name: line[field.name] for field in fields(Plan)}) for line in lines]


def make(plans: Iterable[Plan], budget: Budget, corpus: Corpus, out: Path, workers: int) -> None:
    """Make the runs that are missing or have failed."""
    results = Results(out / "results.jsonl")
    over = {key for key, line in results.read().items() if line["status"] != "failed"}
    waiting = {identity(plan, budget): plan for plan in plans if identity(plan, budget) not in over}
    queue: SimpleQueue[tuple[int, str, Plan]] = SimpleQueue()
    for number, (key, plan) in enumerate(waiting.items(), 1):
        queue.put((number, key, plan))
    with ThreadPoolExecutor(workers) as threads:
        shared = {"results": results, "budget": budget, "corpus": corpus, "out": out}
        for done in [threads.submit(_work, queue, len(waiting), **shared) for _ in range(workers)]:
            done.result()


def _work(
    queue: "SimpleQueue[tuple[int, str, Plan]]",
    total: int,
    *,
    results: Results,
    budget: Budget,
    corpus: Corpus,
    out: Path,
) -> None:
    """Make runs until none are left, in a separate process, which is replaced if a run kills it."""
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    while not queue.empty():
        number, key, plan = queue.get()
        line: Line = {"id": key, **asdict(plan), "budget": as_text(budget)}
        folder = out / "models" / key
        why = refusal(plan.settings)
        if why is not None:
            line |= {"status": "refused", "message": why}
        else:
            settings = recipe(plan.settings, budget, corpus.data, folder)
            try:
                sources, references = corpus.test
                found = pool.submit(execute, settings, sources, references, os.getpid()).result()
                lines = "".join(translation + "\n" for translation in found.pop("translations"))
                (out / "translations").mkdir(exist_ok=True)
                (out / "translations" / f"{key}.txt").write_text(lines, "utf-8")
                line |= {"status": "done", **found}
            except BrokenProcessPool:
                line |= {"status": "failed", "message": "its process was killed by lack of memory or by a crash"}
                pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
            except Exception as error:
                line |= {"status": "failed", "message": f"{type(error).__name__}: {error}"}
        results.append(line)
        said = f"BLEU {line['bleu']:.1f}, {line['cpu_seconds']:.0f} s of CPU" if "bleu" in line else line["status"]
        shown = " · ".join(filter(None, (plan.group, plan.factor, plan.varied)))
        print(f"{time.strftime('%H:%M:%S')} [{number}/{total}] {shown}: {said}", file=sys.stderr, flush=True)
    pool.shutdown()


def execute(settings: dict[str, Any], sources: list[str], references: list[str], parent: int) -> Line:
    """Train, translate and score; the model folder is kept at `settings["out"]`, without snapshots."""
    import io

    import torch
    from sacrebleu.metrics.bleu import BLEU

    from dragoman.base.log import console
    from dragoman.base.settings.load import parse_settings
    from dragoman.checkpoint.folder import load_model_folder
    from dragoman.inference.translation.translator import Translator
    from dragoman.models.parts import count_parameters
    from dragoman.tasks.train import train
    from dragoman.tasks.translation.config import TranslationRun

    _watch(parent)
    console.file = io.StringIO()
    torch.set_num_threads(1)
    config = parse_settings(settings, TranslationRun, "benchmark")
    shutil.rmtree(config.out, ignore_errors=True)
    began, cpu = time.perf_counter(), time.process_time()
    result = train(config)
    trained = time.process_time() - cpu
    translations = Translator.load(config.out, device="cpu").translate(sources)
    decoded = time.process_time() - cpu - trained
    shutil.rmtree(config.out / "checkpoints", ignore_errors=True)
    shutil.rmtree(config.out / "training", ignore_errors=True)
    bleu = BLEU()
    score = bleu.corpus_score(translations, [references])
    return {
        "bleu": score.score,
        "signature": str(bleu.get_signature()),
        "exact": sum(map(str.__eq__, translations, references)) / len(references),
        "valid_perplexity": result.validation["perplexity"].value,
        "parameters": count_parameters(load_model_folder(config.out, torch.device("cpu")).model),
        "steps": result.step,
        "cpu_seconds": trained + decoded,
        "cpu_seconds_training": trained,
        "seconds": time.perf_counter() - began,
        "translations": translations,
    }


@cache
def _watch(parent: int) -> None:
    """End this process with its parent, so that a run of a killed benchmark does not interfere with the next one."""

    def end() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
