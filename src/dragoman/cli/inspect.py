"""`dragoman inspect`: attention weights as pictures and arrays."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import Device, Model, Quiet, Tags, Threads, To, split_tags

if TYPE_CHECKING:
    from dragoman.inspect.inspection import Inspection


def inspect(
    model: Model,
    text: Annotated[str, typer.Argument(help="Source sentence, or a language model's text.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write; it must not exist.")],
    target: Annotated[
        str | None,
        typer.Option("--target", help="Translation to inspect (default: the model's own)."),
    ] = None,
    to: To = None,
    tags: Tags = None,
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Draw all layers and heads of all attentions as heat maps (PNG, SVG), with weights (.npz) and an HTML page."""
    from dragoman.base.errors import reject_options
    from dragoman.base.log import info, warn
    from dragoman.base.machine.device import use_threads
    from dragoman.exchange.ctranslate2.folder import check_model_kind
    from dragoman.generation.language_model import LanguageModel
    from dragoman.inspect.inspection import PAGE, check_free
    from dragoman.inspect.pictures.figure import covering
    from dragoman.translation.translator import Translator

    use_threads(threads)
    check_free(out)
    if not check_model_kind(model, "inspect").reads_source:
        reject_options({"--target": target, "--to": to, "--tags": tags}, "with a translation model")
        inspection = LanguageModel.load(model, device, "inspect").inspect(text)
    else:
        translator = Translator.load(model, device, engine="torch")
        inspection = translator.inspect(text, target, to=to, tags=split_tags(tags))
    files = inspection.save(out)
    _show(inspection)
    if missing := covering("".join(token for tokens in inspection.tokens.values() for token in tokens)).missing:
        warn(
            f"no installed font contains {' '.join(sorted(missing)[:20])}: PNG files show boxes instead. "
            "Browsers find fonts for SVG files; or install one, such as Noto Sans CJK"
        )
    info(f"{len(files)} files are in {out}; open {out / PAGE}")


def _show(inspection: "Inspection") -> None:
    """Print the inspected texts and the available attentions."""
    if inspection.source is not None:
        print(f"source  {inspection.source}")
    print(f"{'text' if inspection.source is None else 'target'}  {inspection.target}")
    for kind, maps in inspection.kinds.items():
        heads, queries, keys = maps[0].weights.shape
        print(f"{kind:<24}  layers {len(maps)}  heads {heads}  tokens {queries} × {keys}")
    for line in inspection.absent:
        kind, _, reason = line.partition(": ")
        print(f"{kind:<24}  {reason}")
