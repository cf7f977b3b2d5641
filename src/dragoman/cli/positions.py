"""`dragoman positions`: pictures of a position scheme, and what the schemes can and cannot tell a model."""

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from dragoman.cli.options import Threads, use_threads


def positions(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="The scheme, as under model.positions: kind=sinusoidal base=10000 (the default), kind=alibi, …",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder that the pictures are written to.")] = Path(
        "positions"
    ),
    width: Annotated[int, typer.Option("--width", min=2, help="Model width d.")] = 128,
    heads: Annotated[int, typer.Option("--heads", min=1, help="Attention heads; must divide the width.")] = 8,
    length: Annotated[int, typer.Option("--length", min=4, max=2000, help="Tokens of a text.")] = 100,
    layers: Annotated[int, typer.Option("--layers", min=1, help="Layers that receptive fields are given for.")] = 6,
    threads: Threads = None,
) -> None:
    """Draw a position scheme, and print how all schemes meet deck 001's criteria and how far kinds of layers see.

    Two pictures of a scheme with a vector a position: encoding.png, the matrix of all vectors, and dot-products.png,
    PE(i)·PE(j) of all pairs. One of a scheme inside attention: weights.png, what each head attends among equal tokens.

    The lectures say that the dot products of sinusoids "decay nicely", and that distances of vectors grow with
    |i − j|. They do so only at first: what is printed is the distance at which the products rise again, 44 for d = 512.
    """
    use_threads(threads)
    from dragoman.base.errors import ConfigError
    from dragoman.base.log import info
    from dragoman.base.settings.load import load_settings
    from dragoman.base.settings.schema import kinds, union_members
    from dragoman.inspect.pictures.matrices import draw_matrices
    from dragoman.inspect.positions import Probe, Setting, criteria_table, first_rise, judge
    from dragoman.inspect.reach import reach_table
    from dragoman.nn.positions.union import PositionsConfig

    if width % heads:
        raise ConfigError(f"{heads} heads do not divide a width of {width}: choose --heads or --width that fit")
    chosen: Any = load_settings(None, ["kind=sinusoidal", *(overrides or [])], cast(Any, PositionsConfig))
    setting = Setting(width, heads, length)
    schemes = {kinds(member)[0]: member() for member in union_members(PositionsConfig)}
    schemes[chosen.kind] = chosen
    probe = Probe(chosen, setting)
    if probe.limit is not None and length > probe.limit:
        raise ConfigError(f"--length {length} is more than the {probe.limit} positions of {chosen.kind}: lower it")
    learned = "" if judge(chosen, setting)["deterministic"].holds else ", before training"
    title = f"Positions of kind {chosen.kind}, d = {width}{learned}"
    products = ""
    if probe.encoding is not None:
        out.mkdir(parents=True, exist_ok=True)
        matrix, pairs = probe.vectors(length).numpy(), probe.pairs(length)[0]
        axes = ("component of the vector", "position i")
        draw_matrices({"the vectors PE(i)": matrix}, out / "encoding.png", title, axes, "value")
        axes = ("position j", "position i")
        draw_matrices({"their dot products": pairs.numpy()}, out / "dot-products.png", title, axes, "PE(i)·PE(j)")
        rise = first_rise(pairs)
        told = "fall all the way" if rise is None else f"first rise again at distance {rise}"
        products = f"\n{chosen.kind}: dot products with position 0 {told}, of {length} tokens.\n"
    elif probe.relation is not None:
        out.mkdir(parents=True, exist_ok=True)
        matrices = probe.pairs(length).numpy()
        names = [f"head {head + 1}" for head in range(heads)] if len(matrices) > 1 else ["all heads"]
        axes = ("position of the key j", "position of the query i")
        bar = "weight of equal tokens, relative to the row's largest"
        weights = dict(zip(names, matrices, strict=True))
        draw_matrices(weights, out / "weights.png", f"{title}, {heads} heads", axes, bar)
    print(
        f"Deck 001's criteria for d = {width}, {heads} heads and {length} tokens; {chosen.kind} as it is set, the "
        "others by default."
    )
    print(criteria_table(schemes, setting))
    print(
        "unique: in an encoder, as the token in the middle sees the others; a decoder, which looks back only, tells\n"
        "alibi's distances apart. deterministic: a formula, not learned. evenly spaced: neighbours are equally far\n"
        f"apart everywhere, also in a text of {max(2, length // 2)} tokens. longer texts: {10 * length} tokens, with "
        "nothing larger to read."
    )
    print(products)
    print(reach_table(layers, length))
    if probe.encoding is not None or probe.relation is not None:
        info(f"Pictures are in {out}.")
