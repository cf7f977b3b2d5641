"""The measured numbers of the decks, README.md and docs/results/overview.md are in the sources that they link to."""

import re
from pathlib import Path

import pytest
from documented import FENCED, items, rows
from figures import Figure, bare_numbers, fault, figures, rounds_to, sources
from repository import ROOT

DOCS = ROOT / "docs"
LECTURE = DOCS / "lecture"
RESULTS = DOCS / "results"
DECKS, README, OVERVIEW = (
    path.read_text(encoding="utf-8") for path in (LECTURE / "decks.md", ROOT / "README.md", RESULTS / "overview.md")
)
MEASURED = re.compile(r"(?:; |^)(?:embedded corpus|Multi30k variants)(?:,[^:]*)?: ")
"""The words of decks.md before the figures of variants."""

MEASURED_SECTION = "What it is good at"
"""The section of README.md in which every number is measured."""


def without_source(text: str, cell: str, page: str, folder: Path) -> list[str]:
    """Return the unlinked numbers of a cell that are in no section or test that the surrounding `text` names."""
    numbers = bare_numbers(cell)
    found = sources(text, page, folder) if numbers else ""
    return [number for number in numbers if not rounds_to(number, found)]


def units(page: str) -> dict[str, list[str]]:
    """Return the paragraphs, list items and table rows of each section of README.md, without headers of tables."""
    found: dict[str, list[str]] = {}
    for part in re.split(r"^## ", FENCED.sub("", page), flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        found[heading] = [unit for unit in re.split(r"\n\s*\n|\n(?=\s*[|-] ?)", text) if unit.strip()]
    return found


@pytest.mark.parametrize(
    ("page", "folder", "least"),
    [(DECKS, LECTURE, 140), (README, ROOT, 4), (OVERVIEW, RESULTS, 25)],
    ids=["decks", "README", "overview"],
)
def test_every_linked_figure_is_in_its_source(page: str, folder: Path, least: int) -> None:
    linked = figures(page)
    assert len(linked) > least
    assert [reason for figure in linked if (reason := fault(figure, page, folder))] == []


def test_every_measured_number_of_the_decks_has_a_source() -> None:
    part = DECKS.split("## 000", 1)[1]
    found = [*items(part), *((row[0], " ".join(row[1:])) for row in rows(part))]
    assert len(found) > 120
    lacking = {slide: without_source(text, text, DECKS, LECTURE) for slide, text in found}
    assert {slide: numbers for slide, numbers in lacking.items() if numbers} == {}
    measured = [(slide, text) for slide, text in found if MEASURED.search(text)]
    assert len(measured) > 40
    assert [slide for slide, text in measured if not figures(text)] == []


def test_every_measured_number_of_the_readme_has_a_source() -> None:
    found = units(README)
    checked = found[MEASURED_SECTION] + [unit for part in found.values() for unit in part if figures(unit)]
    lacking = {unit[:60]: without_source(unit, unit, README, ROOT) for unit in checked}
    assert {unit: numbers for unit, numbers in lacking.items() if numbers} == {}


PAGE = """
## Results
All models were trained for 44 minutes, which cost 1,234.5 J.

| run | corpus | BLEU, greedy | BLEU |
| --- | --- | --- | --- |
| 1 | **Multi30k** | 41.32 | 42.10 (41.0–43.2) |
| 1 | Tatoeba | 46.34 | – |

| change | speed |
| --- | --- |
| a, b | 4,804 (0.67) |

## Others
| run | BLEU |
| --- | --- |
| 2 | −0.86 |
"""


@pytest.mark.parametrize(
    ("figure", "reason"),
    [
        (Figure("42.1", "", "results", "1; Multi30k"), None),
        (Figure("42.10", "", "results", "1; Multi30k / BLEU"), None),
        (Figure("41.3", "", "results", "1; Multi30k / BLEU, greedy"), None),
        (Figure("0.67", "", "results", "a, b / speed"), None),
        (Figure("4,804", "", "results", "a, b / speed"), None),
        (Figure("44", "", "results", ""), None),
        (Figure("1,234", "", "results", ""), None),
        (Figure("−0.9", "", "others", "2"), None),
        (Figure("0.86", "", "others", "2"), "is −0.86"),
        (Figure("42.2", "", "results", "1; Multi30k"), "is 42.10"),
        (Figure("42.1", "", "results", "1; Multi30k / BLEU, greedy"), "is 41.32"),
        (Figure("42.1", "", "results", "1"), "2 cells"),
        (Figure("42.1", "", "results", "1; 1"), "0 cells"),
        (Figure("42.1", "", "results", "3"), "0 cells"),
        (Figure("42.1", "", "results", "1; Multi30k / chrF"), "0 cells"),
        (Figure("42.1", "", "others", "1; Multi30k"), "0 cells"),
        (Figure("45", "", "results", ""), "not in the text"),
        (Figure("42.1", "", "other", ""), "no such heading"),
        (Figure("42.1", "nowhere.md", "other", ""), "no such file"),
    ],
)
def test_each_violation_is_noticed(figure: Figure, reason: str | None) -> None:
    found = fault(figure, PAGE, LECTURE)
    assert found is None if reason is None else found is not None and reason in found


def test_numbers_without_a_source_are_noticed() -> None:
    cell = 'V: [42.1](#results "1; Multi30k") after 44 minutes on `tests 7` and 45 others, 1e6 times'
    assert [figure.text for figure in figures(cell + ", see deck [000](#blocks)")] == ["42.1"]
    assert bare_numbers(cell) == ["44", "45", "1e6"]
    assert without_source(cell, cell, PAGE, LECTURE) == ["45", "1e6"]
    assert (
        without_source("see `test_language_model_config.py::test_the_size_of_gpt_1`", "116,536,320", PAGE, LECTURE)
        == []
    )
