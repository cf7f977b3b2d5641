"""`load` opens a model folder of any kind. `require` returns a loaded object for one of its abilities."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, overload

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.log import info
from dragoman.checkpoint.folder import folder_kind
from dragoman.checkpoint.systems import NEURAL, system_folders, system_record
from dragoman.engines.choice import AUTOMATIC
from dragoman.exchange.ctranslate2.folder import is_exported
from dragoman.inference.abilities import (
    PROTOCOLS,
    LoadedObject,
    SupportsAlign,
    SupportsClassifyNodes,
    SupportsGenerate,
    SupportsInspect,
    SupportsLines,
    SupportsPredict,
    SupportsScore,
    SupportsTranslate,
    missing_members,
)
from dragoman.models.kinds.registry import TRANSLATION_MODEL, ModelKind

Folders = str | Path | Sequence[str | Path]
"""A model folder, or several folders as an ensemble."""

Model = Folders | LoadedObject
"""A model, given by its folders or loaded."""

_NONE: Mapping[str, object] = MappingProxyType({})


def load(folder: Folders, device: str | None = None, *, system: str | None = None, **options: object) -> Any:
    """Load a model of any kind, also of one that is defined outside the package.

    The object is a `Translator`, a `LanguageModel`, a `Predictor`, a `NodePredictor` or a `WordAligner`, or that of the
    kind's own loader. Its attribute `kind` is the record of its kind, whose `abilities` state what it can do; each
    ability is a protocol in `dragoman.inference.abilities`.

    folder: a model folder, a folder written by `dragoman export`, or several model folders as an ensemble. device: cpu,
    cuda or cuda:N (default: a GPU if there is one). system: the system of the folder, such as neural or phrase_based,
    if it has several (`Meta.systems`; default: the best one on the validation pairs); an ensemble always consists of
    the folders' own models. options: further arguments of the `load` of the object's class, such as `engine`,
    `precision`, `threads` or `task`.

    Raises ModelError if a path is not a model folder, if the folder is damaged, and if its kind's module has not been
    imported; ConfigError for an unknown system, for an option that the kind does not have, for models that form no
    ensemble, and if the loaded object lacks a method that its record promises; and the errors of the object's class.

    >>> import dragoman
    >>> translator = dragoman.load("runs/ende")
    >>> translator.kind.name, sorted(translator.kind.abilities)[:3]
    ('encoder_decoder', ['align', 'ensemble', 'export'])
    >>> translator.translate(["The dog sleeps."])
    ['...']
    """
    given = _first(folder)
    chosen = system_folders(folder, system)
    first = chosen[0]
    kind = kind_of_folder(first)
    if system is None and first != given:
        record = system_record(given)
        title = first if record is None else f"its {record.title}"
        info(f"{given} translates with {title}, the best on its validation pairs (see --system)")
    takes_system = "system" in kind.options
    if len(chosen) == 1:
        target, named = (given, {"system": system}) if takes_system else (first, {})
        return _keeping_promises(kind.load(target, device, **named, **options), kind, first)
    if takes_system:
        options["system"] = NEURAL  # the model of each folder itself
    for each in chosen:
        if "ensemble" not in (other := kind_of_folder(each)).abilities:
            raise ModelError(f"{each} {other.refusal('ensemble')}")
    return _keeping_promises(kind.load(chosen, device, **options), kind, first)


@overload
def model_for(
    ability: Literal["translate"], model: Model, device: str | None = ..., **options: Any
) -> SupportsTranslate: ...
@overload
def model_for(
    ability: Literal["generate"], model: Model, device: str | None = ..., **options: Any
) -> SupportsGenerate: ...
@overload
def model_for(ability: Literal["score"], model: Model, device: str | None = ..., **options: Any) -> SupportsScore: ...
@overload
def model_for(
    ability: Literal["predict"], model: Model, device: str | None = ..., **options: Any
) -> SupportsPredict: ...
@overload
def model_for(
    ability: Literal["classify_nodes"], model: Model, device: str | None = ..., **options: Any
) -> SupportsClassifyNodes: ...
@overload
def model_for(ability: Literal["align"], model: Model, device: str | None = ..., **options: Any) -> SupportsAlign: ...
@overload
def model_for(
    ability: Literal["inspect"], model: Model, device: str | None = ..., **options: Any
) -> SupportsInspect: ...
def model_for(
    ability: str,
    model: Model,
    device: str | None = None,
    *,
    system: str | None = None,
    preferred: Mapping[str, object] = _NONE,
    **options: object,
) -> Any:
    """Return a model for one of its abilities: a loaded one, or that of a folder, which is loaded as `load` does.

    system: as in `load`; by default the best system translates, and the folder's own model has all other abilities.
    preferred: options that are left out for a kind that has no such choice, such as `engine`. A loaded model has none
    of the options. Raises ModelError if the kind lacks the ability, before the model is read, and the errors of `load`.
    """
    if isinstance(model, LoadedObject):
        return require(model, ability)  # type: ignore[call-overload]
    if ability != "translate" and system is None:
        system = NEURAL
    first = _first(model)
    kind = kind_of_folder(system_folders(model, system)[0])
    if ability not in kind.abilities:
        raise ModelError(f"{first} {kind.refusal(ability)}")
    chosen = {name: each for name, each in preferred.items() if name in kind.options}
    return load(model, device, system=system, **chosen, **options)


def translator_of(
    model: Model,
    device: str | None = None,
    *,
    needs: type = SupportsLines,
    engine: str = AUTOMATIC,
    precision: str | None = AUTOMATIC,
    threads: int | None = None,
    **options: object,
) -> SupportsLines:
    """Return a model that translates lines, as files and documents need it, given its folders or loaded.

    needs: the protocol that it must have, `SupportsLines` or one that extends it. engine, precision, threads: as in
    `Translator.load`. A kind without these choices refuses an engine or a precision that is named, and ignores threads.
    options: further arguments of the `load` of the object's class. Raises ConfigError if the model translates texts,
    but lacks a member of the protocol, and the errors of `model_for`.
    """
    choices = {"engine": engine, "precision": precision, "threads": threads}
    named = {name for name in ("engine", "precision") if choices[name] not in (AUTOMATIC, None)}
    preferred = {name: each for name, each in choices.items() if name not in named}
    required = {name: choices[name] for name in named}
    found = model_for("translate", model, device, preferred=preferred, **required, **options)
    if missing := missing_members(found, needs):
        raise ConfigError(
            f"{type(found).__name__} translates texts, but this needs a translator with {', '.join(missing)}: let the "
            f"loader of the kind {found.kind.name!r} return a `Translator` with an engine of your own, or add what is "
            "missing"
        )
    return found  # type: ignore[return-value]


@overload
def require(model: LoadedObject, ability: Literal["translate"], name: object = ...) -> SupportsTranslate: ...
@overload
def require(model: LoadedObject, ability: Literal["generate"], name: object = ...) -> SupportsGenerate: ...
@overload
def require(model: LoadedObject, ability: Literal["score"], name: object = ...) -> SupportsScore: ...
@overload
def require(model: LoadedObject, ability: Literal["predict"], name: object = ...) -> SupportsPredict: ...
@overload
def require(model: LoadedObject, ability: Literal["classify_nodes"], name: object = ...) -> SupportsClassifyNodes: ...
@overload
def require(model: LoadedObject, ability: Literal["align"], name: object = ...) -> SupportsAlign: ...
@overload
def require(model: LoadedObject, ability: Literal["inspect"], name: object = ...) -> SupportsInspect: ...
def require(model: LoadedObject, ability: str, name: object = "the model") -> Any:
    """Return a loaded object as one with an ability. Raises ModelError if its kind lacks it. name: for the message."""
    if ability not in model.kind.abilities:
        raise ModelError(f"{name} {model.kind.refusal(ability)}")
    return model


def kind_of(model: Model) -> ModelKind:
    """Return the kind of a loaded model, or of the first folder. Raises ModelError as `folder_kind` does."""
    return model.kind if isinstance(model, LoadedObject) else kind_of_folder(_first(model))


def _first(folder: Folders) -> Path:
    folders = [folder] if isinstance(folder, str | Path) else list(folder)
    if not folders:
        raise ConfigError("there is no model to load: give at least one model folder")
    return Path(folders[0])


def kind_of_folder(folder: Path) -> ModelKind:
    """Return the kind of a model folder or of an exported model. Raises ModelError as `folder_kind` does."""
    return TRANSLATION_MODEL if is_exported(folder) else folder_kind(folder)


def _keeping_promises(model: Any, kind: ModelKind, folder: Path) -> Any:
    """Return a loaded object. Raises ConfigError if it lacks a method of an ability that its record names."""
    if not isinstance(model, LoadedObject) or model.kind != kind:
        raise ConfigError(
            f"{folder}: the loader of the kind {kind.name!r} returned {type(model).__name__}, whose attribute `kind` "
            "is not the record of this kind: set it"
        )
    for ability in sorted(kind.abilities & PROTOCOLS.keys()):
        if missing := missing_members(model, PROTOCOLS[ability]):
            raise ConfigError(
                f"{folder}: the record of the kind {kind.name!r} promises {ability!r}, but {type(model).__name__} has "
                f"no {' and no '.join(missing)}: add what is missing, or remove the ability from the record"
            )
    return model
