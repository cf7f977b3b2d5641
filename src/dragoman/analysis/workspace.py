"""`Workspace`: the models and training runs that views show, loaded once and found by their names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from threading import RLock

from dragoman.alignment.word_aligner import WordAligner
from dragoman.analysis.alignments import (
    ATTENTION,
    NO_ATTENTION,
    AlignmentComparison,
    attention_aligner,
    compare_alignments,
)
from dragoman.analysis.loading import load_model
from dragoman.analysis.subject import Loaded, SubjectSettings
from dragoman.base.errors import ConfigError, DataError, ModelError
from dragoman.checkpoint.folder import CONFIG, folder_kind
from dragoman.checkpoint.names import short_names
from dragoman.exchange.ctranslate2.folder import check_model_kind, is_exported
from dragoman.inspect.inspection import Inspection
from dragoman.inspect.run_log import Record, RunLog
from dragoman.models.kinds import WORD_ALIGNER, ModelKind
from dragoman.translation.alignment import Aligner
from dragoman.translation.translator import Translator

LOG = "log.jsonl"
"""The log of a training run in its folder."""

_INSPECTIONS = 8
"""Number of inspections, and of alignments, that are kept, so that they are not computed again for each setting."""


@dataclass(frozen=True)
class WorkspaceModel:
    """A loaded model. loaded: the model with PyTorch's engine, whose weights can be inspected."""

    name: str
    folder: Path
    kind: ModelKind
    loaded: Loaded

    @property
    def translator(self) -> Translator:
        """The model as a translator. Raises ModelError if it does not translate."""
        if isinstance(self.loaded, Translator):
            return self.loaded
        raise ModelError(f"{self.name} {self.kind.refusal('translate')}")

    def languages(self) -> tuple[str | None, str | None]:
        """Return the source and target language, None where they are unknown."""
        meta = self.loaded.meta if isinstance(self.loaded, Translator) else None
        return (meta.source_language, meta.target_language) if meta else (None, None)


class Workspace:
    """Opens folders of models, runs and word aligners. A run that has no model yet has only its curves."""

    def __init__(self, folders: Sequence[Path], device: str | None = None) -> None:
        """Load the model of each folder. device: as in `Translator.load`.

        Raises ModelError for a folder of another kind, and for a kind of model without attention.
        """
        paths = [Path(folder) for folder in folders]
        names = short_names(paths)
        self.runs = {name: path for name, path in zip(names, paths, strict=True) if (path / LOG).is_file()}
        self._aligners = {name: path for name, path in zip(names, paths, strict=True) if _is_aligner(path)}
        self.aligners = {name: WordAligner.load(path) for name, path in self._aligners.items()}
        self.models = {
            name: _load(name, path, device)
            for name, path in zip(names, paths, strict=True)
            if name not in self._aligners and (name not in self.runs or (path / CONFIG).is_file())
        }
        self._lock, self._logs = RLock(), dict[str, RunLog]()
        self._inspect = lru_cache(_INSPECTIONS)(self._inspect_sentence)
        self._align = lru_cache(_INSPECTIONS)(self._align_sentence)

    def model(self, name: str = "") -> WorkspaceModel:
        """Return a model. name: empty for the first one. Raises ConfigError if there is no such model."""
        if not self.models:
            raise ConfigError("no model is loaded: pass the folder of a model")
        if not name:
            return next(iter(self.models.values()))
        found = _find(name, {each.name: each.folder for each in self.models.values()})
        if found is None:
            raise ConfigError(f"there is no model {name!r}: the loaded models are {', '.join(self.models)}")
        return self.models[found]

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

    def inspect(self, model: str, source: str, target: str, to: str) -> Inspection:
        """Return the attention weights of a sentence, and keep those of the latest sentences.

        target: empty for the model's own translation. to: empty for a model with one target language. Raises the
        errors of `Translator.inspect`, and ConfigError for settings that the kind of model does not have.
        """
        with self._lock:
            return self._inspect(self.model(model).name, source, target, to)

    def _inspect_sentence(self, name: str, source: str, target: str, to: str) -> Inspection:
        loaded = self.models[name].loaded
        if isinstance(loaded, Translator):
            return loaded.inspect(source, target or None, to or None)
        if target or to:
            raise ConfigError(f"{name} is {self.models[name].kind.noun}: leave out the target and its language")
        return loaded.inspect(source)

    def align(self, model: str, source: str, target: str, to: str, others: tuple[str, ...]) -> AlignmentComparison:
        """Return the links of a sentence with its translation, and keep those of the latest sentences.

        target, to: as in `inspect`. others: the names of word aligners, and of models whose attention is compared, too.
        Raises the errors of `compare_alignments`, and ConfigError for an unknown name.
        """
        with self._lock:
            return self._align(self.model(model).name, source, target, to, others)

    def _align_sentence(
        self, name: str, source: str, target: str, to: str, others: tuple[str, ...]
    ) -> AlignmentComparison:
        aligners: dict[str, Aligner] = {}
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
            aligner = attention_aligner(model.translator, model.translator.request(to=to or None).tags)
            if aligner is None:
                absent.append(f"{model.name}: {NO_ATTENTION}")
            else:
                aligners[other_attention(model.name)] = aligner
        settings = SubjectSettings(target=target or None, to=to or None)
        found_links = compare_alignments(self.models[name].translator, source, settings, aligners=aligners)
        return replace(found_links, absent=(*found_links.absent, *absent))


def other_attention(model: str) -> str:
    """Return the name of the links by the attention of a further model."""
    return f"{ATTENTION} of {model}"


def _is_aligner(folder: Path) -> bool:
    return (folder / CONFIG).is_file() and not is_exported(folder) and folder_kind(folder) == WORD_ALIGNER


def _find(name: str, folders: Mapping[str, Path]) -> str | None:
    """Return the key of a folder, by its key or by the end of its path, if only one folder has this end."""
    if name in folders:
        return name
    ends = tuple(name.split("/"))
    found = [key for key, folder in folders.items() if folder.absolute().parts[-len(ends) :] == ends]
    return found[0] if len(found) == 1 else None


def _load(name: str, folder: Path, device: str | None) -> WorkspaceModel:
    return WorkspaceModel(name, folder, check_model_kind(folder, "inspect"), load_model(folder, device))
