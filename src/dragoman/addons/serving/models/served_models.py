"""`ServedModel`: a loaded model with a queue. `Directions`: the models that serve each language pair."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from dragoman.addons.serving.config import DoubtsConfig, EngineConfig, ModelConfig, QueueConfig
from dragoman.addons.serving.errors import RequestError
from dragoman.addons.serving.models.prefork import ServedTranslator, WorkerSpec, load_translator
from dragoman.addons.serving.models.worker_pool import WorkerPool
from dragoman.addons.serving.queueing.background import Background
from dragoman.addons.serving.queueing.batcher import Backend, Batcher, BatchListener
from dragoman.addons.serving.queueing.line_queue import Hypotheses
from dragoman.base.errors import ConfigError, DragomanError
from dragoman.base.log import info, warn
from dragoman.checkpoint.systems import confidence_of, system_folder, verdict_of
from dragoman.data.workers import available_cores
from dragoman.engines.choice import AUTOMATIC
from dragoman.engines.native.automatic_precision import automatic_precision
from dragoman.exchange.ctranslate2.folder import is_exported
from dragoman.inference.translation.alignment import Aligner
from dragoman.inference.translation.continuous import ContinuousTranslation
from dragoman.inference.translation.doubts import DoubtFinder
from dragoman.inference.translation.request import TextRequest
from dragoman.text.languages.codes import match_code


class InProcessBackend:
    """A `Backend` that translates in the server process."""

    def __init__(self, translator: ServedTranslator, batch_lines: int) -> None:
        """batch_lines: the maximum number of lines that are decoded together."""
        self._translator, self._batch_lines = translator, batch_lines

    def translate(self, lines: Sequence[TextRequest]) -> Iterator[Hypotheses]:
        """See `Backend.translate`."""
        texts, requests = zip(*lines, strict=True)
        return self._translator.translate_window(texts, requests, self._batch_lines)

    def continuous(self) -> ContinuousTranslation | None:
        """See `Backend.continuous`."""
        return self._translator.continuous(self._batch_lines)

    def close(self) -> None:
        """Do nothing, because there is nothing to release."""


class ServedModel:
    """A model that is loaded and warmed up, and can be reloaded without interrupting the service.

    source: its source language; targets: its target languages. translator: performs all steps except decoding, which
    may run in worker processes. is_unreliable: whether its training found it worse than simple systems. doubts: finds
    doubts about its translations; None if its inputs are vectors.
    """

    def __init__(
        self,
        config: ModelConfig,
        engine: EngineConfig,
        queue: QueueConfig,
        listener: BatchListener,
        *,
        aligner: Aligner | None = None,
        background: Background | None = None,
        doubts: DoubtsConfig | None = None,
    ) -> None:
        """listener, background: as in `Batcher`; aligner: aligns words, as in `Translator`. doubts: None for defaults.

        Raises ModelError and ConfigError as `load_translator` does, and ConfigError if the languages are unknown.
        """
        self._config, self._engine, self._queue, self._aligner = config, engine, queue, aligner
        self._version = folder_version(config.path)
        self.translator, backend, control_backend = self._load()
        self._doubts_config = doubts or DoubtsConfig()
        self.is_unreliable, self.doubts = self._judge(), self._doubt_finder()
        self.source, self.targets = _languages(config, self.translator)
        self.batcher = Batcher(
            backend,
            queue,
            listener,
            threads=max(1, engine.workers),
            control_backend=control_backend,
            background=background,
        )

    @property
    def name(self) -> str:
        """The name in requests and metrics: that of the settings, or of the model folder."""
        return self._config.name or self._config.path.name

    @property
    def precision(self) -> str:
        """The precision of the engine that translates; see `Engine.precision`."""
        backend = self.batcher.backend
        return backend.precision if isinstance(backend, WorkerPool) else self.translator.engine.precision

    @property
    def precision_reason(self) -> str:
        """Why the precision was chosen: the setting, or the measurement in the model folder."""
        setting, precision = self._engine.precision, self.precision
        if setting != AUTOMATIC:
            return f"engine.precision is {'null' if setting is None else setting}"
        if precision in ("float32", "int8") and not is_exported(self._config.path):
            with suppress(DragomanError, OSError):
                chosen = automatic_precision(system_folder(self._config.path, self._config.system))
                if chosen.precision == precision:
                    return chosen.reason
        return f"{precision}: the default of the engine"

    @property
    def description(self) -> dict[str, str]:
        """The properties that are reported as metrics."""
        return {
            "source": self.source,
            "targets": ",".join(self.targets),
            "precision": self.precision,
            "reason": self.precision_reason,
        }

    def tag_for(self, target: str) -> str | None:
        """Return the `to` argument of a request for a target language; None if the model has only one."""
        return target if target in self.translator.source_tags.languages else None

    def reload(self) -> bool:
        """Reload the model if its folder has changed, and return whether it has.

        Raises ModelError and ConfigError if loading fails. The old model is then served until the folder changes again.
        """
        version = folder_version(self._config.path)
        if version == self._version:
            return False
        self._version = version
        translator, backend, control_backend = self._load()
        languages = _languages(self._config, translator)
        if languages != (self.source, self.targets):
            raise ConfigError(f"the languages of {self._config.path} have changed: restart the server to serve it")
        self.translator, self.is_unreliable = translator, self._judge()
        self.doubts = self._doubt_finder()
        self.batcher.replace(backend, control_backend)  # the old backend is released after its last batch
        return True

    def close(self, seconds: float | None = None) -> None:
        """Translate all lines in the queue, then stop. seconds: the maximum waiting time; None for no limit."""
        self.batcher.close(seconds)
        self.batcher.backend.close()

    def _judge(self) -> bool:
        """Return whether the training found the model worse than simple systems, and warn if so."""
        verdict = None if is_exported(self._config.path) else verdict_of(self._config.path, self._config.system)
        if verdict is None or not verdict.is_worse:
            return False
        warn(f"{self._config.path} is served, but its translations are not reliable. {verdict.sentence}")
        return True

    def _doubt_finder(self) -> DoubtFinder | None:
        if self.translator.tokenizers.reads_vectors:
            return None
        path = self._config.path
        confidence = None if is_exported(path) else confidence_of(path, self._config.system)
        return DoubtFinder(self.translator.tokenizers.source, confidence, self._doubts_config.expected_chrf)

    def _load(self) -> tuple[ServedTranslator, Backend, Backend | None]:
        """Return the translator, and the backends for lines without and with requirements (see `Batcher`)."""
        config, engine, lines = self._config, self._engine, self._queue.batch_lines
        if not engine.workers:
            translator = load_translator(config, engine, self._aligner)
            control_translator = translator.concurrent()
            control_backend = None if control_translator is None else InProcessBackend(control_translator, lines)
            return translator, InProcessBackend(translator, lines), control_backend
        local_engine = "auto" if is_exported(config.path) else "torch"
        translator = load_translator(
            config, engine.model_copy(update={"name": local_engine, "precision": None}), self._aligner
        )
        threads = engine.threads or max(1, available_cores() // engine.workers)
        spec = WorkerSpec(config, engine.model_copy(update={"threads": threads}))
        pool = WorkerPool(spec, engine.workers, translator.tokenizers.target, lines)
        if not pool.is_shared:
            info(f"each of the {engine.workers} worker processes holds a separate copy of the weights of {self.name}")
        return translator, pool, pool.extended(1) if pool.is_shared else None


def _languages(config: ModelConfig, translator: ServedTranslator) -> tuple[str, tuple[str, ...]]:
    """Return the source language and the target languages of a model. Raises ConfigError if they are unknown."""
    meta, tagged = translator.meta, tuple(translator.source_tags.languages)
    source = config.source or meta.source_language
    single = config.target or meta.target_language
    if config.target is not None and tagged and config.target not in tagged:
        raise ConfigError(f"{config.path} does not translate into {config.target!r}, but into {', '.join(tagged)}")
    targets = (config.target,) if config.target else tagged or ((single,) if single else ())
    if source is None or not targets:
        raise ConfigError(
            f"{config.path} does not name its languages: use --languages, such as --languages en-de, or set `source` "
            "and `target` of the model in serve.yaml"
        )
    return source, targets


def folder_version(folder: Path) -> tuple[tuple[str, int, int, int], ...]:
    """Return a value that changes when a model folder is rewritten or replaced; empty while the folder is missing."""
    files = []
    for path in sorted(folder.glob("*")):
        try:
            status = path.stat()
        except OSError:
            continue
        files.append((path.name, status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(files)


class Step(NamedTuple):
    """A translation by one model into one of its target languages."""

    model: ServedModel
    target: str


Route = tuple[Step, ...]
"""One step, two steps through a pivot language, or none if source and target are the same language."""


class Directions:
    """The routes between languages. If several models serve a direction, the first one is used."""

    def __init__(self, models: Sequence[ServedModel], pivots: Iterable[str]) -> None:
        """pivots: the pivot languages, in order of preference."""
        self.models = models
        self._routes: dict[tuple[str, str], Route] = {}
        for model in models:
            for target in model.targets:
                self._routes.setdefault((model.source, target), (Step(model, target),))
        direct = dict(self._routes)
        for pivot in pivots:
            for (source, middle), first in direct.items():
                for (other, target), second in direct.items():
                    if middle == other == pivot and source != target:
                        self._routes.setdefault((source, target), (*first, *second))

    @property
    def sources(self) -> tuple[str, ...]:
        """All source languages."""
        return tuple(dict.fromkeys(source for source, _ in self._routes))

    @property
    def all_targets(self) -> tuple[str, ...]:
        """All target languages of any source language."""
        return tuple(dict.fromkeys(target for _, target in self._routes))

    @property
    def languages(self) -> tuple[str, ...]:
        """All source and target languages."""
        return tuple(dict.fromkeys((*self.sources, *self.all_targets)))

    def match(self, code: str) -> str:
        """Return the served language that matches a code, as `match_code` does, or the code itself."""
        return match_code(code, self.languages)

    def targets(self, source: str) -> tuple[str, ...]:
        """Return the target languages of a source language."""
        return tuple(target for other, target in self._routes if other == source)

    def route(self, source: str, target: str) -> Route:
        """Return the steps that translate `source` into `target`. Raises RequestError for an unserved direction."""
        if (route := self._routes.get((source, target))) is not None:
            return route
        if not self._routes:
            raise RequestError("this server has no translation model: its models predict labels or continue texts")
        for code in (source, target):
            if code not in self.languages:
                raise RequestError(f"{code} is not supported: this server supports {', '.join(self.languages)}")
        if source == target:
            return ()
        targets = self.targets(source)
        into = f"into {', '.join(targets)}" if targets else f"only from {', '.join(self.sources)}"
        raise RequestError(
            f"translation from {source} into {target} is not supported: this server translates "
            f"{f'from {source} ' if targets else ''}{into}"
        )
