"""The colours of the workbench."""

from pathlib import Path

import dragoman
from dragoman.figures.style import style_sheet


def test_the_colours_of_the_workbench_are_those_of_the_pictures() -> None:
    file = Path(dragoman.__file__).parent / "addons" / "workbench" / "page" / "colours.css"
    assert file.read_text("utf-8") == style_sheet(), (
        "run python -m dragoman.figures.style > src/dragoman/addons/workbench/page/colours.css"
    )
