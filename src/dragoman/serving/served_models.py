"""`ServedModel`: a model with its queue; `Directions`: from which language into which a server translates."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from dragoman.base.errors import ConfigError
from dragoman.base.log import info
from dragoman.data.workers import cores
from dragoman.exchange.ctranslate2.folder import is_exported
from dragoman.serving.batcher import Batcher, Model, Watch
from dragoman.serving.config import EngineConfig, ModelConfig, QueueConfig
from dragoman.serving.errors import Refusal
from dragoman.serving.prefork import Nursed, load_translator
from dragoman.serving.queue import Found
from dragoman.serving.worker_pool import WorkerPool
from dragoman.translation.alignment import Aligner
from dragoman.translation.request import TextRequest
from dragoman.translation.translator import Translator


class ServedModel:
    """Loaded and warm from the beginning. source: the language that it reads; targets: those that it writes.

    translator: for all but the translating itself, which may be other processes' work.
    """

    def __init__(
        self,
        config: ModelConfig,
        engine: EngineConfig,
        queue: QueueConfig,
        watch: Watch,
        aligner: Aligner | None = None,
    ) -> None:
        """Raises ModelError and ConfigError as `load_translator`, and ConfigError where its languages are not known.

        aligner: aligns words, as in `Translator`.
        """
        self._config, self._engine, self._queue, self._aligner = config, engine, queue, aligner
        self._state = _state(config.path)
        self.translator, self._pool, model = self._loaded()
        self.source, self.targets = _languages(config, self.translator)
        self.batcher = Batcher(model, queue, watch, max(1, engine.workers))

    @property
    def name(self) -> str:
        """The folder's."""
        return self._config.path.name

    def chosen(self, target: str) -> str | None:
        """What a request says of the language that it wants: nothing where the model writes one."""
        return target if target in self.translator.source_tags.languages else None

    def reload(self) -> bool:
        """Whether the folder is another than it was, and is served now.

        Raises ModelError and ConfigError where it cannot be; then all stays as it was, until the folder changes again.
        """
        state = _state(self._config.path)
        if state == self._state:
            return False
        self._state = state
        translator, pool, model = self._loaded()
        languages = _languages(self._config, translator)
        if languages != (self.source, self.targets):
            raise ConfigError(f"{self._config.path} has other languages than before: restart the server to serve it")
        self.translator, self._pool = translator, pool  # the pool before ends once its last batch is done
        self.batcher.replace(model)
        return True

    def close(self) -> None:
        """Once all that waits is done."""
        self.batcher.close()
        if self._pool is not None:
            self._pool.close()

    def _loaded(self) -> tuple[Translator, WorkerPool | None, Model]:
        config, engine, lines = self._config, self._engine, self._queue.batch_lines
        if not engine.workers:
            translator = load_translator(config, engine, self._aligner)
            return (
                translator,
                None,
                Model(partial(_translated, translator, lines), partial(translator.continuous, lines)),
            )
        here = "auto" if is_exported(config.path) else "torch"
        translator = load_translator(config, engine.model_copy(update={"name": here, "precision": None}), self._aligner)
        threads = engine.threads or max(1, cores() // engine.workers)
        nursed = Nursed(config, engine.model_copy(update={"threads": threads}))
        pool = WorkerPool(nursed, engine.workers, translator.tokenizers.target)
        if not pool.is_shared:
            info(f"each of the {engine.workers} processes has the weights of {self.name} for itself")
        return translator, pool, Model(partial(pool.translate, batch_lines=lines))


def _translated(translator: Translator, batch_lines: int, lines: Sequence[TextRequest]) -> Iterator[Found]:
    texts, requests = zip(*lines, strict=True)
    return translator.translate_window(texts, requests, batch_lines)


def _languages(config: ModelConfig, translator: Translator) -> tuple[str, tuple[str, ...]]:
    meta, several = translator.meta, tuple(translator.source_tags.languages)
    source = config.source or meta.source_language
    one = config.target or meta.target_language
    if config.target is not None and several and config.target not in several:
        raise ConfigError(f"{config.path} does not write {config.target!r}; it knows {', '.join(several)}")
    targets = (config.target,) if config.target else several or ((one,) if one else ())
    if source is None or not targets:
        raise ConfigError(
            f"{config.path} does not say which languages it translates: give them, as --languages en-de, or as "
            "`source` and `target` of the model in serve.yaml"
        )
    return source, targets


def _state(folder: Path) -> tuple[tuple[str, int, int, int], ...]:
    """What changes when a model folder is written anew or exchanged; nothing while it is not there."""
    found = []
    for path in sorted(folder.glob("*")):
        try:
            status = path.stat()
        except OSError:
            continue
        found.append((path.name, status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)


class Step(NamedTuple):
    """A model that is asked for one language."""

    model: ServedModel
    target: str


Route = tuple[Step, ...]
"""One model, or one into a pivot and one out of it."""


class Directions:
    """Of several models for a direction the first serves it."""

    def __init__(self, models: Sequence[ServedModel], pivots: Iterable[str]) -> None:
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
        """The languages that can be translated."""
        return tuple(dict.fromkeys(source for source, _ in self._routes))

    @property
    def all_targets(self) -> tuple[str, ...]:
        """The languages that some can be translated into."""
        return tuple(dict.fromkeys(target for _, target in self._routes))

    def targets(self, source: str) -> tuple[str, ...]:
        """What a language can be translated into."""
        return tuple(target for other, target in self._routes if other == source)

    def route(self, source: str, target: str) -> Route:
        """Raises Refusal for a direction that there is not."""
        if (found := self._routes.get((source, target))) is not None:
            return found
        if source not in self.sources:
            raise Refusal(f"{source} is not supported: this server translates from {_listed(self.sources)}")
        raise Refusal(
            f"{target} is not supported: this server translates from {source} into {_listed(self.targets(source))}"
        )


def _listed(languages: Iterable[str]) -> str:
    return ", ".join(languages)


def distinct_names(folders: Sequence[Path]) -> list[str]:
    """Each folder's own name, with those of the folders above it where it needs them; one given twice is numbered."""
    paths = [each.absolute() for each in folders]
    names = {path: path.name for path in paths}
    for length in range(2, max((len(path.parts) for path in paths), default=0)):
        counts = Counter(names.values())
        names = {path: "/".join(path.parts[1:][-length:]) if counts[name] > 1 else name for path, name in names.items()}
    numbers: Counter[Path] = Counter()
    found = []
    for path in paths:
        numbers[path] += 1
        found.append(names[path] if numbers[path] == 1 else f"{names[path]} ({numbers[path]})")
    return found
