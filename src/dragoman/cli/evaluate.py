"""`dragoman evaluate`: scores of translations against references, or a language model's perplexity on texts."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.options import (
    BatchSize,
    Beam,
    CoveragePenalty,
    Device,
    LengthPenalty,
    Tags,
    Threads,
    To,
    Unknown,
    refuse,
    split_tags,
    use_threads,
)
from dragoman.cli.texts import DocumentsOption, Heading, Reading, Stride, evaluate_documents, is_language_model

if TYPE_CHECKING:
    from dragoman.metrics.bootstrap import Comparison
    from dragoman.metrics.translation import Score


class Measure(StrEnum):
    """What can be measured."""

    bleu = "bleu"
    chrf = "chrf"
    ter = "ter"
    lecture = "lecture"


def evaluate(
    model: Annotated[
        Path | None,
        typer.Argument(help="A model folder: it translates --source first; a language model predicts --reference."),
    ] = None,
    reference: Annotated[
        list[Path],
        typer.Option("--reference", help="References, one file or several; for a language model, texts to predict."),
    ] = ...,  # type: ignore[assignment]
    hypothesis: Annotated[
        list[Path] | None,
        typer.Option("--hypothesis", help="A system's translations; two systems are compared by paired bootstrap."),
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--source", help="Source sentences: adds BLEU by source length.")
    ] = None,
    metric: Annotated[list[Measure] | None, typer.Option("--metric", help="What to compute (default: all).")] = None,
    tokenized: Annotated[
        str | None,
        typer.Option(
            "--tokenized",
            metavar="LANG",
            help="Also BLEU lowercased, normalised and Moses-tokenised for this language, as older papers print.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
    to: To = None,
    tags: Tags = None,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    coverage_penalty: CoveragePenalty = None,
    unknown: Unknown = None,
    documents: DocumentsOption = None,
    heading: Heading = None,
    stride: Stride = None,
    batch_size: BatchSize = 64,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """BLEU, chrF and TER with the signatures that make them comparable; of a language model, perplexity on --reference.

    Perplexity is given a token, a word and a byte; the latter two compare models with different vocabularies.
    """
    use_threads(threads)
    from dragoman.base.errors import ConfigError
    from dragoman.cli.lines import read_together

    of_translation = {
        "--to": to,
        "--tags": tags,
        "--beam": beam,
        "--length-penalty": length_penalty,
        "--coverage-penalty": coverage_penalty,
        "--unknown": unknown,
    }
    if model is not None and is_language_model(model):
        of_measures = {
            "--hypothesis": hypothesis or None,
            "--source": source,
            "--metric": metric or None,
            "--tokenized": tokenized,
        }
        refuse({**of_measures, **of_translation}, "with translations")
        evaluate_documents(model, reference, Reading(documents, heading, stride, batch_size, device), as_json)
        return
    refuse({"--documents": documents, "--heading": heading, "--stride": stride}, "with a language model")
    given = hypothesis or []
    if model is None and not given:
        raise ConfigError("nothing to evaluate: give --hypothesis FILE, or a model folder and --source FILE")
    if model is not None and source is None:
        raise ConfigError(f"to evaluate the model {model}, give the sentences that it shall translate: --source FILE")
    if model is None:
        refuse(of_translation, "with a model to translate with")
    together = [*reference, *given, *([source] if source is not None else [])]
    texts = read_together(*together)
    references, outputs = texts[: len(reference)], texts[len(reference) : len(reference) + len(given)]
    sources = texts[-1] if source is not None else None
    systems = list(zip(map(str, given), outputs, strict=True))
    if model is not None and sources is not None:
        from dragoman.base.errors import in_files
        from dragoman.translator import Translator

        translator = Translator.load(model, device, threads=threads)
        with in_files(source):
            translations = translator.translate(
                sources,
                batch_size=batch_size,
                beam=beam,
                length_penalty=length_penalty,
                coverage_penalty=coverage_penalty,
                unknown=unknown,
                to=to,
                tags=split_tags(tags),
            )
        systems.insert(0, (str(model), translations))

    measures = metric or list(Measure)
    results = [
        {
            "system": name,
            "scores": _scores(lines, references, measures, tokenized),
            "by_length": _by_length(sources, lines, references),
        }
        for name, lines in systems
    ]
    comparisons = [_compare(systems[0][1], lines, references, measures) for _, lines in systems[1:]]
    if as_json:
        _print_json(results, comparisons)
    else:
        _print_text(results, comparisons)


def _scores(
    lines: Sequence[str], references: Sequence[Sequence[str]], measures: Sequence[Measure], language: str | None
) -> "list[Score]":
    from dragoman.metrics.translation import bleu, chrf, lecture_bleu, ter, tokenised_bleu

    known: dict[Measure, Callable[..., Score]] = {
        Measure.bleu: bleu,
        Measure.chrf: chrf,
        Measure.ter: ter,
        Measure.lecture: lecture_bleu,
    }
    scores = [known[measure](lines, *references) for measure in measures]
    if language is not None:
        scores.append(tokenised_bleu(lines, *references, language=language))
    return scores


def _by_length(
    sources: Sequence[str] | None, lines: Sequence[str], references: Sequence[Sequence[str]]
) -> list[dict[str, Any]]:
    from dragoman.metrics.translation import bleu_by_length

    if sources is None:
        return []
    return [
        {"shortest": group.shortest, "longest": group.longest, "sentences": group.sentences, "bleu": group.score.value}
        for group in bleu_by_length(sources, lines, *references)
    ]


def _compare(
    first: Sequence[str], second: Sequence[str], references: Sequence[Sequence[str]], measures: Sequence[Measure]
) -> "list[Comparison]":
    from dragoman.metrics.bootstrap import paired_bootstrap

    names = [measure.value for measure in measures if measure is not Measure.lecture]
    return [paired_bootstrap(first, second, *references, metric=name) for name in names]  # type: ignore[arg-type]


def _print_json(results: list[dict[str, Any]], comparisons: "list[list[Comparison]]") -> None:
    import json
    from dataclasses import asdict

    systems = [{**result, "scores": [asdict(score) for score in result["scores"]]} for result in results]
    compared = [
        {"first": results[0]["system"], "second": result["system"], "metrics": [asdict(each) for each in metrics]}
        for result, metrics in zip(results[1:], comparisons, strict=True)
    ]
    print(json.dumps({"systems": systems, "comparisons": compared}, ensure_ascii=False, indent=2))


def _print_text(results: list[dict[str, Any]], comparisons: "list[list[Comparison]]") -> None:
    for result in results:
        print(result["system"])
        for score in result["scores"]:
            print(f"  {score}")
        if result["by_length"]:
            print("  BLEU by source length (words)")
        for group in result["by_length"]:
            longest = "…" if group["longest"] is None else f"–{group['longest']}"
            print(f"    {group['shortest']}{longest:<6} {group['bleu']:6.2f}  ({group['sentences']} sentences)")
    for result, metrics in zip(results[1:], comparisons, strict=True):
        print(f"{result['system']} against {results[0]['system']}, paired bootstrap")
        for each in metrics:
            interval = each.difference_interval
            verdict = "significant at 0.05" if each.p_value < 0.05 else "not significant at 0.05"
            print(
                f"  {each.first.name}: {each.difference:+.2f} (95% of resampled test sets: {interval.low:+.2f} to "
                f"{interval.high:+.2f}), p = {each.p_value:.4f}, {verdict} ({each.first.signature})"
            )
