"""The view of attention: weights, selection of heads by mouse and keyboard, heat maps and lines."""

import re
from collections.abc import Iterator

import numpy as np
import pytest
from tiny_model import tiny_config, write_tiny_model
from workbench_server import WorkbenchServer, workbench_served, write_workspace
from workbench_tabs import WorkbenchTabs, expect, wait_until_drawn

SENTENCE = "source=a+dog+runs&target=ein+Hund"
READOUT = re.compile(r"^(\S+) → (\S+): (\d\.\d+)$")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkbenchServer]:
    folder = tmp_path_factory.mktemp("workspace")
    recurrent = tiny_config(encoder={"kind": "recurrent"}, decoder={"kind": "recurrent"})
    write_tiny_model(folder / "recurrent", config=recurrent)
    with workbench_served([*write_workspace(folder), folder / "recurrent"]) as found:
        yield found


def test_every_cell_shows_the_weight_of_the_model(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    attention = server.workspace.inspect("one", "a dog runs", "ein Hund", "").kinds["decoder.cross_attention"][0]
    tab = tabs.open(f"view=attention&{SENTENCE}&layer=1&head=2")
    wait_until_drawn(tab)
    tab.get_by_text("Numbers as a table").click()
    tab.locator("tbody tr").first.wait_for()
    shown: list[list[str]] = []
    while True:
        rows = tab.locator("tbody tr").all()
        shown += [row.locator("td").all_inner_texts() for row in rows]
        assert len(rows) <= 25
        if tab.get_by_role("button", name="Next").is_disabled():
            break
        tab.get_by_role("button", name="Next").click()
    weights = attention.weights[1]
    expected = [
        [query, key, f"{weights[row, column]:.4f}"]
        for row, query in enumerate(attention.queries)
        for column, key in enumerate(attention.keys)
    ]
    assert shown == expected
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-5)


def test_the_keyboard_reaches_every_cell(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=attention&{SENTENCE}&layer=2&head=1")
    wait_until_drawn(tab)
    grid = tab.get_by_role("grid", name="Weights of the head")
    grid.focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowDown")
    expect(tab.locator(".row-labels .is-lit")).to_have_count(1)
    row = tab.locator(".row-labels > div").nth(1).inner_text()
    column = tab.locator(".column-labels > div").nth(1).inner_text()
    expect(tab.locator("#announced")).to_have_text(re.compile(rf"^{re.escape(row)} → {re.escape(column)}: \d\.\d\d$"))
    expect(tab.locator(".single .readout:visible")).to_have_text(READOUT)
    tab.keyboard.press("Control+End")
    last = tab.locator(".row-labels > div").last.inner_text()
    expect(tab.locator("#announced")).to_have_text(re.compile(rf"^{re.escape(last)} → </s>: "))
    assert grid.get_attribute("aria-details") == tab.locator(".numbers").get_attribute("id")
    active = grid.get_attribute("aria-activedescendant")
    assert tab.locator(f"#{active}").get_attribute("role") == "gridcell"
    # the whole map, and the whole overview, are one tab stop each
    tab.get_by_role("button", name="Lines").focus()
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.getAttribute('aria-label')").startswith("layer 2, head 1")
    tab.keyboard.press("Tab")
    expect(grid).to_be_focused()


def test_arrow_keys_select_a_head(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=attention&{SENTENCE}&layer=1&head=1")
    wait_until_drawn(tab)
    tab.get_by_role("gridcell", name="layer 1, head 1").focus()
    tab.keyboard.press("ArrowRight")
    expect(tab.get_by_role("heading", name="Layer 1, head 2")).to_be_visible()
    tab.keyboard.press("ArrowDown")
    expect(tab.get_by_role("heading", name="Layer 2, head 2")).to_be_visible()
    tab.keyboard.press("Home")
    expect(tab.get_by_role("heading", name="Layer 2, mean of the heads")).to_be_visible()
    assert "layer=2&head=0" in tab.evaluate("location.hash")
    expect(tab.get_by_role("gridcell", name="layer 2, mean")).to_be_focused()


def test_a_cell_is_read_with_the_mouse(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=attention&{SENTENCE}&layer=1&head=1")
    wait_until_drawn(tab)
    tab.locator(".map-cells").hover(position={"x": 2, "y": 2})
    expect(tab.locator(".single .readout:visible")).to_have_text(READOUT)
    expect(tab.locator(".row-labels > div").first).to_have_class("is-lit")
    expect(tab.locator(".column-labels > div").first).to_have_class("is-lit")
    tab.mouse.move(2, 2)
    expect(tab.locator(".is-lit")).to_have_count(0)


def test_heads_are_sorted_by_entropy(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    tab = tabs.open(f"view=attention&{SENTENCE}&order=entropy&kind=encoder.self_attention")
    wait_until_drawn(tab)
    labels = [each.get_attribute("aria-label") for each in tab.locator(".head").all()]
    shown = [float(re.search(r"entropy (\S+) bits", label)[1]) for label in labels]  # type: ignore[index, arg-type]
    maps = server.workspace.inspect("one", "a dog runs", "ein Hund", "").kinds["encoder.self_attention"]
    exact = [float(-(head * np.log2(head)).sum(1).mean()) for each in maps for head in each.weights]
    assert shown == pytest.approx(sorted(exact), abs=0.006)


def test_lines_of_a_token_are_shown_and_spoken(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    tab = tabs.open(f"view=attention&{SENTENCE}&layer=1&head=2&drawing=lines")
    wait_until_drawn(tab)
    weights = (
        server.workspace.inspect("one", "a dog runs", "ein Hund", "").kinds["decoder.cross_attention"][0].weights[1]
    )
    expect(tab.locator(".lines path")).to_have_count(int((weights >= 0.02).sum()))
    tokens = tab.get_by_role("listbox", name="Tokens that attend")
    tokens.focus()
    tab.keyboard.press("ArrowDown")
    expect(tokens.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    best = sorted(weights[0].tolist(), reverse=True)[:3]
    spoken = re.compile(r"^\S+ → " + ", ".join(rf"\S+ {weight:.2f}" for weight in best) + "$")
    expect(tab.locator("#announced")).to_have_text(spoken)
    expect(tab.locator(".lines g.is-lit path")).to_have_count(int((weights[0] >= 0.02).sum()))


def test_what_a_family_lacks_is_said_in_words(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=attention&model=recurrent&{SENTENCE}")
    wait_until_drawn(tab)
    expect(tab.locator(".absent li").first).to_contain_text(
        "No weights: encoder.self_attention: the encoder does not have this kind of attention"
    )
    expect(tab.get_by_label("Kind").locator("option")).to_have_text(["decoder, attention over the source"])


def test_tokens_of_long_sentences_stay_readable(tabs: WorkbenchTabs) -> None:
    """Sixty tokens per side: the page does not scroll sideways, and cells are large enough to point at."""
    words = "+".join(["dog"] * 58)
    tab = tabs.open(f"view=attention&source={words}&target={words}", viewport={"width": 400, "height": 800})
    wait_until_drawn(tab)
    box = tab.locator(".map-cells").bounding_box()
    columns = tab.locator(".column-labels > div").count()
    assert columns > 58 and box["width"] / columns >= 9
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
