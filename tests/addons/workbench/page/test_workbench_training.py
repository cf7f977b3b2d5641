"""The view of training runs: several runs, live points, axes, and the cursor."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from workbench_server import WorkbenchServer, log_step, workbench_served
from workbench_tabs import WorkbenchTabs, expect, wait_until_drawn


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Two runs that have only a log so far."""
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
        for step in range(1, 31):
            log_step(folder, step)
    return folders


@pytest.fixture
def server(runs: list[Path]) -> Iterator[WorkbenchServer]:
    with workbench_served(runs) as found:
        yield found


def test_runs_without_a_model_are_shown_at_once(tabs: WorkbenchTabs) -> None:
    tab = tabs.open()
    wait_until_drawn(tab)
    assert tab.evaluate("location.hash") == "#view=training"
    headings = ["Training loss", "Validation loss", "Validation BLEU", "Learning rate", "Speed"]
    expect(tab.locator(".panel-title")).to_have_text(headings)
    expect(tab.locator(".curve-panel").first.locator("polyline")).to_have_count(2)
    tab.get_by_label("second", exact=True).uncheck()
    expect(tab.locator(".panel-title").first).to_have_text("Loss")
    assert "runs=first" in tab.evaluate("location.hash")
    tab.get_by_label("second", exact=True).check()
    expect(tab.locator(".panel-title")).to_have_text(headings)
    assert "runs" not in tab.evaluate("location.hash")


def test_a_new_point_appears_while_the_run_trains(tabs: WorkbenchTabs, runs: list[Path]) -> None:
    tab = tabs.open("view=training")
    wait_until_drawn(tab)
    expect(tab.locator(".curve-panel").first.locator(".readout")).to_have_text("30 steps with values, up to 30")
    with (runs[0] / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write('{"step": 31, "loss": ')
    log_step(runs[1], 31)
    expect(tab.locator(".curve-panel").first.locator(".readout")).to_have_text("31 steps with values, up to 31")
    slider = tab.get_by_role("slider", name="Training loss")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(r"^step 31: first .* \(step 30\), second"))


def test_the_cursor_reads_the_values_of_all_runs(tabs: WorkbenchTabs, runs: list[Path]) -> None:
    tab = tabs.open("view=training")
    wait_until_drawn(tab)
    slider = tab.get_by_role("slider", name="Training loss")
    slider.focus()
    tab.keyboard.press("Home")
    expect(slider).to_have_attribute("aria-valuetext", "step 1: first 8, second 8")
    tab.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "step 2: first 4, second 4")
    expect(slider).to_have_attribute("aria-valuenow", "2")
    # the cursors of all panels move together, each to the nearest step with a value
    bleu = tab.get_by_role("slider", name="Validation BLEU")
    expect(bleu).to_have_attribute("aria-valuetext", "step 10: first 15, second 15")
    box = slider.bounding_box()
    tab.mouse.move(box["x"] + box["width"] - 14, box["y"] + 100)
    expect(tab.locator(".curve-panel").first.locator(".readout")).to_have_text(re.compile("^step 30: "))


@pytest.mark.slow
def test_an_extreme_value_is_not_thinned_away(tabs: WorkbenchTabs, runs: list[Path]) -> None:
    with (runs[0] / "log.jsonl").open("a", encoding="utf-8") as log:
        log.writelines(f'{{"step": {step}, "loss": {900 if step == 7777 else 1}}}\n' for step in range(32, 20_000))
    tab = tabs.open("view=training&runs=first&runs=second")
    wait_until_drawn(tab)
    points = tab.locator(".curve-panel").first.locator("polyline").first.get_attribute("points").split()
    assert len(points) <= 4000
    heights = sorted(float(point.split(",")[1]) for point in points)
    assert heights[0] < 30 < 200 < heights[1]


def test_axes_can_be_logarithmic(tabs: WorkbenchTabs) -> None:
    tab = tabs.open("view=training")
    wait_until_drawn(tab)
    curve = tab.locator(".curve-panel").first.locator("polyline").first
    before = curve.get_attribute("points")
    tab.get_by_role("button", name="Logarithmic").click()
    expect(curve).not_to_have_attribute("points", before)
    heights = [float(point.split(",")[1]) for point in curve.get_attribute("points").split()]
    # 8 / step halves from step 1 to 2, and from 2 to 4
    assert heights[1] - heights[0] == pytest.approx(heights[3] - heights[1], abs=0.3)
