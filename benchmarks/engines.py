"""The speed of every engine of translation on one model and one text, alternately in one process.

    python benchmarks/engines.py runs/small test.en.gz --reference test.de.gz

Sentences a second at each beam and batch size, the median of the turns, and milliseconds a sentence, one at a time:
median and the slowest of a hundred. Texts go in and out, so tokenising counts. `plain` is CTranslate2 as its own users
call it, on sorted pieces with its own search and its own length penalty: its best setting, with a worker a core.
Differing lines are counted against those of torch. What an engine refuses is left out, and said.
"""

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import torch

from dragoman import Translator
from dragoman.base.errors import DragomanError
from dragoman.checkpoint.folder import load_model_folder
from dragoman.cli.lines import read_lines
from dragoman.evaluate.translation import bleu
from dragoman.exchange.ctranslate2.folder import export
from dragoman.exchange.ctranslate2.library import library
from dragoman.exchange.ctranslate2.specification import names
from dragoman.translation.choice import ENGINES

Contender = Callable[[Sequence[str], int, int], list[str]]
"""Texts, a beam and a batch size to translations."""
INSTRUCTIONS = ("avx2", "fma", "avx512f", "avx512_bf16", "avx_vnni", "avx512_vnni", "amx_bf16", "amx_int8", "asimd")
WARM = 64
"""Lines that are translated before any are timed."""


def engine(folder: Path, name: str, precision: str) -> Contender:
    translator = Translator.load(folder, "cpu", name, precision)
    translator.report_cut = False
    return lambda texts, beam, batch: translator.translate(texts, beam=beam, batch_size=batch)


def plain(folder: Path, quantization: str) -> Contender:
    """CTranslate2 without dragoman's search and engine around it."""
    loaded = load_model_folder(folder, torch.device("cpu"))
    source, target = loaded.tokenizers.source, loaded.tokenizers.target
    reading, writing = names(source), {name: number for number, name in enumerate(names(target))}
    with tempfile.TemporaryDirectory() as place:
        export(loaded, folder, Path(place) / "model", quantization)  # type: ignore[arg-type]
        program = library().Translator(
            str(Path(place) / "model"),
            compute_type=quantization,
            inter_threads=torch.get_num_threads(),
            intra_threads=1,
        )

    def translate(texts: Sequence[str], beam: int, batch: int) -> list[str]:
        pieces = [[reading[number] for number in ids] for ids in source.encode_batch(texts)]
        results = program.translate_batch(pieces, beam_size=beam, max_batch_size=batch, max_input_length=0)
        return [target.decode(writing[piece] for piece in result.hypotheses[0]) for result in results]

    return translate


def contenders(folder: Path, words: Sequence[str] | None) -> dict[str, Contender]:
    """All that can be made here, or those whose names hold one of the words; torch, the reference, first."""
    makers: dict[str, Callable[[], Contender]] = {}
    for kind in reversed(ENGINES):
        for precision in kind.precisions:
            makers[f"{kind.name} {precision}"] = partial(engine, folder, kind.name, precision)
    for quantization in ("float32", "int8"):
        makers[f"plain {quantization}"] = partial(plain, folder, quantization)
    found = {}
    for name, make in makers.items():
        if words is None or any(word in name for word in words):
            try:
                found[name] = make()
            except DragomanError as error:
                print(f"{name}: {error}")
    return found


def turns(names_: Sequence[str], count: int) -> Iterator[str]:
    """All by turns, every second time the other way round."""
    for turn in range(count):
        yield from names_ if turn % 2 == 0 else reversed(names_)


def in_batches(found: dict[str, Contender], texts: list[str], settings: argparse.Namespace) -> None:
    references = None if settings.reference is None else list(read_lines(settings.reference))[: len(texts)]
    print("\n| engine | beam | batch | sentences/s | from – to | unlike torch's | BLEU |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for beam, batch in itertools.product(settings.beams, settings.batches):
        outputs = {name: translate(texts[:WARM], beam, batch) for name, translate in found.items()}
        rates: dict[str, list[float]] = {name: [] for name in found}
        for name in turns(list(found), settings.turns):
            began = time.perf_counter()
            outputs[name] = found[name](texts, beam, batch)
            rates[name].append(len(texts) / (time.perf_counter() - began))
        reference = next(iter(outputs.values()))
        for name, output in outputs.items():
            unlike = sum(one != other for one, other in zip(output, reference, strict=True))
            cells = (
                *(name, beam, batch, f"**{statistics.median(rates[name]):.0f}**"),
                *(f"{min(rates[name]):.0f} – {max(rates[name]):.0f}", unlike),
                "" if references is None else f"{bleu(output, references).value:.2f}",
            )
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


def one_at_a_time(found: dict[str, Contender], texts: list[str], settings: argparse.Namespace) -> None:
    print("\n| engine | beam | ms a sentence, median | 99th percentile |")
    print("|---|--:|--:|--:|")
    chosen = texts[:: max(1, len(texts) // settings.one)][: settings.one]
    for beam in settings.beams:
        for translate in found.values():
            for text in chosen[:5]:
                translate([text], beam, 1)
        took: dict[str, list[float]] = {name: [] for name in found}
        for name in turns(list(found), len(chosen)):
            text = chosen[len(took[name])]
            began = time.perf_counter()
            found[name]([text], beam, 1)
            took[name].append(1000 * (time.perf_counter() - began))
        for name, each in took.items():
            slow = sorted(each)[min(len(each) - 1, round(0.99 * len(each)))]
            print(f"| {name} | {beam} | **{statistics.median(each):.2f}** | {slow:.2f} |", flush=True)


def instructions() -> str:
    """Those of this processor that matter to matrix products."""
    information = Path("/proc/cpuinfo")
    words = set(information.read_text().split()) if information.exists() else set()
    return ", ".join(each for each in INSTRUCTIONS if each in words) or "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--reference", type=Path, help="translations of the text, for BLEU")
    parser.add_argument("--engines", nargs="*", help="only those whose names hold one of these words")
    parser.add_argument("--beams", nargs="*", type=int, default=[1, 5])
    parser.add_argument("--batches", nargs="*", type=int, default=[64])
    parser.add_argument("--one", type=int, default=200, help="sentences that are translated one at a time")
    parser.add_argument("--lines", type=int, help="only so many of the text")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, help="default: one a core")
    settings = parser.parse_args()
    if settings.threads:
        torch.set_num_threads(settings.threads)
    texts = list(itertools.islice(read_lines(settings.text), settings.lines))
    found = contenders(settings.model, settings.engines)
    print(f"{len(texts)} lines, {torch.get_num_threads()} threads, instructions: {instructions()}")
    in_batches(found, texts, settings)
    if settings.one:
        one_at_a_time(found, texts, settings)


if __name__ == "__main__":
    main()
