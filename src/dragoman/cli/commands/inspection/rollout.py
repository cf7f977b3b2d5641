"""`dragoman inspect rollout`: the attention through all layers."""

from dragoman.cli.command import command
from dragoman.cli.commands.inspection.options import (
    AnalysedText,
    Json,
    LabelOptions,
    ModelOptions,
    Out,
    Target,
    largest,
    write_figures,
)
from dragoman.cli.options import Model
from dragoman.cli.results import print_results


@command("dragoman inspect rollout runs/en-de 'A dog runs.' --out rollout")
def rollout(
    model: Model,
    text: AnalysedText,
    *,
    labels: LabelOptions,
    options: ModelOptions,
    target: Target = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Show the attention to the inputs through all layers (attention rollout)."""
    import json

    from dragoman.inspection.rollout import attention_rollout

    loaded = options.load(model, labels, out)
    found = attention_rollout(loaded, labels.text(text), options.settings(target, labels))
    if as_json:
        print(json.dumps([each.as_json() for each in found], ensure_ascii=False))
    else:
        parts = (f"{each.side}\n{largest(each.queries, each.keys, each.values, '.3f')}" for each in found)
        print_results(*parts, separator="\n\n")
    write_figures(out, {f"rollout.{each.side}": each.figure() for each in found})
