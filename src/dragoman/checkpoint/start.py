"""`Start`: the model folder that a run takes parameters from, part by part."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.base.log import info, warn
from dragoman.base.settings.load import flatten
from dragoman.checkpoint.folder import LoadedModel, load_model_folder
from dragoman.models.kinds import ModelKind, kind_of
from dragoman.models.parts import Part, parts_of
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import Tokenizers

_MOST_LISTED = 5
_FREE = ("dropout", "preset", "layers", "embeddings")
"""Settings of a part that may differ without a warning: they affect only training, or show in the shapes."""


@dataclass(frozen=True)
class Transfer:
    """The parts that a run has taken from another model.

    taken: the parts of the run's model that were copied. new: parts, or parameters of copied parts, that keep their
    initial values, each with the reason. left: parts of the folder's model that are not used.
    """

    taken: tuple[str, ...]
    new: tuple[str, ...]
    left: tuple[str, ...]

    def __str__(self) -> str:
        rest = {"new": self.new, "left in the folder": self.left}
        listed = [f"{name}: {'; '.join(each)}" for name, each in rest.items() if each]
        return ". ".join([f"took {', '.join(self.taken)}", *listed])


@dataclass(frozen=True)
class Start:
    """A model folder in memory that parameters are taken from. parts: their names; None: all parts that fit."""

    folder: Path
    loaded: LoadedModel
    parts: tuple[str, ...] | None = None

    @classmethod
    def load(cls, folder: Path, parts: Sequence[str] | None = None) -> "Start":
        """Read the folder. Raises ModelError as `load_model_folder` does, ConfigError for missing parts."""
        loaded = load_model_folder(folder, torch.device("cpu"))
        known = parts_of(loaded.model)
        if unknown := [name for name in parts or () if name not in known]:
            raise ConfigError(
                f"train.start_parts: the model in {folder} has no part {unknown[0]}; its parts are {', '.join(known)}"
            )
        return cls(folder, loaded, None if parts is None else tuple(parts))

    @property
    def kind(self) -> ModelKind:
        """The kind of the folder's model."""
        return kind_of(self.loaded.config["model"])

    def fill(self, model: nn.Module, tokenizers: Tokenizers | None, settings: Mapping[str, Any]) -> Transfer:
        """Copy all parts that fit, or the named parts, into a model; returns a report.

        A part fits if all of its parameters, or all of the folder's, have a counterpart of the same name and shape in
        the other model. For example, a decoder without attention to a source fits one with it. Rows of a vocabulary fit
        only if the vocabularies are the same, except for additional tags, whose rows get the mean of the others.

        tokenizers: those of the run. settings: those of the run's model; a warning lists differences from the folder's.
        Raises ConfigError if nothing fits, if a named part does not fit, and if the row of a new tag would be frozen.
        """
        ours, theirs = parts_of(model), parts_of(self.loaded.model)
        wanted = theirs.keys() if self.parts is None else set(self.parts)
        taken, new, done = [], [], set[int]()
        for name, part in ours.items():
            reason: str | None
            if name not in theirs:
                reason = "not in the folder"
            elif name not in wanted:
                reason = "not in train.start_parts"
            else:
                reason = self._mismatch(part, theirs[name], tokenizers)
            if reason is None:
                taken.append(name)
                new += _copy(part, theirs[name], done)
            elif self.parts is not None and name in self.parts:
                raise ConfigError(f"train.start_parts: {name} of {self.folder} does not fit this run's model: {reason}")
            else:
                new.append(f"{name} ({reason})")
        if absent := [name for name in self.parts or () if name not in ours]:
            raise ConfigError(
                f"train.start_parts: this run's model has no part {absent[0]}; its parts are {', '.join(ours)}"
            )
        if not taken:
            raise ConfigError(
                f"no part of the model in train.start={self.folder}, {self.kind.noun}, fits this run's model: "
                f"{'; '.join(new)}"
            )
        transfer = Transfer(tuple(taken), tuple(new), tuple(name for name in theirs if name not in taken))
        info(f"train.start={self.folder}: {transfer}.")
        self._warn_of_settings(transfer, settings)
        return transfer

    def _mismatch(self, ours: Part, theirs: Part, tokenizers: Tokenizers | None) -> str | None:
        """Return the reason why a part cannot be copied; None if it can."""
        if ours.vocabulary is not None and (reason := self._other_vocabulary(ours, tokenizers)):
            return reason
        first = 0 if ours.vocabulary is None else 1  # new tags add rows to the parts of a vocabulary
        for name, tensor in ours.tensors.items():
            stored = theirs.tensors.get(name, tensor)
            if stored.shape[first:] != tensor.shape[first:]:
                return f"another shape: {name} is {tuple(stored.shape)} there and {tuple(tensor.shape)} here"
        if ours.vocabulary is not None:
            return None
        for one, other, where in ((ours, theirs, "here"), (theirs, ours, "there")):
            if one.tensors.keys() <= other.tensors.keys():
                return None
            missing = next(name for name in one.tensors if name not in other.tensors)
            reason = f"another architecture: only the model {where} has {missing}"
        return reason

    def _other_vocabulary(self, part: Part, tokenizers: Tokenizers | None) -> str | None:
        assert part.vocabulary is not None
        if tokenizers is None or self.loaded.text is None:
            return "no vocabulary to compare"
        theirs: Tokenizer = getattr(self.loaded.text, part.vocabulary)
        ours: Tokenizer = getattr(tokenizers, part.vocabulary)
        extended = ours.tags[: len(theirs.tags)] == theirs.tags and len(ours.tags) > len(theirs.tags)
        if (theirs.with_tags(ours.tags) if extended else theirs).fingerprint != ours.fingerprint:
            return f"another {part.vocabulary} vocabulary"
        return None

    def _warn_of_settings(self, transfer: Transfer, settings: Mapping[str, Any]) -> None:
        """Warn about settings that change what the copied parameters compute without changing their shapes."""
        theirs = flatten(dict(self.loaded.config["model"]))
        ours = flatten(dict(settings))
        sections = {name.partition(".")[0] for name in transfer.taken} | {"positions", "scale_embeddings"}
        different = [
            f"model.{key} is {ours[key]!r} here and {theirs[key]!r} there"
            for key in ours
            if key in theirs and ours[key] != theirs[key] and key.partition(".")[0] in sections
            if not any(part in _FREE for part in key.split("."))
        ]
        if different:
            warn(f"the parameters from {self.folder} were trained with other settings: {_listed(different)}")


def _copy(ours: Part, theirs: Part, done: set[int]) -> list[str]:
    """Copy values; returns a line about the parameters without a counterpart, if there are any.

    done: ids of the tensors that have been copied; tied ones occur under several names.
    """
    missing = []
    with torch.no_grad():
        for name, tensor in ours.tensors.items():
            if name not in theirs.tensors:
                missing.append(name)
            elif id(tensor) not in done:
                done.add(id(tensor))
                _copy_rows(name, tensor, theirs.tensors[name])
    if not missing:
        return []
    return [f"{len(missing)} of {len(ours.tensors)} parameters of {ours.name} ({_listed(missing)})"]


def _copy_rows(name: str, tensor: Tensor, values: Tensor) -> None:
    """Copy values into a tensor that may have additional rows, which get the mean of the copied ones."""
    if not tensor.dim():
        tensor.copy_(values)
        return
    tensor[: len(values)].copy_(values)
    if len(tensor) > len(values):
        if not tensor.requires_grad:
            raise ConfigError(
                f"new tags need trainable embeddings, but {name} is frozen: set model.embeddings.frozen=false, or "
                "remove the tags that the model of train.start does not have"
            )
        tensor[len(values) :] = values.mean(0)


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    more = [f"and {len(found) - _MOST_LISTED} more"] if len(found) > _MOST_LISTED else []
    return ", ".join([*found[:_MOST_LISTED], *more])
