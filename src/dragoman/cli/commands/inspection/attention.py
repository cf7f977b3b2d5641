"""`dragoman inspect attention`: save attention weights, and the relevance of words, as pictures and arrays."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.commands.inspection.options import named_after
from dragoman.cli.option_groups import split_tags
from dragoman.cli.options import Device, Model, Quiet, Tags, TaskName, Threads, To
from dragoman.cli.results import print_results


@command(
    "dragoman inspect runs/en-de 'A dog runs.'",
    "dragoman inspect runs/sentiment 'A great film.' --out relevance",
)
def attention(
    model: Model,
    text: Annotated[
        str,
        typer.Argument(
            help="Source sentence; the text to inspect, for a language model or a model that predicts labels; the "
            "question; or the id of a node of a graph."
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder to write; it must not exist (default: one that is named after the model and the text).",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", help="Translation to inspect (default: the model's translation)."),
    ] = None,
    pair: Annotated[
        str | None, typer.Option("--pair", help="Second text of a pair, or the context of a question.")
    ] = None,
    word: Annotated[
        int | None,
        typer.Option("--word", min=1, help="Number of the word whose predicted tag is explained (default: a span's)."),
    ] = None,
    mask: Annotated[
        int | None,
        typer.Option(
            "--mask", min=1, help="Number of the <mask> to explain, for a masked language model (default: the first)."
        ),
    ] = None,
    nodes: Annotated[
        Path | None, typer.Option("--nodes", help="Nodes of a graph (default: the graph of the model's training).")
    ] = None,
    edges: Annotated[Path | None, typer.Option("--edges", help="Edges of the graph of --nodes.")] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture", help="Picture whose regions are the vectors of the source; the weights are drawn on it."
        ),
    ] = None,
    grid: Annotated[
        str | None, typer.Option("--grid", metavar="ROWSxCOLUMNS", help="Regions of --picture, such as 3x3.")
    ] = None,
    task: TaskName = None,
    to: To = None,
    tags: Tags = None,
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Save the attention weights of all layers and heads.

    They are saved as heat maps (PNG, SVG), arrays (.npz) and an HTML page. For a model that predicts labels or fills
    masks, also save the relevance of each word for the prediction. For a parser, also draw the tree. For a model that
    classifies the nodes of a graph, draw the neighbours of a node with their weights.
    """
    from dragoman.base.errors import reject_options
    from dragoman.base.files import check_new_folder
    from dragoman.base.log import info, warn
    from dragoman.base.machine.device import use_threads
    from dragoman.figures.text_layout import find_fonts
    from dragoman.inference.load import require
    from dragoman.inference.subject import SubjectSettings
    from dragoman.inspection.inspect import inspection_of, open_visible
    from dragoman.inspection.inspection import PAGE

    use_threads(threads)
    out = out or named_after("attention", model, text)
    check_new_folder(out)
    regions = _parse_grid(picture, grid)
    loaded = open_visible(model, device, task)
    if "translate" not in loaded.kind.abilities:
        reject_options({"--picture": picture}, "with a model of pictures")
    settings = SubjectSettings(target, to, tuple(split_tags(tags)), word, mask)
    if "classify_nodes" in loaded.kind.abilities:
        settings = replace(settings, graph=require(loaded, "classify_nodes").graph(nodes, edges))
    else:
        reject_options({"--nodes": nodes, "--edges": edges}, "with a model that classifies nodes")
    inspection = inspection_of(loaded.subject(text if pair is None else (text, pair), settings))
    files = inspection.save(out, regions)
    print_results(inspection)
    if missing := find_fonts("".join(inspection.words)).missing:
        warn(
            f"PNG files show boxes for {' '.join(sorted(missing)[:20])}, because no installed font contains these "
            "characters: install a font, such as Noto Sans CJK, or use the SVG files, which browsers display correctly"
        )
    info(f"wrote {len(files)} files to {out}. Open {out / PAGE} in a browser")


def _parse_grid(picture: Path | None, grid: str | None) -> tuple[Path, int, int] | None:
    """Return the picture with its numbers of rows and columns, or None. Raises ConfigError for an invalid grid."""
    from dragoman.base.errors import ConfigError, reject_options

    if picture is None:
        reject_options({"--grid": grid}, "with --picture")
        return None
    rows, separator, columns = (grid or "").partition("x")
    if not (separator and rows.isdecimal() and columns.isdecimal() and int(rows) and int(columns)):
        raise ConfigError("--picture needs the numbers of rows and columns of its regions, such as --grid 3x3")
    return picture, int(rows), int(columns)
