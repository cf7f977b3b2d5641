"""`Workspace`: the models and training runs that views show, loaded once and found by their names."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from dragoman.base.errors import ConfigError, DataError
from dragoman.checkpoint.folder import CONFIG
from dragoman.checkpoint.names import short_names
from dragoman.checkpoint.store import checkpoints_by_step
from dragoman.inference.abilities import SupportsAlign, SupportsInspect
from dragoman.inference.load import kind_of_folder, model_for
from dragoman.inference.subject import Subject, SubjectSettings
from dragoman.inference.translation.alignment import Aligner
from dragoman.inference.translation.result import Translation
from dragoman.inspection.alignments import (
    ATTENTION,
    NO_ATTENTION,
    AlignmentComparison,
    compare_alignments,
)
from dragoman.inspection.inspect import inspection_of, open_visible
from dragoman.inspection.inspection import Inspection
from dragoman.inspection.translators import InspectedTranslator, inspected_translator
from dragoman.models.kinds.registry import ModelKind
from dragoman.training.progress.run_log import Record, RunLog

Result = TypeVar("Result")

LOG = "log.jsonl"
"""The log of a training run in its folder."""

_KEPT = 16
"""Number of results that are kept, so that they are not computed again for each setting and view of a sentence."""

_CHECKPOINTS = 4
"""Number of checkpoints that are kept in memory."""

_STEP = "@"
"""Separates the name of a run from the step of a checkpoint in the name of a model, such as `ende@500`."""


@dataclass(frozen=True)
class WorkspaceModel:
    """A loaded model. loaded: searches with the fastest engine; everything else is computed with PyTorch.

    run: the name of the run, without the step of a checkpoint. step: that of a checkpoint; None for the model itself.
    """

    name: str
    folder: Path
    loaded: SupportsInspect
    run: str
    step: int | None = None

    @property
    def kind(self) -> ModelKind:
        """The record of the model's kind."""
        return self.loaded.kind

    @property
    def translator(self) -> InspectedTranslator:
        """The model as a translator. Raises ModelError if it does not translate."""
        return inspected_translator(self.loaded, self.name)

    def languages(self) -> tuple[str | None, str | None]:
        """Return the source and target language, None where they are unknown."""
        if "translate" not in self.kind.abilities:
            return None, None
        meta = self.translator.meta
        return meta.source_language, meta.target_language


class Workspace:
    """Opens folders of models, runs and word aligners. A run without a model has only its curves and checkpoints."""

    def __init__(self, folders: Sequence[Path], device: str | None = None) -> None:
        """Load the model of each folder. device: as in `Translator.load`.

        Raises ModelError for a folder of another kind, and for a kind of model without attention.
        """
        paths = [Path(folder) for folder in folders]
        self._folders = dict(zip(short_names(paths), paths, strict=True))
        self.runs = {name: path for name, path in self._folders.items() if (path / LOG).is_file()}
        self._aligners = {name: path for name, path in self._folders.items() if _is_aligner(path)}
        self.aligners: Mapping[str, SupportsAlign] = {
            name: model_for("align", path) for name, path in self._aligners.items()
        }
        self.models = {
            name: _load(name, path, device)
            for name, path in self._folders.items()
            if name not in self._aligners and (name not in self.runs or (path / CONFIG).is_file())
        }
        self._device, self._lock, self._logs = device, RLock(), dict[str, RunLog]()
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._load_checkpoint = lru_cache(_CHECKPOINTS)(self._load_step)

    def model(self, name: str = "") -> WorkspaceModel:
        """Return a model, or a checkpoint of a run for a name such as `ende@500`.

        name: empty for the first model, or the last checkpoint of the first run if no run has a model yet. Raises
        ConfigError if there is no such model or checkpoint, and the errors of `open_visible` for a checkpoint.
        """
        if not name:
            started = (f"{run}{_STEP}{steps[-1]}" for run in self.runs if (steps := self.checkpoints(run)))
            if not (name := next(iter(self.models), next(started, ""))):
                raise ConfigError("no model is loaded: pass the folder of a model")
        found = _find(name, {each.name: each.folder for each in self.models.values()})
        if found is not None:
            return self.models[found]
        run, separator, step = name.rpartition(_STEP)
        folder = _find(run, self._folders)
        if separator and folder is not None and step.isascii() and step.isdecimal():
            with self._lock:
                return self._load_checkpoint(folder, int(step))
        if known := self.checkpoints(_find(name, self._folders) or ""):
            listed = ", ".join(f"{name}{_STEP}{step}" for step in known)
            raise ConfigError(f"{name} has no model yet: choose one of its checkpoints, {listed}")
        loaded = f"the loaded models are {', '.join(self.models)}" if self.models else "no model is loaded"
        raise ConfigError(f"there is no model {name!r}: {loaded}")

    def checkpoints(self, name: str) -> list[int]:
        """Return the steps of the checkpoints that a run has now, in rising order; empty for other folders."""
        return list(checkpoints_by_step(self._folders[name])) if name in self._folders else []

    def run(self, name: str) -> Path:
        """Return the folder of a run. Raises ConfigError if there is no such run."""
        found = _find(name, self.runs)
        if found is None:
            known = f"the runs are {', '.join(self.runs)}" if self.runs else "no folder has a log.jsonl"
            raise ConfigError(f"there is no run {name!r}: {known}")
        return self.runs[found]

    def records(self, name: str) -> list[Record]:
        """Return the records in the log of a run. Only what was appended since the last call is read.

        Raises ConfigError if there is no such run, and DataError if its log cannot be read.
        """
        log = self.run(name) / LOG
        try:
            with self._lock:
                if name in self._logs:
                    self._logs[name].update()
                else:
                    self._logs[name] = RunLog(log)
                return self._logs[name].records
        except OSError as error:
            raise DataError(f"cannot read {log}: {error.strerror}") from None

    def subject(self, model: str, source: str, target: str, to: str) -> Subject:
        """Return the output of a model for a text: the same for all views, whatever heads they switch off.

        target: empty for the model's own translation. to: empty for a model with one target language. Raises the errors
        of `SupportsInspect.subject`.
        """
        opened = self.model(model)
        settings = SubjectSettings(target=target or None, to=to or None)
        key = ("subject", opened.name, source, target, to)
        return self.remember(key, lambda: opened.loaded.subject(source, settings))

    def inspect(self, model: str, source: str, target: str, to: str) -> Inspection:
        """Return the attention weights of a sentence.

        Arguments and errors are those of `subject`. Also raises ConfigError for a model without attention weights.
        """
        opened = self.model(model)
        return self.remember(
            ("inspect", opened.name, source, target, to), lambda: self._inspect(opened, source, target, to)
        )

    def _inspect(self, opened: WorkspaceModel, source: str, target: str, to: str) -> Inspection:
        if (target or to) and "translate" not in opened.kind.abilities:
            raise ConfigError(f"{opened.name} is {opened.kind.noun}: leave out the target and its language")
        return inspection_of(self.subject(opened.name, source, target, to))

    def translate(self, model: str, sources: Sequence[str], to: str) -> tuple[Translation, ...]:
        """Return the best translation of each text by the model's own search.

        to: as in `inspect`. Raises ModelError for a model that does not translate, and the errors of
        `Translator.translate_nbest`.
        """
        opened, texts = self.model(model), tuple(sources)

        def compute() -> tuple[Translation, ...]:
            translator = opened.translator
            return tuple(best[0] for best in translator.translate_nbest(texts, translator.request(to=to or None)))

        return self.remember(("translate", opened.name, texts, to), compute)

    def _load_step(self, run: str, step: int) -> WorkspaceModel:
        folders = checkpoints_by_step(self._folders[run])
        if step not in folders:
            known = f"its checkpoints are {', '.join(map(str, folders))}" if folders else "it has no checkpoints"
            raise ConfigError(f"{run} has no checkpoint of step {step}: {known}")
        self._kept.clear()  # results refer to their models, which would stay in memory
        return _load(f"{run}{_STEP}{step}", folders[step], self._device, run, step)

    def align(self, model: str, source: str, target: str, to: str, others: tuple[str, ...]) -> AlignmentComparison:
        """Return the links of a sentence with its translation.

        target, to: as in `inspect`. others: the names of word aligners, and of models whose attention is compared, too.
        Raises the errors of `compare_alignments`, and ConfigError for an unknown name.
        """
        opened = self.model(model)
        key = ("align", opened.name, source, target, to, others)
        return self.remember(key, lambda: self._align(opened, source, target, to, others))

    def _align(
        self, opened: WorkspaceModel, source: str, target: str, to: str, others: tuple[str, ...]
    ) -> AlignmentComparison:
        aligners: dict[str, Aligner | SupportsAlign] = {}
        absent = []
        for other in others:
            if (found := _find(other, self._aligners)) is not None:
                aligners[found] = self.aligners[found]
                continue
            try:
                model = self.model(other)
            except ConfigError:
                known = ", ".join([*self.aligners, *self.models])
                raise ConfigError(f"there is no word aligner or model {other!r}: {known} are open") from None
            aligner = model.translator.attention_aligner(model.translator.request(to=to or None).tags)
            if aligner is None:
                absent.append(f"{model.name}: {NO_ATTENTION}")
            else:
                aligners[other_attention(model.name)] = aligner
        settings = SubjectSettings(target=target or None, to=to or None)
        found_links = compare_alignments(opened.translator, source, settings, aligners=aligners)
        return replace(found_links, absent=(*found_links.absent, *absent))

    def remember(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """Return the result of a computation. The latest results are kept, and are not computed again.

        key: identifies the computation, with the name of its model and all settings.
        """
        with self._lock:
            result: Result = self._kept[key] if key in self._kept else compute()
            self._kept[key] = result
            self._kept.move_to_end(key)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return result


def other_attention(model: str) -> str:
    """Return the name of the links by the attention of a further model."""
    return f"{ATTENTION} of {model}"


def _is_aligner(folder: Path) -> bool:
    """Return whether a folder has a model that only aligns words."""
    return (folder / CONFIG).is_file() and {"align"} == kind_of_folder(folder).abilities - {"export"}


def _find(name: str, folders: Mapping[str, Path]) -> str | None:
    """Return the key of a folder, by its key or by the end of its path, if only one folder has this end."""
    if name in folders:
        return name
    ends = tuple(name.split("/"))
    found = [key for key, folder in folders.items() if folder.absolute().parts[-len(ends) :] == ends]
    return found[0] if len(found) == 1 else None


def _load(name: str, folder: Path, device: str | None, run: str = "", step: int | None = None) -> WorkspaceModel:
    return WorkspaceModel(name, folder, open_visible(folder, device, engine="auto"), run or name, step)
