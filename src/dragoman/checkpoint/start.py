"""`Start`: a model folder whose parts initialise the parts of a run's model."""

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
from dragoman.models.kinds.registry import ModelKind, kind_of
from dragoman.models.parts import Part, parts_of
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import Tokenizers

_MAX_LISTED = 5
_UNCHECKED = ("dropout", "preset", "layers", "embeddings")
"""Settings of a part that may differ without a warning, because they affect only training or also change shapes."""

_SHARED = {"positions", "scale_embeddings", "start_symbol", "excluded_tokens"}
"""Settings that affect several parts."""


@dataclass(frozen=True)
class Transfer:
    """A report of the parts that were copied from a folder's model to a run's model.

    copied: parts of the run's model that were copied. new: parts, or parameters of copied parts, that keep their
    initial values, each with the reason. unused: parts of the folder's model that were not copied.
    """

    copied: tuple[str, ...]
    new: tuple[str, ...]
    unused: tuple[str, ...]

    def __str__(self) -> str:
        others = {"New": self.new, "Not used": self.unused}
        lists = [f"{title}: {'; '.join(parts)}" for title, parts in others.items() if parts]
        return ". ".join([f"copied {', '.join(self.copied)}", *lists])


@dataclass(frozen=True)
class Start:
    """A loaded model folder whose parameters initialise a model.

    parts: names of the parts to copy; None for all parts that fit.
    """

    folder: Path
    loaded: LoadedModel
    parts: tuple[str, ...] | None = None

    @classmethod
    def load(cls, folder: Path, parts: Sequence[str] | None = None) -> "Start":
        """Load a folder. Raises ModelError as `load_model_folder` does, and ConfigError for an unknown part."""
        loaded = load_model_folder(folder, torch.device("cpu"))
        model_parts = parts_of(loaded.model)
        if unknown := [name for name in parts or () if name not in model_parts]:
            raise ConfigError(
                f"train.start_parts: the model in {folder} has no part {unknown[0]}. Its parts are "
                f"{', '.join(model_parts)}"
            )
        return cls(folder, loaded, None if parts is None else tuple(parts))

    @property
    def kind(self) -> ModelKind:
        """The kind of the folder's model."""
        return kind_of(self.loaded.config["model"])

    def fill(
        self,
        model: nn.Module,
        tokenizers: Tokenizers | None,
        settings: Mapping[str, Any],
        excluded: Mapping[str, str] | None = None,
    ) -> Transfer:
        """Copy parameters into a run's model and return a report.

        All parts that fit are copied, or only the parts that `self.parts` names. A part fits if all parameters of the
        run's part, or all parameters of the folder's part, have a counterpart with the same name and shape in the other
        part. For example, a decoder without cross-attention fits a decoder with cross-attention. Rows of a vocabulary
        fit only if the vocabularies are equal, except that the run's vocabulary may have additional tags; their rows
        are initialised with the mean of the others.

        tokenizers: the run's tokenizers. settings: settings of the run's model; a warning lists those that differ from
        the folder's. excluded: names of parts that are not copied, each with the reason. Raises ConfigError if no part
        fits, a named part does not fit, or the row of a new tag is frozen.
        """
        run_parts, folder_parts = parts_of(model), parts_of(self.loaded.model)
        selected = folder_parts.keys() if self.parts is None else set(self.parts)
        copied, new, copied_ids = [], [], set[int]()
        for name, part in run_parts.items():
            reason: str | None
            if name not in folder_parts:
                reason = "not in the folder"
            elif name not in selected:
                reason = "not in train.start_parts"
            elif excluded and name in excluded:
                reason = excluded[name]
            else:
                reason = self._mismatch(part, folder_parts[name], tokenizers)
            if reason is None:
                copied.append(name)
                new += _copy(part, folder_parts[name], copied_ids)
            elif self.parts is not None and name in self.parts:
                raise ConfigError(f"train.start_parts: {name} of {self.folder} does not fit this run's model: {reason}")
            else:
                new.append(f"{name} ({reason})")
        if missing := [name for name in self.parts or () if name not in run_parts]:
            raise ConfigError(
                f"train.start_parts: this run's model has no part {missing[0]}. Its parts are {', '.join(run_parts)}"
            )
        if not copied:
            raise ConfigError(
                f"no part of the model in train.start={self.folder}, {self.kind.noun}, fits this run's model: "
                f"{'; '.join(new)}"
            )
        transfer = Transfer(tuple(copied), tuple(new), tuple(name for name in folder_parts if name not in copied))
        info(f"train.start={self.folder}: {transfer}.")
        self._warn_of_settings(transfer, settings)
        return transfer

    def _mismatch(self, run_part: Part, folder_part: Part, tokenizers: Tokenizers | None) -> str | None:
        """Return the reason why a part cannot be copied, or None if it can be copied."""
        if run_part.vocabulary is not None and (reason := self._vocabulary_mismatch(run_part, tokenizers)):
            return reason
        first = 0 if run_part.vocabulary is None else 1  # the first dimension of a vocabulary's parts includes new tags
        for name, tensor in run_part.tensors.items():
            stored = folder_part.tensors.get(name, tensor)
            if stored.shape[first:] != tensor.shape[first:]:
                return (
                    f"different shape: {name} has the shape {tuple(stored.shape)} in the folder and "
                    f"{tuple(tensor.shape)} in this run"
                )
        if run_part.vocabulary is not None:
            return None
        for one, other, owner in (
            (run_part, folder_part, "this run's model"),
            (folder_part, run_part, "the folder's model"),
        ):
            if one.tensors.keys() <= other.tensors.keys():
                return None
            missing = next(name for name in one.tensors if name not in other.tensors)
            reason = f"different architecture: only {owner} has {missing}"
        return reason

    def _vocabulary_mismatch(self, part: Part, tokenizers: Tokenizers | None) -> str | None:
        assert part.vocabulary is not None
        if tokenizers is None or self.loaded.text is None:
            return "no vocabulary to compare"
        stored: Tokenizer = getattr(self.loaded.text, part.vocabulary)
        own: Tokenizer = getattr(tokenizers, part.vocabulary)
        has_new_tags = own.tags[: len(stored.tags)] == stored.tags and len(own.tags) > len(stored.tags)
        if (stored.with_tags(own.tags) if has_new_tags else stored).fingerprint != own.fingerprint:
            return f"different {part.vocabulary} vocabulary"
        return None

    def _warn_of_settings(self, transfer: Transfer, settings: Mapping[str, Any]) -> None:
        """Warn about settings that change the function of the copied parameters without changing their shapes."""
        stored = flatten(dict(self.loaded.config["model"]))
        own = flatten(dict(settings))
        sections = {name.partition(".")[0] for name in transfer.copied} | _SHARED
        differences = [
            f"model.{key} is {own[key]!r} in this run and {stored[key]!r} in the folder"
            for key in own
            if key in stored and own[key] != stored[key] and key.partition(".")[0] in sections
            if not any(part in _UNCHECKED for part in key.split("."))
        ]
        if differences:
            warn(f"the parameters from {self.folder} were trained with different settings: {_abridge(differences)}")


def _copy(run_part: Part, folder_part: Part, copied_ids: set[int]) -> list[str]:
    """Copy a part's values, and return a text about its parameters without a counterpart, if there are any.

    copied_ids: ids of the tensors already copied, because tied tensors occur under several names.
    """
    missing = []
    with torch.no_grad():
        for name, tensor in run_part.tensors.items():
            if name not in folder_part.tensors:
                missing.append(name)
            elif id(tensor) not in copied_ids:
                copied_ids.add(id(tensor))
                _copy_rows(name, tensor, folder_part.tensors[name])
    if not missing:
        return []
    return [f"{len(missing)} of {len(run_part.tensors)} parameters of {run_part.name} ({_abridge(missing)})"]


def _copy_rows(name: str, tensor: Tensor, values: Tensor) -> None:
    """Copy `values` into the first rows of a tensor. Any further rows are set to the mean of the copied rows."""
    if not tensor.dim():
        tensor.copy_(values)
        return
    tensor[: len(values)].copy_(values)
    if len(tensor) > len(values):
        if not tensor.requires_grad:
            raise ConfigError(
                f"new tags need trainable embeddings, but {name} is frozen: set model.embeddings.frozen=false, or "
                "remove the tags that the model in train.start does not have"
            )
        tensor[len(values) :] = values.mean(0)


def _abridge(items: Iterable[str]) -> str:
    """Join the first items, and add the number of the others."""
    items = list(items)
    more = [f"and {len(items) - _MAX_LISTED} more"] if len(items) > _MAX_LISTED else []
    return ", ".join([*items[:_MAX_LISTED], *more])
