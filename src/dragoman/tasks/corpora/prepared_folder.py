"""`prepared_folder`: where the prepared corpora of a run are."""

from pathlib import Path

from dragoman.tasks.grid import GRID_FILE


def prepared_folder(out: Path) -> Path:
    """Return the folder of the prepared corpora, which is beside the folder of a run, so that its neighbours share it.

    The seeds of all runs of a grid share that of the grid. out: the folder of the run.
    """
    above = out.parent.parent
    return (above if (above / GRID_FILE).is_file() else out.parent) / "prepared"
