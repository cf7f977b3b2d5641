"""The pages of docs/lecture run, redraw their pictures, and have what every page must have.

`make test-docs` runs the pages.
"""

import contextlib
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from lecture_pages import CONTENTS, FOLDER, OTHERS, PAGES, PICTURES, Page, faults
from made_once import made_once
from matplotlib.image import imread

import dragoman
from dragoman.addons.workbench.view_state import parse_view_state
from dragoman.addons.workbench.workspace import Workspace
from lecture_code.models import recipe

SLOW: tuple[str, ...] = ("bottleneck.md", "do-you-want-a-transformer.md", "probing.md")
"""Pages that only `make test-all` runs."""

EXACT, TRAINED = 0.01, 0.1
"""Largest mean difference of a redrawn picture, as a fraction of the range of a colour: fonts and rounding differ among
versions and processors, and a model that was trained on another processor has other weights."""

pytestmark = pytest.mark.usefixtures("one_thread")

Prepare = Callable[[Page], Path]


def train(name: str, folder: Path) -> None:
    """Train a shared model in `folder`."""
    with contextlib.chdir(folder):
        dragoman.train(recipe(name), resume=True, quiet=True)


@pytest.fixture
def prepare(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Prepare:
    """A function that returns an empty folder with the trained models that a page uses."""

    def prepared(page: Page) -> Path:
        for name in page.models:
            made = made_once(tmp_path_factory, f"lecture-{name}", partial(train, name))
            shutil.copytree(made, tmp_path, dirs_exist_ok=True)
        return tmp_path

    return prepared


def difference(drawn: Path, stored: Path) -> float:
    """Return the mean absolute difference of two pictures, from 0 to 1; 1 if their sizes differ by over two percent."""
    one, other = (imread(path)[..., :3] for path in (drawn, stored))
    if any(abs(a - b) > 0.02 * b for a, b in zip(one.shape, other.shape, strict=True)):
        return 1.0
    height, width = (min(sizes) for sizes in zip(one.shape[:2], other.shape[:2], strict=True))
    return float(np.abs(one[:height, :width] - other[:height, :width]).mean())


@pytest.mark.commands
@pytest.mark.parametrize("name", [pytest.param(each, marks=[pytest.mark.slow] * (each in SLOW)) for each in PAGES])
def test_the_page_runs_and_redraws_its_pictures(name: str, prepare: Prepare) -> None:
    page = Page.read(name)
    folder = prepare(page)
    page.run(folder)
    for picture in page.pictures:
        assert (folder / picture).is_file(), f"the page does not draw {picture}"
        assert difference(folder / picture, PICTURES / picture) <= (TRAINED if page.models else EXACT), picture


@pytest.mark.parametrize("name", PAGES)
def test_the_page_has_what_every_page_must_have(name: str) -> None:
    assert list(faults(Page.read(name))) == []


@pytest.mark.commands
def test_addresses_of_pages_have_content(prepare: Prepare) -> None:
    """Those that name no model, and are therefore those of the shared Transformer or need no model."""
    folder = prepare(Page("page.md", 'recipe("transformer")'))
    workspace = Workspace([folder / "runs" / "lecture" / "transformer"], "cpu")
    states = [parse_view_state(address) for name in PAGES for address in Page.read(name).addresses]
    opened = [state for state in states if not getattr(state, "model", "") and not getattr(state, "others", ())]
    assert {state.view for state in opened} >= {"translate", "attention", "what-if", "training", "positions"}
    for state in opened:
        assert state.content(workspace).figures, state.fragment


def test_every_page_is_in_the_table_of_contents_and_every_picture_on_a_page() -> None:
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", CONTENTS.read_text(encoding="utf-8")))
    assert sorted(linked - {*OTHERS}) == PAGES
    shown = {picture for name in PAGES for picture in Page.read(name).pictures}
    assert {path.name for path in PICTURES.iterdir()} == shown
    assert FOLDER.is_dir() and len(PAGES) > 0


WHOLE = """# A page
**Slides:** deck 001, "Self-Attention"

The sum is **3**, as [41.5](../EXPERIMENTS.md#translation-quality "1 to 3 / lowercased tokenised BLEU") shows.
![a picture](../pictures/lecture/PICTURE)
```python
assert 1 + 2 == 3
```
## Where the deck errs

The deck does not err here, and this sentence says so in words.
## In the workbench
[open](http://127.0.0.1:8000/#view=attention)
"""


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("", "", None),
        ("# A page", "A page", "no title"),
        ('deck 001, "Self-Attention"', "deck 001", "no line such as"),
        ("deck 001", "deck 005", "no line such as"),
        ("## Where the deck errs", "## Remarks", "no section"),
        ("#view=attention", "#view=attentions", "unknown view"),
        ("#view=attention", "#view=attention&heads=1", "did you mean head"),
        ("http://127.0.0.1:8000/", "https://example.org/", "no link into the workbench"),
        ("![a picture]", "[a picture]", "no picture"),
        ("**3**", "3", "no number in bold"),
        ("**3**", "**4**", "4 is in bold, but in no assert"),
        ("== 3", "== 4", "3 is in bold, but in no assert"),
        ("[41.5]", "[41.6]", "41.6"),
        ("== 3\n```\n", "== 3\n```\n```\n", "a block of code"),
    ],
)
def test_a_missing_part_is_noticed(old: str, new: str, reason: str | None) -> None:
    text = WHOLE.replace("PICTURE", Page.read(PAGES[0]).pictures[0]).replace(old, new)
    found = list(faults(Page("page.md", text)))
    assert found == [] if reason is None else len(found) == 1 and reason in found[0]


def test_a_false_number_and_another_picture_are_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        Page("page.md", WHOLE.replace("1 + 2", "1 + 3")).run(tmp_path)
    pictures = sorted(PICTURES.iterdir())
    assert difference(pictures[0], pictures[0]) == 0
    assert all(difference(pictures[0], each) > EXACT for each in pictures[1:])
