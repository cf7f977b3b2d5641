"""`ServedModel`: a model with its queue, which can be exchanged while it serves."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from dragoman.base.errors import ConfigError
from dragoman.base.log import info
from dragoman.data.workers import cores
from dragoman.exchange.ctranslate2.folder import is_exported
from dragoman.serving.config import EngineConfig, ModelConfig, QueueConfig
from dragoman.serving.queue.batcher import Batcher, Watch
from dragoman.serving.queue.model import Model
from dragoman.serving.queue.ticket import Found
from dragoman.serving.workers.loading import load_translator
from dragoman.serving.workers.messages import Nursed
from dragoman.serving.workers.pool import WorkerPool
from dragoman.translation.lines import Line
from dragoman.translation.translator import Translator


class ServedModel:
    """Loaded and warm from the beginning. source: the language that it reads; targets: those that it writes.

    translator: for all but the translating itself, which may be other processes' work.
    """

    def __init__(self, config: ModelConfig, engine: EngineConfig, queue: QueueConfig, watch: Watch) -> None:
        """Raises ModelError and ConfigError as `load_translator`, and ConfigError where its languages are not known."""
        self._config, self._engine, self._queue = config, engine, queue
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
            translator = load_translator(config, engine)
            return (
                translator,
                None,
                Model(partial(_translated, translator, lines), partial(translator.continuous, lines)),
            )
        here = "auto" if is_exported(config.path) else "torch"
        translator = load_translator(config, engine.model_copy(update={"name": here, "precision": None}))
        threads = engine.threads or max(1, cores() // engine.workers)
        nursed = Nursed(config, engine.model_copy(update={"threads": threads}))
        pool = WorkerPool(nursed, engine.workers, translator.tokenizers.target)
        if not pool.is_shared:
            info(f"each of the {engine.workers} processes has the weights of {self.name} for itself")
        return translator, pool, Model(partial(pool.translate, batch_lines=lines))


def _translated(translator: Translator, batch_lines: int, lines: Sequence[Line]) -> Iterator[Found]:
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
