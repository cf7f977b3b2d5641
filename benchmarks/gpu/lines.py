"""Number of lines of a test set that the cuda engine translates like the torch engine in float32, and BLEU."""

import time
from pathlib import Path

from dragoman import Translator
from dragoman.data.corpora.inputs import read_lines
from dragoman.metrics.bleu import BLEU


def lines(model: Path, source: Path, reference: Path) -> None:
    """Print a row per beam and precision."""
    sources, references = list(read_lines(source)), list(read_lines(reference))
    exact = Translator.load(model, "cuda", "torch")
    for beam in (1, 5):
        expected = exact.translate(sources, beam=beam, batch_size=256)
        print(f"LINES beam {beam} torch float32: BLEU {BLEU().score(expected, references).value:.2f}", flush=True)
        for precision in ("float32", "float16", "bfloat16"):
            translator = Translator.load(model, "cuda", "auto", precision)
            seconds = []
            for _ in range(2):
                start = time.perf_counter()
                found = translator.translate(sources, beam=beam, batch_size=1024)
                seconds.append(time.perf_counter() - start)
            same = sum(one == other for one, other in zip(found, expected, strict=True))
            score = BLEU().score(found, references).value
            print(
                f"LINES beam {beam} cuda {precision}: {same} of {len(sources)} the same, BLEU {score:.2f}, "
                f"{seconds[0]:.2f} s, then {seconds[1]:.2f} s",
                flush=True,
            )
