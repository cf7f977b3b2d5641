"""The pages of docs/lecture run, redraw their pictures, and have what every page must have.

`make test-docs` runs the pages.
"""

import contextlib
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import stored_pictures
from lecture_pages import CONTENTS, FOLDER, OTHERS, PAGES, PICTURES, Page, faults
from made_once import made_once

import dragoman
from dragoman.addons.workbench.view_state import parse_view_state
from dragoman.addons.workbench.workspace import Workspace
from dragoman.figures.bars import Bars
from lecture_code.models import recipe

SLOW: tuple[str, ...] = ("bottleneck.md", "do-you-want-a-transformer.md", "probing.md")
"""Pages that only `make test-all` runs."""

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


@pytest.mark.commands
@pytest.mark.parametrize("name", [pytest.param(each, marks=[pytest.mark.slow] * (each in SLOW)) for each in PAGES])
def test_the_page_runs_and_redraws_its_pictures(name: str, prepare: Prepare) -> None:
    page = Page.read(name)
    folder = prepare(page)
    page.run(folder)
    for picture in page.pictures:
        assert (folder / picture).is_file(), f"the page does not draw {picture}"
        stale = list(stored_pictures.faults(folder / picture, PICTURES / picture, bool(page.models)))
        assert stale == [], picture


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


def test_a_false_number_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        Page("page.md", WHOLE.replace("1 + 2", "1 + 3")).run(tmp_path)


DRAWN = Bars(
    title="Target distribution", caption="0.92", labels=("one", "two", "three"), values=(0.92, 0.02, 0.06), marked=(0,)
)


@pytest.mark.parametrize(
    ("stale", "exact", "trained"),
    [
        (DRAWN, None, None),
        (replace(DRAWN, values=(0.92, 0.0205, 0.06)), "values", None),
        (replace(DRAWN, values=(0.89, 0.02, 0.06)), "values", None),
        (replace(DRAWN, values=(0.32, 0.62, 0.06)), "values", "values"),
        (replace(DRAWN, title="Target distributions"), "title", "title"),
        (replace(DRAWN, labels=("one", "two", "four")), "labels", None),
        (replace(DRAWN, labels=("one", "two"), values=(0.92, 0.08)), "labels", "pixels"),
        (replace(DRAWN, unit="BLEU"), "unit", "unit"),
    ],
)
def test_a_stale_picture_is_noticed(stale: Bars, exact: str | None, trained: str | None, tmp_path: Path) -> None:
    with stored_pictures.data_beside_pictures():
        DRAWN.write(tmp_path / "drawn.png")
        stale.write(tmp_path / "stale.png")
    stored_pictures.store(tmp_path / "stale.png", tmp_path / "stored.png")
    for is_trained, reason in ((False, exact), (True, trained)):
        found = list(stored_pictures.faults(tmp_path / "drawn.png", tmp_path / "stored.png", is_trained))
        assert found == [] if reason is None else reason in found[0], found


def test_pixels_and_missing_data_are_noticed(tmp_path: Path) -> None:
    """The pixels of the small changes above differ by less than the limit, which is why the data is compared."""
    with stored_pictures.data_beside_pictures():
        DRAWN.write(tmp_path / "drawn.png")
        replace(DRAWN, values=(0.89, 0.02, 0.06)).write(tmp_path / "other.png")
    assert 0 < stored_pictures.pixel_difference(tmp_path / "other.png", tmp_path / "drawn.png") < stored_pictures.PIXELS
    assert "no data" in next(stored_pictures.faults(tmp_path / "drawn.png", tmp_path / "drawn.png"))
    other = sorted(PICTURES.iterdir())
    shutil.copy(other[0], tmp_path / "picture.png")
    shutil.copy(tmp_path / "drawn.json", tmp_path / "picture.json")
    stored_pictures.store(tmp_path / "drawn.png", tmp_path / "stored.png")
    assert list(stored_pictures.faults(tmp_path / "picture.png", tmp_path / "stored.png")) == [
        "other pixels are stored"
    ]
