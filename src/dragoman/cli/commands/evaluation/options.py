"""Options and output that the commands of `dragoman evaluate` share."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.base.marks import Marked
from dragoman.cli.results import print_results

Json = Annotated[bool, typer.Option("--json", help="Print a JSON object instead of text.")]
Compare = Annotated[
    list[Path] | None,
    typer.Option(
        "--compare",
        metavar="MODEL",
        help="Another model, compared with the first by paired bootstrap; repeatable.",
    ),
]
TestSettings = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...",
        help="Settings of the test set (docs/reference/labels.md), such as columns.text=review.",
        show_default=False,
    ),
]


def print_json(values: Mapping[str, Any]) -> None:
    """Print an object as indented JSON."""
    print(json.dumps(values, ensure_ascii=False, indent=2))


def print_tests(results: Sequence[tuple[Path | None, Any]], as_json: bool) -> None:
    """Print the evaluations of test sets, each under the name of its file if there are several."""
    if as_json:
        values = [{"test": str(test), **each.as_json()} for test, each in results]
        print_json({"tests": values} if len(values) > 1 else results[0][1].as_json())
    elif len(results) == 1:
        print_results(results[0][1])
    else:
        print_under_names(results)


def print_under_names(results: Sequence[tuple[object, Any]]) -> None:
    """Print results, each under the name of its test set."""
    texts = [f"{test}\n{each}" for test, each in results]
    marks = [mark for _, each in results if isinstance(each, Marked) for mark in each.marks()]
    print_results(*texts, separator="\n\n", marks=marks)
