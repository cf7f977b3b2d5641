"""`WeightTable`: the names of a model's tensors in another program, as a table that converts in both directions.

A family of models, such as BERT, is a list of `Weight`s. Each of them is one tensor of the other program, with the
tensors of dragoman that it contains. Conversion, the check of a file and the check of completeness all follow from the
table, so a family needs no code of its own for them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from dragoman.base.errors import ModelError
from dragoman.text.symbols import SPECIAL_SYMBOLS
from dragoman.text.tokenizer import Tokenizer

LAYER = "{layer}"
"""The placeholder for the number of a layer in names."""

_MAX_LISTED = 20


@dataclass(frozen=True)
class Weight:
    """One tensor of the other program.

    theirs: its name. ours: the names of dragoman's tensors, which are concatenated along the first axis if there are
    several, as in a fused projection of queries, keys and values. transposed: the other program stores the transposed
    matrix. rows: the first axis is the vocabulary, whose entries have another order. fill: the value of the rows of
    entries that only dragoman has. permutation: dragoman's row for each row of the other program, if they have another
    order. skipped: number of first rows of the other program's matrix that it does not use; they are written as zeros.
    aliases: other names under which a file may contain the same tensor, because it is
    tied. copies: names of tensors of the same shape that the other program stores but does not use; they are written as
    well, and read if `theirs` is missing.
    """

    theirs: str
    ours: tuple[str, ...]
    transposed: bool = False
    rows: bool = False
    fill: float = 0.0
    permutation: tuple[int, ...] = ()
    skipped: int = 0
    aliases: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names under which a file may contain the tensor."""
        return (self.theirs, *self.aliases, *self.copies)

    def of_layer(self, layer: int) -> "Weight":
        """Return the weight of one layer."""
        number = str(layer)
        return replace(
            self,
            theirs=self.theirs.replace(LAYER, number),
            ours=tuple(name.replace(LAYER, number) for name in self.ours),
            aliases=tuple(name.replace(LAYER, number) for name in self.aliases),
        )


def linear(theirs: str, *ours: str, transposed: bool = False) -> tuple[Weight, Weight]:
    """Return the weight and the bias of a module, such as a linear layer or a normalisation."""
    return (
        Weight(f"{theirs}.weight", tuple(f"{name}.weight" for name in ours), transposed),
        Weight(f"{theirs}.bias", tuple(f"{name}.bias" for name in ours)),
    )


def repeat(weights: Iterable[Weight], layers: int) -> Iterator[Weight]:
    """Yield the weights of all layers. The names contain `LAYER`."""
    weights = list(weights)
    for layer in range(layers):
        for weight in weights:
            yield weight.of_layer(layer)


@dataclass(frozen=True)
class WeightTable:
    """All weights of a model.

    order: dragoman's id of each entry of the other program's vocabulary. size: number of entries of dragoman's
    vocabulary. constants: tensors that a file may contain although their values are fixed, such as the numbers of
    positions. rename: converts the names in a file to the names in this table, such as those of older files. unused:
    returns whether a tensor belongs to a part of the other program's model that dragoman's model does not have.
    """

    weights: Sequence[Weight]
    order: Sequence[int]
    size: int
    constants: Mapping[str, Tensor] = field(default_factory=dict)
    rename: Callable[[str], str] = str
    unused: Callable[[str], bool] = lambda name: False

    def to_theirs(self, ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the other program's tensors by name. Raises ModelError with the names of tensors that it does not
        have.

        The tensors may be on the meta device, which gives the names and shapes that a file must have.
        """
        placed = {name for weight in self.weights for name in weight.ours}
        if without_place := sorted(ours.keys() - placed):
            raise ModelError(f"the other program has no tensor for {_list(without_place)}")
        return {
            name: self._join(weight, [ours[part] for part in weight.ours])
            for weight in self.weights
            for name in (weight.theirs, *weight.copies)
        }

    def to_ours(self, theirs: Mapping[str, Tensor], expected: Mapping[str, Tensor], path: Path) -> dict[str, Tensor]:
        """Return dragoman's tensors by name, with the dtypes of the file.

        expected: the parameters of dragoman's model, on any device. path: the file, for messages. Raises ModelError
        with a list of the tensors that are missing, unknown, of a wrong shape or type, or tied to different values.
        """
        tensors = self._renamed(theirs, path)
        problems: list[str] = []
        values: dict[str, Tensor] = {}
        shapes = {name: tuple(tensor.shape) for name, tensor in self.to_theirs(expected).items()}
        for weight in self.weights:
            names = [name for name in weight.names if name in tensors]
            if not names:
                problems.append(f"missing: {weight.theirs} {shapes[weight.theirs]}")
                continue
            values[weight.theirs] = tensor = tensors[names[0]]
            problems += [
                f"different values: {name} and {names[0]}, which {path.parent.name}/config.json ties"
                for name in names[1:]
                if name in weight.aliases and not torch.equal(tensors[name], tensor)
            ]
            if tuple(tensor.shape) != shapes[weight.theirs]:
                required = shapes[weight.theirs]
                problems.append(f"wrong shape: {names[0]} is {tuple(tensor.shape)}, but the model needs {required}")
            elif not tensor.is_floating_point():
                problems.append(f"wrong type: {names[0]} is {tensor.dtype}")
        problems += self._others(tensors)
        if problems:
            more = [f"… and {len(problems) - _MAX_LISTED} more"] if len(problems) > _MAX_LISTED else []
            listed = "\n  ".join([*problems[:_MAX_LISTED], *more])
            raise ModelError(f"{path} does not fit its config.json ({len(problems)} differences):\n  {listed}")
        return {
            name: part
            for weight in self.weights
            for name, part in zip(weight.ours, self._split(weight, values[weight.theirs], expected), strict=True)
        }

    def unused_names(self, theirs: Mapping[str, Tensor]) -> list[str]:
        """Return the names in a file of tensors that dragoman's model does not have."""
        known = {name for weight in self.weights for name in weight.names}
        return [name for name in theirs if self.rename(name) not in known and self.unused(self.rename(name))]

    def _renamed(self, theirs: Mapping[str, Tensor], path: Path) -> dict[str, Tensor]:
        tensors: dict[str, Tensor] = {}
        for name, tensor in theirs.items():
            if (new := self.rename(name)) in tensors:
                raise ModelError(f"{path} contains the tensor {new} twice, also under the name {name}")
            tensors[new] = tensor
        return tensors

    def _others(self, tensors: Mapping[str, Tensor]) -> list[str]:
        """Return the problems with tensors that are not weights."""
        known = {name for weight in self.weights for name in weight.names}
        problems = []
        for name, tensor in tensors.items():
            if name in known or self.unused(name):
                continue
            constant = self.constants.get(name)
            if constant is None:
                problems.append(f"unknown: {name} {tuple(tensor.shape)}")
            elif not torch.equal(tensor.flatten().long(), constant):
                problems.append(f"unsupported values: {name} is a constant of the architecture, and has other values")
        return problems

    def _join(self, weight: Weight, parts: Sequence[Tensor]) -> Tensor:
        tensor = torch.cat(list(parts))
        if order := self._order(weight):
            tensor = tensor[torch.tensor(order, device=tensor.device)]
        if weight.skipped:
            tensor = torch.cat((tensor.new_zeros(weight.skipped, *tensor.shape[1:]), tensor))
        return tensor.T.contiguous() if weight.transposed else tensor

    def _split(self, weight: Weight, tensor: Tensor, expected: Mapping[str, Tensor]) -> Sequence[Tensor]:
        if weight.transposed:
            tensor = tensor.T
        tensor = tensor[weight.skipped :]
        if order := self._order(weight):
            rows = tensor.new_full((self.size if weight.rows else len(order), *tensor.shape[1:]), weight.fill)
            rows[torch.tensor(order)] = tensor
            tensor = rows
        return [part.contiguous() for part in torch.split(tensor, [len(expected[name]) for name in weight.ours])]

    def _order(self, weight: Weight) -> Sequence[int]:
        """Return dragoman's row for each row of the other program; empty if they have the same order."""
        return self.order if weight.rows else weight.permutation


def original_order(tokenizer: Tokenizer, original_ids: Sequence[int | None] | None) -> list[int]:
    """Return the id in a tokenizer of each id of the vocabulary from which it was imported.

    original_ids: the original ids of the special symbols and of the first tags, in the order of their ids in the
    tokenizer, each None if the original vocabulary does not have the symbol; None if both vocabularies have the same
    ids. If the beginning of a text and padding have the same original id, it is mapped to the beginning. All other
    entries keep their order, and further tags follow them. Raises ModelError if the tokenizer has fewer tags.
    """
    size = tokenizer.size
    if original_ids is None:
        return list(range(size))
    first = len(SPECIAL_SYMBOLS)
    tags = size - len(tokenizer.tags)
    if len(original_ids) - first > len(tokenizer.tags):
        raise ModelError("a tokenizer of this model lacks tags whose ids it stores: restore it from a copy")
    fixed = dict(zip(original_ids[first:], range(tags, size), strict=False))
    fixed |= dict(zip(original_ids[:first], range(first), strict=True))  # the beginning comes after padding
    ordinary = iter([*range(first, tags), *range(tags + len(original_ids) - first, size)])
    count = size - (first - len({*original_ids[:first]} - {None}))
    return [fixed[original] if original in fixed else next(ordinary) for original in range(count)]


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return ", ".join(names[:_MAX_LISTED]) + more
