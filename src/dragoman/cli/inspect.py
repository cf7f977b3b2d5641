"""`dragoman inspect`: save attention weights as pictures and arrays."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import Device, Model, Quiet, Tags, Threads, To, split_tags

if TYPE_CHECKING:
    from dragoman.inspect.inspection import Inspection


def inspect(
    model: Model,
    text: Annotated[str, typer.Argument(help="Source sentence or, for a language model, the text to inspect.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write; it must not exist.")],
    target: Annotated[
        str | None,
        typer.Option("--target", help="Translation to inspect (default: the model's translation)."),
    ] = None,
    to: To = None,
    tags: Tags = None,
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Save the attention weights of all layers and heads as heat maps (PNG, SVG), arrays (.npz) and an HTML page."""
    from dragoman.base.errors import reject_options
    from dragoman.base.log import info, warn
    from dragoman.base.machine.device import use_threads
    from dragoman.exchange.ctranslate2.folder import check_model_kind
    from dragoman.generation.language_model import LanguageModel
    from dragoman.inspect.inspection import PAGE, check_output_folder
    from dragoman.inspect.pictures.figure import find_fonts
    from dragoman.translation.translator import Translator

    use_threads(threads)
    check_output_folder(out)
    if not check_model_kind(model, "inspect").reads_source:
        reject_options({"--target": target, "--to": to, "--tags": tags}, "with a translation model")
        inspection = LanguageModel.load(model, device, "inspect").inspect(text)
    else:
        translator = Translator.load(model, device, engine="torch")
        inspection = translator.inspect(text, target, to=to, tags=split_tags(tags))
    files = inspection.save(out)
    _print_summary(inspection)
    if missing := find_fonts("".join(token for tokens in inspection.tokens.values() for token in tokens)).missing:
        warn(
            f"PNG files show boxes for {' '.join(sorted(missing)[:20])}, because no installed font contains these "
            "characters: install a font, such as Noto Sans CJK, or use the SVG files, which browsers display correctly"
        )
    info(f"wrote {len(files)} files to {out}. Open {out / PAGE} in a browser")


def _print_summary(inspection: "Inspection") -> None:
    """Print the inspected texts, and the size of each kind of attention or the reason for its absence."""
    if inspection.source is not None:
        print(f"source  {inspection.source}")
    print(f"{'text' if inspection.source is None else 'target'}  {inspection.target}")
    for kind, maps in inspection.kinds.items():
        heads, queries, keys = maps[0].weights.shape
        print(f"{kind:<24}  layers {len(maps)}  heads {heads}  tokens {queries} × {keys}")
    for line in inspection.absent:
        kind, _, reason = line.partition(": ")
        print(f"{kind:<24}  {reason}")
