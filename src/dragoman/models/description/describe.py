"""Description of a model: parts with shapes and parameter counts, operations per token, and memory use."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from dragoman.base.errors import ConfigError
from dragoman.models.description.deep_stacks import deep_sides, extrapolate
from dragoman.models.description.footprint import (
    Footprint,
    evaluate_polynomial,
    fit_footprint,
    measure_footprint,
    measure_trials,
    trial_lengths,
)
from dragoman.models.initialisation import without_storage
from dragoman.models.interface import LengthLimit, has_decoder, tensors
from dragoman.models.parts import count_active_parameters, count_parameters
from dragoman.models.settings import ModelSettings
from dragoman.text.tokenizers import VocabularySizes

_FLOAT_BYTES = 4
_SMALL_VOCABULARY = 8
"""Vocabulary size of the model that is run to measure memory."""


@dataclass(frozen=True)
class Part:
    """One module, or several consecutive identical modules.

    name: path from the top level, such as `encoder.layers.0–5` for six identical modules. kind: class name. depth:
    nesting depth, 0 at the top level. repeats: number of identical modules, including repeats of their parents. shapes:
    names and shapes of one module's direct parameters. parameters: number of parameters in all submodules and repeats,
    without parameters that are counted in an earlier part. tied: the earlier part in which some of the module's direct
    parameters are counted, or None.
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
    """FLOPs of matrix products per token at one sentence length, 2 per multiply-add.

    per_source_token: the encoder and the decoder's projection of its output. per_target_token: the decoder and the
    vocabulary projection if all tokens are processed at once, including masked products. training: one source token and
    one target token, forward and backward. Element-wise operations are not counted, such as norms, softmax,
    activations, gates and the tanh of additive scores.
    """

    per_source_token: float
    per_target_token: float
    training: float


@dataclass(frozen=True)
class Description:
    """The description of a model, measured on the model itself.

    parameters: number of parameters; tied parameters count once. active: number of parameters without experts that a
    token is not routed to. trained: number of parameters that are not frozen; 0 for a model that is estimated from
    counts, whose operations and activations are not measured. parameter_bytes: size of the parameters. length: number
    of tokens per side to which `operations` and `memory` apply. reads_source: False for a language model. has_decoder:
    False for a model that does not generate text.
    """

    parts: tuple[Part, ...]
    parameters: int
    active: int
    trained: int
    parameter_bytes: int
    operations: Operations
    length: int
    footprint: Footprint
    limits: tuple[LengthLimit, ...]
    reads_source: bool
    has_decoder: bool

    @property
    def memory(self) -> dict[str, int]:
        """Memory use in bytes in float32.

        parameters: the parameters. optimised: parameters, gradients and Adam's moments. training, encoding, memory,
        cache: see `Footprint`, for a text of `length` tokens.
        """
        activations = {
            name: evaluate_polynomial(getattr(self.footprint, name), self.length)
            for name in ("training", "encoding", "memory", "cache")
        }
        return {
            "parameters": self.parameter_bytes,
            "optimised": self.parameter_bytes + 3 * _FLOAT_BYTES * self.trained,
            **activations,
        }


def small_sizes(sizes: VocabularySizes) -> VocabularySizes:
    """Return the sizes of a small vocabulary, with the same vectors, for a model that is only run and not trained."""
    return VocabularySizes(sizes.source if sizes.vectors else _SMALL_VOCABULARY, _SMALL_VOCABULARY, sizes.vectors)


def describe_model(config: ModelSettings, sizes: VocabularySizes, length: int, depth: int = 3) -> Description:
    """Describe the model of `config.build_for(sizes)` for `length` tokens per side, with parts down to `depth`.

    Parameters are not initialised, and storage is allocated only if a module requires it, as recurrences, linear
    attention, additive attention over long texts and mixtures of experts do. Operations and memory of deep stacks of
    equal layers are extrapolated from shallow ones. Raises ConfigError for the same settings as `config.build_for`, and
    for a length beyond the model's positions.
    """
    model = _without_values(config, sizes)
    for limit in model.limits:
        if limit.positions is not None and length > limit.positions:
            raise ConfigError(
                f"a length of {length} tokens exceeds the {limit.positions} positions of the {limit.side} "
                f"({limit.setting}): choose a shorter length"
            )
    parameters = list(model.parameters())
    parts = tuple(_parts([model], "", 0, max_depth=depth, counted={}, repeats=1))
    count, active = count_parameters(model), count_active_parameters(model)
    trained = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
    operations, footprint = Operations(0.0, 0.0, 0.0), Footprint(0, (), (), (), ())
    if trained and deep_sides(config):
        operations, footprint = _extrapolated_costs(config, sizes, length)
    elif trained:
        small = _without_values(config, small_sizes(sizes))
        operations = count_model_operations(model, length)  # afterwards, tied parameters are separate
        footprint = measure_footprint(small.to_empty(device="cpu"), length, training=True)
    return Description(
        parts,
        count,
        active,
        trained,
        sum(parameter.numel() * parameter.element_size() for parameter in parameters),
        operations,
        length,
        footprint,
        tuple(model.limits),
        reads_source=bool(model.trial(1).source),
        has_decoder=has_decoder(model),
    )


def _extrapolated_costs(config: ModelSettings, sizes: VocabularySizes, length: int) -> tuple[Operations, Footprint]:
    """Return the costs of a model with a deep stack."""
    lengths = trial_lengths(_without_values(config, small_sizes(sizes)), length)

    def measure(shallow: ModelSettings) -> np.ndarray:
        operations = count_model_operations(_without_values(shallow, sizes), length)
        small = _without_values(shallow, small_sizes(sizes))
        try:
            with torch.device("meta"):
                memory = measure_trials(small, lengths, training=True)
        except (NotImplementedError, RuntimeError):
            memory = measure_trials(small.to_empty(device="cpu"), lengths, training=True)
        return np.array([*astuple(operations), *memory.flatten()])

    costs = extrapolate(config, measure)
    return Operations(*map(float, costs[:3])), fit_footprint(length, lengths, costs[3:].reshape(len(lengths), -1))


def _without_values(config: ModelSettings, sizes: VocabularySizes) -> Any:
    """Build a model on the meta device."""
    with without_storage():
        return config.build_for(sizes).to("meta")


def count_operations(config: ModelSettings, sizes: VocabularySizes, length: int) -> Operations:
    """Count the operations of the model of `config.build_for(sizes)`.

    length: tokens per side; at most the model's number of positions is used.
    """
    return count_model_operations(_without_values(config, sizes), length)


def count_decoder_operations(config: ModelSettings, sizes: VocabularySizes, length: int) -> float:
    """Return the FLOPs per token of training the decoder of a model as a language model.

    length: tokens per text; at most the decoder's number of positions is used.
    """
    model = _without_values(config, sizes).eval()
    positions = model.limits.target.positions
    length = length if positions is None else min(length, positions)
    decoder = model.decoder.to_empty(device="cpu")
    for parameter in decoder.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(_delete_gradient)
    tokens = torch.zeros(1, length, dtype=torch.int64)
    return _count(lambda: decoder.step(tokens, decoder.start(None))[0].logits(), backward=True) / length


def _parts(
    group: Sequence[nn.Module], name: str, depth: int, *, max_depth: int, counted: dict[int, str], repeats: int
) -> Iterator[Part]:
    """Yield the parts of a group of identical modules, parents first.

    Consecutive identical modules in a list form one part. counted: part name by parameter id, for parameters that are
    counted in an earlier part.
    """
    for path, modules in _children(group):
        sizes = {id(parameter): parameter.numel() for module in modules for parameter in module.parameters()}
        if not sizes:
            continue
        full_name = f"{name}.{path}".lstrip(".")
        new_sizes = {key: size for key, size in sizes.items() if key not in counted}
        direct = dict(_direct_parameters(modules[0]))
        tied = next((counted[id(value)] for value in direct.values() if id(value) in counted), None)
        shapes = tuple((key, tuple(value.shape)) for key, value in direct.items())
        count = repeats * len(modules) // len(group)
        yield Part(full_name, type(modules[0]).__name__, depth, count, shapes, sum(new_sizes.values()), tied)
        if depth < max_depth:
            yield from _parts(modules, full_name, depth + 1, max_depth=max_depth, counted=dict(counted), repeats=count)
        owners = {id(value): key.rpartition(".")[0] for key, value in modules[0].named_parameters()}
        counted |= {key: f"{full_name}.{owners.get(key, '')}".rstrip(".") for key in new_sizes}


def _children(group: Sequence[nn.Module]) -> Iterator[tuple[str, list[nn.Module]]]:
    """Yield the name and the modules of each child of a group of identical modules.

    Consecutive identical modules of a list are yielded together, under a name such as `layers.0–5`.
    """
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
            index_range = f"{index}" if end == index + 1 else f"{index}–{end - 1}"
            yield f"{name}.{index_range}", [each[number] for each in modules for number in range(index, end)]
            index = end


def _direct_parameters(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield the names and values of a module's direct parameters, including those in its parameter lists."""
    yield from module.named_parameters(recurse=False)
    for name, child in module.named_children():
        if isinstance(child, nn.ParameterList):
            yield from ((f"{name}.{number}", value) for number, value in enumerate(child))


def _identical(one: nn.Module, other: nn.Module) -> bool:
    def signature(module: nn.Module) -> list[tuple[str, torch.Size]]:
        return [(name, parameter.shape) for name, parameter in module.named_parameters()]

    return type(one) is type(other) and signature(one) == signature(other)


def count_model_operations(model: Any, length: int) -> Operations:
    """Count the operations of a model (`models.interface.Model`) on the meta device.

    length: tokens per side; at most the model's limits are used. If a module requires values or an operation that the
    meta device does not support, uninitialised storage is allocated on the CPU.
    """
    length = min([length, *(limit.positions for limit in model.limits if limit.positions is not None)])
    model.eval()
    try:
        return _count_all(model, length)
    except (NotImplementedError, RuntimeError):
        for parameter in model.to_empty(device="cpu").parameters():
            if parameter.requires_grad:  # delete each gradient immediately to limit memory
                parameter.register_post_accumulate_grad_hook(_delete_gradient)
        return _count_all(model, length)


def _count_all(model: Any, length: int) -> Operations:
    trial = model.trial(length)
    if not has_decoder(model):
        forward, training = (_count(lambda: model(*trial.arguments), backward=each) for each in (False, True))
        return Operations(forward / length, 0.0, training / length)
    source = _count(lambda: model.decoder.start(model.encode_source(trial.source)), backward=False)
    forward = _count(lambda: model(*trial.arguments).logits(), backward=False)
    training = _count(lambda: model(*trial.arguments).logits(), backward=True)
    return Operations(source / length, (forward - source) / length, training / length)


def _count(compute: Callable[[], Any], backward: bool) -> int:
    with (
        _Counter() as counter,
        sdpa_kernel(SDPBackend.MATH),  # torch has no FLOP formulas for some fused kernels
        torch.set_grad_enabled(backward),
    ):
        result = compute()
        if backward:
            sums: Any = [each.sum() for each in tensors(result) if each.requires_grad]
            if sums:  # a model that is estimated from counts has no gradients
                total: Any = torch.stack(sums).sum()
                total.backward()
    return int(counter.flops)


def _delete_gradient(parameter: Tensor) -> None:
    parameter.grad = None


class _Counter(TorchDispatchMode):
    """Counts FLOPs with torch's formulas. torch's `FlopCounterMode` fails if a module returns a parameter.

    Boolean tensors on the meta device have no values, so their conversion to a Python bool returns True. Masks are
    therefore treated as if they hid no key.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops: int = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), settings: dict[str, Any] | None = None
    ) -> Any:
        is_item_call = function is torch.ops.aten._local_scalar_dense.default
        if is_item_call and arguments[0].is_meta and arguments[0].dtype == torch.bool:
            return True
        settings = settings or {}
        result = function(*arguments, **settings)
        formula = flop_registry.get(function._overloadpacket)
        if formula is not None:
            self.flops += formula(*arguments, **settings, out_val=result)
        return result
