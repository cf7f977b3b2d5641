"""Parts of a model, such as the encoder, and parameter counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor, nn

from dragoman.models.interface import Side
from dragoman.nn.embedding import Embedding, Projection
from dragoman.nn.mixture import Mixture


@dataclass(frozen=True)
class Part:
    """One part of a model.

    name: module path, such as `encoder`, `encoder.embedding` or `decoder.projection`. vocabulary: the side whose
    vocabulary entries the rows represent, or None if the part does not depend on a vocabulary. tensors: parameters and
    persistent buffers by full name; a tied tensor is listed under each of its names.
    """

    name: str
    vocabulary: Side | None = None
    tensors: dict[str, Tensor] = field(default_factory=dict)


def parts_of(model: nn.Module) -> dict[str, Part]:
    """Return a model's parts by name. Each parameter and persistent buffer belongs to exactly one part.

    Embedding tables and vocabulary projections are separate parts. All other tensors belong to the top-level module
    that contains them, or to its child if the module has the attribute `children_are_parts`. Tables inside the
    `decoder` module belong to the target vocabulary, other tables to the source vocabulary. The names of the submodules
    of a module with the attribute `parts_at_top_level` omit its own name, so that they equal the names in a model of
    which it is a part.
    """
    vocabulary_modules = _vocabulary_modules(model)
    omitted = [f"{name}." for name, module in model.named_modules() if getattr(module, "parts_at_top_level", False)]
    separate = [
        f"{name}.{child}"
        for name, module in model.named_modules()
        if getattr(module, "children_are_parts", False)
        for child, _ in module.named_children()
    ]
    parts: dict[str, Part] = {}
    for full_name, tensor in model.state_dict(keep_vars=True).items():
        module = full_name.rpartition(".")[0]
        prefix = next((each for each in omitted if full_name.startswith(each)), "")
        name = full_name.removeprefix(prefix)
        top = next((each for each in separate if full_name.startswith(f"{each}.")), name.partition(".")[0])
        part = vocabulary_modules.get(module, prefix + top).removeprefix(prefix)
        side: Side | None = None
        if module in vocabulary_modules:
            side = "target" if top == "decoder" else "source"
        parts.setdefault(part, Part(part, side)).tensors[name] = tensor
    return parts


def _vocabulary_modules(model: nn.Module) -> Mapping[str, str]:
    """Return the part name of each module with one row per vocabulary entry, by module name."""
    part_names: dict[str, str] = {}
    for name, module in model.named_modules():
        if isinstance(module, Embedding) and isinstance(module.tokens, nn.Embedding):
            part_names[f"{name}.tokens".lstrip(".")] = name or "embedding"
        elif isinstance(module, Projection):
            part_names[name] = name
    return part_names


def count_parameters(model: nn.Module) -> int:
    """Return the number of values in all parameters, including frozen parameters. Tied parameters count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def count_active_parameters(model: nn.Module) -> int:
    """Return the number of parameters used per token, which excludes experts that the token is not routed to."""
    return count_parameters(model) - sum(
        module.idle_parameters for module in model.modules() if isinstance(module, Mixture)
    )
