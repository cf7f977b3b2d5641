"""Formatting of a model's description as a table and as JSON."""

from typing import Any

from dragoman.inspect.describe import Description, Part


def parts_table(description: Description, width: int) -> str:
    """Format one line per part, indented below its parent, at most `width` characters wide if possible.

    Names of parameters are left out if they do not fit.
    """
    parts = description.parts
    names = [f"{'  ' * part.depth}{_label(part, parts)}" for part in parts]
    kinds = [f"{part.repeats} × {part.kind}" if part.repeats > 1 else part.kind for part in parts]
    first, second = max(map(len, [*names, "part"])), max(map(len, [*kinds, "class"]))
    third = max(len("parameters"), len(f"{description.parameters:,}"))
    room = width - (first + second + third + len("100.0%") + 5)
    lines = [f"{'part':{first}} {'class':{second}} {'parameters':>{third}}  share  shapes of one"]
    for name, kind, part in zip(names, kinds, parts, strict=True):
        line = f"{name:{first}} {kind:{second}} "
        if part.tied is not None and not part.parameters:
            lines.append(f"{line}tied to {part.tied}")
            continue
        share = part.parameters / max(description.parameters, 1)
        partly = "" if part.tied is None else f" (in part {part.tied})"
        lines.append(f"{line}{part.parameters:>{third},} {share:>6.1%}  {_shapes(part, room)}{partly}".rstrip())
    lines.append(f"{'all':{first}} {'':{second}} {description.parameters:>{third},} {1:>6.1%}")
    return "\n".join(lines)


def numbers_text(description: Description) -> str:
    """Format totals, operations, memory and length limits."""
    operations, memory, length = description.operations, description.memory, description.length
    lines = [f"{description.parameters:,} parameters, tied ones counted once"]
    if description.active != description.parameters:
        lines.append(f"  {description.active:,} of them active per token, because not all experts are")
    if description.trained != description.parameters:
        lines.append(f"  {description.trained:,} of them trained, the others are frozen")
    pair = description.reads_source and description.has_decoder
    lengths = f"{length} tokens"
    rows = [
        ("per token", _count(operations.reading + operations.writing), "all tokens at once, and projection"),
        ("in training", _count(operations.training), "forward and backward"),
        ("", _count(operations.training * length), "the whole text"),
    ]
    if pair:
        lengths = f"{length} source and {length} target tokens"
        rows = [
            ("per source token", _count(operations.reading), "encoder, and the decoder's projections"),
            ("per target token", _count(operations.writing), "decoder, all tokens at once, and projection"),
            ("in training", _count(operations.training), "one of each, forward and backward"),
            ("", _count(operations.training * length), "the whole pair of sentences"),
        ]
    lines += ["", f"FLOPs of matrix products, 2 per multiply-add, at {lengths}"]
    lines += [f"  {name:16} {number:>12}  {meaning}" for name, number, meaning in rows]
    lines += [
        "Element-wise operations are not counted: norms, softmax, activations, gates,",
        "the tanh of additive scores.",
    ]
    of_source = (
        ("encoding", "encoding", "peak of the encoder in translation"),
        ("memory", "memory", "the source, as the decoder stores it"),
    )
    of_target = (("cache", "cache", f"per {'hypothesis' if pair else 'text'}"),)
    uses = (
        ("parameters", "parameters", f"{_bytes(memory['optimised'])} with gradients and Adam's moments"),
        ("in training", "training", "peak of a forward pass, without logits"),
        *(of_source if pair else ()),
        *(of_target if description.has_decoder else (("reading", "encoding", "peak of a forward pass"),)),
    )
    text = f"a sentence pair of {length} and {length} tokens" if pair else f"a text of {length} tokens"
    lines += ["", f"Memory in float32, for {text}, an upper bound"]
    lines += [f"  {name:16} {_bytes(memory[use]):>12}  {meaning}" for name, use, meaning in uses]
    lines.append("")
    for limit in description.limits:
        most = "any number of tokens" if limit.tokens is None else f"at most {limit.tokens:,} tokens ({limit.setting})"
        side = limit.side if pair else "text"
        lines.append(f"The {side} may have {most}.")
    return "\n".join(lines)


def as_json(description: Description) -> dict[str, Any]:
    """Return the description as JSON types."""
    operations = description.operations
    return {
        "parts": [
            {
                "name": part.name,
                "class": part.kind,
                "repeats": part.repeats,
                "parameters": part.parameters,
                "shapes": {name: list(shape) for name, shape in part.shapes},
                "tied_to": part.tied,
            }
            for part in description.parts
        ],
        "parameters": {
            "all": description.parameters,
            "active": description.active,
            "trained": description.trained,
        },
        "length": description.length,
        "flops": {
            "source_token": operations.reading,
            "target_token": operations.writing,
            "training_token_pair": operations.training,
        },
        "bytes": description.memory,
        "most_tokens": {limit.side: limit.tokens for limit in description.limits},
    }


def _label(part: Part, parts: tuple[Part, ...]) -> str:
    """Return the name without its parent's name."""
    above = [other.name for other in parts if other.depth == part.depth - 1 and part.name.startswith(f"{other.name}.")]
    return part.name.removeprefix(f"{above[-1]}.") if above else part.name


def _shapes(part: Part, room: int) -> str:
    sizes = ["×".join(map(str, shape)) for _, shape in part.shapes]
    named = ", ".join(f"{name} {size}" for (name, _), size in zip(part.shapes, sizes, strict=True))
    return named if len(named) <= room else ", ".join(sizes)


def _count(value: float) -> str:
    for factor, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:,.1f} {letter}"
    return f"{value:.0f}"


def _bytes(value: int) -> str:
    for factor, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if value >= factor:
            return f"{value / factor:,.1f} {unit}"
    return f"{value} B"
