"""What a model is made of: its parts, their shapes, parameters, operations a token and memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from dragoman.models.footprint import Footprint, evaluate, measure
from dragoman.models.seq2seq import Seq2Seq
from dragoman.text.special import BOS

_BYTES = 4


@dataclass(frozen=True)
class Part:
    """One module, or several alike in a row.

    name: from the top, `layers.0–5` where six are alike; kind: the class; depth: 0 at the top; repeats: how many are
    alike; shapes: of its own parameters, by name; parameters: of all its parts and all repeats, those counted before
    left out; shared: how many parameters it has that another part already counted.
    """

    name: str
    kind: str
    depth: int
    repeats: int
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    parameters: int
    shared: int


@dataclass(frozen=True)
class Operations:
    """Multiplications and additions (2 a multiply-add) of the matrix products a token, at one sentence length.

    encoding: a source token; decoding: a target token in teacher forcing, vocabulary projection included; training: a
    pair of a source and a target token, forward and backward.
    """

    encoding: float
    decoding: float
    training: float


@dataclass(frozen=True)
class Description:
    """A model, read off the model itself. length: source and target tokens of a sentence that `operations` is for.

    trained: bytes of parameters, gradients and Adam's two moments in float32.
    """

    parts: tuple[Part, ...]
    parameters: int
    operations: Operations
    length: int
    footprint: Footprint
    trained: int

    def memory(self, length: int) -> dict[str, int]:
        """Bytes in float32 for one sentence of `length` tokens, by use."""
        names = ("training", "encoding", "memory", "cache")
        return {name: evaluate(getattr(self.footprint, name), length) for name in names}


def describe(model: Seq2Seq, length: int, depth: int = 4) -> Description:
    """Describe `model` for sentences of `length` source and target tokens; parts are shown down to `depth`.

    Runs the model a few times on single sentences. Raises ValueError for a length beyond its positions.
    """
    counted: set[int] = set()
    parts = tuple(_parts(model, "", 0, depth, counted))
    total = sum(parameter.numel() for parameter in model.parameters())
    return Description(
        parts, total, _operations(model, length), length, measure(model, length, training=True), 4 * _BYTES * total
    )


def _parts(module: nn.Module, name: str, depth: int, deepest: int, counted: set[int]) -> Iterator[Part]:
    """The parts of `module`, parents first; equal neighbours in a list stand in one line."""
    for first, last, child, repeats in _children(module):
        if not any(True for _ in child.parameters()):
            continue
        numbers = first if repeats == 1 else f"{first}–{last}"
        path = f"{name}.{numbers}".lstrip(".")
        before = set(counted)
        group = (
            [getattr(module, str(number)) for number in range(int(first), int(last) + 1)] if repeats > 1 else [child]
        )
        own, shared = 0, 0
        for parameter in (parameter for each in group for parameter in each.parameters()):
            if id(parameter) in counted:
                shared += parameter.numel()
            else:
                counted.add(id(parameter))
                own += parameter.numel()
        shapes = tuple((key, tuple(value.shape)) for key, value in child.named_parameters(recurse=False))
        yield Part(path, type(child).__name__, depth, repeats, shapes, own, shared)
        if depth < deepest:
            yield from _parts(child, path, depth + 1, deepest, before)


def _children(module: nn.Module) -> Iterator[tuple[str, str, nn.Module, int]]:
    """First name, last name, the module and how many follow that are just like it."""
    named = list(module.named_children())
    place = 0
    while place < len(named):
        end = place + 1
        while isinstance(module, nn.ModuleList) and end < len(named) and _like(named[place][1], named[end][1]):
            end += 1
        yield named[place][0], named[end - 1][0], named[place][1], end - place
        place = end


def _like(one: nn.Module, other: nn.Module) -> bool:
    def signature(module: nn.Module) -> list[tuple[str, torch.Size]]:
        return [(name, parameter.shape) for name, parameter in module.named_parameters()]

    return type(one) is type(other) and signature(one) == signature(other)


def _operations(model: Seq2Seq, length: int) -> Operations:
    was_training = model.training
    model.eval()
    tokens = torch.full((1, length), BOS, dtype=torch.int64)
    keep = torch.ones_like(tokens, dtype=torch.bool)
    try:
        encoding = _count(lambda: model.encode(tokens, keep).states, backward=False)
        forward = _count(lambda: model(tokens, keep, tokens).logits, backward=False)
        whole = _count(lambda: model(tokens, keep, tokens).logits, backward=True)
    finally:
        model.train(was_training)
    return Operations(encoding / length, (forward - encoding) / length, whole / length)


def _count(compute: Callable[[], Tensor], backward: bool) -> int:
    with FlopCounterMode(display=False) as counter, torch.set_grad_enabled(backward):
        result = compute()
        if backward:
            result.sum().backward()  # type: ignore[no-untyped-call]
    return int(counter.get_total_flops())
