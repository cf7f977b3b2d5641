"""`dragoman data`: check corpora before training."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.arguments import split_recipe
from dragoman.cli.options import DocumentsOption, Heading, Quiet

if TYPE_CHECKING:
    from dragoman.data.cleaning.report import CleaningReport
    from dragoman.text.normalization import Normalization


class NormalizationForm(StrEnum):
    """Unicode normalisation forms."""

    nfc = "nfc"
    nfkc = "nfkc"
    none = "none"


app = typer.Typer(no_args_is_help=True, help="Check a corpus before training on it.")

_USAGE = (
    "give the corpus either as --source FILE and --target FILE, or as --tsv FILE, --jsonl FILE, --tmx FILE, "
    "--labelled FILE or --questions FILE. Give plain text as --text FILE, or as --jsonl FILE and --field KEY"
)
_SOURCE_OF_SETTINGS = "from the command line"


@app.command("check")
def check(
    source: Annotated[
        Path | None, typer.Option("--source", help="Source sentences, one per line; plain, .gz, .bz2, .xz or .zst.")
    ] = None,
    target: Annotated[Path | None, typer.Option("--target", help="Target sentences, one per line.")] = None,
    tsv: Annotated[
        Path | None, typer.Option("--tsv", help="Corpus as source TAB target, instead of two files.")
    ] = None,
    source_column: Annotated[
        int | None, typer.Option("--source-column", min=1, help="Column of the source in --tsv (default: 1).")
    ] = None,
    target_column: Annotated[
        int | None, typer.Option("--target-column", min=1, help="Column of the target in --tsv (default: 2).")
    ] = None,
    jsonl: Annotated[Path | None, typer.Option("--jsonl", help="Corpus with one JSON object per line.")] = None,
    tmx: Annotated[Path | None, typer.Option("--tmx", help="Corpus as a translation memory (TMX).")] = None,
    labelled: Annotated[
        Path | None, typer.Option("--labelled", help="Labelled texts, in any format of the tasks with labels.")
    ] = None,
    questions: Annotated[
        Path | None, typer.Option("--questions", help="Questions in the JSON format of SQuAD.")
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            "--template",
            metavar="{source: …, target: …}",
            help="Templates that make pairs from the records of --jsonl, --labelled or --questions, as in "
            """'{source: "{abstract}", target: "{summary}"}'.""",
        ),
    ] = None,
    text: Annotated[Path | None, typer.Option("--text", help="Plain text for a language model.")] = None,
    documents: DocumentsOption = None,
    heading: Heading = None,
    field: Annotated[
        str | None, typer.Option("--field", help="Key of the text in --jsonl if it has plain text, such as text.")
    ] = None,
    source_field: Annotated[
        str | None, typer.Option("--source-field", help="Key of the source in --jsonl, such as translation.en.")
    ] = None,
    target_field: Annotated[str | None, typer.Option("--target-field", help="Key of the target in --jsonl.")] = None,
    source_code: Annotated[
        str | None, typer.Option("--source-code", help="Language of the source in --tmx, such as en.")
    ] = None,
    target_code: Annotated[str | None, typer.Option("--target-code", help="Language of the target in --tmx.")] = None,
    source_language: Annotated[
        str | None,
        typer.Option("--source-language", help="Language of the source, such as ja, whose scripts are expected."),
    ] = None,
    target_language: Annotated[
        str | None, typer.Option("--target-language", help="Language of the target, such as zh.")
    ] = None,
    language: Annotated[str | None, typer.Option("--language", help="Language of the plain text.")] = None,
    lines: Annotated[
        int | None, typer.Option("--lines", min=0, help="Maximum number of line numbers shown per rule.")
    ] = 10,
    all_lines: Annotated[bool, typer.Option("--all-lines", help="Show every line number.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object with all line numbers instead of a table.")
    ] = False,
    empty: Annotated[bool | None, typer.Option("--empty/--no-empty", help="Drop pairs with an empty side.")] = None,
    max_words: Annotated[
        int | None, typer.Option("--max-words", help="Maximum number of words per side; 0: no limit.")
    ] = None,
    max_characters: Annotated[
        int | None, typer.Option("--max-characters", help="Maximum number of characters per side; 0: no limit.")
    ] = None,
    max_ratio: Annotated[
        float | None,
        typer.Option(
            "--max-ratio", help="Maximum factor between a pair's length ratio and the usual one; 0: no limit."
        ),
    ] = None,
    duplicates: Annotated[
        bool | None, typer.Option("--duplicates/--no-duplicates", help="Drop duplicate pairs.")
    ] = None,
    control_characters: Annotated[
        bool | None,
        typer.Option("--control-characters/--no-control-characters", help="Replace or remove control characters."),
    ] = None,
    unescape: Annotated[
        bool | None,
        typer.Option("--unescape/--no-unescape", help="Replace escapes such as &quot; and @-@ before the other rules."),
    ] = None,
    normalization: Annotated[
        NormalizationForm,
        typer.Option("--normalization", help="Unicode normalisation, as text.normalization in a training run."),
    ] = NormalizationForm.nfc,
    wrong_script: Annotated[
        bool | None,
        typer.Option("--wrong-script/--no-wrong-script", help="Drop pairs with a side in the wrong script."),
    ] = None,
    source_script: Annotated[
        list[str] | None,
        typer.Option("--source-script", help="Script of the source, such as Latn; repeatable (default: by language)."),
    ] = None,
    target_script: Annotated[
        list[str] | None,
        typer.Option("--target-script", help="Script of the target; repeatable (default: by language)."),
    ] = None,
    script: Annotated[
        list[str] | None, typer.Option("--script", help="Script of the plain text; repeatable (default: by language).")
    ] = None,
    script_share: Annotated[
        float | None,
        typer.Option(
            "--script-share", help="Minimum share of lines of a script that is detected as one of the corpus."
        ),
    ] = None,
    copied_words: Annotated[
        int | None,
        typer.Option(
            "--copied-words", help="Drop pairs with identical sides of at least this many words; 0: keep them."
        ),
    ] = None,
    final_punctuation: Annotated[
        bool | None,
        typer.Option(
            "--final-punctuation/--no-final-punctuation",
            help="Drop pairs of which only one side ends a sentence with a mark.",
        ),
    ] = None,
    mismatched: Annotated[
        bool | None,
        typer.Option(
            "--mismatched/--no-mismatched", help="Drop pairs that are probably not translations of each other."
        ),
    ] = None,
    aligner: Annotated[
        Path | None,
        typer.Option("--aligner", help="Aligner that scores pairs for --mismatched (default: one is trained)."),
    ] = None,
    broken_utf8: Annotated[
        str | None,
        typer.Option(
            "--broken-utf8", metavar="skip|error", help="Drop pairs with invalid UTF-8, or stop at the first."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Show the number of pairs or documents that each cleaning rule would drop, with their line numbers.

    The options have the same names and defaults as the settings data.cleaning.* of `dragoman train`. The limit on
    subword tokens is not checked, because it needs a tokeniser.
    """
    from dragoman.base.errors import reject_options

    common = {
        "empty": empty,
        "duplicates": duplicates,
        "control_characters": control_characters,
        "wrong_script": wrong_script,
        "script_share": script_share,
        "broken_utf8": broken_utf8,
        "unescape": unescape,
    }
    numbers = {
        "max_words": max_words,
        "max_characters": max_characters,
        "max_ratio": max_ratio,
        "copied_words": copied_words,
    }
    pairs = {
        "source": source,
        "target": target,
        "tsv": tsv,
        "tmx": tmx,
        "labelled": labelled,
        "questions": questions,
        "template": template,
        "source_column": source_column,
        "target_column": target_column,
        "source_field": source_field,
        "target_field": target_field,
        "source_code": source_code,
        "target_code": target_code,
    }
    sides = {"final_punctuation": final_punctuation, "mismatched": mismatched, "aligner": aligner}
    scripts = {"source_scripts": source_script or None, "target_scripts": target_script or None}
    languages = {"source_language": source_language, "target_language": target_language}
    texts = {"text": text, "field": field, "documents": None if documents is None else documents.value}
    if text is not None or field is not None:
        reject_options(_by_option_name({**pairs, **numbers, **scripts, **languages, **sides}), "with sentence pairs")
        rules = {**common, "scripts": script or None}
        report = _check_text({**texts, "jsonl": jsonl, "heading": heading}, rules, language, normalization.value)
    else:
        reject_options(
            _by_option_name({"documents": documents, "heading": heading, "script": script, "language": language}),
            "with --text or --field",
        )
        limits = {name: value or None for name, value in numbers.items() if value is not None}
        report = _check_pairs(
            {**pairs, "jsonl": jsonl},
            {**_without_none({**common, **scripts, **sides}), **limits},
            languages,
            normalization.value,
        )
    if as_json:
        import json

        print(json.dumps({**report.to_json(), "kept": report.kept}))
    else:
        print(report.table(None if all_lines else lines))


def _check_pairs(
    corpus: Mapping[str, Any], rules: Mapping[str, Any], languages: Mapping[str, Any], normalization: "Normalization"
) -> "CleaningReport":
    from dragoman.base.errors import ConfigError
    from dragoman.base.settings.load import parse_settings
    from dragoman.base.settings.yaml import parse_scalar
    from dragoman.data.cleaning.config import CleaningConfig
    from dragoman.data.corpora.corpus import FORMS, CorpusConfig
    from dragoman.tasks.corpora.check import check_data

    given_forms = [name for name in ("source", "target", *FORMS) if corpus[name] is not None]
    if given_forms != ["source", "target"] and (len(given_forms) != 1 or given_forms[0] in ("source", "target")):
        raise ConfigError(_USAGE)
    if corpus["tmx"] is not None and (corpus["source_code"] is None or corpus["target_code"] is None):
        raise ConfigError("--tmx needs --source-code and --target-code, such as en and de")
    cleaning = parse_settings(rules, CleaningConfig, _SOURCE_OF_SETTINGS)
    settings = _without_none(corpus)
    if "template" in settings:
        settings["template"] = parse_scalar(settings["template"], "--template")
    config = parse_settings(settings, CorpusConfig, _SOURCE_OF_SETTINGS)
    return check_data(config, cleaning, **languages, normalization=normalization)


def _check_text(
    corpus: Mapping[str, Any], rules: Mapping[str, Any], language: str | None, normalization: "Normalization"
) -> "CleaningReport":
    from dragoman.base.errors import ConfigError
    from dragoman.base.settings.load import parse_settings
    from dragoman.data.cleaning.config import TextCleaningConfig
    from dragoman.data.corpora.corpus import TextCorpusConfig
    from dragoman.tasks.corpora.check import check_data

    if (corpus["text"] is None) == (corpus["jsonl"] is None) or (corpus["text"] and corpus["field"]):
        raise ConfigError(_USAGE)
    cleaning = parse_settings(_without_none(rules), TextCleaningConfig, _SOURCE_OF_SETTINGS)
    config = parse_settings(_without_none(corpus), TextCorpusConfig, _SOURCE_OF_SETTINGS)
    return check_data(config, cleaning, language=language, normalization=normalization)


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _by_option_name(values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace each parameter name with the name of its command-line option."""
    return {
        "--" + name.removesuffix("s" if name.endswith("scripts") else "").replace("_", "-"): value
        for name, value in values.items()
    }


@app.command("compare")
def compare(
    recipe: Annotated[
        list[str],
        typer.Argument(
            metavar="RECIPE.yaml [KEY=VALUE]...",
            help="YAML recipe of any task, followed by settings that override it, such as data.valid.tsv=test.tsv.",
        ),
    ],
    quiet: Quiet = False,
) -> None:
    """Compare the validation sets of a recipe with its training corpora, as a training run does before it begins.

    Reports overlap, swapped or shifted sides, other languages than those of the training corpora, and small corpora.
    """
    from dragoman.tasks.corpora.compare import compare_data

    path, overrides = split_recipe(recipe, "data.valid.tsv=test.tsv")
    findings = compare_data(path, overrides)
    for finding in findings:
        print(f"{'warning: ' if finding.is_warning else ''}{finding.message}")
    if not findings:
        print("No problem found.")
