"""`dragoman inspect`: save attention weights, and the relevance of words, as pictures and arrays."""

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.option_groups import split_tags
from dragoman.cli.options import Device, Model, Quiet, Tags, TaskName, Threads, To

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman.figures.inspection import Inspection
    from dragoman.inference.prediction.predictor import Predictor, Text


@command(
    "dragoman inspect runs/en-de 'A dog runs.' --out attention",
    "dragoman inspect runs/sentiment 'A great film.' --out relevance",
)
def inspect(
    model: Model,
    text: Annotated[
        str,
        typer.Argument(
            help="Source sentence; the text to inspect, for a language model or a model that predicts labels; the "
            "question; or the id of a node of a graph."
        ),
    ],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write; it must not exist.")],
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
    from dragoman.exchange.ctranslate2.folder import check_model_kind
    from dragoman.figures.inspection import PAGE
    from dragoman.figures.text_layout import find_fonts
    from dragoman.inference.prediction.predictor import Predictor

    use_threads(threads)
    check_new_folder(out)
    kind = check_model_kind(model, "inspect")
    regions = _parse_grid(picture, grid)
    if "translate" not in kind.verbs:
        reject_options({"--picture": picture}, "with a model of pictures")
    if "classify_nodes" in kind.verbs:
        given = {"--target": target, "--pair": pair, "--word": word, "--mask": mask, "--task": task, "--to": to}
        reject_options({**given, "--tags": tags}, "with a model of texts")
        _inspect_node(model, text, nodes, edges, out, device)
        return
    reject_options({"--nodes": nodes, "--edges": edges}, "with a model that classifies nodes")
    if "predict" in kind.verbs:
        reject_options({"--target": target, "--to": to}, "with a translation model")
        predictor = Predictor.load(model, device, task=task, engine="torch")
        inspection = predictor.inspect(_input(predictor, text, pair, split_tags(tags)), word=word, mask=mask)
    else:
        labelled = {"--pair": pair, "--word": word, "--mask": mask, "--task": task}
        reject_options(labelled, "with a model that predicts labels")
        inspection = _inspect_text(model, kind.reads_source, text, target, to, split_tags(tags), device)
    files = inspection.save(out, regions)
    _print_summary(inspection)
    if missing := find_fonts("".join(_words(inspection))).missing:
        warn(
            f"PNG files show boxes for {' '.join(sorted(missing)[:20])}, because no installed font contains these "
            "characters: install a font, such as Noto Sans CJK, or use the SVG files, which browsers display correctly"
        )
    info(f"wrote {len(files)} files to {out}. Open {out / PAGE} in a browser")


def _input(predictor: "Predictor", text: str, pair: str | None, tags: list[str]) -> "Text":
    """Return the input of a predictor. Raises ConfigError for options that do not apply to its head."""
    from dragoman.base.errors import ConfigError, reject_options
    from dragoman.data.labelled.examples import ParsedSentence
    from dragoman.models.heads.trees import TreeHead

    if not isinstance(predictor.head, TreeHead):
        reject_options({"--tags": tags or None}, "with a translation model or a parser")
        return text if pair is None else (text, pair)
    reject_options({"--pair": pair}, "with a model that reads pairs of texts")
    if len(tags) > 1:
        raise ConfigError(f"--tags: a parser reads at most one tag, that of the treebank, not {', '.join(tags)}")
    return ParsedSentence(tuple(text.split()), tag="".join(tags))


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


def _inspect_node(
    model: Path, node: str, nodes: Path | None, edges: Path | None, out: Path, device: str | None
) -> None:
    """Draw the weights of a node's neighbours, and print the largest."""
    from dragoman.base.log import info
    from dragoman.figures.inspection import PAGE
    from dragoman.inference.prediction.nodes import NodePredictor

    predictor = NodePredictor.load(model, device)
    inspection = predictor.inspect(predictor.graph(nodes, edges), node)
    files = inspection.save(out)
    print(inspection)
    info(f"wrote {len(files)} files to {out}. Open {out / PAGE} in a browser")


def _inspect_text(
    model: Path,
    reads_source: bool,
    text: str,
    target: str | None,
    to: str | None,
    tags: list[str],
    device: str | None,
) -> "Inspection":
    """Return the inspection of a text by a translation model or a language model."""
    from dragoman.base.errors import reject_options
    from dragoman.inference.generation.language_model import LanguageModel
    from dragoman.inference.translation.translator import Translator

    if not reads_source:
        reject_options({"--target": target, "--to": to, "--tags": tags or None}, "with a translation model")
        return LanguageModel.load(model, device, "inspect").inspect(text)
    return Translator.load(model, device, engine="torch").inspect(text, target, to=to, tags=tags)


def _words(inspection: "Inspection") -> "Iterator[str]":
    """Yield all tokens and words of the pictures."""
    for tokens in inspection.tokens.values():
        yield from tokens
    for text in inspection.relevance.texts if inspection.relevance else ():
        yield from text.words


def _print_summary(inspection: "Inspection") -> None:
    """Print the inspected texts, and the size of each kind of attention or the reason for its absence."""
    from dragoman.text.trees.drawing import draw_tree

    if inspection.source is not None:
        print(f"source  {inspection.source}")
    is_text = inspection.source is None or inspection.fills
    has_label = inspection.relevance is not None or inspection.document
    name = "text" if is_text else "label" if has_label else "target"
    if inspection.tree is None:
        print(f"{name}  {inspection.target}")
    else:
        print(draw_tree(inspection.tree))
    for number, fills in enumerate(inspection.fills, 1):
        listed = "  ".join(f"{text!r} {probability:.3f}" for text, probability in fills)
        print(f"{f'mask {number}':<24}  {listed}")
    for sentence in sorted(inspection.document, key=lambda each: -each.weight)[:5]:
        print(f"{f'sentence {sentence.weight:.3f}':<24}  {' '.join(sentence.words)}")
    for kind, maps in inspection.kinds.items():
        heads, queries, keys = maps[0].weights.shape
        print(f"{kind:<24}  layers {len(maps)}  heads {heads}  tokens {queries} × {keys}")
    for relevance in (inspection.relevance, inspection.erasure):
        if relevance is None:
            continue
        print(f"{relevance.method:<24}  {relevance.output} = {relevance.value:.4f}")
        for text in relevance.texts:
            known = [entry for entry in zip(text.values, text.words, strict=True) if not isnan(entry[0])]
            largest = sorted(known, key=lambda entry: -abs(entry[0]))[:8]
            listed = "  ".join(f"{word} {value:+.3f}" for value, word in largest)
            print(f"{text.name:<24}  {listed}")
    for line in inspection.absent:
        kind, _, reason = line.partition(": ")
        print(f"{kind:<24}  {reason}")
