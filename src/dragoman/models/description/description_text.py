"""Formatting of a model's description as a table and as JSON."""

from typing import Any

from dragoman.models.description.describe import Description, Part


def parts_table(description: Description, width: int) -> str:
    """Format a table with one line per part, indented below its parent.

    Lines are at most `width` characters long if possible. Parameter names that do not fit are omitted.
    """
    parts = description.parts
    names = [f"{'  ' * part.depth}{_label(part, parts)}" for part in parts]
    classes = [f"{part.repeats} × {part.kind}" if part.repeats > 1 else part.kind for part in parts]
    name_width, class_width = max(map(len, [*names, "part"])), max(map(len, [*classes, "class"]))
    count_width = max(len("parameters"), len(f"{description.parameters:,}"))
    shapes_width = width - (name_width + class_width + count_width + len("100.0%") + 5)
    lines = [f"{'part':{name_width}} {'class':{class_width}} {'parameters':>{count_width}}  share  shapes of one"]
    for name, class_name, part in zip(names, classes, parts, strict=True):
        line = f"{name:{name_width}} {class_name:{class_width}} "
        if part.tied is not None and not part.parameters:
            lines.append(f"{line}tied to {part.tied}")
            continue
        share = part.parameters / max(description.parameters, 1)
        tied = "" if part.tied is None else f" (partly tied to {part.tied})"
        shapes = _shapes(part, shapes_width)
        lines.append(f"{line}{part.parameters:>{count_width},} {share:>6.1%}  {shapes}{tied}".rstrip())
    lines.append(f"{'all':{name_width}} {'':{class_width}} {description.parameters:>{count_width},} {1:>6.1%}")
    return "\n".join(lines)


def numbers_text(description: Description) -> str:
    """Format parameter totals, operations, memory use and length limits."""
    is_pair = description.reads_source and description.has_decoder
    if not description.trained:
        values = f"{description.parameters:,} values, which are estimated from counts"
        limits = _limits(description, is_pair)
        return "\n".join([f"{values} ({_bytes(description.parameter_bytes)})", *([""] if limits else []), *limits])
    operations, memory, length = description.operations, description.memory, description.length
    lines = [f"{description.parameters:,} parameters (tied parameters are counted once)"]
    if description.active != description.parameters:
        lines.append(f"  {description.active:,} active parameters per token (mixture of experts)")
    if description.trained != description.parameters:
        lines.append(f"  {description.trained:,} trained parameters (the others are frozen)")
    lengths = f"{length} tokens"
    per_token = operations.per_source_token + operations.per_target_token
    rows = [
        ("per token", _count(per_token), "all tokens processed at once, with projection"),
        ("in training", _count(operations.training), "per token, forward and backward"),
        ("", _count(operations.training * length), "per text"),
    ]
    if is_pair:
        lengths = f"{length} source and {length} target tokens"
        rows = [
            ("per source token", _count(operations.per_source_token), "encoder, and the decoder's projections"),
            ("per target token", _count(operations.per_target_token), "decoder, all tokens at once, with projection"),
            ("in training", _count(operations.training), "per token pair, forward and backward"),
            ("", _count(operations.training * length), "per sentence pair"),
        ]
    lines += ["", f"FLOPs of matrix products, 2 per multiply-add, at {lengths}"]
    lines += [f"  {name:16} {number:>12}  {meaning}" for name, number, meaning in rows]
    lines += [
        "Element-wise operations are not counted, such as norms, softmax, activations,",
        "gates and the tanh of additive scores.",
    ]
    source_rows = (
        ("encoding", "encoding", "peak of the encoder in translation"),
        ("memory", "memory", "source representation that the decoder stores"),
    )
    target_rows = (("cache", "cache", f"per {'hypothesis' if is_pair else 'text'}"),)
    uses = (
        ("parameters", "parameters", f"{_bytes(memory['optimised'])} with gradients and Adam's moments"),
        ("in training", "training", "peak of a forward pass, without logits"),
        *(source_rows if is_pair else ()),
        *(target_rows if description.has_decoder else (("inference", "encoding", "peak of a forward pass"),)),
    )
    lines += ["", f"Memory in float32 for {lengths} (upper bound)"]
    lines += [f"  {name:16} {_bytes(memory[use]):>12}  {meaning}" for name, use, meaning in uses]
    return "\n".join([*lines, "", *_limits(description, is_pair)])


def _limits(description: Description, is_pair: bool) -> list[str]:
    """Return one line per length limit."""
    lines = []
    for limit in description.limits:
        size = "any number of tokens" if limit.tokens is None else f"at most {limit.tokens:,} tokens ({limit.setting})"
        side = limit.side if is_pair or len(description.limits) > 1 else "text"
        lines.append(f"The {side} may have {size}.")
    return lines


def as_json(description: Description) -> dict[str, Any]:
    """Return the description as a JSON-compatible dictionary."""
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
            "source_token": operations.per_source_token,
            "target_token": operations.per_target_token,
            "training_token_pair": operations.training,
        },
        "bytes": description.memory,
        "most_tokens": {limit.side: limit.tokens for limit in description.limits},
    }


def _label(part: Part, parts: tuple[Part, ...]) -> str:
    """Return the name of `part` relative to its parent."""
    parents = [
        other.name for other in parts if other.depth == part.depth - 1 and part.name.startswith(f"{other.name}.")
    ]
    return part.name.removeprefix(f"{parents[-1]}.") if parents else part.name


def _shapes(part: Part, width: int) -> str:
    sizes = ["×".join(map(str, shape)) or "1" for _, shape in part.shapes]
    with_names = ", ".join(f"{name} {size}" for (name, _), size in zip(part.shapes, sizes, strict=True))
    return with_names if len(with_names) <= width else ", ".join(sizes)


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
