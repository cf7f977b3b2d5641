"""`dragoman translate`: lines of the source language in, lines of the target language out."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.cluster import (
    ActorsOption,
    ClusterOption,
    SourceField,
    TargetField,
    check_patterns,
    translate_on_cluster,
)
from dragoman.cli.document import DocumentOption, FormatOption, translate_document
from dragoman.cli.options import (
    BatchSize,
    Beam,
    Constraints,
    CoveragePenalty,
    Device,
    Engine,
    Ensemble,
    Fusion,
    Glossary,
    Keep,
    KeepPattern,
    LanguageModel,
    LengthPenalty,
    Model,
    Precision,
    Quiet,
    SearchSettings,
    Seed,
    Tags,
    Temperature,
    Threads,
    To,
    TopK,
    TopP,
    Unknown,
    check_settings,
    split_tags,
    with_fusion,
)
from dragoman.cli.standard_output import StandardOutput


def translate(
    model: Model,
    search: SearchSettings = None,
    inputs: Annotated[
        list[Path] | None,
        typer.Option(
            "--input",
            "-i",
            help="Text to translate, .gz .xz .zst too (default: stdin); with --cluster several, folders and patterns.",
        ),
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Where to write, .gz .xz .zst too (default: stdout); complete or not at all."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the --output of the same command, which was killed or stopped.")
    ] = False,
    ensemble: Ensemble = None,
    to: To = None,
    tags: Tags = None,
    beam: Beam = None,
    nbest: Annotated[
        int, typer.Option("--nbest", min=1, help="Write that many hypotheses a line: index ||| text ||| score.")
    ] = 1,
    length_penalty: LengthPenalty = None,
    coverage_penalty: CoveragePenalty = None,
    unknown: Unknown = None,
    language_model: LanguageModel = None,
    fusion: Fusion = None,
    prefix: Annotated[
        Path | None,
        typer.Option(
            "--prefix",
            help="What each translation has to start with, a line a line; blank: free. Where the numbers of lines turn "
            "out to differ, earlier lines are on stdout already; a file is not written.",
        ),
    ] = None,
    constraints: Constraints = None,
    glossary: Glossary = None,
    keep: Keep = None,
    keep_pattern: KeepPattern = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Write the log-probability (nats) and a tab before each line.")
    ] = False,
    token_scores: Annotated[
        bool,
        typer.Option("--token-scores", help="Write the tokens and their log-probabilities (nats) behind each line."),
    ] = False,
    tree: Annotated[
        Path | None,
        typer.Option(
            "--tree",
            help="Write all that the search expanded, with scores and what became of it: JSON Lines, .gz .xz .zst too.",
        ),
    ] = None,
    alignments: Annotated[
        Path | None,
        typer.Option(
            "--alignments",
            help="Write there which words of its line each translation's words come from, as 0-0 1-2, by attention.",
        ),
    ] = None,
    alignment_layer: Annotated[
        int | None,
        typer.Option("--alignment-layer", min=1, help="Whose attention tells alignments (default: the last but one)."),
    ] = None,
    alignment_head: Annotated[
        int | None, typer.Option("--alignment-head", min=1, help="Of that layer (default: the mean of all heads).")
    ] = None,
    on_error: Annotated[
        str,
        typer.Option(
            "--on-error",
            metavar="stop|replace|blank",
            help="Lines of broken UTF-8 and lines longer than the model can read: stop with an error; replace broken "
            "bytes by U+FFFD and translate what is too long in parts; or leave the translation blank.",
        ),
    ] = "stop",
    guard: Annotated[
        bool,
        typer.Option(
            "--guard",
            help="Look at each translation, and search again where it repeats itself, is empty, is the source again, "
            "is in another script or has other numbers.",
        ),
    ] = False,
    cluster: ClusterOption = None,
    actors: ActorsOption = None,
    source_field: SourceField = None,
    target_field: TargetField = None,
    document: DocumentOption = False,
    format: FormatOption = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Draw translations at random instead of searching the best; --nbest many.")
    ] = False,
    rerank: Annotated[
        Path | None,
        typer.Option(
            "--rerank",
            help="Weights that `dragoman tune` wrote: write the hypothesis that they put first, of as many as they "
            "say.",
        ),
    ] = None,
    mbr: Annotated[
        str | None,
        typer.Option(
            "--mbr",
            metavar="chrf|bleu",
            help="Of the --nbest hypotheses, write the one that is most like all others, each by its probability; of "
            "--nbest samples with --sample (minimum Bayes risk).",
        ),
    ] = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
    batch_size: BatchSize = 64,
    engine: Engine = "auto",
    precision: Precision = None,
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Translate a line at a time: N lines in, N lines out, blank lines stay blank; or --document, a whole page."""
    from dragoman.base.errors import refuse
    from dragoman.translation.alignment import AttentionChoice
    from dragoman.translation.files.translate_file import translate_file
    from dragoman.translation.request import RequestSettings, Sampling

    of_sampling = {"--temperature": temperature, "--top-k": top_k, "--top-p": top_p, "--seed": seed}
    of_search = {
        "--beam": beam,
        "--length-penalty": length_penalty,
        "--coverage-penalty": coverage_penalty,
        "--unknown": unknown,
        "--language-model": language_model,
        "--fusion": fusion,
        "--constraints": constraints,
        "--glossary": glossary,
        "--keep": keep,
        "--keep-pattern": keep_pattern,
        "--guard": guard or None,
    }
    if cluster is not None:
        check_patterns(search or [])
    check_settings(search or [], example="search.minimum_length=3")
    refuse(of_search if sample else of_sampling, "without --sample" if sample else "with --sample")
    chosen = (alignment_layer, alignment_head)
    attention = None if chosen == (None, None) else AttentionChoice(*chosen)
    models = [model, *ensemble] if ensemble else model
    settings: RequestSettings = {
        "beam": beam,
        "length_penalty": length_penalty,
        "coverage_penalty": coverage_penalty,
        "unknown": unknown,
        "search": () if sample else with_fusion(search, language_model, fusion),
        "to": to,
        "tags": split_tags(tags),
        "glossary": glossary,
        "keep": split_tags(keep),
        "keep_patterns": keep_pattern or (),
        "guard": guard,
    }
    of_lines = {
        "--resume": resume or None,
        "--nbest": None if nbest == 1 else nbest,
        "--prefix": prefix,
        "--constraints": constraints,
        "--scores": scores or None,
        "--token-scores": token_scores or None,
        "--tree": tree,
        "--alignments": alignments,
        "--rerank": rerank,
        "--mbr": mbr,
    }
    if cluster is not None:
        others = {
            "--document": document or None,
            "--format": format,
            "--alignment-layer, --alignment-head": attention,
            f"--device {device}": None if device == "cpu" else device,
        }
        refuse({**of_lines, **others}, "without --cluster")
        translate_on_cluster(
            models,
            inputs or [],
            target,
            cluster,
            actors=actors,
            threads=threads,
            source_field=source_field,
            target_field=target_field,
            sampling=Sampling.of(temperature, top_k, top_p, seed, 1, search or ()) if sample else None,
            batch_size=batch_size,
            engine=engine,
            precision=precision,
            on_error=on_error,
            **settings,
        )
        return
    of_cluster = {"--actors": actors, "--source-field": source_field, "--target-field": target_field}
    refuse({**of_cluster, "more than one --input": (inputs or [])[1:]}, "with --cluster")
    source = inputs[0] if inputs else None
    if document:
        refuse({**of_lines, "--sample": sample or None}, "without --document")
        translate_document(
            models,
            source,
            target,
            format,
            on_error,
            batch_size=batch_size,
            engine=engine,
            precision=precision,
            device=device,
            threads=threads,
            attention=attention,
            **settings,
        )
        return
    refuse({"--format": format}, "with --document")
    translate_file(
        models,
        source,
        StandardOutput() if target is None else target,
        resume=resume,
        prefix=prefix,
        constraints=constraints,
        nbest=nbest,
        scores=scores,
        token_scores=token_scores,
        tree=tree,
        sampling=Sampling.of(temperature, top_k, top_p, seed, nbest, search or ()) if sample else None,
        rerank=rerank,
        mbr=mbr,
        batch_size=batch_size,
        engine=engine,
        precision=precision,
        device=device,
        threads=threads,
        alignments=alignments,
        attention=attention,
        on_error=on_error,
        **settings,
    )
