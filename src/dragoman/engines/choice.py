"""The choice of an engine: by name, or the fastest engine that supports the model."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import torch

from dragoman.base.errors import ConfigError, DragomanError, ModelError
from dragoman.base.log import info, warn
from dragoman.base.packages import check_import
from dragoman.data.workers import available_cores
from dragoman.engines.native.embeddings import UnsupportedModelError
from dragoman.engines.native.packing import DivergedModelError
from dragoman.engines.registry import ENGINES, MODELS, Ability, EngineKind, EngineSettings, Precision, Service

AUTOMATIC = "auto"
"""The name of the choice of an engine, or of its precision, by the model and the machine."""

_ACTIVITIES: dict[Ability, str] = {"translate": "translating", "predict": "predicting", "generate": "generating"}
_DEVICES = {"cpu": "the CPU", "cuda": "a GPU"}


@dataclass(frozen=True, kw_only=True)
class EngineChoice:
    """A user's choice of an engine.

    name: auto, or the name of an engine. precision: a `Precision`; None for the default of the engine; auto for the
    same, except that an engine with `Service.choose_precision` chooses it for `folder`, the model's folder, on a CPU.
    threads: the maximum number of threads of engines other than PyTorch; None for one per processor.
    """

    name: str = AUTOMATIC
    precision: str | None = None
    threads: int | None = None
    folder: Path | None = None

    @property
    def requested_precision(self) -> Precision | None:
        """The precision that the user named, if any. Raises ConfigError if it is unknown."""
        if self.precision in (None, AUTOMATIC):
            return None
        if self.precision in get_args(Precision):
            return self.precision  # type: ignore[return-value]
        raise ConfigError(f"unknown precision '{self.precision}': use auto, {', '.join(get_args(Precision))}")

    @property
    def thread_count(self) -> int:
        """The maximum number of threads."""
        return self.threads or default_threads()


class EngineTask(NamedTuple):
    """What an engine is chosen for. kind: the name of the kind of model. is_ensemble: whether there are several."""

    ability: Ability
    kind: str = ""
    is_ensemble: bool = False

    def refusal(self, engine: EngineKind) -> str | None:
        """Return the reason why an engine cannot have this task; None if it may support the model."""
        service = engine.serves.get(self.ability)
        if service is None:
            return f"the {engine.name} engine does not serve {MODELS[self.ability]}"
        own = next((each.name for each in ENGINES if self.kind in each.model_kinds), None)
        if own not in (None, engine.name) or (engine.model_kinds and self.kind not in engine.model_kinds):
            return f"the {engine.name} engine does not compute models of the kind {self.kind}"
        return None


class Chosen(NamedTuple):
    """The engine that was chosen. built: what `Service.build` has returned."""

    kind: EngineKind
    service: Service
    precision: Precision
    built: Any


@dataclass(frozen=True)
class ModelEngine:
    """An engine that computes the outputs of a model that predicts labels, or of a language model.

    name: of the engine. precision: of its matrix products. model: the model, or a module with the same outputs.
    """

    name: str
    precision: str
    model: Any

    def of_task(self, name: str) -> "ModelEngine":
        """Return the engine for one task of a model with several heads. Raises KeyError for an unknown task."""
        return replace(self, model=self.model.of_task(name))


def model_engine(ability: Ability, model: Any, choice: EngineChoice) -> ModelEngine:
    """Return the engine for a model that predicts labels, or for a language model, on the device of its parameters.

    Engines have as many threads as PyTorch at the time of this call. Raises the same errors as `choose_engine`.
    """
    device = next(model.parameters()).device
    threads = choice.threads or torch.get_num_threads()
    chosen = choose_engine(EngineTask(ability), model, device, replace(choice, threads=threads))
    return ModelEngine(chosen.kind.name, chosen.precision, chosen.built)


def choose_engine(task: EngineTask, model: Any, device: torch.device, choice: EngineChoice) -> Chosen:
    """Return the engine with the name of the choice or, for `auto`, the fastest installed one that supports the model.

    model: as in `Service.build`. With `auto`, an engine that fails for any reason except parameters that are not finite
    is skipped, and one message lists the reasons. Raises ConfigError for an unknown name or precision, and for a
    precision, a device or an ability that the named engine does not support, and the same errors as `Service.build` for
    an engine that is chosen by name.
    """
    requested = choice.requested_precision
    if choice.name != AUTOMATIC:
        kind = find_engine(choice.name, task)
        with _advice(task):
            return _build(kind, task, model, device, choice)
    candidates = supporting(task)
    last = candidates[-1]
    reasons: list[str] = []
    has_failed = False
    for kind in candidates:
        service = kind.serves[task.ability]
        wanted = requested or service.default
        is_elsewhere = not kind.computes_on(device) and requested in (None, *last.serves[task.ability].precisions)
        if wanted not in service.automatic or (kind is not last and is_elsewhere):
            continue
        try:
            if kind.package is not None:
                check_import(kind.package)
            chosen = _build(kind, task, model, device, choice)
        except DivergedModelError:
            raise
        except (ConfigError, ModelError) as error:
            if kind is last and wanted == service.default:
                raise
            reasons.append(f"{kind.name}: {error}")
        except Exception as error:  # of a compiler, a file system, or another library
            if kind is last and wanted == service.default:
                raise
            has_failed = True
            reasons.append(f"{kind.name}: {error if isinstance(error, DragomanError) else one_line(error)}")
        else:
            if reasons:
                number_format = f" in {chosen.precision}" if kind is last else ""
                title = "PyTorch" if kind.name == "torch" else f"the {kind.name} engine"
                message = f"{_ACTIVITIES[task.ability]} with {title}{number_format}. {'; '.join(reasons)}"
                (warn if has_failed else info)(message)
            return chosen
    explained = f". {'; '.join(reasons)}" if reasons else ""
    warn(f"computing in float32, because no engine can compute in {requested}{explained}")
    return _build(last, task, model, device, replace(choice, precision=None))


def supporting(task: EngineTask) -> list[EngineKind]:
    """Return the engines that may support the models of a task, the fastest first. Raises ConfigError if none does."""
    if not (found := [kind for kind in ENGINES if task.refusal(kind) is None]):
        raise ConfigError(f"no engine serves this model: register one that serves {MODELS[task.ability]}")
    return found


def find_engine(name: str, task: EngineTask) -> EngineKind:
    """Return the engine with a name. Raises ConfigError for an unknown engine and for one that cannot have the task."""
    found = next((kind for kind in ENGINES if kind.name == name), None)
    reason = f"unknown engine '{name}'" if found is None else task.refusal(found)
    if found is None or reason is not None:
        raise ConfigError(f"{reason}: use {AUTOMATIC}, {', '.join(kind.name for kind in supporting(task))}")
    check_ensembles(found, task)
    return found


def check_ensembles(engine: EngineKind, task: EngineTask) -> None:
    """Raise ConfigError if the model is an ensemble, and the engine does not support ensembles."""
    if task.is_ensemble and not engine.serves[task.ability].ensembles:
        raise ConfigError(f"the {engine.name} engine does not support ensembles: use --engine torch")


def serves(name: str, ability: Ability) -> bool:
    """Return whether the engine with a name serves models with an ability. Any name but those of engines does."""
    return all(kind.name != name or ability in kind.serves for kind in ENGINES)


def default_threads() -> int:
    """Return PyTorch's number of threads if OMP_NUM_THREADS is set, else the number of available processors."""
    return torch.get_num_threads() if "OMP_NUM_THREADS" in os.environ else available_cores()


def one_line(error: Exception) -> str:
    """Return the type and the first line of an error raised by another library."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or ['no message'])[0]}"


def _build(kind: EngineKind, task: EngineTask, model: Any, device: torch.device, choice: EngineChoice) -> Chosen:
    """Return an engine in the requested precision, or in the one that it chooses for a model folder."""
    check_ensembles(kind, task)
    service, precision, reason = kind.serves[task.ability], choice.requested_precision, None
    if not kind.computes_on(device):
        remedy = (kind.devices or ("cpu",))[0]
        on = " and ".join(_DEVICES.get(each, each) for each in kind.devices or ())
        raise ConfigError(f"the {kind.name} engine runs on {on}, not on {device}: use --device {remedy}")
    is_automatic = choice.precision == AUTOMATIC and choice.folder is not None and device.type == "cpu"
    if is_automatic and service.choose_precision is not None:
        assert choice.folder is not None
        precision, reason = service.choose_precision(choice.folder)
    precision = precision or service.default
    if precision not in service.precisions:
        others = [each.name for each in supporting(task) if precision in each.serves[task.ability].precisions]
        choices = f"choose the engine {', '.join(others)}, or --precision float32" if others else "use float32"
        raise ConfigError(f"the {kind.name} engine does not support {precision}: {choices}")
    built = service.build(model, EngineSettings(device, precision, choice.thread_count))
    if reason is not None:
        info(f"Precision {reason}")
    return Chosen(kind, service, precision, built)


@contextmanager
def _advice(task: EngineTask) -> Iterator[None]:
    """Recommend the reference engine if a named engine does not support a model."""
    try:
        yield
    except UnsupportedModelError as error:
        raise UnsupportedModelError(f"{error}: use --engine {supporting(task)[-1].name}") from None
