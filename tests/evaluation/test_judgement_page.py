"""The page on which people judge translations, in a browser: keys, progress, reloading, saving, and what it hides."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman import evaluate_judgements, write_sheet
from dragoman.evaluation.judgement_sheet import SheetKey
from dragoman.evaluation.judgements import Assessment, PairwiseJudgement

SOURCES = ["a dog", "two cats", "the {column} and <b>", "مرحبا", "the end"]
FIRST = [f"erstens {number} {{column}} <i>" for number in range(5)]
SECOND = [f"zweitens {number}" for number in range(5)]


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a page. The test fails if a script of a page fails."""
    from browser_tabs import MILLISECONDS

    contexts, complaints = [], []

    def open_page(path: Path, script: str = "", **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        context.set_default_timeout(MILLISECONDS)
        context.add_init_script(script)
        tab = context.new_page()
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.goto(path.as_uri())
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert not complaints


def save(tab: Any, folder: Path) -> Path:
    """Save the judgements; returns the file."""
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_a_comparison_by_keyboard(opened: Callable[..., Any], tmp_path: Path) -> None:
    from browser_tabs import expect

    key = write_sheet(tmp_path / "sheet.html", {"the-old": FIRST, "the-new": SECOND}, source=SOURCES)
    tab = opened(tmp_path / "sheet.html")
    assert "the-old" not in tab.content() and "the-new" not in tab.content()
    assert "the {column} and <b>" in tab.locator("dd").all_text_contents()
    expect(tab.locator("#count")).to_have_text("0 of 5 judged")
    better = ["B" if swapped else "A" for swapped in key.swapped]  # the old system
    for letter, arrow in zip(better[:2], ("a", "ArrowLeft"), strict=True):
        tab.keyboard.press(arrow if letter == "A" else {"a": "b", "ArrowLeft": "ArrowRight"}[arrow])
    tab.keyboard.press("0")
    expect(tab.locator("#count")).to_have_text("3 of 5 judged")
    expect(tab.locator("progress")).to_have_attribute("value", "3")
    tab.reload()
    expect(tab.locator("#count")).to_have_text("3 of 5 judged")
    expect(tab.get_by_role("group", name="Sentence 4: which is better?").locator(":focus")).to_have_count(1)
    tab.keyboard.press("2" if better[3] == "A" else "1")  # the new system
    tab.keyboard.press("ArrowUp")
    tab.keyboard.press("Delete")
    expect(tab.locator("#count")).to_have_text("3 of 5 judged")
    tab.keyboard.press("b" if better[3] == "A" else "A")
    tab.get_by_label("Your name").fill("Anna Ö.")
    path = save(tab, tmp_path)
    assert path.name == "judgements-anna-ö.csv"
    expect(tab.get_by_role("status")).to_contain_text("without 1 that you have not judged: send this file back")
    found = evaluate_judgements([path], tmp_path / "sheet.key.json")
    assert isinstance(found, PairwiseJudgement)
    assert (found.systems, found.wins, found.ties, found.sentences) == (("the-old", "the-new"), (2, 1), 1, 4)


def test_scores_by_keyboard_and_a_second_judge(opened: Callable[..., Any], tmp_path: Path) -> None:
    from browser_tabs import expect

    write_sheet(tmp_path / "sheet.html", {"the-old": FIRST}, source=SOURCES)
    tab = opened(tmp_path / "sheet.html", viewport={"width": 400, "height": 800})
    for score in ("80", "101", "0"):
        tab.keyboard.type(score)
        tab.keyboard.press("Enter")
    expect(tab.locator("#count")).to_have_text("2 of 5 judged")
    expect(tab.get_by_role("status")).to_have_text("Sentence 2: give a number from 0 to 100, or leave it empty")
    tab.get_by_role("button", name="Save").click()
    expect(tab.get_by_label("Score of sentence 2, 0 to 100")).to_be_focused()
    tab.keyboard.type("10")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.type("62.5")
    tab.keyboard.press("Enter")
    tab.keyboard.type("100")
    expect(tab.get_by_role("status")).to_have_text("All sentences are judged: save, and send the file back")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
    found = evaluate_judgements([save(tab, tmp_path)], tmp_path / "sheet.key.json")
    assert isinstance(found, Assessment) and found.sentences == 5
    assert found.mean == pytest.approx((80 + 10 + 0 + 62.5 + 100) / 5)
    tab.once("dialog", lambda dialog: dialog.accept())
    tab.get_by_role("button", name="Start over").click()
    expect(tab.locator("#count")).to_have_text("0 of 5 judged")
    tab.reload()
    expect(tab.locator("#count")).to_have_text("0 of 5 judged")


def test_sheets_are_kept_apart_and_a_browser_that_keeps_nothing_is_reported(
    opened: Callable[..., Any], tmp_path: Path
) -> None:
    from browser_tabs import expect

    write_sheet(tmp_path / "one.html", {"the-old": FIRST, "the-new": SECOND})
    write_sheet(tmp_path / "two.html", {"the-old": FIRST, "the-new": SECOND}, seed=2)
    assert SheetKey.read(tmp_path / "one.key.json") != SheetKey.read(tmp_path / "two.key.json")
    tab = opened(tmp_path / "one.html")
    tab.keyboard.press("a")
    expect(tab.locator("#count")).to_have_text("1 of 5 judged")
    tab.goto((tmp_path / "two.html").as_uri())
    expect(tab.locator("#count")).to_have_text("0 of 5 judged")
    tab.goto((tmp_path / "one.html").as_uri())
    expect(tab.locator("#count")).to_have_text("1 of 5 judged")
    deny = "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no', 'SecurityError'); }})"
    tab = opened(tmp_path / "one.html", deny)
    tab.keyboard.press("=")
    expect(tab.get_by_role("status")).to_contain_text("does not keep your judgements: save them before you close")
    assert save(tab, tmp_path).read_text() == "id,better\n1,=\n2,\n3,\n4,\n5,\n"
