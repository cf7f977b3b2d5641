"""Parts of a model, such as the encoder: their parameters, and how many there are."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor, nn

from dragoman.models.interface import Side
from dragoman.nn.embedding import Embedding, Projection
from dragoman.nn.mixture import Mixture


@dataclass(frozen=True)
class Part:
    """One part of a model.

    name: the path of a module, such as `encoder`, `encoder.embedding` or `decoder.projection`. vocabulary: the side
    whose vocabulary entries its rows represent; None if the part does not depend on a vocabulary. tensors: its
    parameters and persistent buffers by full name, tied ones under each of their names.
    """

    name: str
    vocabulary: Side | None = None
    tensors: dict[str, Tensor] = field(default_factory=dict)


def parts_of(model: nn.Module) -> dict[str, Part]:
    """Group a model's tensors into parts by name; each parameter and persistent buffer belongs to exactly one part.

    Embedding tables and projections to a vocabulary are separate parts; everything else belongs to the top-level module
    that contains it. Tables inside the module `decoder` belong to the target's vocabulary, others to the source's.
    """
    rows = _vocabulary_modules(model)
    parts: dict[str, Part] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        module = name.rpartition(".")[0]
        top = name.partition(".")[0]
        part = rows.get(module, top)
        side: Side | None = None if module not in rows else "target" if top == "decoder" else "source"
        parts.setdefault(part, Part(part, side)).tensors[name] = tensor
    return parts


def _vocabulary_modules(model: nn.Module) -> Mapping[str, str]:
    """The modules that have a row per vocabulary entry, with the names of their parts."""
    found: dict[str, str] = {}
    for name, module in model.named_modules():
        if isinstance(module, Embedding) and isinstance(module.tokens, nn.Embedding):
            found[f"{name}.tokens".lstrip(".")] = name or "embedding"
        elif isinstance(module, Projection):
            found[name] = name
    return found


def count_parameters(model: nn.Module) -> int:
    """Count the values in all parameters, including frozen ones; tied ones count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def count_active_parameters(model: nn.Module) -> int:
    """Count the parameters that a single token uses, that is, without the experts that it is not routed to."""
    return count_parameters(model) - sum(
        module.idle_parameters for module in model.modules() if isinstance(module, Mixture)
    )
