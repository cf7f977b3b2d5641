"""`dragoman workbench`: see what models do, in a browser on this machine, and save the figures of a view."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.command_group import CommandGroup, Reference
from dragoman.cli.options import Device, Quiet, Threads


@command(
    "dragoman workbench runs/en-de --open",
    "dragoman workbench runs/small runs/large",
    handles_signals=True,
)
def workbench(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FOLDER]...",
            help="Folders of models, word aligners and runs, also in progress. Without a folder, the page has only "
            "what needs no model: positions, masks and the lecture's search trees.",
        ),
    ] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port (default: any free port).")] = 0,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in the default browser.")] = False,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Show your own models in a browser on this machine.

    The views show translations, attention and training curves. The page can only be reached from this machine. Its
    address contains the whole state of the view.
    """
    from dragoman.addons.workbench.server import open_workbench
    from dragoman.base.machine.device import use_threads

    use_threads(threads)
    open_workbench(folders or (), port=port, device=device, opens_browser=open_browser)


@command(
    "dragoman workbench figures '#view=attention&source=a+dog' runs/en-de \\\n  --out figures",
)
def figures(
    address: Annotated[str, typer.Argument(help="Address of a view in the browser, or its part from # on.")],
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FOLDER]...", help="The models, runs and word aligners that the address names."),
    ] = None,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write; it must not exist.")],
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Save the figures of a view of the workbench as SVG, PNG, JSON and CSV."""
    from dragoman.addons.workbench.view_state import parse_view_state
    from dragoman.addons.workbench.workspace import Workspace
    from dragoman.base.files import check_new_folder
    from dragoman.base.log import info
    from dragoman.base.machine.device import use_threads

    use_threads(threads)
    check_new_folder(out)
    files = parse_view_state(address).content(Workspace(folders or [], device)).save(out)
    info(f"wrote {len(files)} files to {out}")


_MODULE = "dragoman.addons.workbench.command"

app = CommandGroup(
    "workbench",
    {"open": Reference(f"{_MODULE}:workbench"), "figures": Reference(f"{_MODULE}:figures")},
    help="Show what models do in a browser on this machine. `dragoman workbench FOLDER` opens the page.",
    examples=("dragoman workbench runs/en-de --open",),
    default="open",
    needs_arguments=False,
)
