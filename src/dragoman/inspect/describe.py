"""What a model is made of: its parts, their shapes, parameters, operations a token and memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from dragoman.base.errors import ConfigError
from dragoman.models.footprint import Footprint, evaluate, measure
from dragoman.models.interface import LengthLimit, has_decoder, tensors
from dragoman.models.parts import count_active_parameters, count_parameters
from dragoman.models.settings import ModelSettings
from dragoman.text.tokenizers import VocabularySizes

_BYTES = 4
_FEW = 8
_TRIAL = 512
"""Tokens of the longest sentence that memory is measured on; what longer ones take follows from shorter ones."""


@dataclass(frozen=True)
class Part:
    """One module, or several alike in a row.

    name: from the top, `encoder.layers.0–5` where six are alike; kind: the class; depth: 0 at the top; repeats: how
    many are alike, those above it counted in; shapes: of one's own parameters, by name; parameters: of all its parts
    and all repeats, those counted before left out; tied: the part that counted some of its own before, or None.
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
    """Multiplications and additions of the matrix products a token, 2 a multiply-add, at one sentence length.

    reading: a source token: the encoder, and what a decoder makes of its memory once a sentence. writing: a target
    token read with all others at once, so that it meets all of them where masks hide them; the vocabulary projection
    included. training: a source and a target token,
    forward and backward. What is computed element by element is not counted: norms, softmax, activations, the tanh of
    additive scores, gates.
    """

    reading: float
    writing: float
    training: float


@dataclass(frozen=True)
class Description:
    """A model, read off the model itself.

    parameters: tied ones once; active: without experts that a token is not given to; trained: without frozen ones.
    length: source and target tokens of the text or pair that `operations` and `memory` are for. reads_source: false
    for a language model. has_decoder: false for a model that writes no text.
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
        """Bytes in float32, by use: parameters; with gradients and Adam's two moments; the footprint's for `length`."""
        activations = {
            name: evaluate(getattr(self.footprint, name), self.length)
            for name in ("training", "encoding", "memory", "cache")
        }
        return {
            "parameters": _BYTES * self.parameters,
            "optimised": _BYTES * (self.parameters + 3 * self.trained),
            **activations,
        }


def describe(config: ModelSettings, sizes: VocabularySizes, length: int, depth: int = 3) -> Description:
    """The model that `config.build_for(sizes)` gives, for texts of `length` tokens on each side; parts down to `depth`.

    No initial values are drawn. Where all modules can do without, no parameter has storage either; recurrences, linear
    and long additive attention and mixtures of experts cannot, and get some that is not filled.
    Raises ConfigError as `config.build_for` does, and for a length beyond the model's positions.
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
        operations_of(model, length),
        length,
        measure(small.to_empty(device="cpu"), length, training=True),
        tuple(model.limits),
        reads_source=bool(model.trial(1).source),
        has_decoder=has_decoder(model),
    )


def count_operations(config: ModelSettings, sizes: VocabularySizes, length: int) -> Operations:
    """The operations of the model that `config.build_for(sizes)` gives; a length beyond its positions is cut."""
    with torch.device("meta"):
        return operations_of(config.build_for(sizes).to("meta"), length)


def _parts(
    group: Sequence[nn.Module], name: str, depth: int, deepest: int, counted: dict[int, str], repeats: int
) -> Iterator[Part]:
    """The parts of several modules that are alike, parents first; equal neighbours in a list stand in one line."""
    for path, modules in _children(group):
        own = {id(parameter): parameter.numel() for module in modules for parameter in module.parameters()}
        if not own:
            continue
        full = f"{name}.{path}".lstrip(".")
        new = {key: number for key, number in own.items() if key not in counted}
        direct = dict(_direct(modules[0]))
        tied = next((counted[id(value)] for value in direct.values() if id(value) in counted), None)
        shapes = tuple((key, tuple(value.shape)) for key, value in direct.items())
        alike = repeats * len(modules) // len(group)
        yield Part(full, type(modules[0]).__name__, depth, alike, shapes, sum(new.values()), tied)
        if depth < deepest:
            yield from _parts(modules, full, depth + 1, deepest, dict(counted), alike)
        holders = {id(value): key.rpartition(".")[0] for key, value in modules[0].named_parameters()}
        counted |= {key: f"{full}.{holders.get(key, '')}".rstrip(".") for key in new}


def _children(group: Sequence[nn.Module]) -> Iterator[tuple[str, list[nn.Module]]]:
    """Names and modules, as many for each name as the group has, or more where several in a list are alike."""
    for name, child in group[0].named_children():
        modules = [getattr(module, name) for module in group]
        if isinstance(child, nn.ParameterList):
            continue
        if not isinstance(child, nn.ModuleList):
            yield name, modules
            continue
        place = 0
        while place < len(child):
            end = place + 1
            while end < len(child) and _like(child[place], child[end]):
                end += 1
            numbers = f"{place}" if end == place + 1 else f"{place}–{end - 1}"
            yield f"{name}.{numbers}", [each[number] for each in modules for number in range(place, end)]
            place = end


def _direct(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """A module's own parameters, those in its lists of parameters too."""
    yield from module.named_parameters(recurse=False)
    for name, child in module.named_children():
        if isinstance(child, nn.ParameterList):
            yield from ((f"{name}.{number}", value) for number, value in enumerate(child))


def _like(one: nn.Module, other: nn.Module) -> bool:
    def signature(module: nn.Module) -> list[tuple[str, torch.Size]]:
        return [(name, parameter.shape) for name, parameter in module.named_parameters()]

    return type(one) is type(other) and signature(one) == signature(other)


def operations_of(model: Any, length: int) -> Operations:
    """Of a model (`models.interface.Model`) on the meta device, a length beyond its positions being cut.

    It is given empty storage where a module asks for numbers, or for what that device does not have.
    """
    length = min([length, *(limit.positions for limit in model.limits if limit.positions is not None)])
    model.eval()
    try:
        return _counted(model, length)
    except (NotImplementedError, RuntimeError):
        for parameter in model.to_empty(device="cpu").parameters():
            if parameter.requires_grad:  # one gradient at a time exists
                parameter.register_post_accumulate_grad_hook(_forget)
        return _counted(model, length)


def _counted(model: Any, length: int) -> Operations:
    trial = model.trial(length)
    if not has_decoder(model):
        forward, whole = (_count(lambda: model(*trial.arguments), backward=each) for each in (False, True))
        return Operations(forward / length, 0.0, whole / length)
    reading = _count(lambda: model.decoder.start(model.remember(trial.source)), backward=False)
    forward = _count(lambda: model(*trial.arguments).logits(), backward=False)
    whole = _count(lambda: model(*trial.arguments).logits(), backward=True)
    return Operations(reading / length, (forward - reading) / length, whole / length)


def _count(compute: Callable[[], Any], backward: bool) -> int:
    with (
        _Counter() as counter,
        sdpa_kernel(SDPBackend.MATH),  # products that torch has formulas for, which it does not for every fused kernel
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
    """Counts FLOPs by torch's formulas; torch's own counter fails where a module gives a parameter.

    A mask's question whether all its keys are there is answered with yes: a tensor without storage cannot tell.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops: int = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), settings: dict[str, Any] | None = None
    ) -> Any:
        asked = function is torch.ops.aten._local_scalar_dense.default
        if asked and arguments[0].is_meta and arguments[0].dtype == torch.bool:
            return True
        settings = settings or {}
        result = function(*arguments, **settings)
        formula = flop_registry.get(function._overloadpacket)
        if formula is not None:
            self.flops += formula(*arguments, **settings, out_val=result)
        return result
