"""`open_workbench`: serves the workbench to a browser on this machine."""

import signal
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

from dragoman.addons.serving.address import browser_url, listen
from dragoman.addons.serving.running_loop import run_beside_loop
from dragoman.addons.workbench.workspace import Workspace
from dragoman.base.log import info
from dragoman.base.packages import import_optional

HOST = "127.0.0.1"
"""The workbench has no access control, and therefore listens on the loopback address only."""

_CONNECTIONS = 64


def open_workbench(
    folders: Sequence[str | Path] = (), *, port: int = 0, device: str | None = None, opens_browser: bool = False
) -> None:
    """Load models and training runs, and show them in a browser until Ctrl-C.

    folders: those of models, word aligners and runs; a run that has no model yet has only its curves. Without folders,
    only what needs no model is shown. port: 0 for any free one. device: as in `Translator.load`. opens_browser: whether
    to open the page in the default browser.

    Raises ConfigError if the port is in use, and ModelError for a folder that is neither a model nor a run.

    >>> from dragoman import DragomanError, open_workbench
    >>> open_workbench(["runs/ende"], port=8080)  # doctest: +SKIP
    >>> try:
    ...     open_workbench(["runs/absent"])
    ... except DragomanError as error:
    ...     print(error)
    the model folder runs/absent does not exist
    """
    import_optional("starlette", "serve")
    import_optional("httptools", "serve")
    uvicorn = import_optional("uvicorn", "serve")
    from dragoman.addons.serving.http.connection import Connection
    from dragoman.addons.workbench.app import Workbench, application

    with listen(HOST, port, _CONNECTIONS) as listening:
        routes = Workbench(Workspace([Path(folder) for folder in folders], device))

        class Server(uvicorn.Server):  # type: ignore[misc, name-defined]
            """A server whose streams end with it."""

            @contextmanager
            def capture_signals(self) -> Iterator[None]:
                with super().capture_signals():
                    yield

            def handle_exit(self, sig: int, frame: FrameType | None) -> None:
                routes.is_ending = True
                super().handle_exit(sig, frame)

        url = f"{browser_url(HOST, listening.getsockname()[1])}/"
        info(f"the workbench is at {url} (Ctrl-C ends it)")
        if opens_browser:
            webbrowser.open(url)
        with closing(routes.computations):
            server = Server(
                uvicorn.Config(
                    application(routes),
                    http=Connection,
                    ws="none",
                    log_config=None,
                    access_log=False,
                    server_header=False,
                    proxy_headers=False,
                    limit_concurrency=_CONNECTIONS,
                    timeout_graceful_shutdown=1,
                )
            )
            run_beside_loop(lambda: server.run([listening]), lambda: server.handle_exit(signal.SIGINT, None))
