"""Speed of all translation engines on one model and one text, alternately in one process.

    python benchmarks/engines.py runs/small test.en.gz --reference test.de.gz

Printed: sentences per second at each beam and batch size, as the median of the turns, and the latency of single
sentences (ms): median and 99th percentile. Tokenisation is included. `default` is dragoman without any engine or
precision being set. `plain` is CTranslate2 as its own users call it, on sorted pieces with its own search and length
penalty, at its best setting, one worker per core. Lines that differ from torch's are counted. Unsupported combinations
are skipped and reported. With --picture, sentences per second are plotted against the batch size. With --untrained
PRESET the model is replaced by one of that size with the same vocabulary, random weights and outputs of 15 tokens.
"""

import argparse
import itertools
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import torch

from dragoman import Translator
from dragoman.base.errors import DragomanError
from dragoman.checkpoint.folder import load_model_folder, write_model_folder
from dragoman.checkpoint.tensors import model_parameters
from dragoman.data.corpora.inputs import read_lines
from dragoman.data.workers import available_cores
from dragoman.decode.search import SearchConfig
from dragoman.engines.choice import AUTOMATIC
from dragoman.engines.registry import ENGINES
from dragoman.exchange.ctranslate2.folder import export
from dragoman.exchange.ctranslate2.specification import library, token_names
from dragoman.figures.canvas import new_figure, save
from dragoman.metrics.bleu import BLEU
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.native import compiler

Contender = Callable[[Sequence[str], int, int], list[str]]
"""Translates texts with a beam size and a batch size."""
INSTRUCTIONS = ("avx2", "fma", "avx512f", "avx512_bf16", "avx_vnni", "avx512_vnni", "amx_bf16", "amx_int8", "asimd")
COLOURS = ("#66737f", "#d9731a", "#1f5fa8", "#2e8b57", "#8e44ad")
FIXED = 15
"""Length (tokens) of the outputs of an untrained model."""
WARM = 64
"""Number of lines translated for warm-up."""


def untrained(folder: Path, preset: str, made: Path) -> Path:
    """Write a model folder with the vocabulary of another one, whose outputs all have the same length."""
    like = load_model_folder(folder, torch.device("cpu"))
    config = ModelConfig(preset=preset)
    torch.manual_seed(1)
    model = config.build(len(like.tokenizers.source.symbols), len(like.tokenizers.target.symbols))
    search = {"length_factor": 0, "length_margin": FIXED, "minimum_length": FIXED - 1}
    settings = json.dumps({"model": config.model_dump(mode="json"), "search": search})
    write_model_folder(made, model_parameters(model), settings, like.tokenizers, like.meta)
    return made


def engine(folder: Path, threads: int, name: str, precision: str) -> Contender:
    translator = Translator.load(folder, "cpu", name, precision, threads)
    translator.warn_unfinished = False
    return lambda texts, beam, batch: translator.translate(texts, beam=beam, batch_size=batch)


def plain(folder: Path, threads: int, quantization: str) -> Contender:
    """CTranslate2 without dragoman's search and engine around it."""
    loaded = load_model_folder(folder, torch.device("cpu"))
    source, target = loaded.tokenizers.source, loaded.tokenizers.target
    reading, writing = token_names(source), {name: number for number, name in enumerate(token_names(target))}
    with tempfile.TemporaryDirectory() as place:
        export(loaded, folder, Path(place) / "model", quantization)  # type: ignore[arg-type]
        program = library().Translator(
            str(Path(place) / "model"),
            compute_type=quantization,
            inter_threads=threads,
            intra_threads=1,
        )

    search = SearchConfig(**loaded.config.get("search", {}))
    limits = {} if search.length_factor else {"max_decoding_length": search.max_length(0)}
    limits["min_decoding_length"] = max(1, search.minimum_length)

    def translate(texts: Sequence[str], beam: int, batch: int) -> list[str]:
        pieces = [[reading[number] for number in ids] for ids in source.encode_batch(texts)]
        results = program.translate_batch(pieces, beam_size=beam, max_batch_size=batch, max_input_length=0, **limits)
        return [target.decode(writing[piece] for piece in result.hypotheses[0]) for result in results]

    return translate


def contenders(folder: Path, threads: int, words: Sequence[str] | None) -> dict[str, Contender]:
    """Return all available engines, or those whose names contain one of the words; torch, the reference, is first."""
    makers: dict[str, Callable[[], Contender]] = {}
    for kind in reversed(ENGINES):
        service = kind.serves.get("translate")
        for precision in () if service is None else service.precisions:
            makers[f"{kind.name} {precision}"] = partial(engine, folder, threads, kind.name, precision)
    makers["default auto"] = partial(engine, folder, threads, "auto", AUTOMATIC)
    for quantization in ("float32", "int8"):
        makers[f"plain {quantization}"] = partial(plain, folder, threads, quantization)
    found = {}
    for name, make in makers.items():
        if words is None or any(word in name for word in words):
            try:
                found[name] = make()
            except DragomanError as error:
                print(f"{name}: {error}")
    return found


def turns(names_: Sequence[str], count: int) -> Iterator[str]:
    """Yield all engines in turn; the order is reversed every second time."""
    for turn in range(count):
        yield from names_ if turn % 2 == 0 else reversed(names_)


Rates = dict[tuple[str, int, int], float]
"""Print sentences per second of each engine, with each beam size and batch size."""


def in_batches(found: dict[str, Contender], texts: list[str], settings: argparse.Namespace) -> Rates:
    medians: Rates = {}
    references = None if settings.reference is None else list(read_lines(settings.reference))[: len(texts)]
    print("\n| engine | beam | batch | sentences/s | range | different from torch | BLEU |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for beam, batch in itertools.product(settings.beams, settings.batches):
        outputs = {name: translate(texts[:WARM], beam, batch) for name, translate in found.items()}
        rates: dict[str, list[float]] = {name: [] for name in found}
        for name in turns(list(found), settings.turns):
            began = settings.clock()
            outputs[name] = found[name](texts, beam, batch)
            rates[name].append(len(texts) / (settings.clock() - began))
        reference = next(iter(outputs.values()))
        for name, output in outputs.items():
            medians[name, beam, batch] = statistics.median(rates[name])
            unlike = sum(one != other for one, other in zip(output, reference, strict=True))
            cells = (
                *(name, beam, batch, f"**{medians[name, beam, batch]:.0f}**"),
                *(f"{min(rates[name]):.0f} – {max(rates[name]):.0f}", unlike),
                "" if references is None else f"{BLEU().score(output, references).value:.2f}",
            )
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    return medians


def picture(rates: Rates, title: str, path: Path) -> None:
    """One panel per beam size and one line per engine: one colour per program, dashed for float32."""
    names = list(dict.fromkeys(name for name, _, _ in rates))
    beams = sorted({beam for _, beam, _ in rates})
    colours = dict(zip(dict.fromkeys(name.split()[0] for name in names), COLOURS, strict=False))
    figure = new_figure(4.4 * len(beams) + 1.6, 4.0)
    for place, beam in enumerate(beams):
        axes = figure.add_subplot(1, len(beams), place + 1)
        for name in names:
            points = sorted((batch, rate) for (of, at, batch), rate in rates.items() if (of, at) == (name, beam))
            program, precision = name.split()
            line = "--" if precision == "float32" else "-"
            axes.plot(*zip(*points, strict=True), line, marker="o", markersize=3, color=colours[program], label=name)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter("{x:.0f}")
        axes.yaxis.set_major_formatter("{x:.0f}")
        axes.grid(alpha=0.3, which="both")
        axes.set_title("greedy" if beam == 1 else f"beam {beam}", fontsize=10)
        axes.set_xlabel("sentences in a batch")
        axes.set_ylabel("sentences per second")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right center", fontsize=8)
    figure.suptitle(title, fontsize=9)
    save(figure, path)


def one_at_a_time(found: dict[str, Contender], texts: list[str], settings: argparse.Namespace) -> None:
    print("\n| engine | beam | ms per sentence, median | 99th percentile |")
    print("|---|--:|--:|--:|")
    chosen = texts[:: max(1, len(texts) // settings.one)][: settings.one]
    for beam in settings.beams:
        for translate in found.values():
            for text in chosen[:5]:
                translate([text], beam, 1)
        took: dict[str, list[float]] = {name: [] for name in found}
        for name in turns(list(found), len(chosen)):
            text = chosen[len(took[name])]
            began = settings.clock()
            found[name]([text], beam, 1)
            took[name].append(1000 * (settings.clock() - began))
        for name, each in took.items():
            slow = sorted(each)[min(len(each) - 1, round(0.99 * len(each)))]
            print(f"| {name} | {beam} | **{statistics.median(each):.2f}** | {slow:.2f} |", flush=True)


def instructions() -> str:
    """Return the instruction sets of this processor that matrix products use."""
    information = Path("/proc/cpuinfo")
    words = set(information.read_text().split()) if information.exists() else set()
    return ", ".join(each for each in INSTRUCTIONS if each in words) or "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--reference", type=Path, help="translations of the text, for BLEU")
    parser.add_argument("--engines", nargs="*", help="only engines whose names contain one of these words")
    parser.add_argument("--beams", nargs="*", type=int, default=[1, 5])
    parser.add_argument("--batches", nargs="*", type=int, default=[64])
    parser.add_argument("--untrained", metavar="PRESET", help="random weights of this size, outputs of 15 tokens")
    parser.add_argument("--picture", type=Path, help="a PNG file of the rates against the batch size")
    parser.add_argument("--one", type=int, default=200, help="number of sentences translated one at a time")
    parser.add_argument("--lines", type=int, help="use only the first N lines of the text")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument(
        "--threads", type=int, default=available_cores(), help="threads of every engine (default: one per processor)"
    )
    parser.add_argument(
        "--processor-time",
        dest="clock",
        action="store_const",
        const=time.process_time,
        default=time.perf_counter,
        help="measure CPU time of all threads instead of wall time: for one thread on a busy machine",
    )
    parser.add_argument("--avx2", action="store_true", help="restrict native and CTranslate2 to AVX2")
    settings = parser.parse_args()
    if settings.avx2:
        compiler._processor_flags = lambda: frozenset(("avx2", "fma"))  # type: ignore[assignment]
        # for CTranslate2 and its matrix libraries, which read this on first use
        os.environ.update(CT2_FORCE_CPU_ISA="AVX2", ONEDNN_MAX_CPU_ISA="AVX2", MKL_ENABLE_INSTRUCTIONS="AVX2")
    torch.set_num_threads(settings.threads)
    texts = list(itertools.islice(read_lines(settings.text), settings.lines))
    with tempfile.TemporaryDirectory() as place:
        folder = settings.model
        if settings.untrained:
            folder = untrained(folder, settings.untrained, Path(place) / settings.untrained)
        found = contenders(folder, settings.threads, settings.engines)
    known = "avx2 alone" if settings.avx2 else instructions()
    title = f"{len(texts)} lines, {settings.threads} threads, instructions: {known}"
    print(title)
    rates = in_batches(found, texts, settings)
    if settings.picture is not None:
        picture(rates, title, settings.picture)
    if settings.one:
        one_at_a_time(found, texts, settings)


if __name__ == "__main__":
    main()
