"""`dragoman data`: download, check and divide corpora before training."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.arguments import RECIPES, check_options, check_settings, corpus_options, split_recipe
from dragoman.cli.command import command
from dragoman.cli.command_group import CommandGroup, Reference
from dragoman.cli.moses_files import corpus_files
from dragoman.cli.options import PairsFile, Quiet, SourceFile, TargetFile, ValidPairs, ValidSource, ValidTarget
from dragoman.cli.results import print_results

if TYPE_CHECKING:
    from dragoman.data.cleaning.report import CleaningReport

app = CommandGroup(
    "data",
    {
        "get": Reference("dragoman.cli.commands.data_get:get"),
        **{name: Reference(f"dragoman.cli.commands.data:{name}") for name in ("check", "compare", "split")},
    },
    help="Download a corpus, check it before training on it, or divide it into training, validation and test sets.",
    examples=(
        "dragoman data get multi30k",
        "dragoman data check --source train.en --target train.de",
        "dragoman data split --pairs pairs.tsv --out corpus",
    ),
)

_USAGE = (
    "give one corpus: sentence pairs as --pairs FILE, or as --source FILE and --target FILE; plain text as --text "
    "FILE, or by data.train.jsonl=FILE data.train.field=KEY"
)
_PAIRS = "give one corpus: --source FILE and --target FILE, --pairs FILE, or by settings, such as data.train.pairs=FILE"
_TEXT = ("data.train.text=", "data.train.field=")
"""Settings that only a corpus of plain text has."""


@command(
    "dragoman data check --source train.en --target train.de",
    "dragoman data check recipe.yaml",
    files="--source and --target",
)
def check(
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RECIPE.yaml] [KEY=VALUE]...",
            help="YAML recipe, whose corpora are checked, and settings of a training run that change what is kept: "
            "data.train (the format of the corpus), data.cleaning, data.source_language and data.target_language, or "
            "data.language of plain text, and text.normalization.",
            show_default=False,
        ),
    ] = None,
    *,
    source: SourceFile = None,
    target: TargetFile = None,
    pairs: PairsFile = None,
    text: Annotated[Path | None, typer.Option("--text", help="Plain text for a language model, instead.")] = None,
    lines: Annotated[int, typer.Option("--lines", min=0, help="Maximum number of line numbers shown per rule.")] = 10,
    all_lines: Annotated[bool, typer.Option("--all-lines", help="Show every line number.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object with all line numbers instead of a table.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Show what each cleaning rule would drop in training, with line numbers.

    The limit on subword tokens is not checked, because it needs a tokeniser.
    """
    from dragoman.base.errors import ConfigError

    given = settings or []
    if given and Path(given[0]).suffix in RECIPES and "=" not in given[0]:
        if any(each is not None for each in (source, target, pairs, text)):
            raise ConfigError("a recipe names its corpora: leave out --source, --target, --pairs and --text")
        _check_recipe(*split_recipe(given, "data.cleaning.max_words=60"), None if all_lines else lines, as_json)
        return
    check_settings(settings or [], "data.cleaning.max_words=60", "--source FILE and --target FILE")
    named = corpus_files(source, target, pairs) | ({} if text is None else {"text": text})
    if named.keys() not in ({"source", "target"}, {"pairs"}, {"text"}, set()):
        raise ConfigError(_USAGE)
    overrides = [f"data.train.{name}={json.dumps(str(path))}" for name, path in named.items()]
    report = _check([*overrides, *(settings or [])])
    if as_json:
        print(json.dumps({**report.to_json(), "kept": report.kept}))
    else:
        print_results(report.table(None if all_lines else lines))


def _check_recipe(recipe: Path | None, settings: list[str], lines: int | None, as_json: bool) -> None:
    """Print the report of each corpus of a recipe."""
    from dragoman.tasks.corpora.check import check_recipe

    objects = []
    for name, report in check_recipe(recipe, settings):
        if as_json:
            objects.append({"corpus": name, **report.to_json(), "kept": report.kept})
        else:
            print_results(name, report.table(lines))
    if as_json:
        print(json.dumps({"corpora": objects}))


def _check(settings: list[str]) -> "CleaningReport":
    """Return the report of a corpus. Raises ConfigError without a corpus, or for settings of another kind."""
    from dragoman.base.errors import ConfigError
    from dragoman.base.settings.load import load_settings
    from dragoman.tasks.corpora.check import CheckedPairs, CheckedText, check_data

    if not any(each.startswith("data.train") for each in settings):
        raise ConfigError(_USAGE)
    if any(each.startswith(_TEXT) for each in settings):
        text = load_settings(None, settings, CheckedText)
        language = text.data.language
        return check_data(text.data.train, text.data.cleaning, language=language, normalization=text.text.normalization)
    pairs = load_settings(None, settings, CheckedPairs)
    return check_data(
        pairs.data.train,
        pairs.data.cleaning,
        source_language=pairs.data.source_language,
        target_language=pairs.data.target_language,
        normalization=pairs.text.normalization,
    )


@command(
    "dragoman data compare recipe.yaml",
    "dragoman data compare --pairs pairs.tsv --valid-pairs test.tsv",
    takes_run_settings=True,
)
def compare(
    recipe: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RECIPE.yaml] [KEY=VALUE]...",
            help="YAML recipe of any task, followed by settings that override it, such as data.valid.pairs=test.tsv.",
            show_default=False,
        ),
    ] = None,
    *,
    source: SourceFile = None,
    target: TargetFile = None,
    pairs: PairsFile = None,
    valid_source: ValidSource = None,
    valid_target: ValidTarget = None,
    valid_pairs: ValidPairs = None,
    quiet: Quiet = False,
) -> None:
    """Compare validation sets with training corpora.

    A training run makes the same comparison before its first update. It reports overlap, swapped or shifted sides,
    other languages than those of the training corpora, and small corpora.
    """
    from dragoman.base.errors import ConfigError
    from dragoman.tasks.corpora.compare import compare_data

    path, arguments = split_recipe(recipe or [], "data.valid.pairs=test.tsv")
    options = {
        **corpus_options(source, target, pairs),
        **corpus_options(valid_source, valid_target, valid_pairs, valid=True),
    }
    check_options(options, arguments)
    overrides = [f"{key}={json.dumps(str(value))}" for key, value in options.items() if value is not None] + arguments
    if path is None:
        if not overrides:
            raise ConfigError(f"there is nothing to compare: {_PAIRS.replace('one corpus: ', 'a recipe, or ')}")
        overrides.insert(0, "out=.")  # a run needs a folder, and a comparison writes nothing
    findings = compare_data(path, overrides)
    for finding in findings:
        print_results(f"{'warning: ' if finding.is_warning else ''}{finding.message}")
    if not findings:
        print_results("No problem found.")


@command(
    "dragoman data split --pairs pairs.tsv --out corpus",
    "dragoman data split task.kind=tagging data.train=tags.conll --out corpus",
    files="--source and --target",
)
def split(
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Settings of a training run: data.held_out (sizes and seed), data.train (the format of the corpus), "
            "data.cleaning (pairs that it would drop are not held out), data.source_language, data.target_language; or "
            "task.kind and data.train of labelled examples.",
            show_default=False,
        ),
    ] = None,
    *,
    source: SourceFile = None,
    target: TargetFile = None,
    pairs: PairsFile = None,
    out: Annotated[
        Path, typer.Option("--out", help="New folder, for train.source, train.target, valid.source and so on.")
    ],
    quiet: Quiet = False,
) -> None:
    """Divide a corpus into a training, a validation and a test set.

    No sentence of a set is in another one, apart from case, punctuation, spaces and numbers. `dragoman train` without a
    validation set divides its corpus in the same way.
    """
    from dragoman.base.errors import ConfigError, reject_options
    from dragoman.base.settings.load import load_settings
    from dragoman.tasks.corpora.split import SplitSettings, split_data, split_examples

    check_settings(settings or [], "data.held_out.test=500", "--source FILE and --target FILE")
    given = corpus_files(source, target, pairs)
    if any(each.startswith("task.kind=") for each in settings or []):
        reject_options({f"--{name}": path for name, path in given.items()}, "without task.kind; set data.train")
        print_results(split_examples(settings or (), out))
        return
    if given.keys() not in ({"source", "target"}, {"pairs"}, set()):
        raise ConfigError(_PAIRS)
    overrides = [f"data.train.{name}={json.dumps(str(path))}" for name, path in given.items()] + (settings or [])
    if not any(each.startswith("data.train") for each in overrides):
        raise ConfigError(_PAIRS)
    data = load_settings(None, overrides, SplitSettings).data
    source_language, target_language = data.source_language, data.target_language
    result = split_data(
        data.train,
        out,
        data.held_out,
        data.cleaning,
        source_language=source_language,
        target_language=target_language,
    )
    print_results(result)
