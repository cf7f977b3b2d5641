"""`dragoman tune`: find reranking weights on a development set."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.arguments import check_settings
from dragoman.cli.command import command
from dragoman.cli.option_groups import split_tags
from dragoman.cli.options import (
    BatchSize,
    Beam,
    Device,
    Divide,
    Ensemble,
    LengthPenalty,
    Model,
    Quiet,
    SearchSettings,
    Tags,
    Threads,
    To,
)
from dragoman.cli.results import print_results


@command(
    "dragoman tune runs/en-de --source dev.en --reference dev.de \\\n  --reverse runs/de-en --out weights.yaml",
    usual="--source --reference --out --reverse --language-model --ensemble --nbest --metric --to --beam "
    "--device --threads --quiet",
    files="--source and --reference",
)
def tune(
    model: Model,
    search: SearchSettings = None,
    *,
    source: Annotated[Path, typer.Option("--source", help="Source sentences of a development set (not a test set).")],
    reference: Annotated[Path, typer.Option("--reference", help="Reference translations.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Output file (YAML) with the weights for `dragoman translate --rerank`.")
    ],
    reverse: Annotated[
        Path | None,
        typer.Option("--reverse", metavar="MODEL", help="Reverse-direction model for log p(source | target)."),
    ] = None,
    language_model: Annotated[
        Path | None,
        typer.Option(
            "--language-model",
            metavar="FOLDER",
            help="Target-language model for log p(target), with any vocabulary.",
        ),
    ] = None,
    ensemble: Ensemble = None,
    nbest: Annotated[int, typer.Option("--nbest", min=2, help="Number of hypotheses per sentence.")] = 20,
    metric: Annotated[str, typer.Option("--metric", metavar="NAME", help="Metric to maximise: bleu or chrf.")] = "bleu",
    tokenizer: Annotated[
        str,
        typer.Option(
            "--tokenizer", metavar="NAME", help="sacreBLEU's tokeniser for BLEU. auto: by the target language."
        ),
    ] = "auto",
    restarts: Annotated[int, typer.Option("--restarts", min=0, help="Number of searches from random weights.")] = 20,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed for the initial weights.")] = 1,
    to: To = None,
    tags: Tags = None,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    divide: Divide = True,
    batch_size: BatchSize = 64,
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Find weights for reranking on a development set.

    Exact line search finds the weights for n-best lists that maximise corpus BLEU or chrF.
    """
    from dragoman.base.files import check_new_files
    from dragoman.evaluation.tune import tune

    check_settings(search or [], "search.minimum_length=3", "--source FILE --reference FILE")
    check_new_files({"--out": out}, source, reference)
    tuning = tune(
        [model, *ensemble] if ensemble else model,
        source=source,
        reference=reference,
        out=out,
        reverse=reverse,
        language_model=language_model,
        nbest=nbest,
        metric=metric,
        tokenizer=tokenizer,
        restarts=restarts,
        seed=seed,
        batch_size=batch_size,
        device=device,
        threads=threads,
        to=to,
        tags=split_tags(tags),
        beam=beam,
        length_penalty=length_penalty,
        search=search or (),
        divide=divide,
    )
    print_results(tuning)
