"""`ServedModel`: a model with its queue, which can be exchanged while it serves."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from dragoman.base.errors import ConfigError
from dragoman.serving.config import EngineConfig, ModelConfig, QueueConfig
from dragoman.serving.queue.batcher import Batcher, Translate, Watch
from dragoman.serving.queue.ticket import Found
from dragoman.translation.lines import Line
from dragoman.translator import Translator

_WARM_UP = ("A", "A short sentence, so that all is ready.")


class ServedModel:
    """Loaded and warm from the beginning. source: the language that it reads; targets: those that it writes."""

    def __init__(self, config: ModelConfig, engine: EngineConfig, queue: QueueConfig, watch: Watch) -> None:
        """Raises ModelError and ConfigError as `Translator.load`, and ConfigError where its languages are not known."""
        self._config, self._engine, self._queue = config, engine, queue
        self._state = _state(config.path)
        self.translator = self._loaded()
        self.source, self.targets = _languages(config, self.translator)
        self.batcher = Batcher(_translating(self.translator, queue), queue, watch)

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
        translator = self._loaded()
        languages = _languages(self._config, translator)
        if languages != (self.source, self.targets):
            raise ConfigError(f"{self._config.path} has other languages than before: restart the server to serve it")
        self.translator = translator
        self.batcher.replace(_translating(translator, self._queue))
        return True

    def close(self) -> None:
        """Once all that waits is done."""
        self.batcher.close()

    def _loaded(self) -> Translator:
        engine = self._engine
        translator = Translator.load(self._config.path, engine.device, engine.name, engine.precision, engine.threads)
        translator.report_cut = False
        if translator.tokenizers.reads_vectors:
            raise ConfigError(f"{self._config.path} reads vectors, and a server is given texts")
        languages = translator.source_tags.languages
        translator.translate(_WARM_UP, to=languages[0] if languages else None)
        return translator


def _translating(translator: Translator, queue: QueueConfig) -> Translate:
    def translate(lines: Sequence[Line]) -> Iterator[Found]:
        texts, requests = zip(*lines, strict=True)
        return translator.translate_window(texts, requests, queue.batch_lines)

    return translate


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
