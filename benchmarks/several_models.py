"""Translation with several models compared with one: BLEU with paired bootstrap tests, and time.

    python benchmarks/several_models.py MODEL --test SOURCE REFERENCE --dev SOURCE REFERENCE [--ensemble OTHER]...
        [--reverse MODEL] [--language-model FOLDER] [--fused FOLDER] [--nbest 20] [--samples 50] [--lines N]

The single model is compared with the ensemble, shallow fusion with --fused (a language model with the same vocabulary),
reranking by --reverse, by --language-model and by both, and minimum-risk choice from the n-best list and from samples.
Parameters (λ of fusion, weights of reranking) are tuned on the dev set; the test set is scored once. --lines uses only
the first lines of both sets. The benchmark can't be resumed; with 1,000 sentences a small model takes minutes.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import dragoman
from dragoman.data.files.lines import open_lines
from dragoman.evaluation.evaluate import evaluate
from dragoman.inference.translation.reranking.minimum_risk import MinimumRisk
from dragoman.inference.translation.reranking.reranker import Reranker
from dragoman.inference.translation.translator import Sampling, Translator
from dragoman.metrics.bleu import BLEU

WEIGHTS = (0.03, 0.06, 0.1, 0.15, 0.2, 0.3)
"""Candidates for λ of fusion, which is tuned on the dev set."""

Pair = tuple[list[str], list[str]]


def read(paths: Sequence[Path], lines: int | None) -> Pair:
    source, reference = (list(open_lines(path))[:lines] for path in paths)
    return source, reference


def fused(translator: Translator, folder: Path, dev: Pair, test: Sequence[str]) -> list[str]:
    """Translate with fusion, with the λ that is best on the dev set."""

    def translations(texts: Sequence[str], weight: float) -> list[str]:
        return translator.translate(texts, search={"fusion": {"language_model": folder, "weight": weight}})

    scores = {weight: BLEU().score(translations(dev[0], weight), dev[1]).value for weight in WEIGHTS}
    best = max(scores, key=scores.__getitem__)
    print("fusion on the dev set:", ", ".join(f"{weight}: {score:.2f}" for weight, score in scores.items()))
    return translations(test, best)


def reranked(model: Path, translator: Translator, dev: Pair, test: Sequence[str], **models: object) -> list[str]:
    """Translate with reranking, with the weights that are best on the dev set."""
    tuning = dragoman.tune(model, source=dev[0], reference=dev[1], quiet=True, **models)  # type: ignore[arg-type]
    print(f"reranking by {', '.join(name for name in models if name != 'nbest')}:\n{tuning}")
    found = translator.translate_nbest(test, translator.request(nbest=tuning.config.nbest))
    return [best[0].text for best in Reranker.load(tuning.config, translator).choose(test, found)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--test", type=Path, nargs=2, required=True, metavar=("SOURCE", "REFERENCE"))
    parser.add_argument("--dev", type=Path, nargs=2, required=True, metavar=("SOURCE", "REFERENCE"))
    parser.add_argument("--ensemble", type=Path, action="append", default=[])
    parser.add_argument("--reverse", type=Path)
    parser.add_argument("--language-model", type=Path)
    parser.add_argument("--fused", type=Path)
    parser.add_argument("--nbest", type=int, default=20)
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--lines", type=int)
    given = parser.parse_args()
    dev, (test, reference) = read(given.dev, given.lines), read(given.test, given.lines)
    translator = Translator.load(given.model)
    nbest, samples = given.nbest, given.samples
    ways: dict[str, Callable[[], list[str]]] = {"single": lambda: translator.translate(test)}
    if given.ensemble:
        folders = [given.model, *given.ensemble]
        ways[f"ensemble of {len(folders)}"] = lambda: Translator.load(folders).translate(test)
    if given.fused is not None:
        ways["shallow fusion"] = lambda: fused(translator, given.fused, dev, test)
    models = {"reverse": given.reverse, "language_model": given.language_model}
    there = {name: folder for name, folder in models.items() if folder is not None}
    groups = [{name: folder} for name, folder in there.items()] + ([there] if len(there) > 1 else [])
    for group in groups:
        ways[f"{nbest}-best, reranked by {' and '.join(group)}"] = lambda group=group: reranked(  # type: ignore[misc]
            given.model, translator, dev, test, nbest=nbest, **group
        )
    for utility in ("chrf", "bleu"):
        listed, drawn = MinimumRisk(utility, "probability"), MinimumRisk(utility)
        ways[f"{nbest}-best, minimum risk by {utility}"] = lambda choice=listed: [  # type: ignore[misc]
            best[0].text
            for best in choice.choose(test, translator.translate_nbest(test, translator.request(nbest=nbest)))
        ]
        ways[f"{samples} samples, minimum risk by {utility}"] = lambda choice=drawn: [  # type: ignore[misc]
            best[0].text for best in choice.choose(test, translator.sample(test, Sampling(samples=samples)))
        ]
    found: dict[str, list[str]] = {}
    seconds: dict[str, float] = {}
    for name, translate in ways.items():
        began = time.perf_counter()
        found[name] = translate()
        seconds[name] = time.perf_counter() - began
    print(evaluate(hypothesis=found, reference=reference, metric=["bleu", "chrf"]))
    print("\n".join(f"{name}: {took:.1f} s, including tuning" for name, took in seconds.items()))


if __name__ == "__main__":
    main()
