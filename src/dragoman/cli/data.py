"""`dragoman data`: looking at corpora before they are trained on."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.options import DocumentsOption, Heading, Quiet

if TYPE_CHECKING:
    from dragoman.data.cleaning.report import CleaningReport

app = typer.Typer(no_args_is_help=True, help="Look at a corpus before training on it.")

_FORMS = (
    "give the corpus as --source FILE and --target FILE, or alone as --tsv FILE, --jsonl FILE or --tmx FILE; text of "
    "one language as --text FILE, or as --jsonl FILE and --field KEY"
)
_ORIGIN = "from the command line"


@app.command("check")
def check(
    source: Annotated[
        Path | None, typer.Option("--source", help="Source sentences, one a line; .gz .xz .zst too.")
    ] = None,
    target: Annotated[Path | None, typer.Option("--target", help="Their translations, line by line.")] = None,
    tsv: Annotated[
        Path | None, typer.Option("--tsv", help="The corpus as source TAB target, instead of two files.")
    ] = None,
    jsonl: Annotated[Path | None, typer.Option("--jsonl", help="The corpus as a JSON object a line.")] = None,
    tmx: Annotated[Path | None, typer.Option("--tmx", help="The corpus as a translation memory.")] = None,
    text: Annotated[
        Path | None, typer.Option("--text", help="Text of one language, as a language model learns from it.")
    ] = None,
    documents: DocumentsOption = None,
    heading: Heading = None,
    field: Annotated[
        str | None, typer.Option("--field", help="Key of the text in --jsonl of one language, such as text.")
    ] = None,
    source_field: Annotated[
        str | None, typer.Option("--source-field", help="Key of the source in --jsonl, such as translation.en.")
    ] = None,
    target_field: Annotated[str | None, typer.Option("--target-field", help="Key of the target in --jsonl.")] = None,
    source_code: Annotated[
        str | None, typer.Option("--source-code", help="Language of the source in --tmx, such as en.")
    ] = None,
    target_code: Annotated[str | None, typer.Option("--target-code", help="Language of the target in --tmx.")] = None,
    lines: Annotated[int | None, typer.Option("--lines", min=0, help="Line numbers shown a rule.")] = 10,
    all_lines: Annotated[bool, typer.Option("--all-lines", help="Show every line number.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object with every line number instead of a table.")
    ] = False,
    empty: Annotated[bool | None, typer.Option("--empty/--no-empty", help="Drop pairs with an empty side.")] = None,
    max_words: Annotated[int | None, typer.Option("--max-words", help="Most words of a side; 0: any.")] = None,
    max_characters: Annotated[
        int | None, typer.Option("--max-characters", help="Most characters of a side; 0: any.")
    ] = None,
    max_ratio: Annotated[
        float | None, typer.Option("--max-ratio", help="Most times that one side may be longer than the other; 0: any.")
    ] = None,
    duplicates: Annotated[
        bool | None, typer.Option("--duplicates/--no-duplicates", help="Drop repeated pairs.")
    ] = None,
    control_characters: Annotated[
        bool | None,
        typer.Option("--control-characters/--no-control-characters", help="Drop pairs with control characters."),
    ] = None,
    wrong_script: Annotated[
        bool | None,
        typer.Option("--wrong-script/--no-wrong-script", help="Drop pairs in a script that is not their side's."),
    ] = None,
    source_script: Annotated[
        list[str] | None,
        typer.Option("--source-script", help="A script of the source, such as latin (default: found)."),
    ] = None,
    target_script: Annotated[
        list[str] | None, typer.Option("--target-script", help="A script of the target (default: found).")
    ] = None,
    script: Annotated[
        list[str] | None, typer.Option("--script", help="A script of the text of one language (default: found).")
    ] = None,
    copied_words: Annotated[
        int | None, typer.Option("--copied-words", help="Drop copied sources of at least this many words; 0: none.")
    ] = None,
    broken_utf8: Annotated[
        str | None,
        typer.Option("--broken-utf8", metavar="skip|error", help="Drop pairs with broken UTF-8, or stop at the first."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Show what cleaning would drop: how many pairs, or documents of one language, by which rule, and their lines.

    The defaults are those of `dragoman train`, whose settings data.cleaning.* are named as the options here. Its limit
    on subword tokens is judged only there, once there is a tokeniser.
    """
    from dragoman.base.errors import reject_options

    common = {
        "empty": empty,
        "duplicates": duplicates,
        "control_characters": control_characters,
        "wrong_script": wrong_script,
        "broken_utf8": broken_utf8,
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
        "source_field": source_field,
        "target_field": target_field,
        "source_code": source_code,
        "target_code": target_code,
    }
    scripts = {"source_scripts": source_script or None, "target_scripts": target_script or None}
    texts = {"text": text, "field": field, "documents": None if documents is None else documents.value}
    if text is not None or field is not None:
        reject_options(_options({**pairs, **numbers, **scripts}), "with sentence pairs")
        report = _check_text({**texts, "jsonl": jsonl, "heading": heading}, {**common, "scripts": script or None})
    else:
        reject_options(
            _options({"documents": documents, "heading": heading, "script": script}), "with --text or --field"
        )
        limits = {name: value or None for name, value in numbers.items() if value is not None}
        report = _check_pairs({**pairs, "jsonl": jsonl}, {**_given({**common, **scripts}), **limits})
    if as_json:
        import json

        print(json.dumps({**report.to_json(), "kept": report.kept}))
    else:
        print(report.table(None if all_lines else lines))


def _check_pairs(corpus: Mapping[str, Any], rules: Mapping[str, Any]) -> "CleaningReport":
    from dragoman.base.errors import ConfigError
    from dragoman.base.settings.load import parse_settings
    from dragoman.data.cleaning.clean import check_data
    from dragoman.data.cleaning.rules import CleaningConfig
    from dragoman.data.corpora.corpus import CorpusConfig

    forms = [name for name in ("source", "target", "tsv", "jsonl", "tmx") if corpus[name] is not None]
    if forms != ["source", "target"] and (len(forms) != 1 or forms[0] in ("source", "target")):
        raise ConfigError(_FORMS)
    if corpus["tmx"] is not None and (corpus["source_code"] is None or corpus["target_code"] is None):
        raise ConfigError("--tmx needs --source-code and --target-code, such as en and de")
    cleaning = parse_settings(rules, CleaningConfig, _ORIGIN)
    return check_data(parse_settings(_given(corpus), CorpusConfig, _ORIGIN), cleaning)


def _check_text(corpus: Mapping[str, Any], rules: Mapping[str, Any]) -> "CleaningReport":
    from dragoman.base.errors import ConfigError
    from dragoman.base.settings.load import parse_settings
    from dragoman.data.cleaning.clean import check_data
    from dragoman.data.cleaning.rules import TextCleaningConfig
    from dragoman.data.corpora.corpus import TextCorpusConfig

    if (corpus["text"] is None) == (corpus["jsonl"] is None) or (corpus["text"] and corpus["field"]):
        raise ConfigError(_FORMS)
    cleaning = parse_settings(_given(rules), TextCleaningConfig, _ORIGIN)
    return check_data(parse_settings(_given(corpus), TextCorpusConfig, _ORIGIN), cleaning)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _options(values: Mapping[str, Any]) -> dict[str, Any]:
    """By the names that they have on the command line."""
    return {
        "--" + name.removesuffix("s" if name.endswith("scripts") else "").replace("_", "-"): value
        for name, value in values.items()
    }
