"""The view of attention: weights, rollout, selection of heads, heat maps and lines that are linked by their tokens."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tiny_model import tiny_config, write_tiny_model
from workbench_server import WorkbenchServer, workbench_served, write_workspace
from workbench_tabs import WorkbenchTabs, expect, wait_until_drawn

from dragoman.inference.subject import SubjectSettings
from dragoman.inspection.rollout import attention_rollout

SENTENCE = "source=a+dog+runs&target=ein+Hund"
READOUT = re.compile(r"^(\S+) → (\S+): (\d\.\d+)$")
TOKENS = ["Donaudampfschifffahrtsgesellschaft", "extraordinarily@@", "الاستقلال@@", "a", "</s>"]

# Draws lines between the tokens, and returns the texts that are cut off without an ellipsis, or outside of the picture.
CUT_OFF = """async (tokens) => {
  const { TokenLines } = await import("/page/drawings/token_lines.js");
  const root = document.querySelector("section[aria-label='One head']");
  const size = tokens.length;
  const panel = { values: new Float32Array(size * size).fill(1 / size), rows: size, columns: size };
  const lines = new TokenLines(root, () => {}, () => {});
  lines.show(panel, tokens, tokens);
  const picture = [...root.querySelectorAll(".token-lines")].at(-1);
  const outer = picture.getBoundingClientRect();
  const found = root.scrollWidth > root.clientWidth || picture.scrollWidth > picture.clientWidth ? ["the picture"] : [];
  for (const side of picture.querySelectorAll(".line-tokens")) {
    for (const [index, cell] of [...side.children].entries()) {
      const box = cell.getBoundingClientRect();
      const isWhole = cell.scrollWidth <= cell.clientWidth;
      const hasEllipsis = getComputedStyle(cell).textOverflow === "ellipsis" && box.width > 60;
      const isShort = hasEllipsis && cell.title === tokens[index];
      const isInside = box.left >= outer.left && box.right <= outer.right;
      if (!isInside || !(isWhole || isShort)) found.push(tokens[index]);
    }
  }
  return found;
}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkbenchServer]:
    folder = tmp_path_factory.mktemp("workspace")
    recurrent = tiny_config(encoder={"kind": "recurrent"}, decoder={"kind": "recurrent"})
    write_tiny_model(folder / "recurrent", config=recurrent)
    with workbench_served([*write_workspace(folder), folder / "recurrent"]) as found:
        yield found


def readout(tab: Any) -> Any:
    return tab.get_by_role("region", name="One head").locator(".readout:visible")


def test_every_cell_shows_the_weight_of_the_model(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    attention = server.workspace.inspect("one", "a dog runs", "ein Hund", "").kinds["decoder.cross_attention"][0]
    tab = tabs.open(f"view=attention&{SENTENCE}&layer=1&head=2")
    wait_until_drawn(tab)
    tab.get_by_text("Numbers as a table").locator("visible=true").click()
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
    expect(readout(tab)).to_have_text(READOUT)
    tab.keyboard.press("Control+End")
    last = tab.locator(".row-labels > div").last.inner_text()
    expect(tab.locator("#announced")).to_have_text(re.compile(rf"^{re.escape(last)} → </s>: "))
    assert grid.get_attribute("aria-details") == tab.locator(".numbers:visible").get_attribute("id")
    active = grid.get_attribute("aria-activedescendant")
    assert tab.locator(f"#{active}").get_attribute("role") == "gridcell"
    # each row of tokens, the whole overview and the whole map are one tab stop each
    tab.get_by_role("button", name="Lines").focus()
    tab.keyboard.press("Tab")
    expect(tab.get_by_role("listbox", name="Queries (rows)")).to_be_focused()
    tab.keyboard.press("Tab")
    expect(tab.get_by_role("listbox", name="Keys (columns)")).to_be_focused()
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
    expect(readout(tab)).to_have_text(READOUT)
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
    heads = [re.search(r"ayer (\d+), head (\d+)", label).groups() for label in labels]  # type: ignore[union-attr, arg-type]
    assert tab.locator(".head-name").all_inner_texts() == [".".join(each) for each in heads]


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
    expect(tab.locator(".lines path.is-lit")).to_have_count(int((weights[0] >= 0.02).sum()))


@pytest.mark.parametrize("side", ["row", pytest.param("column", marks=pytest.mark.slow)])
def test_a_token_is_highlighted_in_all_pictures(tabs: WorkbenchTabs, server: WorkbenchServer, side: str) -> None:
    """By pointer and by keyboard; its mean over the heads is shown at the tokens of the other side."""
    maps = server.workspace.inspect("one", "a dog runs", "ein Hund", "").kinds["decoder.cross_attention"]
    mean = np.mean([head for each in maps for head in each.weights], 0)
    tab = tabs.open(f"view=attention&{SENTENCE}&layer=1&head=2")
    wait_until_drawn(tab)
    name, other = ("Queries (rows)", "Keys (columns)") if side == "row" else ("Keys (columns)", "Queries (rows)")
    tokens = tab.get_by_role("listbox", name=name)
    tokens.get_by_role("option").nth(1).hover()
    expect(tab.locator(f".{side}-labels > div").nth(1)).to_have_class("is-lit")
    expect(tab.locator(".is-lit")).to_have_count(1)
    expect(tab.locator(f".head-grid.marks-{side}")).to_have_count(1)
    expect(tab.locator(f".{side}-band")).to_be_visible()
    weights = mean[1] if side == "row" else mean[:, 1]
    options = tab.get_by_role("listbox", name=other).get_by_role("option").all()
    shares = [float(each.evaluate("e => e.style.getPropertyValue('--share')")) for each in options]
    assert shares == pytest.approx((weights / weights.max()).tolist(), abs=1e-3)
    tab.mouse.move(2, 2)
    expect(tab.locator(".is-lit")).to_have_count(0)
    tokens.focus()
    tab.keyboard.press("ArrowRight")
    expect(tab.locator(f".{side}-labels > div").nth(1)).to_have_class("is-lit")
    best = ", ".join(rf"\S+ {weight:.2f}" for weight in sorted(weights.tolist(), reverse=True)[:3])
    arrow = "→" if side == "row" else "←"
    expect(tab.locator("#announced")).to_have_text(re.compile(rf"^\S+ {arrow} {best} \(mean of all heads\)$"))
    active = tokens.get_attribute("aria-activedescendant")
    assert tab.locator(f"#{active}").get_attribute("aria-selected") == "true"
    tab.get_by_role("button", name="Lines").click()
    head = maps[0].weights[1]
    lines = (head[1] if side == "row" else head[:, 1]) >= 0.02
    expect(tab.locator(".lines path.is-lit")).to_have_count(int(lines.sum()))
    tokens.focus()
    tab.keyboard.press("Escape")
    expect(tab.locator(".lines.is-focused")).to_have_count(0)


def test_a_cell_and_a_line_highlight_their_tokens(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=attention&{SENTENCE}&layer=1&head=2")
    wait_until_drawn(tab)
    chosen = tab.get_by_role("region", name="Tokens").locator("[aria-selected=true]")
    tab.locator(".map-cells").hover(position={"x": 2, "y": 2})
    expect(chosen).to_have_count(2)
    expect(tab.locator(".head-grid.marks-row.marks-column")).to_have_count(1)
    tab.mouse.move(2, 2)
    expect(chosen).to_have_count(0)
    tab.get_by_role("button", name="Lines").click()
    tab.locator(".line-tokens").nth(1).locator("div").first.hover()
    expect(chosen).to_have_count(1)
    expect(tab.get_by_role("listbox", name="Keys (columns)").locator("[aria-selected=true]")).to_have_count(1)


@pytest.mark.parametrize("side", [pytest.param("encoder", marks=pytest.mark.slow), "decoder"])
def test_the_rollout_is_shown_beside_the_heads(tabs: WorkbenchTabs, server: WorkbenchServer, side: str) -> None:
    loaded = server.workspace.model("one").loaded
    rollouts = attention_rollout(loaded, "a dog runs", SubjectSettings(target="ein Hund"))
    rollout = next(each for each in rollouts if each.side == side)
    tab = tabs.open(f"view=attention&{SENTENCE}&order=entropy&head=2")
    wait_until_drawn(tab)
    tab.get_by_label("Kind").select_option(label=f"{side}, rollout through the layers")
    wait_until_drawn(tab)
    assert f"kind={side}.rollout" in tab.evaluate("location.hash")
    expect(tab.get_by_role("heading", name="Rollout through layer 2")).to_be_visible()
    expect(tab.get_by_role("group", name="Order of the heads")).to_be_hidden()
    tab.get_by_text("Numbers as a table").locator("visible=true").click()
    tab.locator("tbody tr").first.wait_for()
    shown = [row.locator("td").all_inner_texts() for row in tab.locator("tbody tr").all()]
    assert (
        shown
        == [
            [query, key, f"{rollout.values[row, column]:.4f}"]
            for row, query in enumerate(rollout.queries)
            for column, key in enumerate(rollout.keys)
        ][:25]
    )
    tab.get_by_role("gridcell", name="rollout through layer 1").click()
    expect(tab.get_by_role("heading", name="Rollout through layer 1")).to_be_visible()
    tab.get_by_role("listbox", name="Queries (rows)").get_by_role("option").first.hover()
    expect(tab.get_by_role("region", name="Tokens").locator(".readout")).to_contain_text("(rollout through all layers)")
    tab.get_by_label("Kind").select_option("decoder.self_attention")
    wait_until_drawn(tab)
    expect(tab.get_by_role("heading", name="Layer 1, head 2")).to_be_visible()


def test_what_a_family_lacks_is_said_in_words(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=attention&model=recurrent&{SENTENCE}")
    wait_until_drawn(tab)
    expect(tab.locator(".absent li").first).to_contain_text(
        "No weights: encoder.self_attention: the encoder does not have this kind of attention"
    )
    expect(tab.locator(".absent li").last).to_contain_text(
        "No weights: decoder.rollout: rollout multiplies the weights of self-attention, which the layers of this model"
    )
    expect(tab.get_by_label("Kind").locator("option")).to_have_text(["decoder, attention over the source"])


@pytest.mark.parametrize("width", [320, 400, 1400])
def test_long_tokens_are_not_cut_off_in_the_picture_of_lines(tabs: WorkbenchTabs, width: int) -> None:
    """They are whole, or shortened with an ellipsis, and the page does not scroll sideways."""
    tab = tabs.open(f"view=attention&{SENTENCE}&drawing=lines", viewport={"width": width, "height": 800})
    wait_until_drawn(tab)
    assert tab.evaluate(CUT_OFF, TOKENS) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_tokens_of_long_sentences_stay_readable(tabs: WorkbenchTabs) -> None:
    """Sixty tokens per side: the page does not scroll sideways, and cells are large enough to point at."""
    words = "+".join(["dog"] * 58)
    tab = tabs.open(f"view=attention&source={words}&target={words}", viewport={"width": 400, "height": 800})
    wait_until_drawn(tab)
    box = tab.locator(".map-cells").bounding_box()
    columns = tab.locator(".column-labels > div").count()
    assert columns > 58 and box["width"] / columns >= 9
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
