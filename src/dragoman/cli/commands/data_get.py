"""`dragoman data get`: download a corpus by name."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.options import Quiet
from dragoman.cli.results import print_results

if TYPE_CHECKING:
    from dragoman.tasks.corpora.get import CorpusFolder


_MOST_FILES = 12


@command(
    "dragoman data get multi30k",
    "dragoman data get opus/TED2020 --source de --target en",
    interrupted="interrupted: what was downloaded is kept. Repeat the same command to continue",
)
def get(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="Name of a corpus, or opus/CORPUS for any corpus of OPUS, or opus/CORPUS@VERSION (default: list the "
            "corpora).",
            show_default=False,
        ),
    ] = None,
    *,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="LANGUAGE",
            help="Source language of a corpus with many pairs, such as de. Without NAME, list what OPUS has for the "
            "pair.",
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", metavar="LANGUAGE", help="Target language, such as en.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Folder in which the corpus gets a folder of its name (default: the environment variable "
            "DRAGOMAN_DATA, where recipes look, or data).",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Download a corpus by name, or list the corpora.

    Interrupted downloads continue. Checksums are recorded in SHA256SUMS and checked when the command is repeated.
    """
    from dragoman.base.errors import ConfigError

    if name is not None:
        from dragoman.tasks.corpora.get import get_data

        _print_result(name, get_data(name, out, source=source, target=target))
    elif out is not None or (source is None) != (target is None):
        raise ConfigError("the corpus is missing: `dragoman data get` lists the names")
    elif source is not None and target is not None:
        _list_pair(source, target)
    else:
        _list_catalogue()


def _list_catalogue() -> None:
    """Print the corpora with their sizes, languages and licences."""
    from dragoman.data.downloads.catalogue import catalogue
    from dragoman.data.downloads.transfer import format_size

    corpora = catalogue()
    width = max(map(len, corpora)) + 2
    for name, corpus in corpora.items():
        unknown = "size unknown" if corpus.opus is None else "size by pair"
        size = unknown if corpus.size is None else format_size(corpus.size)
        print_results(f"{name:<{width}}{corpus.about}")
        print_results(f"{'':<{width}}{corpus.languages} · {size} · {corpus.licence} ({corpus.terms})")
    print_results(f"{'opus/CORPUS':<{width}}any corpus of OPUS; --source and --target alone list those of a pair")


def _list_pair(source: str, target: str) -> None:
    """Print the corpora of OPUS for a language pair, the largest first."""
    from dragoman.base.errors import ConfigError
    from dragoman.data.downloads.opus import opus_corpora
    from dragoman.data.downloads.transfer import format_size

    corpora = sorted(opus_corpora(source, target), key=lambda each: -each.pairs)
    if not corpora:
        raise ConfigError(f"OPUS has no corpus for {source}–{target}: check the codes at https://opus.nlpl.eu")
    width = max(len(corpus.name) for corpus in corpora) + len("opus/")
    for corpus in corpora:
        name, size = f"opus/{corpus.name}", format_size(corpus.size)
        print_results(f"{name:<{width}} {corpus.pairs:>13,} pairs {size:>10}  {corpus.version}")


def _print_result(name: str, corpus: "CorpusFolder") -> None:
    """Print what was downloaded, its licence, and what it can be used for."""
    import os
    import shlex

    from dragoman.data.downloads.transfer import format_size
    from dragoman.tasks.corpora.get import FOLDER
    from dragoman.tasks.recipes import recipes

    size = sum(path.stat().st_size for path in corpus.files)
    count = f"{len(corpus.files)} file{'s' if len(corpus.files) > 1 else ''}"
    print_results(f"{corpus.folder}: {count}, {format_size(size)}")
    for path in corpus.files[:_MOST_FILES]:
        print_results(f"  {path.name}")
    if len(corpus.files) > _MOST_FILES:
        print_results("  …")
    print_results(f"licence: {corpus.licence} ({corpus.terms})")
    if using := [recipe.name for recipe in recipes() if name.lower() in recipe.corpora]:
        print_results(f"recipes: {', '.join(using)}")
        if not os.environ.get(FOLDER):
            print(f"recipes find it after: export {FOLDER}={shlex.quote(str(corpus.folder.parent.resolve()))}")
    if corpus.command:
        print(f"train:   {corpus.command}")
