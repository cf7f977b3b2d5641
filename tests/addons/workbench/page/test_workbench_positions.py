"""The view of positions and masks: matrices, criteria, the figures of docs/lecture/decks.md, masks and schedules."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from workbench_server import WorkbenchServer, log_step, workbench_served
from workbench_tabs import WorkbenchTabs, expect, violations, wait_until_drawn

from dragoman.addons.workbench.view_state import parse_view_state
from dragoman.addons.workbench.views.positions import PositionsState
from dragoman.base.settings.config import kinds, union_members
from dragoman.nn.positions.sinusoidal import sinusoids
from dragoman.nn.positions.union import PositionsConfig


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkbenchServer]:
    """A workbench without a model, which this view does not need."""
    run = tmp_path_factory.mktemp("workspace") / "run"
    run.mkdir()
    log_step(run, 1)
    with workbench_served([run]) as found:
        yield found


def table(tab: Any) -> np.ndarray:
    """All values of the table of numbers, over all its pages."""
    tab.get_by_text("Numbers as a table").click()
    tab.locator(".numbers tbody tr").first.wait_for()
    values: list[float] = []
    while True:
        values += [float(cell) for cell in tab.locator(".numbers tbody td:last-child").all_inner_texts()]
        if tab.get_by_role("button", name="Next").is_disabled():
            return np.array(values)
        tab.get_by_role("button", name="Next").click()


def test_all_schemes_can_be_chosen(tabs: WorkbenchTabs) -> None:
    names = [kinds(member)[0] for member in union_members(PositionsConfig)]
    assert list(get_args(PositionsState.model_fields["scheme"].annotation)) == names
    tab = tabs.open("view=positions")
    expect(tab.get_by_label("Scheme", exact=True).locator("option")).to_have_text(names)


def test_values_are_those_of_the_formula(tabs: WorkbenchTabs) -> None:
    """The vectors and their products, to six digits, with a base that the slider does not have."""
    tab = tabs.open("view=positions&width=8&length=6&base=777")
    wait_until_drawn(tab)
    vectors = sinusoids(6, 8, 777.0).double().numpy()
    np.testing.assert_allclose(table(tab), vectors.ravel(), atol=1e-6)
    tab = tabs.open("view=positions&width=8&length=6&base=777&picture=products")
    wait_until_drawn(tab)
    np.testing.assert_allclose(
        table(tab),
        (vectors @ vectors.T).ravel(),
        atol=1e-6 * 4,
    )


@pytest.mark.slow
def test_the_products_rise_where_the_documentation_says(tabs: WorkbenchTabs) -> None:
    tab = tabs.open("view=positions&length=4")
    wait_until_drawn(tab)
    for settings, distance in (("width=512", 44), ("width=64", 6), ("width=512&base=100000", 25)):
        tab.goto(f"{tabs.address}#view=positions&picture=products&{settings}")
        expect(tab.locator(".rises")).to_have_text(
            f"The dot products with position 0 first rise at distance {distance}."
        )
    tab.get_by_role("button", name="By distance").click()
    expect(tab.locator(".panel-title")).to_have_text("Dot products with position 0 · first rise at distance 25")


def test_sliders_change_the_width_and_the_base(tabs: WorkbenchTabs) -> None:
    tab = tabs.open("view=positions&length=8&width=120&picture=products")
    wait_until_drawn(tab)
    width = tab.get_by_role("slider", name="Width d")
    width.press("ArrowRight")
    assert "width" not in tab.evaluate("location.hash")
    expect(tab.locator(".head-title").first).to_have_text("Positions of kind sinusoidal, d = 128")
    width.press("ArrowRight")
    expect(tab.locator(".head-title").first).to_have_text("Positions of kind sinusoidal, d = 136")
    assert "width=136" in tab.evaluate("location.hash")
    base = tab.get_by_role("slider", name="Base")
    expect(base).to_have_attribute("aria-valuetext", "10,000")
    for _ in range(4):
        base.press("ArrowRight")
    expect(base).to_have_attribute("aria-valuetext", "100,000")
    assert "base=100000" in tab.evaluate("location.hash")
    wait_until_drawn(tab)


def test_the_cursor_reads_a_value(tabs: WorkbenchTabs) -> None:
    tab = tabs.open("view=positions&width=64")
    wait_until_drawn(tab)
    grid = tab.get_by_role("grid", name="Matrix")
    grid.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        tab.keyboard.press(key)
    expected = f"position i = 2, vector component = 1: {np.cos(2):.6f}".replace("-", "−")
    expect(tab.locator("#announced")).to_have_text(expected)
    expect(tab.locator(".single .readout:visible")).to_have_text(expected)
    box = grid.bounding_box()
    tab.mouse.move(box["x"] + box["width"] - 1, box["y"] + box["height"] - 1)
    expect(tab.locator(".single .readout:visible")).to_have_text(
        re.compile(r"^position i = 99, vector component = 63: ")
    )


@pytest.mark.slow
def test_schemes_inside_attention_have_weights(tabs: WorkbenchTabs) -> None:
    tab = tabs.open("view=positions&base=5000")
    wait_until_drawn(tab)
    tab.get_by_label("Scheme", exact=True).select_option("alibi")
    expect(tab.locator(".criteria tbody")).to_contain_text("no: 1 and 99 are equal")
    expect(tab.get_by_role("button", name="Weights")).to_be_visible()
    expect(tab.get_by_role("button", name="Dot products")).to_be_hidden()
    assert tab.evaluate("location.hash") == "#view=positions&scheme=alibi"
    tab.get_by_label("Shown").select_option("head 2")
    grid = tab.get_by_role("grid", name="Matrix")
    grid.focus()
    tab.keyboard.press("ArrowRight")
    weight = np.exp(-(2.0**-2))
    expect(tab.locator("#announced")).to_have_text(f"query position i = 0, key position j = 1: {weight:.6f}")
    tab.get_by_label("Scheme", exact=True).select_option("none")
    expect(tab.locator(".absent")).to_contain_text("Without positions, there is nothing to draw")


def test_all_schemes_are_compared(tabs: WorkbenchTabs) -> None:
    tab = tabs.open("view=positions&width=24&length=12&heads=4")
    wait_until_drawn(tab)
    expect(tab.locator(".criteria tbody tr")).to_have_count(1)
    tab.get_by_label("Compare all schemes").check()
    expect(tab.locator(".criteria tbody tr")).to_have_count(10)
    expect(tab.locator(".criteria tbody")).to_contain_text("no: ends at 24")


def test_masks_hide_the_future_and_padding(tabs: WorkbenchTabs) -> None:
    tab = tabs.open("view=positions&picture=masks&tokens=5&padding=2&panel=2")
    wait_until_drawn(tab)
    np.testing.assert_array_equal(table(tab), np.tri(5).ravel())
    tab.get_by_label("Shown").select_option("source: padding")
    cells = tab.locator(".numbers tbody td:last-child")
    expect(cells).to_have_text([f"{value:.6f}" for value in [1, 1, 1, 0, 0] * 5])


@pytest.mark.slow
def test_the_shown_figure_is_saved(tabs: WorkbenchTabs, server: WorkbenchServer, tmp_path: Path) -> None:
    """The same bytes as those of `dragoman workbench figures`."""
    fragment = "view=positions&picture=products&width=16&length=6"
    tab = tabs.open(fragment)
    wait_until_drawn(tab)
    for suffix in ("SVG", "CSV"):
        with tab.expect_download() as saved:
            tab.get_by_role("button", name=suffix, exact=True).click()
        name = f"dot-products.{suffix.lower()}"
        assert saved.value.suggested_filename == f"positions-{name}"
        saved.value.save_as(tmp_path / name)
        wait_until_drawn(tab)
    written = parse_view_state(fragment).content(server.workspace).save(tmp_path / "written")
    for path in written:
        if path.name in ("dot-products.svg", "dot-products.csv"):
            assert path.read_bytes() == (tmp_path / path.name).read_bytes()
    assert tmp_path / "written" / "dot-products.csv" in written
    tab.get_by_role("button", name="Masks").click()
    expect(tab.get_by_label("Figure to save")).to_have_value("masks")


def test_a_schedule_peaks_after_its_warm_up(tabs: WorkbenchTabs) -> None:
    tab = tabs.open("view=positions&picture=schedule&width=512")
    wait_until_drawn(tab)
    peak = f"{(512 * 4000) ** -0.5:.3g}"
    expect(tab.locator(".panel-title")).to_have_text(f"Learning rate · peak {peak} at step 4,000")
    tab.get_by_label("Warm-up").fill("1000")
    tab.get_by_label("Warm-up").press("Enter")
    expect(tab.locator(".panel-title")).to_have_text(f"Learning rate · peak {(512 * 1000) ** -0.5:.3g} at step 1,000")


def test_impossible_settings_are_refused(tabs: WorkbenchTabs) -> None:
    tabs.expected = ("status of 400",)
    tab = tabs.open("view=positions&length=4")
    wait_until_drawn(tab)
    for settings, message in (
        ("scheme=alibi&base=5", "Positions of kind alibi have no base: remove base=5"),
        ("scheme=one_hot&width=64&length=65", "Length 65 exceeds the 64 positions of one_hot"),
        ("width=9", "A width of 9 is not divisible by 8 heads"),
        ("padding=13", "Padding 13 exceeds the 12 tokens"),
        ("source=a", "Unknown setting source"),
    ):
        tab.goto(f"{tabs.address}#view=positions&{settings}")
        expect(tab.locator("main > .state")).to_contain_text(message)


@pytest.mark.slow
def test_axe_finds_nothing_in_any_picture(tabs: WorkbenchTabs) -> None:
    tab = tabs.open("view=positions&compared=true&length=12", reduced_motion="reduce", bypass_csp=True)
    wait_until_drawn(tab)
    found = violations(tab)
    tab.get_by_role("button", name="Masks").click()
    found += violations(tab)
    assert not found, "\n".join(found)
