"""`dragoman evaluate`: score translations against references, or compute a language model's perplexity."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.arguments import check_settings
from dragoman.cli.commands.evaluation_output import (
    format_json,
    is_language_model,
    print_alignment_scores,
    print_denoising_scores,
    print_label_measures,
    print_output_scores,
    print_pair_accuracy,
    print_perplexities,
    print_precision_cost,
    restores_text,
    writes_outputs,
)
from dragoman.cli.option_groups import split_tags, with_fusion
from dragoman.cli.options import (
    BatchSize,
    Beam,
    CoveragePenalty,
    Device,
    Divide,
    DocumentsOption,
    Ensemble,
    Fusion,
    Heading,
    LanguageModel,
    LengthPenalty,
    PredictionEngine,
    PredictionPrecision,
    Quiet,
    SearchSettings,
    Stride,
    Tags,
    TaskName,
    Threads,
    To,
    Unknown,
)

_TAGS = ("to", "tags")


def evaluate(
    model: Annotated[
        Path | None,
        typer.Argument(
            help="Model folder. A translation model translates --source; a language model computes the perplexity of "
            "--reference, and a denoising model that of restoring it."
        ),
    ] = None,
    search: SearchSettings = None,
    reference: Annotated[
        list[Path] | None,
        typer.Option("--reference", help="Reference translations or, for a language model, a text; repeatable."),
    ] = None,
    hypothesis: Annotated[
        list[Path] | None,
        typer.Option(
            "--hypothesis", help="Translations of a system; repeat it to compare two systems by paired bootstrap."
        ),
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--source", help="Source sentences; adds BLEU by source length.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="NAME", help="Metric, such as bleu, chrf or ter; repeatable (default: all)."),
    ] = None,
    tokenizer: Annotated[
        str,
        typer.Option(
            "--tokenizer",
            metavar="NAME",
            help="sacreBLEU's tokeniser for BLEU: 13a, intl, zh, ja-mecab, ko-mecab, char, flores101, flores200 or "
            "none. auto: by the model's target language, or characters if the references have no spaces.",
        ),
    ] = "auto",
    tokenized: Annotated[
        str | None,
        typer.Option(
            "--tokenized",
            metavar="LANG",
            help="Also report BLEU on lowercased, normalised text, Moses-tokenised for this language, as in older "
            "papers.",
        ),
    ] = None,
    precision_cost: Annotated[
        bool,
        typer.Option(
            "--precision-cost",
            help="Instead of scoring, measure what int8 costs on --source and --reference (default: the validation set "
            "of the model's training), and write it into the model folder. translate and serve choose the precision by "
            "this measurement.",
        ),
    ] = False,
    test: Annotated[
        list[Path] | None,
        typer.Option(
            "--test",
            help="Labelled examples, for a model that predicts labels, or texts with summaries, labels or answers, for "
            "a model that writes them; repeatable. Settings of the file are KEY=VALUE arguments, such as "
            "columns.text=review.",
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            help="Minimal pairs, one JSON object per line, for a language model or a masked language model: the share "
            "of pairs whose first text is more probable. The keys are those of BLiMP, or KEY=VALUE arguments such as "
            "good=right bad=wrong.",
        ),
    ] = None,
    alignments: Annotated[
        Path | None,
        typer.Option(
            "--alignments",
            metavar="GOLD",
            help="Annotated word alignments: the AER, precision, recall and F1 of the links in each --hypothesis file. "
            "Links are 3-4, and possible links of GOLD are 3p4, 3?4 or 3-4-P. NAACL's format is supported as well.",
        ),
    ] = None,
    gold_base: Annotated[
        int | None,
        typer.Option(
            "--gold-base", metavar="0|1", help="Number of the first word of a sentence in GOLD (default: detected)."
        ),
    ] = None,
    hypothesis_base: Annotated[
        int | None,
        typer.Option(
            "--hypothesis-base",
            metavar="0|1",
            help="Number of the first word of a sentence in the links of --hypothesis (default: detected).",
        ),
    ] = None,
    compare: Annotated[
        list[Path] | None,
        typer.Option(
            "--compare",
            metavar="MODEL",
            help="With --test, another model, compared with the first by paired bootstrap; repeatable.",
        ),
    ] = None,
    confusion: Annotated[
        Path | None,
        typer.Option(
            "--confusion",
            help="With --test or --alignments, also draw the confusion matrix of labels or of links, as SVG, PNG, JSON "
            "or CSV, according to the suffix.",
        ),
    ] = None,
    draw: Annotated[
        Path | None,
        typer.Option(
            "--draw",
            help="With --alignments, --source and --reference, also draw the links of all systems in a sentence pair "
            "over the annotated ones.",
        ),
    ] = None,
    draw_line: Annotated[
        int, typer.Option("--draw-line", min=1, help="Line number of the sentence pair for --draw.")
    ] = 1,
    vectors: Annotated[
        bool,
        typer.Option(
            "--vectors",
            help="With --test, correlate the cosine of the vectors of the two texts of each pair with the labels, "
            "instead of predicting labels.",
        ),
    ] = False,
    task: TaskName = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object instead of text.")] = False,
    ensemble: Ensemble = None,
    to: To = None,
    tags: Tags = None,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    coverage_penalty: CoveragePenalty = None,
    unknown: Unknown = None,
    language_model: LanguageModel = None,
    fusion: Fusion = None,
    divide: Divide = True,
    documents: DocumentsOption = None,
    heading: Heading = None,
    stride: Stride = None,
    batch_size: BatchSize = 64,
    engine: PredictionEngine = None,
    precision: PredictionPrecision = None,
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Compute BLEU, chrF and TER with their signatures, the perplexity of a language model on --reference, its accuracy
    on --pairs, the accuracy, F1 or correlation of predicted labels on --test, or the error rate of word alignments.

    Perplexity is reported per token, word and byte. Values per word and byte are comparable between vocabularies.
    """
    from dragoman.base.errors import ConfigError, reject_options
    from dragoman.base.files import check_new_files
    from dragoman.evaluation.evaluate import evaluate, options_by_name
    from dragoman.evaluation.results import Evaluation

    settings: dict[str, Any] = {
        "to": to,
        "tags": split_tags(tags),
        "beam": beam,
        "length_penalty": length_penalty,
        "coverage_penalty": coverage_penalty,
        "unknown": unknown,
        "search": with_fusion(search, language_model, fusion),
        "divide": divide,
    }
    references = reference or []
    tokenizers = {"--tokenizer": None if tokenizer == "auto" else tokenizer, "--tokenized": tokenized}
    base_options = {"--gold-base": gold_base, "--hypothesis-base": hypothesis_base}
    if alignments is not None:
        options = options_by_name({name: value for name, value in settings.items() if name != "search"})
        given = {"a model folder": model, "--metric": metric, "--test": test, "--pairs": pairs, "--compare": compare}
        reject_options({**given, **tokenizers, "--ensemble": ensemble, **options}, "without --alignments")
        check_new_files({"--confusion": confusion, "--draw": draw}, alignments, source, *(hypothesis or []))
        pictures = (confusion, draw, draw_line)
        print_alignment_scores(alignments, hypothesis or [], base_options, source, references, as_json, pictures)
        return
    link_options = {**base_options, "--draw": draw}
    reject_options(
        {name: value if value is None else str(value) for name, value in link_options.items()}, "with --alignments"
    )
    engines = {name: value for name, value in (("engine", engine), ("precision", precision)) if value is not None}
    if test is not None and model is not None and writes_outputs(model):
        rejected: dict[str, object] = {"--reference": reference, "--hypothesis": hypothesis, "--source": source}
        rejected |= {"--ensemble": ensemble, "--pairs": pairs, "--confusion": confusion, "--task": task, **tokenizers}
        others = {name: value for name, value in {**settings, **engines}.items() if name not in ("search", "beam")}
        reject_options({**rejected, "--vectors": vectors or None, **options_by_name(others)}, "without --test")
        outputs: dict[str, Any] = {"metric": metric, "beam": beam, "batch_size": batch_size, "device": device}
        print_output_scores([model, *(compare or [])], test, search or [], as_json, {**outputs, "threads": threads})
        return
    if test is not None or pairs is not None:
        option = "--pairs" if test is None else "--test"
        given = {"--reference": reference, "--hypothesis": hypothesis, "--source": source, "--metric": metric}
        options = options_by_name({name: value for name, value in settings.items() if name != "search"})
        reject_options({**given, **tokenizers, "--ensemble": ensemble, **options}, f"without {option}")
    test_options: dict[str, object] = {"--compare": compare, "--confusion": confusion, "--task": task}
    test_options |= {"--vectors": vectors or None, **options_by_name(engines)}
    if pairs is not None:
        reject_options({"--test": test, **test_options}, "without --pairs")
        print_pair_accuracy(model, pairs, search or [], device, threads, as_json)
        return
    if test:
        arguments = {"vectors": vectors, "task": task, "device": device, "threads": threads, **engines}
        print_label_measures(model, compare or [], test, search or [], confusion, as_json, arguments)
        return
    reject_options(test_options, "with --test")
    check_settings(search or [], "search.minimum_length=3", "--source FILE --reference FILE")
    if precision_cost:
        others = {"--hypothesis": hypothesis, "--metric": metric, **tokenizers, "--ensemble": ensemble}
        options = options_by_name({name: value for name, value in settings.items() if name not in _TAGS})
        reject_options({**others, **options, "--device": device}, "without --precision-cost")
        print_precision_cost(model, source, references, to, split_tags(tags), threads, as_json)
        return
    if not references:
        raise ConfigError("there is no reference to compare with: give --reference FILE")
    if model is not None and source is None and not hypothesis and restores_text(model):
        pair_options = {"--metric": metric, **tokenizers, "--ensemble": ensemble, **options_by_name(settings)}
        reject_options({**pair_options, "--stride": stride}, "with translations")
        print_denoising_scores(model, references, as_json, documents, heading, device, threads)
        return
    if model is not None and is_language_model(model):
        metric_options = {"--hypothesis": hypothesis, "--source": source, "--metric": metric, **tokenizers}
        reject_options({**metric_options, "--ensemble": ensemble, **options_by_name(settings)}, "with translations")
        window_options = {"documents": documents, "heading": heading, "stride": stride, "batch_size": batch_size}
        print_perplexities(model, references, device, threads, window_options, as_json)
        return
    reject_options({"--documents": documents, "--heading": heading, "--stride": stride}, "with a language model")
    reject_options({"--ensemble": ensemble if model is None else None}, "with a model to translate with")
    printed: list[Evaluation] = []

    def print_part(part: Evaluation) -> None:
        print(part.as_continuation() if printed else part, flush=True)
        printed.append(part)

    result = evaluate(
        [model, *ensemble] if model is not None and ensemble else model,
        reference=references,
        hypothesis=hypothesis or [],
        source=source,
        metric=metric,
        tokenizer=tokenizer,
        tokenized=tokenized,
        on_result=None if as_json else print_part,
        batch_size=batch_size,
        device=device,
        threads=threads,
        **settings,
    )
    if as_json:
        print(format_json(result.as_json()))
