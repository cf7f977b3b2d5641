"""`serve`: runs a translation server."""

import asyncio
import gc
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.addons.serving.access.access import Access
from dragoman.addons.serving.access.client_address import parse_networks
from dragoman.addons.serving.address import browser_url, listen, network_urls
from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.models.served_language_models import LanguageModels, ServedLanguageModel
from dragoman.addons.serving.models.served_models import Directions, ServedModel
from dragoman.addons.serving.models.served_predictors import Predictors, ServedPredictor
from dragoman.addons.serving.queueing.background import Background
from dragoman.addons.serving.queueing.batcher import BatchStatistics
from dragoman.addons.serving.running_loop import run_beside_loop
from dragoman.addons.serving.service.control_defaults import ControlDefaults
from dragoman.addons.serving.service.service import Service
from dragoman.base.errors import ConfigError, DragomanError
from dragoman.base.log import info, warn
from dragoman.base.machine.memory import limit_arenas, release_free_memory, resident_memory
from dragoman.base.packages import import_optional
from dragoman.base.settings.load import Overrides, load_settings
from dragoman.checkpoint.names import short_names
from dragoman.inference.load import kind_of
from dragoman.inference.translation.alignment import Aligner

_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_PACKAGES = {
    "fastapi": "fastapi",
    "httptools": "httptools",
    "prometheus_client": "prometheus-client",
    "python_multipart": "python-multipart",
    "uvicorn": "uvicorn",
}
"""The packages of the extra `serve`, by the names of their modules."""

_SWITCH_SECONDS = 0.0005
"""Time in seconds after which a thread that runs Python code yields to another, such as the event loop, which would
otherwise wait for 5 ms (the default) before each of the several steps of a request."""

_COLLECTION_THRESHOLDS = 50_000, 20, 20
"""Thresholds of the garbage collector (`gc.set_threshold`). Requests with many small objects, such as the tags of a
page, reach Python's own thresholds many times per second, and all threads wait during each collection."""

_ARENAS = 2
"""Number of malloc's arenas. The memory that a large file has needed in one thread is then used by others."""

_RELEASE_SECONDS, _RELEASE_BYTES = 5.0, 16_000_000
"""Interval at which freed memory is returned to the system, and the growth of the process for which this is done."""

_RELEASE_FRACTION = 0.005
"""Largest fraction of the time for returning memory, in which all threads wait: more than this delays more than one of
a hundred requests."""

_ABORT_SECONDS = 2
"""Time in seconds for sending the answers of aborted requests, and for the current step of a search."""

if TYPE_CHECKING:
    from dragoman.addons.serving.http.metrics import Metrics


def serve(
    config: str | Path | Mapping[str, Any] | ServeConfig | None = None,
    settings: Overrides = (),
    *,
    aligner: Aligner | None = None,
) -> None:
    """Run a server until the process receives SIGTERM or Ctrl-C. Accepted requests are still answered.

    In a notebook, interrupt the cell to end the server. In a thread of your own, it runs until the process ends.

    config: the path of `serve.yaml`, its content, or None. settings: overrides with dotted keys. aligner: aligns the
    words of all translations (default: the decoder attention of each model).

    Raises ConfigError for inconsistent settings, if there are no models, and if the server cannot listen on the
    address. Raises ModelError for a folder that is not a model.

    >>> from dragoman import DragomanError, serve
    >>> serve({"models": [{"path": "runs/ende"}], "port": 5000})  # doctest: +SKIP
    >>> try:
    ...     serve({"models": []})
    ... except DragomanError as error:
    ...     print(error)
    there is no model to serve: pass a model folder, or set `models` in serve.yaml
    """
    parsed = load_settings(config, settings, ServeConfig)
    if not parsed.models:
        raise ConfigError("there is no model to serve: pass a model folder, or set `models` in serve.yaml")
    for module, package in _PACKAGES.items():
        import_optional(module, "serve", package)
    limit_arenas(_ARENAS)
    former = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(*_COLLECTION_THRESHOLDS)
    try:
        started: Future[Callable[[], object]] = Future()

        def run() -> None:
            try:
                _run(parsed, aligner, started.set_result)
            finally:
                if not started.done():
                    started.set_result(lambda: None)

        run_beside_loop(run, lambda: started.result()())
    finally:
        sys.setswitchinterval(former[0])
        gc.set_threshold(*former[1])


OnStart = Callable[[Callable[[], object]], None]
"""A listener that receives a function, callable from any thread, which shuts the server down."""


def _run(config: ServeConfig, aligner: Aligner | None, on_start: OnStart) -> None:
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(config, aligner, on_start))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's event loop, which is faster, or None if uvloop is not installed, as on Windows."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


class LoadedModels:
    """The models of a server, which are loaded one after another, and reloaded when their folders change."""

    def __init__(self, config: ServeConfig, metrics: "Metrics") -> None:
        self._config, self._metrics = config, metrics
        self.translators: list[ServedModel] = []
        self.predictors: list[ServedPredictor] = []
        self.language_models: list[ServedLanguageModel] = []

    async def load(self, aligner: Aligner | None, background: Background) -> None:
        """Load each configured model. Those that were loaded before an error can be closed.

        Raises ConfigError if two models have the same name, and the errors of `ServedModel`, `ServedPredictor` and
        `ServedLanguageModel`.
        """
        config, metrics = self._config, self._metrics
        folders = short_names([model_config.path for model_config in config.models])
        names = [each.name or folder for each, folder in zip(config.models, folders, strict=True)]
        if repeated := [name for name, count in Counter(names).items() if count > 1]:
            raise ConfigError(f"two models are named {repeated[0]!r}: change `name` of one of them in serve.yaml")
        for model_config, name in zip(config.models, names, strict=True):
            info(f"loading {model_config.path}")
            abilities = kind_of(model_config.path).abilities
            if "generate" in abilities:
                writer = await asyncio.to_thread(ServedLanguageModel, model_config, config.engine, name)
                metrics.watch_other(name, writer)
                self.language_models.append(writer)
                continue
            if not abilities.isdisjoint({"predict", "classify_nodes"}):
                predictor = await asyncio.to_thread(ServedPredictor, model_config, config.engine, name)
                metrics.watch_other(name, predictor)
                self.predictors.append(predictor)
                continue

            def listener(batch: BatchStatistics, name: str = name) -> None:
                metrics.record_batch(name, batch, config.queue.batch_tokens)

            named = model_config.model_copy(update={"name": name})
            load = partial(ServedModel, named, config.engine, config.queue, listener, doubts=config.doubts)
            model = await asyncio.to_thread(load, aligner=aligner, background=background)
            metrics.watch(name, model)
            self.translators.append(model)

    async def reload_changed(self) -> None:
        """Reload models whose folders have changed, until cancelled.

        If reloading fails, warn and continue to serve the previous model.
        """
        while seconds := self._config.reload_seconds:
            await asyncio.sleep(seconds)
            models: list[ServedModel | ServedPredictor | ServedLanguageModel] = [
                *self.translators,
                *self.predictors,
                *self.language_models,
            ]
            for model in models:
                try:
                    if await asyncio.to_thread(model.reload):
                        _exclude_from_collection()
                        self._metrics.describe(model)
                        info(f"reloaded {model.name}")
                except (DragomanError, OSError) as error:
                    warn(f"cannot reload {model.name}, still serving the previous model: {error}")

    async def close(self) -> None:
        """End the threads and processes of the models."""
        await asyncio.gather(*(asyncio.to_thread(model.close, _ABORT_SECONDS) for model in self.translators))


async def _serve(config: ServeConfig, aligner: Aligner | None, on_start: OnStart) -> None:
    """Run the server. In the main thread, it shuts down when the process receives a signal.

    While models are being loaded, every request is answered with status 503.
    """
    import uvicorn
    from starlette.concurrency import run_in_threadpool

    from dragoman.addons.serving.http.application import Application
    from dragoman.addons.serving.http.connection import Connection
    from dragoman.addons.serving.http.idle_connections import IdleConnections
    from dragoman.addons.serving.http.metrics import Metrics

    idle = IdleConnections(config.limits.connections, parse_networks(config.access.trusted_proxies))
    metrics, access, background = Metrics(), Access(config.access), Background()
    service = Service(
        config.limits,
        ControlDefaults(config),
        config.queue,
        metrics.record_predictions,
        background,
        on_completion=metrics.record_completions,
    )

    class Server(uvicorn.Server):
        """A server without signal handlers. Those of uvicorn end the process before queued requests are answered."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    with closing(access), listen(config.host, config.port, config.limits.connections) as listening:
        application = Application(service, access, config, metrics)
        connection = partial(
            Connection, idle=idle, overloaded=application.refuse, on_rejection=application.note_rejection
        )
        server = Server(
            uvicorn.Config(
                application,
                http=connection,  # type: ignore[arg-type]
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # `Access` evaluates these headers, according to `access.trusted_proxies`
                limit_concurrency=config.limits.connections,
                timeout_graceful_shutdown=ceil(config.limits.shutdown_seconds) + _ABORT_SECONDS,
            )
        )

        # the server closes its socket if it is shut down while models are being loaded
        port = listening.getsockname()[1]
        loop = asyncio.get_running_loop()
        signals = _SIGNALS if threading.current_thread() is threading.main_thread() else ()

        def shut_down() -> None:
            service.is_shutting_down = server.should_exit = True
            loop.call_later(config.limits.shutdown_seconds, service.abort)
            for number in signals:  # a second signal ends the process at once, even if this thread is busy
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_DFL)

        for number in signals:
            loop.add_signal_handler(number, shut_down)
        on_start(partial(loop.call_soon_threadsafe, shut_down))
        serving, models = asyncio.create_task(server.serve([listening])), LoadedModels(config, metrics)
        await run_in_threadpool(int)  # imports what the first streamed response needs, during which others would wait
        try:
            await models.load(aligner, background)
            _open(service, models, config.pivots)
            info(f"listening at {browser_url(config.host, port)}")
            _announce_network(config, port)
            tasks = asyncio.create_task(models.reload_changed()), asyncio.create_task(_release_memory())
            await serving
            for task in tasks:
                task.cancel()
        finally:
            server.should_exit = True
            await serving
            service.close()
            await models.close()


def _open(service: Service, models: LoadedModels, pivots: Sequence[str]) -> None:
    """Open the service, and log what it offers."""
    directions = Directions(models.translators, pivots)
    _exclude_from_collection()
    service.open(directions, Predictors(models.predictors), LanguageModels(models.language_models))
    for writer in models.language_models:
        info(f"continuing texts with {writer.name}")
    for predictor in models.predictors:
        info(f"predicting with {predictor.name} ({predictor.description['task']})")
    for source in directions.sources:
        info(f"translating from {source} into {', '.join(directions.targets(source))}")


def _announce_network(config: ServeConfig, port: int) -> None:
    """Log the addresses for other machines, and warn if whoever reaches them may use the server."""
    if not (urls := network_urls(config.host, port)):
        return
    info(f"for colleagues: {' or '.join(urls)}")
    if config.access.keys is None:
        warn(
            "everyone who can reach this machine may use the server, because it requires no key. To require one, run "
            "`dragoman keys add NAME`, and start the server with `--keys keys.db`"
        )


def _exclude_from_collection() -> None:
    """Exclude the models and all modules from garbage collection, which would visit their many objects each time."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _collect_and_release() -> float:
    """Free the objects of requests that refer to one another, and return free memory to the system.

    Returns the time in seconds that this took, in which all threads wait.
    """
    begin = time.perf_counter()
    gc.collect()
    release_free_memory()
    return time.perf_counter() - begin


async def _release_memory() -> None:
    """Return the memory that large files and expensive requests have needed, once they have ended."""
    smallest, pause = resident_memory(), _RELEASE_SECONDS
    while True:
        await asyncio.sleep(pause)
        pause = _RELEASE_SECONDS
        if resident_memory() > smallest + _RELEASE_BYTES:
            pause = max(pause, await asyncio.to_thread(_collect_and_release) / _RELEASE_FRACTION)
            smallest = resident_memory()
        smallest = min(smallest, resident_memory())
