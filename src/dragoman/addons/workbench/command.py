"""`dragoman workbench`: see what models do, in a browser on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Device, Threads


def workbench(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FOLDER...",
            help="Folders of models, word aligners and runs, also in progress. Without a folder, the page has only "
            "what needs no model: positions, masks and the lecture's search trees.",
        ),
    ] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port (default: any free port).")] = 0,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in the default browser.")] = False,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Show translations, attention and training curves of your own models in a browser on this machine.

    The page can only be reached from this machine. Its address contains the whole state; `dragoman inspect --from`
    writes the figures of an address as files.
    """
    from dragoman.addons.workbench.server import open_workbench
    from dragoman.base.machine.device import use_threads

    use_threads(threads)
    open_workbench(folders or (), port=port, device=device, opens_browser=open_browser)
