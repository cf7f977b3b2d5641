"""`dragoman evaluate translations`: score translations against references."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.arguments import check_settings, pairs_of
from dragoman.cli.command import command
from dragoman.cli.commands.evaluation.labels import labels
from dragoman.cli.commands.evaluation.options import Json, print_json
from dragoman.cli.commands.evaluation.outputs import outputs
from dragoman.cli.commands.evaluation.perplexity import perplexity
from dragoman.cli.option_groups import SearchOptions
from dragoman.cli.options import BatchSize, Device, Divide, Ensemble, PairsFile, Quiet, SearchSettings, System, Threads
from dragoman.cli.results import print_results

if TYPE_CHECKING:
    from dragoman.evaluation.results import Evaluation


@command(
    "dragoman evaluate runs/en-de",
    "dragoman evaluate runs/en-de --source test.en --reference test.de",
    usual="--source --reference --pairs --hypothesis --metric --examples --verdict --learning-curve --json --to "
    "--beam --threads --quiet",
    files="--source and --reference",
)
def translations(
    model: Annotated[
        Path | None, typer.Argument(help="Translation model, which translates --source; or none, for --hypothesis.")
    ] = None,
    search: SearchSettings = None,
    *,
    reference: Annotated[
        list[Path] | None, typer.Option("--reference", help="Reference translations; repeatable.")
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
    pairs: PairsFile = None,
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
    verdict: Annotated[
        bool,
        typer.Option("--verdict/--no-verdict", help="Say whether the model beats copying and a dictionary."),
    ] = True,
    examples: Annotated[
        int | None,
        typer.Option(
            "--examples",
            metavar="N",
            min=0,
            help="Number of the worst and of the typical lines to print (default: 3 with a verdict, else 0).",
        ),
    ] = None,
    learning_curve: Annotated[
        bool,
        typer.Option(
            "--learning-curve",
            help="Show what more pairs would give: train on a quarter and on half of them, as in the run.",
        ),
    ] = False,
    as_json: Json = False,
    system: System = None,
    ensemble: Ensemble = None,
    options: SearchOptions,
    divide: Divide = True,
    batch_size: BatchSize = 64,
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Score translations by BLEU, chrF and TER with their signatures.

    A model translates --source as `dragoman translate` does; without files, the test set that its run held out or that
    data.test names. Several systems are compared by paired bootstrap. A model of another kind is scored on what its run
    held out, as by `evaluate labels` or `evaluate perplexity`.
    """
    from dragoman.base.errors import reject_options
    from dragoman.evaluation.evaluate import evaluate

    files = (reference, hypothesis, source, pairs, search, ensemble)
    if model is not None and not any(files) and (scores := _other_scores(model)) is not None:
        own = {} if scores is outputs else {"--metric": metric}
        others = {"--tokenized": tokenized, "--examples": examples, "--learning-curve": learning_curve or None}
        reject_options({**own, **others}, "with a translation model")
        chosen = {"metric": metric} if scores is outputs else {}
        scores(model, as_json=as_json, device=device, threads=threads, **chosen)
        return
    if str(model).startswith("pairs."):  # without a model, the first argument is a setting
        model, search = None, [str(model), *(search or [])]
    check_settings(search or [], "search.minimum_length=3", "--source FILE --reference FILE")
    corpus, search = pairs_of(pairs, search or [])
    if model is None:
        reject_options({"--ensemble": ensemble, "--system": system}, "with a model to translate with")
    settings = options.search_settings(search)
    settings["divide"] = divide
    printed: list[Evaluation] = []

    def print_part(part: "Evaluation") -> None:
        print_results(part.as_continuation() if printed else part, marks=part.marks())
        printed.append(part)

    result = evaluate(
        [model, *ensemble] if model is not None and ensemble else model,
        reference=reference or [],
        hypothesis=hypothesis or [],
        source=source,
        pairs=corpus,
        metric=metric,
        tokenizer=tokenizer,
        tokenized=tokenized,
        verdict=verdict,
        examples=examples,
        learning_curve=learning_curve,
        on_result=None if as_json else print_part,
        system=system,
        batch_size=batch_size,
        device=device,
        threads=threads,
        **settings,
    )
    if as_json:
        print_json(result.as_json())
    elif explanation := result.explanation():
        print_results(explanation, marks=result.marks())


def _other_scores(model: Path) -> Callable[..., None] | None:
    """Return the command that scores a model that does not translate on its own test set; None without such a set."""
    from dragoman.evaluation.stored_test_set import has_documents, has_examples
    from dragoman.evaluation.text_to_text import writes_outputs

    if writes_outputs(model) and not has_documents(model):
        return outputs
    if has_examples(model):
        return labels
    return perplexity if has_documents(model) else None
