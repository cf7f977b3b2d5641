"""`serve`: a server from its start to its end."""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.base.errors import ConfigError, DragomanError
from dragoman.base.log import info, warn
from dragoman.base.packages import import_optional
from dragoman.base.settings.load import Overrides, load_settings
from dragoman.serving.access.access import Access
from dragoman.serving.batcher import BatchStatistics
from dragoman.serving.config import ServeConfig
from dragoman.serving.served_models import Directions, ServedModel, distinct_names
from dragoman.serving.service import Service
from dragoman.translation.alignment import Aligner

if TYPE_CHECKING:
    from dragoman.serving.http.metrics import Metrics


def serve(
    config: str | Path | Mapping[str, Any] | ServeConfig | None = None,
    settings: Overrides = (),
    *,
    aligner: Aligner | None = None,
) -> None:
    """Translate for clients until the process is told to end (SIGTERM, Ctrl-C).

    What has been asked for until then is still answered. config: `serve.yaml`, its content, or nothing; settings: in
    place of it, by dotted keys. aligner: aligns the words of every model's translations (default: its decoder's
    attention). Raises ConfigError for settings that make no sense, no model among them, and an address
    that cannot be listened at; ModelError for a folder that is no model.
    """
    parsed = load_settings(config, settings, ServeConfig)
    if not parsed.models:
        raise ConfigError("there is no model to serve: name a model folder, or `models` in serve.yaml")
    import_optional("fastapi", "serve")
    import_optional("uvicorn", "serve")
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(parsed, aligner))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's, which works less for a request, where there is one (not on Windows)."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(config: ServeConfig, aligner: Aligner | None) -> None:
    """It answers, that it is not ready, while models are loaded."""
    import uvicorn

    from dragoman.serving.http.app import application
    from dragoman.serving.http.connection import Connection
    from dragoman.serving.http.metrics import Metrics

    metrics, service, access = Metrics(), Service(config.limits.seconds), Access(config.access)

    class Server(uvicorn.Server):
        """Signals are this module's: the library would end the process before what waits is done."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    with closing(access), _listening(config) as listening:
        server = Server(
            uvicorn.Config(
                application(service, access, config, metrics),
                http=Connection,
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # `access.trusted_proxies` says who is believed
                limit_concurrency=config.limits.connections,
                timeout_graceful_shutdown=ceil(config.limits.seconds) + 1,
            )
        )

        def end() -> None:
            server.force_exit = service.is_ending  # told twice, it waits for nobody
            service.is_ending = server.should_exit = True

        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, end)
        serving = asyncio.create_task(server.serve([listening]))
        models: list[ServedModel] = []
        try:
            await _loaded(models, config, metrics, aligner)
            directions = Directions(models, config.pivots)
            service.open(directions)
            for source in directions.sources:
                info(f"translating from {source} into {', '.join(directions.targets(source))}")
            info(f"listening at http://{config.host}:{listening.getsockname()[1]}")
            watching = asyncio.create_task(_watched(models, config.reload_seconds))
            await serving
            watching.cancel()
        finally:
            server.should_exit = True
            await serving
            for model in models:
                await asyncio.to_thread(model.close)


async def _loaded(models: list[ServedModel], config: ServeConfig, metrics: "Metrics", aligner: Aligner | None) -> None:
    names = distinct_names([each.path for each in config.models])
    for each, name in zip(config.models, names, strict=True):

        def watch(batch: BatchStatistics, name: str = name) -> None:
            metrics.translated(name, batch, config.queue.batch_tokens)

        info(f"loading {each.path}")
        model = await asyncio.to_thread(ServedModel, each, config.engine, config.queue, watch, aligner)
        metrics.watch(name, model.batcher)
        models.append(model)


def _listening(config: ServeConfig) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    # of a socket whose protocol is not named asyncio does not send what is written at once (TCP_NODELAY), so that an
    # answer's body would wait until its head is acknowledged, which takes a client 40 ms
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((config.host, config.port))
        found.listen(config.limits.connections)
    except OSError as error:
        found.close()
        raise ConfigError(
            f"cannot listen at {config.host}:{config.port} ({error.strerror}): choose another --host or --port"
        ) from None
    return found


async def _watched(models: Sequence[ServedModel], seconds: float) -> None:
    """Serve folders anew that have changed; one that cannot be read is told of, and the old model serves on."""
    while seconds:
        await asyncio.sleep(seconds)
        for model in models:
            try:
                if await asyncio.to_thread(model.reload):
                    info(f"{model.name} has changed, and is served anew")
            except (DragomanError, OSError) as error:
                warn(f"{model.name} has changed, but is not served: {error}. The model before goes on")
