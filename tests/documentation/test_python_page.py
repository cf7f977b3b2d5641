"""docs/reference/python.md runs, also as a notebook; the index of the API names the functions of all commands."""

import logging
import os
import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT

import dragoman
from dragoman.cli.root import root_command

PAGE = ROOT / "docs" / "reference" / "python.md"
INDEX = PAGE.parent / "api" / "index.md"
SOURCE = str(Path(dragoman.__file__).parents[1])
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
NOTEBOOKS = find_spec("nbclient") is not None and find_spec("ipykernel") is not None
IN_PROGRESS = """
import time
from dragoman.base.progress import Progress
with Progress("Waiting", "moments", 4) as progress:
    for moment in range(4):
        time.sleep(0.3)
        progress.update(moment + 1)
"""


def run_as_notebook(cells: list[str], folder: Path) -> list[Any]:
    """Return the outputs of each cell."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return [cell.outputs for cell in notebook.cells]


def stream(outputs: list[Any], name: str) -> str:
    """Return the text of a stream without the colours that notebooks show."""
    text = "".join(each.text for each in outputs if each.output_type == "stream" and each.name == name)
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.fixture
def notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a notebook's kernel import the same dragoman as the tests. Skips the test if notebooks cannot run."""
    if not NOTEBOOKS:
        pytest.skip("nbclient and ipykernel are not installed")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([SOURCE, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.mark.slow
@pytest.mark.usefixtures("notebooks")
def test_the_page_runs_as_a_notebook(tmp_path: Path) -> None:
    cells = run_as_notebook(BLOCKS, tmp_path)
    check_folder(tmp_path)
    check_streams([(stream(each, "stdout"), stream(each, "stderr")) for each in cells])


@pytest.mark.slow
@pytest.mark.usefixtures("notebooks")
def test_progress_is_one_output_of_a_notebook(tmp_path: Path) -> None:
    (progress,) = run_as_notebook([IN_PROGRESS], tmp_path)
    live = [each for each in progress if each.output_type == "display_data"]
    assert [each.data for each in live] == [{"text/plain": ""}]  # one output that was replaced, and emptied in the end
    assert not [each for each in progress if each.output_type == "stream"]


@pytest.fixture
def kept_logger() -> Iterator[None]:
    """Restore the logger of messages, to which the page adds a handler."""
    logger = logging.getLogger("dragoman")
    handlers, level = list(logger.handlers), logger.level
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)


@pytest.mark.commands
@pytest.mark.usefixtures("one_thread", "kept_logger")
def test_the_page_runs_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    streams = []
    for block in BLOCKS:
        exec(compile(block, str(PAGE), "exec"), names)
        streams.append(capsys.readouterr())
    check_folder(tmp_path)
    check_streams(streams)


def check_streams(streams: Sequence[tuple[str, str]]) -> None:
    """Check what the page's blocks write to stdout and stderr."""
    out, err = streams[1]
    assert "Training ended after 120 steps" in err
    assert re.match(r"runs/ende: the (neural )?model of step 120; on the validation set\n", out)
    assert "unknown setting train.max_stps" in streams[-1][0]


def check_folder(folder: Path) -> None:
    """Check the files that the page creates."""
    translator = dragoman.Translator.load(folder / "runs" / "ende", device="cpu")
    assert translator.translate(["one two three"], beam=1) == ["eins zwei drei"]
    assert (
        dragoman.evaluate(translator, source=folder / "test.en", reference=folder / "test.de", beam=1, metric=["bleu"])[
            "bleu"
        ].value
        > 40
    )  # 66 where it was written


def test_the_index_names_every_command_and_every_function() -> None:
    text = INDEX.read_text(encoding="utf-8")
    commands = root_command().commands
    names = {
        name if inner in (None, getattr(command, "default", None)) else f"{name} {inner}"
        for name, command in commands.items()
        for inner in getattr(command, "commands", [None])
    }
    rows = set(re.findall(r"`([a-z -]+)`", "".join(re.findall(r"^\| (`.*?) \|", text, re.MULTILINE))))
    assert names - {"demo"} == rows  # the page itself does what the demo does
    missing = [name for name in dragoman.__all__ if name != "__version__" and not re.search(rf"\b{name}\b", text)]
    assert not missing


def test_the_package_has_exactly_these_names() -> None:
    assert set(dragoman.__all__) - {"__version__"} == set(dragoman._MODULES)
    for name in dragoman.__all__:
        assert getattr(dragoman, name) is not None
    assert set(dragoman.__all__) <= set(dir(dragoman))
    with pytest.raises(AttributeError, match="has no attribute 'trane'"):
        dragoman.trane  # noqa: B018
