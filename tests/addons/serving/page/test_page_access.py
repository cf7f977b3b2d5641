"""The page by keyboard alone, for screen readers, in both colour schemes, and on narrow screens."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from browser_tabs import Tabs, expect, wait_until_still
from page_server import page_served

from dragoman.addons.serving.access.keys import Keys

NAMED = """() => [...document.querySelectorAll('button, select, textarea, input:not([hidden]), a, [role=button]')]
  .filter((e) => e.checkVisibility() && !e.getAttribute('aria-label') && !e.textContent.trim() && !(e.labels?.length))
  .map((e) => e.outerHTML)"""

SMALL = """() => [...document.querySelectorAll('button, select, summary')].filter((e) => e.checkVisibility())
  .filter((e) => Math.min(e.getBoundingClientRect().width, e.getBoundingClientRect().height) < 24)
  .map((e) => e.outerHTML)"""

# Returns [text, colour, background, size, weight] of every element that has its own text.
COLOURS = """() => {
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (!/, 0\\)$/.test(colour)) return colour;
    }
  };
  return [...document.querySelectorAll('body *')]
    .filter((e) => e.checkVisibility({opacityProperty: true}) && !e.closest('.unseen, #mirror, :disabled'))
    .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || e.matches('textarea, select'))
    .map((e) => { const s = getComputedStyle(e); return [e.id || e.textContent, s.color, ground(e)]; });
}"""


def luminance(colour: str) -> float:
    """Relative luminance of an opaque colour, as defined in WCAG 2.2."""
    channels = [float(each) / 255 for each in re.findall(r"[\d.]+", colour)[:3]]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["dark", pytest.param("light", marks=pytest.mark.slow)])
def test_text_has_enough_contrast(tabs: Tabs, scheme: str) -> None:
    tabs.expected = ("status of 400",)
    tab = tabs.open()
    faint: list[Any] = []

    def look() -> None:
        tab.emulate_media(color_scheme=scheme)
        wait_until_still(tab)
        found = tab.evaluate(COLOURS)
        assert len(found) > 5
        faint.extend(each for each in found if contrast(each[1], each[2]) < 4.5)

    look()
    tab.locator("#glossary-box summary").click()
    tab.locator("#glossary").fill("= x\ncat")
    tab.get_by_label("Text to translate").fill("a dog. It barks")
    expect(tab.locator("#state")).to_have_attribute("data-state", "done")
    tab.locator("#translation").locator(".word").first.hover()
    expect(tab.locator("#translation .is-highlighted")).to_have_count(1)
    look()
    tab.locator("#translation").locator(".word").first.click()
    expect(tab.get_by_role("dialog").get_by_role("button").first).to_be_visible()
    look()
    tab.keyboard.press("Escape")
    tab.route("**/v1/translate", lambda route: route.fulfill(status=400, json={"error": "no"}))
    tab.get_by_label("Text to translate").fill("a cat")
    expect(tab.locator("#state")).to_have_attribute("data-state", "failed")
    look()
    tab.keyboard.press("Control+/")
    expect(tab.get_by_role("dialog", name="Help")).to_be_visible()
    look()
    assert not faint


def test_everything_has_a_name_and_a_size(tabs: Tabs) -> None:
    tab = tabs.open(viewport={"width": 360, "height": 640})
    tab.get_by_label("Text to translate").fill("a dog")
    expect(tab.locator("#state")).to_have_attribute("data-state", "done")
    tab.locator("#glossary-box summary").click()
    assert tab.evaluate(NAMED) == []
    assert tab.evaluate(SMALL) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    names = tab.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(names) == len(set(names))
    pointed = tab.evaluate(
        "[...document.querySelectorAll('*')].flatMap((e) => ['for', 'aria-describedby', 'aria-labelledby']"
        ".flatMap((a) => (e.getAttribute(a) ?? '').split(' ').filter(Boolean)))"
    )
    assert {*pointed} <= {*names}
    expect(tab.locator("main")).to_have_count(1)
    expect(tab.get_by_role("heading", level=1)).to_have_text(re.compile("dragoman"))
    expect(tab.locator("#announced")).to_have_attribute("aria-live", "polite")
    assert tab.locator("html").get_attribute("lang") == "en"


def test_keyboard_access_in_reading_order(tab: Any) -> None:
    tab.keyboard.press("Tab")
    expect(tab.get_by_role("link", name="To the text")).to_be_in_viewport()
    tab.get_by_label("Text to translate").focus()
    tab.keyboard.type("a dog")
    expect(tab.locator("#state")).to_have_attribute("data-state", "done")
    tab.get_by_role("link", name="To the text").focus()
    visited = []
    while True:
        tab.keyboard.press("Tab")
        name = tab.evaluate("document.activeElement.id || document.activeElement.className")
        if not name or name in visited or len(visited) > 30:
            break
        visited.append(name)
        shown = "getComputedStyle(document.activeElement).outlineStyle"
        if name != "text":  # the focus of the text field is shown around the whole pane
            assert tab.evaluate(shown) != "none", name
    assert visited[:12] == [
        "help-button",
        "source-language",
        "swap",
        "target-language",
        "text",
        "clear",
        "format",
        "open",
        "sentence",
        "copy",
        *visited[10:12],
    ]
    tab.get_by_label("Text to translate").focus()
    ring = "getComputedStyle(document.getElementById('source-pane'), '::after').borderTopStyle"
    assert tab.evaluate(ring) == "solid"


def test_help_by_key(tab: Any) -> None:
    tab.get_by_label("Text to translate").focus()
    tab.keyboard.press("Control+/")
    help_ = tab.get_by_role("dialog", name="Help")
    expect(help_).to_contain_text("translate now")
    tab.keyboard.press("Escape")
    expect(help_).to_be_hidden()
    expect(tab.get_by_label("Text to translate")).to_be_focused()


def test_a_required_key_is_requested(browser: Any, tmp_path: Path) -> None:
    with Keys(tmp_path / "keys.db") as keys:
        good = keys.add("good").text
    with page_served("en-de", access={"keys": tmp_path / "keys.db"}) as server:
        tabs = Tabs(browser, server.address)
        tabs.expected = ("status of 401", "status of 403")
        tab = tabs.open(wait=False)
        field = tab.get_by_label("This server requires an access key")
        expect(field).to_have_attribute("type", "password")
        expect(field).to_be_focused()
        # a question is not an error: nothing is red before a key is rejected, and then only the reason
        expect(tab.locator("#key-message")).to_have_text("")
        expect(tab.locator("#state")).to_have_attribute("data-state", "idle")
        field.fill("dragoman-wrong")
        field.press("Enter")
        expect(tab.locator("#key-message")).to_contain_text("not valid")
        expect(tab.locator("#state-text")).to_have_text("")
        field.fill(good)
        field.press("Enter")
        tab.locator("#target-language option").first.wait_for(state="attached")
        tab.get_by_label("Translate from").select_option("en")
        tab.get_by_label("Text to translate").fill("a dog")
        expect(tab.locator("#translation")).to_have_text("DOG A")
        expect(field).to_be_hidden()
        assert good not in tab.evaluate("JSON.stringify([{...localStorage}, document.cookie])")
        tab.reload()  # the tab remembers the key
        tab.locator("#target-language option").first.wait_for(state="attached")
        expect(field).to_be_hidden()
        tabs.close()


def test_reduced_motion_is_respected(tabs: Tabs) -> None:
    tab = tabs.open(reduced_motion="reduce")
    assert tab.locator("#swap").evaluate("(e) => getComputedStyle(e).transitionProperty") in ("none", "all")
    assert tab.locator("#swap").evaluate("(e) => getComputedStyle(e).transitionDuration") == "0s"


@pytest.mark.slow
def test_widths(tab: Any) -> None:
    tab.get_by_label("Text to translate").fill("a dog runs. " * 20)
    expect(tab.locator("#state")).to_have_attribute("data-state", "done")
    tops = []
    for width in (320, 360, 700, 800, 1920):
        tab.set_viewport_size({"width": width, "height": 700})
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        source, target = (tab.locator(f"#{pane}-pane").bounding_box() for pane in ("source", "target"))
        tops.append(source["y"] == target["y"])
    assert tops == [False, False, False, True, True]
    assert all(not (one and not other) for one, other in pairwise(tops))
