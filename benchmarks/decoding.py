"""Decoding speed, step by step, compared with another checkout of this project, alternately in one process.

    python benchmarks/decoding.py ../other/src

A model of the preset `small` with random weights reads random sources and, token by token, given targets: one
hypothesis per sentence, and a beam whose hypotheses are shuffled after every token. There is no search, so that only
decoders are compared. Printed for each case: CPU time (ms) of both checkouts, and the median of the ratios of
neighbouring turns, above 1 if this checkout is faster. One thread.
"""

import argparse
import importlib
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

VOCABULARY = 8000
# sentences, hypotheses per sentence, target tokens, source tokens
CASES = [(64, 1, 15, 16), (64, 5, 15, 16), (1, 1, 15, 16), (1, 5, 15, 16), (64, 1, 60, 50), (8, 5, 150, 100)]
CASES += [(8, 1, 300, 250), (1, 1, 400, 250)]
SECONDS = 20.0
"""Measure CPU time (seconds) per case, in at least five turns."""


def imported(source: Path) -> ModuleType:
    """Return the model builder of a checkout; modules imported from another checkout are unaffected."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "dragoman"]:
        del sys.modules[name]
    sys.path.insert(0, str(source))
    try:
        names = ("machine/startup", "machine/allocator", "allocator")  # names in this version and in earlier ones
        own = next(name for name in names if (source / f"dragoman/base/{name}.py").is_file())
        importlib.import_module(f"dragoman.base.{own.replace('/', '.')}").keep_large_tensors_on_heap()
        importlib.import_module("dragoman.decode.search")
        return importlib.import_module("dragoman.models.kinds.encoder_decoder")
    finally:
        sys.path.pop(0)


def small(source: Path) -> Any:
    builder = imported(source)
    torch.manual_seed(1)
    return builder.ModelConfig.model_validate({"preset": "small"}).build(VOCABULARY, VOCABULARY).eval()


def last_logits(output: Any) -> Tensor:
    """Return the logits, also for checkouts whose output has a projection instead."""
    found: Tensor = output.last_logits() if hasattr(output, "last_logits") else output.project(output.hidden[:, -1])
    return found


@torch.inference_mode()
def seconds(model: Any, sentences: int, beam: int, written: int, read: int) -> float:
    """Return the CPU time (seconds) of one decoding, after the source was encoded."""
    generator = torch.Generator().manual_seed(3)
    source = torch.randint(4, VOCABULARY, (sentences, read), generator=generator)
    memory = model.encode(source, torch.ones_like(source, dtype=torch.bool))
    first = torch.arange(sentences).repeat_interleave(beam)
    places = torch.randint(0, beam, (written, sentences * beam), generator=generator)
    began = time.process_time()
    state = model.decoder.start(memory)
    if hasattr(state, "capacity"):
        state = replace(state, capacity=2 * read + 10)
    tokens = torch.full((sentences, 1), 1)
    for step in range(written):
        output, state = model.decoder.step(tokens, state)
        last_logits(output)
        if beam > 1:
            state = state.reorder(first * beam + places[step] if step else first, beam)
        tokens = torch.full((sentences * beam, 1), 5)
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="the src folder of the other checkout")
    torch.set_num_threads(1)
    models = {"other": small(parser.parse_args().other), "this": small(Path(__file__).parents[1] / "src")}
    print("sentences × beam, target tokens, source tokens: other ms, this ms, other / this")
    for case in CASES:
        found: dict[str, list[float]] = {name: [] for name in models}
        spent, turn = 0.0, 0
        while spent < SECONDS or turn < 6:
            for name in sorted(models, reverse=turn % 2 == 1):
                took = seconds(models[name], *case)
                spent += took
                if turn:  # the first turn is a warm-up
                    found[name].append(took)
            turn += 1
        other, this = (np.array(found[name]) for name in ("other", "this"))
        medians = [float(np.median(1000 * each)) for each in (other, this)]
        ratio = float(np.median(other / this))
        print(
            f"{case[0]} × {case[1]}, {case[2]}, {case[3]}: {medians[0]:.1f}, {medians[1]:.1f}, {ratio:.3f}", flush=True
        )


if __name__ == "__main__":
    main()
