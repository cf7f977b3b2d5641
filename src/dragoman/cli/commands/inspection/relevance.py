"""`dragoman inspect relevance`: gradient × input of each predicted token."""

from typing import TYPE_CHECKING

from dragoman.cli.command import command
from dragoman.cli.commands.inspection.options import (
    AnalysedText,
    Json,
    ModelOptions,
    Out,
    Target,
    largest,
    write_figures,
)
from dragoman.cli.options import Model
from dragoman.cli.results import print_results

if TYPE_CHECKING:
    from dragoman.inspection.relevance import TokenRelevance


@command("dragoman inspect relevance runs/en-de 'A dog runs.'")
def relevance(
    model: Model,
    text: AnalysedText,
    *,
    options: ModelOptions,
    target: Target = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Show how much each input token contributes to each predicted token. The relevance is gradient × input."""
    import json

    from dragoman.inspection.relevance import token_relevance

    found = token_relevance(options.load(model, out=out), text, options.settings(target))
    if as_json:
        print(json.dumps(found.as_json(), ensure_ascii=False))
    else:
        print_results(_table(found))
    write_figures(out, {"relevance": found.figure()})


def _table(found: "TokenRelevance") -> str:
    """Return a row per predicted token, with the most relevant tokens."""
    return largest(found.terms, (*found.source, *found.read), found.of_all, "+.3f")
