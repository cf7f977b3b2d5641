"""`dragoman inspect next`: the probabilities of the tokens after a prefix, and the best output that begins with it."""

from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.commands.inspection.options import AnalysedText, Json, ModelOptions, Off, Out, write_figures
from dragoman.cli.options import Model
from dragoman.cli.results import print_results

if TYPE_CHECKING:
    from dragoman.inspection.next_tokens import NextTokens


@command("dragoman inspect next runs/en-de 'A dog runs.' --prefix 'Ein Hund'")
def next_tokens(
    model: Model,
    text: AnalysedText,
    *,
    options: ModelOptions,
    prefix: Annotated[
        str,
        typer.Option(
            "--prefix",
            help="Prefix of the translation, text that follows TEXT, or the first symbols of a tree, such as "
            "'(S (NP' (default: none).",
        ),
    ] = "",
    count: Annotated[int, typer.Option("--count", min=1, help="Number of tokens to list.")] = 10,
    off: Off = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """List the most probable tokens after a prefix.

    Also shows the best output that begins with the prefix. To force a word, append it to the prefix: the rest is
    searched again.
    """
    import json

    from dragoman.inspection.heads import heads_off
    from dragoman.inspection.next_tokens import continue_prefix, next_tokens

    loaded, settings = options.load(model, out=out), options.settings()
    with heads_off(loaded.model, off or ()):
        found = next_tokens(loaded, text, prefix, settings, count)
        best = continue_prefix(loaded, text, prefix, settings)
    if as_json:
        result = {"text": best.text, "log_probability": best.log_probability, "score": best.score}
        print(json.dumps({**found.as_json(), "output": result}, ensure_ascii=False))
    else:
        print_results(_table(found))
        print_results(f"{best.text}  (log-probability {best.log_probability:.4f})")
    write_figures(out, {"next": found.figure()})


def _table(found: "NextTokens") -> str:
    """Return the tokens with their probabilities and bars."""
    width = max(map(len, (*found.tokens, "others")))
    listed = [*zip(found.tokens, found.probabilities.tolist(), strict=True), ("others", found.rest)]
    return "\n".join(
        f"{token:<{width}}  {probability:.4f}  {'█' * round(40 * probability)}" for token, probability in listed
    )
