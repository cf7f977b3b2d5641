"""Description of a model: its parts with shapes and parameters, operations per token, and memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from dragoman.base.errors import ConfigError
from dragoman.models.footprint import Footprint, evaluate_polynomial, measure_footprint
from dragoman.models.interface import LengthLimit, has_decoder, tensors
from dragoman.models.parts import count_active_parameters, count_parameters
from dragoman.models.settings import ModelSettings
from dragoman.text.tokenizers import VocabularySizes

_BYTES = 4
_FEW = 8
_TRIAL = 512
"""Tokens of the longest sentence that memory is measured on; the memory of longer ones is extrapolated."""


@dataclass(frozen=True)
class Part:
    """One module, or several consecutive identical modules.

    name: path from the top, such as `encoder.layers.0–5` for six identical modules. kind: the class. depth: 0 at the
    top. repeats: number of identical modules, including repeats of their parents. shapes: shapes by name of one
    module's own parameters. parameters: number of parameters in all submodules and repeats, without those already
    counted. tied: the part in which some of the module's own parameters were already counted, or None.
    """

    name: str
    kind: str
    depth: int
    repeats: int
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    parameters: int
    tied: str | None


@dataclass(frozen=True)
class Operations:
    """FLOPs of matrix products per token, 2 per multiply-add, at one sentence length.

    reading: per source token, for the encoder and the decoder's projection of its memory. writing: per target token, if
    all tokens are read at once, including masked products and the vocabulary projection. training: per source and
    target token, forward and backward. Element-wise operations are not counted: norms, softmax, activations, the tanh
    of additive scores, gates.
    """

    reading: float
    writing: float
    training: float


@dataclass(frozen=True)
class Description:
    """The description of a model, derived from the model itself.

    parameters: number of parameters, tied ones counted once. active: without experts that a token is not routed to.
    trained: without frozen ones. length: source and target tokens of the text or pair that `operations` and `memory`
    are for. reads_source: false for a language model. has_decoder: false for a model that writes no text.
    """

    parts: tuple[Part, ...]
    parameters: int
    active: int
    trained: int
    operations: Operations
    length: int
    footprint: Footprint
    limits: tuple[LengthLimit, ...]
    reads_source: bool
    has_decoder: bool

    @property
    def memory(self) -> dict[str, int]:
        """Bytes in float32 by use: parameters, also with gradients and Adam's moments; the footprint for `length`."""
        activations = {
            name: evaluate_polynomial(getattr(self.footprint, name), self.length)
            for name in ("training", "encoding", "memory", "cache")
        }
        return {
            "parameters": _BYTES * self.parameters,
            "optimised": _BYTES * (self.parameters + 3 * self.trained),
            **activations,
        }


def describe_model(config: ModelSettings, sizes: VocabularySizes, length: int, depth: int = 3) -> Description:
    """Describe the model of `config.build_for(sizes)` for `length` tokens on each side, with parts down to `depth`.

    No initial values are drawn, and parameters have no storage, unless a module requires it: recurrences, linear and
    long additive attention and mixtures of experts get uninitialised storage. Raises ConfigError as `config.build_for`
    does, and for a length beyond the model's positions.
    """
    few = VocabularySizes(sizes.source if sizes.vectors else _FEW, _FEW, sizes.vectors)
    with torch.device("meta"):
        model, small = config.build_for(sizes).to("meta"), config.build_for(few)
    for limit in model.limits:
        if limit.positions is not None and length > limit.positions:
            raise ConfigError(
                f"a length of {length} tokens is more than the {limit.positions} positions of the {limit.side} "
                f"({limit.setting}): describe the model for a shorter one"
            )
    parameters = list(model.parameters())
    return Description(
        tuple(_parts([model], "", 0, depth, {}, 1)),
        count_parameters(model),
        count_active_parameters(model),
        sum(parameter.numel() for parameter in parameters if parameter.requires_grad),
        count_model_operations(model, length),
        length,
        measure_footprint(small.to_empty(device="cpu"), length, training=True),
        tuple(model.limits),
        reads_source=bool(model.trial(1).source),
        has_decoder=has_decoder(model),
    )


def count_operations(config: ModelSettings, sizes: VocabularySizes, length: int) -> Operations:
    """Count the operations of the model of `config.build_for(sizes)`; `length` is capped at its positions."""
    with torch.device("meta"):
        return count_model_operations(config.build_for(sizes).to("meta"), length)


def _parts(
    group: Sequence[nn.Module], name: str, depth: int, deepest: int, counted: dict[int, str], repeats: int
) -> Iterator[Part]:
    """Yield the parts of a group of identical modules, parents first; identical neighbours in a list form one part."""
    for path, modules in _children(group):
        own = {id(parameter): parameter.numel() for module in modules for parameter in module.parameters()}
        if not own:
            continue
        full = f"{name}.{path}".lstrip(".")
        new = {key: number for key, number in own.items() if key not in counted}
        direct = dict(_own_parameters(modules[0]))
        tied = next((counted[id(value)] for value in direct.values() if id(value) in counted), None)
        shapes = tuple((key, tuple(value.shape)) for key, value in direct.items())
        count = repeats * len(modules) // len(group)
        yield Part(full, type(modules[0]).__name__, depth, count, shapes, sum(new.values()), tied)
        if depth < deepest:
            yield from _parts(modules, full, depth + 1, deepest, dict(counted), count)
        holders = {id(value): key.rpartition(".")[0] for key, value in modules[0].named_parameters()}
        counted |= {key: f"{full}.{holders.get(key, '')}".rstrip(".") for key in new}


def _children(group: Sequence[nn.Module]) -> Iterator[tuple[str, list[nn.Module]]]:
    """Yield children by name with their modules: one per module of the group, or more for identical neighbours."""
    for name, child in group[0].named_children():
        modules = [getattr(module, name) for module in group]
        if isinstance(child, nn.ParameterList):
            continue
        if not isinstance(child, nn.ModuleList):
            yield name, modules
            continue
        index = 0
        while index < len(child):
            end = index + 1
            while end < len(child) and _identical(child[index], child[end]):
                end += 1
            numbers = f"{index}" if end == index + 1 else f"{index}–{end - 1}"
            yield f"{name}.{numbers}", [each[number] for each in modules for number in range(index, end)]
            index = end


def _own_parameters(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield a module's own parameters, including those in its parameter lists."""
    yield from module.named_parameters(recurse=False)
    for name, child in module.named_children():
        if isinstance(child, nn.ParameterList):
            yield from ((f"{name}.{number}", value) for number, value in enumerate(child))


def _identical(one: nn.Module, other: nn.Module) -> bool:
    def signature(module: nn.Module) -> list[tuple[str, torch.Size]]:
        return [(name, parameter.shape) for name, parameter in module.named_parameters()]

    return type(one) is type(other) and signature(one) == signature(other)


def count_model_operations(model: Any, length: int) -> Operations:
    """Count the operations of a model (`models.interface.Model`) on the meta device; `length` is capped at its limits.

    The model gets uninitialised storage if a module needs values or an operation that the meta device lacks.
    """
    length = min([length, *(limit.positions for limit in model.limits if limit.positions is not None)])
    model.eval()
    try:
        return _count_all(model, length)
    except (NotImplementedError, RuntimeError):
        for parameter in model.to_empty(device="cpu").parameters():
            if parameter.requires_grad:  # so that only one gradient exists at a time
                parameter.register_post_accumulate_grad_hook(_forget)
        return _count_all(model, length)


def _count_all(model: Any, length: int) -> Operations:
    trial = model.trial(length)
    if not has_decoder(model):
        forward, whole = (_count(lambda: model(*trial.arguments), backward=each) for each in (False, True))
        return Operations(forward / length, 0.0, whole / length)
    reading = _count(lambda: model.decoder.start(model.encode_source(trial.source)), backward=False)
    forward = _count(lambda: model(*trial.arguments).logits(), backward=False)
    whole = _count(lambda: model(*trial.arguments).logits(), backward=True)
    return Operations(reading / length, (forward - reading) / length, whole / length)


def _count(compute: Callable[[], Any], backward: bool) -> int:
    with (
        _Counter() as counter,
        sdpa_kernel(SDPBackend.MATH),  # torch has no formulas for some fused kernels
        torch.set_grad_enabled(backward),
    ):
        result = compute()
        if backward:
            total: Any = torch.stack([each.sum() for each in tensors(result) if each.requires_grad]).sum()
            total.backward()
    return int(counter.flops)


def _forget(parameter: Tensor) -> None:
    parameter.grad = None


class _Counter(TorchDispatchMode):
    """Counts FLOPs with torch's formulas; torch's own counter fails if a module returns a parameter.

    Tests of whether a mask hides no key return True, because a tensor without storage has no values.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops: int = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), settings: dict[str, Any] | None = None
    ) -> Any:
        reads_bool = function is torch.ops.aten._local_scalar_dense.default
        if reads_bool and arguments[0].is_meta and arguments[0].dtype == torch.bool:
            return True
        settings = settings or {}
        result = function(*arguments, **settings)
        formula = flop_registry.get(function._overloadpacket)
        if formula is not None:
            self.flops += formula(*arguments, **settings, out_val=result)
        return result
