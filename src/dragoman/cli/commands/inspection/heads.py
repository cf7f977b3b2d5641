"""`dragoman inspect heads`: the importance of attention heads, and the output without some of them."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.base.table import Table
from dragoman.cli.command import command
from dragoman.cli.commands.inspection.options import AnalysedText, Json, LabelOptions, ModelOptions, Off, Target
from dragoman.cli.options import Model
from dragoman.cli.results import print_results

if TYPE_CHECKING:
    from dragoman.inspection.ablation import Ablation
    from dragoman.inspection.importance import HeadImportance


@command(
    "dragoman inspect heads runs/en-de 'A dog runs.'",
    "dragoman inspect heads runs/en-de 'A dog.' --off decoder.cross_attention:2:1",
)
def heads(
    model: Model,
    text: AnalysedText,
    *,
    labels: LabelOptions,
    options: ModelOptions,
    off: Off = None,
    target: Target = None,
    nodes: Annotated[
        Path | None,
        typer.Option("--nodes", help="Nodes of a graph, of which TEXT is one (default: the graph of the training)."),
    ] = None,
    edges: Annotated[Path | None, typer.Option("--edges", help="Edges of the graph of --nodes.")] = None,
    as_json: Json = False,
) -> None:
    """List the importance of attention heads, or the effect of switching heads off.

    TEXT is the id of a node for a model that classifies the nodes of a graph. The importance of a head is the gradient
    of the loss for its factor, and the drop of the log-probability of the output without the head.
    """
    import json

    from dragoman.base.errors import reject_options
    from dragoman.inference.load import require
    from dragoman.inspection.ablation import ablate_heads
    from dragoman.inspection.importance import head_importance

    loaded = options.load(model, labels)
    settings = options.settings(target, labels)
    if "classify_nodes" in loaded.kind.abilities:
        settings = replace(settings, graph=require(loaded, "classify_nodes").graph(nodes, edges))
    else:
        reject_options({"--nodes": nodes, "--edges": edges}, "with a model that classifies nodes")
    if off:
        ablation = ablate_heads(loaded, labels.text(text), off, settings)
        if as_json:
            print(json.dumps(ablation.as_json(), ensure_ascii=False))
        else:
            print_results(_effect(ablation))
        return
    found = head_importance(loaded, [labels.text(text)], settings)
    if as_json:
        print(json.dumps([each.as_json() for each in found]))
    else:
        print_results(_table(found))


def _table(found: "list[HeadImportance]") -> str:
    """Return a table of the heads, the most important first."""
    ordered = sorted(found, key=lambda each: -each.gradient)
    rows = ((str(each.head), *(f"{each.gradient:.4f} {each.drop:+.4f} {each.entropy:.4f}".split())) for each in ordered)
    return Table([("head", "gradient", "drop", "entropy"), *rows], right=1).text()


def _effect(ablation: "Ablation") -> str:
    """Return the change of each term, and of the output."""
    lines = [f"off     {' '.join(map(str, ablation.heads))}"]
    if ablation.predicted_before is not None:
        lines += [f"before  {ablation.predicted_before}", f"after   {ablation.predicted_after}"]
    width = max(map(len, ablation.terms))
    for term, before, after in zip(ablation.terms, ablation.before, ablation.after, strict=True):
        lines.append(f"{term:<{width}}  {before:>9.4f}  {after:>9.4f}  {after - before:>+9.4f}")
    lines.append(
        f"{ablation.output}: {ablation.before.sum():.4f} → {ablation.after.sum():.4f} ({ablation.change:+.4f})"
    )
    return "\n".join(lines)
