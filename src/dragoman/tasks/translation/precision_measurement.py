"""Measures what int8 costs in quality, and how fast it is, by translating a validation set with the native engine."""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from dragoman.base.errors import DataError
from dragoman.base.progress import Progress
from dragoman.checkpoint.folder import LoadedModel, fingerprint, load_model_folder
from dragoman.checkpoint.precision_cost import Int8Cost, PrecisionCost, PrecisionScores, write_precision_cost
from dragoman.engines.choice import default_threads
from dragoman.engines.native.engine import NativeEngine
from dragoman.engines.torch.engine import AttentionTorchEngine
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.translator import Translator
from dragoman.metrics.bleu import BLEU
from dragoman.metrics.bleu_tokenizer import choose_tokenizer
from dragoman.metrics.chrf import ChrF
from dragoman.native.build import NoLibraryError, compiled_library
from dragoman.native.compiler import InstructionSet, available
from dragoman.native.library import code_bits

MIN_SENTENCES, MAX_SENTENCES = 100, 2000
"""The smallest set that is measured, since fewer sentences say little, and the number that is sampled from a larger
one."""
LONGEST_MEASUREMENT = 120.0
"""Number of seconds after which no further sentences are translated."""

_CHUNK = 100
"""Number of sentences that each precision translates in turn, so that other programs slow all of them down alike."""


@dataclass(frozen=True)
class ValidationPairs:
    """Sentence pairs. tags: the tags of each source, as in `Request.tags`."""

    name: str
    sources: Sequence[str]
    targets: Sequence[str]
    tags: Sequence[tuple[str, ...]]


def measure_precision_cost(
    folder: Path, pairs: ValidationPairs, threads: int | None = None, deadline: float | None = None
) -> PrecisionCost:
    """Measure what int8 costs a model, and write the result into its folder and its card.

    The first `MAX_SENTENCES` pairs are translated with the model's own search settings, or fewer if they take more than
    two minutes. All widths of codes that this processor can compute with are measured, since the model may be used on
    another processor. threads: as in `Translator.load`. deadline: time, by `time.monotonic`, until which further chunks
    are translated if they are expected to end before it; the first `MIN_SENTENCES` pairs always are.

    Raises DataError for a set with fewer than `MIN_SENTENCES` pairs; ConfigError if the native engine does not support
    the model or its search settings; NoLibraryError if it cannot be compiled; ModelError for a damaged folder.
    """
    size = len(pairs.sources)
    if size < MIN_SENTENCES:
        raise DataError(f"{size:,} sentence pairs are too few ({pairs.name}): at least {MIN_SENTENCES} are needed")
    loaded = load_model_folder(folder, torch.device("cpu"), "translate")
    float32, int8 = _runs(loaded, threads or default_threads())
    search = float32.translator.search_config()
    requests = [Request(search, tags) for tags in pairs.tags[:MAX_SENTENCES]]
    end = min(time.monotonic() + LONGEST_MEASUREMENT, float("inf") if deadline is None else deadline)
    count = _translate([float32, *int8], pairs.sources, requests, end)
    sources, targets = list(pairs.sources[:count]), list(pairs.targets[:count])
    languages = {float32.translator.target_language(tags) for tags in pairs.tags[:count]}
    language = languages.pop() if len(languages) == 1 else None
    bleu, chrf = BLEU(tokenizer=choose_tokenizer(language, [targets]).name), ChrF()
    scores = [(bleu.score(run.lines, targets), chrf.score(run.lines, targets)) for run in (float32, *int8)]
    (float32_bleu, float32_chrf), *int8_scores = scores
    cost = PrecisionCost(
        model=fingerprint(folder),
        data=pairs.name,
        data_fingerprint=hashlib.sha256(json.dumps([sources, targets]).encode()).hexdigest(),
        sentences=count,
        set_size=size,
        beam=search.beam,
        bleu_signature=float32_bleu.signature,
        chrf_signature=float32_chrf.signature,
        float32=PrecisionScores(bleu=float32_bleu.value, chrf=float32_chrf.value),
        int8=tuple(
            Int8Cost(
                bleu=run_bleu.value,
                chrf=run_chrf.value,
                bits=run.bits,
                differing_lines=sum(one != other for one, other in zip(float32.lines, run.lines, strict=True)),
                speed=float32.seconds / run.seconds,
            )
            for run, (run_bleu, run_chrf) in zip(int8, int8_scores, strict=True)
        ),
    )
    write_precision_cost(folder, cost)
    return cost


@dataclass
class _Run:
    """The translations of one precision. bits: number of bits of the codes of int8. seconds: time of translation."""

    translator: Translator
    bits: int
    lines: list[str] = field(default_factory=list)
    seconds: float = 0.0


def _runs(loaded: LoadedModel, threads: int) -> tuple[_Run, list[_Run]]:
    """Return a run in float32, and one in int8 for each width of codes, with the best instruction set first."""
    reference = AttentionTorchEngine(loaded.model, loaded.tokenizers, torch.device("cpu"))

    def translator(engine: NativeEngine) -> Translator:
        return Translator(engine, loaded.tokenizers, loaded.meta, loaded.config.get("search"), warn_unfinished=False)

    float32 = NativeEngine(loaded.model, loaded.tokenizers, reference, "float32", threads)
    runs = [
        _Run(
            translator(
                NativeEngine(loaded.model, loaded.tokenizers, reference, "int8", threads, instructions=instructions)
            ),
            bits,
        )
        for bits, instructions in _widths().items()
    ]
    return _Run(translator(float32), 0), runs


def _widths() -> dict[int, InstructionSet]:
    """Return the best instruction set for each width of codes. Raises NoLibraryError if no library can be used."""
    found: dict[int, InstructionSet] = {}
    errors = []
    for instructions in available():
        try:
            found.setdefault(code_bits(compiled_library(instructions)), instructions)
        except NoLibraryError as error:
            errors.append(error)
        if len(found) == 2:
            break
    if not found:
        raise errors[0]
    return found


def _translate(runs: Sequence[_Run], sources: Sequence[str], requests: Sequence[Request], end: float) -> int:
    """Translate chunks of the sources with each run in turn while there is time; return the number of sources."""
    done, latest = 0, 0.0
    with Progress("Measuring int8", "sentences", len(requests)) as progress:
        while done < len(requests) and (time.monotonic() + latest < end or done < MIN_SENTENCES):
            begun = time.monotonic()
            part = slice(done, min(done + _CHUNK, len(requests)))
            for run in runs:
                start = time.perf_counter()
                run.lines += run.translator.translate(sources[part], requests=requests[part])
                run.seconds += time.perf_counter() - start
            done, latest = part.stop, time.monotonic() - begun
            progress.update(done)
    return done
