"""Word alignments, alternatives and glossaries on the page, by mouse and by keyboard."""

import json
import re
from typing import Any

import pytest
from browser_tabs import Tabs, expect
from page_server import page_served

LIT = re.compile(r"\blit\b")


def translated(tab: Any, text: str) -> None:
    tab.get_by_label("Text to translate").fill(text)
    expect(tab.locator("#state")).to_have_attribute("data-state", "done")


def highlighted(tab: Any) -> tuple[list[str], list[str]]:
    """The highlighted words of both panes."""
    return tuple(tab.locator(f"{pane} .is-highlighted").all_text_contents() for pane in ("#mirror", "#translation"))


def shown(tab: Any, source: list[str], target: list[str]) -> None:
    expect(tab.locator("#mirror .is-highlighted")).to_have_text(source)
    expect(tab.locator("#translation .is-highlighted")).to_have_text(target)


def test_aligned_words_are_highlighted_on_both_sides(tab: Any) -> None:
    asked: list[dict[str, Any]] = []
    tab.on("request", lambda request: asked.append(json.loads(request.post_data or "{}")))
    translated(tab, "a dog runs.\nIt barks")
    assert [each.get("alignment") for each in asked] == [None]
    tab.locator("#translation").get_by_text("DOG").hover()
    shown(tab, ["dog"], ["DOG"])
    tab.locator("#translation").get_by_text("BARKS").hover()
    shown(tab, ["barks"], ["BARKS"])
    assert [each.get("text") for each in asked if each.get("alignment")] == [["a dog runs.", "It barks"]]
    # the words of the text are below the input field
    place = tab.locator("#mirror").get_by_text("runs.").bounding_box()
    tab.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    shown(tab, ["runs."], ["RUNS."])
    tab.mouse.move(2, 2)
    shown(tab, [], [])
    tab.get_by_label("Text to translate").press("End")
    shown(tab, ["barks"], ["BARKS"])
    tab.get_by_label("Text to translate").press("Home")
    shown(tab, ["It"], ["IT"])
    tab.get_by_label("Text to translate").press_sequentially("!")
    shown(tab, [], [])


def test_the_text_field_covers_the_words_below_it_exactly(tab: Any) -> None:
    """Compared line by line; otherwise the wrong words would be highlighted."""
    translated(tab, "several words that fill a line, and more of them so that there is another " * 4)
    field, behind = (tab.locator(each).bounding_box() for each in ("#text", "#mirror"))
    assert field == pytest.approx(behind, abs=0.6)
    styles = "(e) => ['font', 'padding', 'lineHeight', 'whiteSpace', 'overflowWrap', 'letterSpacing', 'tabSize']"
    read = f"(e) => {{ const s = getComputedStyle(e); return ({styles})().map((name) => s[name]); }}"
    assert tab.locator("#text").evaluate(read) == tab.locator("#mirror").evaluate(read)
    assert tab.locator("#text").evaluate("(e) => e.scrollHeight <= e.clientHeight + 1")


def test_keys_move_from_word_to_word(tab: Any) -> None:
    translated(tab, "a dog runs. It barks")
    for _ in range(10):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.className") == "sentence":
            break
    shown(tab, ["runs."], ["RUNS."])
    tab.keyboard.press("ArrowRight")
    shown(tab, ["dog"], ["DOG"])
    expect(tab.locator("#announced")).to_have_text("DOG: from dog")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowRight")
    shown(tab, ["barks"], ["BARKS"])
    tab.keyboard.press("ArrowLeft")
    shown(tab, ["a"], ["A"])
    tab.keyboard.press("ArrowDown")
    shown(tab, ["barks"], ["BARKS"])
    tab.keyboard.press("Home")
    shown(tab, ["runs."], ["RUNS."])
    tab.keyboard.press("Tab")
    shown(tab, [], [])
    expect(tab.get_by_role("button", name="Copy")).to_be_focused()


@pytest.mark.slow
def test_an_alternative_is_chosen_by_keyboard(tab: Any) -> None:
    translated(tab, "a dog runs. It barks")
    tab.locator(".sentence").nth(1).focus()
    tab.keyboard.press("Enter")
    box = tab.get_by_role("dialog", name="Alternatives")
    expect(box.get_by_role("button")).to_have_text([f"BARKS IT{'!' * rank}" for rank in range(1, 5)])
    expect(box.get_by_role("button").first).to_be_focused()
    expect(box.locator("b").first).to_have_text("IT!")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Escape")
    expect(box).to_be_hidden()
    expect(tab.locator(".sentence").nth(1)).to_be_focused()
    tab.keyboard.press("Enter")
    expect(box.get_by_role("button").first).to_be_focused()
    tab.keyboard.press("ArrowUp")
    tab.keyboard.press("Enter")
    expect(tab.locator("#translation")).to_have_text("RUNS. DOG A BARKS IT!!!!")
    expect(tab.locator(".sentence").nth(1)).to_be_focused()
    # the edited translation has no known alignment; the other sentence keeps its own
    expect(tab.locator("#mirror .is-highlighted")).to_have_count(0)
    tab.keyboard.press("ArrowUp")
    shown(tab, ["runs."], ["RUNS."])


def test_an_alternative_is_chosen_by_mouse_and_lasts_until_the_text_changes(tab: Any) -> None:
    translated(tab, "a dog. It barks")
    tab.locator("#translation").get_by_text("DOG").click()
    tab.get_by_role("button", name="DOG. A!!", exact=True).click()
    expect(tab.locator("#translation")).to_have_text("DOG. A!! BARKS IT")
    tab.locator("#translation").get_by_text("BARKS").hover()
    shown(tab, ["barks"], ["BARKS"])
    tab.locator("#translation").get_by_text("BARKS").click()
    expect(tab.get_by_role("dialog").get_by_role("button")).to_have_count(4)
    tab.get_by_label("Text to translate").fill("another")
    expect(tab.get_by_role("dialog")).to_be_hidden()
    expect(tab.locator("#translation")).to_have_text("ANOTHER")


@pytest.mark.parametrize("most", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_server_that_gives_fewer_alternatives_or_none(browser: Any, most: int) -> None:
    with page_served("en-de", limits={"alternatives": most}) as server:
        tabs = Tabs(browser, server.address)
        tabs.expected = ("status of 400",)
        tab = tabs.open()
        translated(tab, "a dog")
        tab.locator(".sentence").click()
        box = tab.get_by_role("dialog")
        expect(box.get_by_role("button")).to_have_count(most)
        if not most:
            expect(box).to_contain_text("There are no alternatives")
        tabs.close()


def test_the_glossary_is_sent(tab: Any) -> None:
    asked: list[dict[str, Any]] = []
    tab.on("request", lambda request: asked.append(json.loads(request.post_data or "{}")))
    tab.locator("#glossary-box summary").click()
    box = tab.get_by_label("One term per line")
    box.fill("# animals\ndog = Hund|Hündin\n\n DRAGOMAN \n= x\ncat=\nbird = a | \ndog = Köter\n__proto__ = p\na=b=c")
    expect(tab.locator("#glossary-count")).to_have_text("4 terms")
    expect(tab.locator("#glossary-problems li")).to_have_text(
        [
            "Line 5: a term is missing before =",
            "Line 6: a translation of “cat” is missing",
            "Line 7: a translation of “bird” is missing",
            "Line 8: “dog” is listed twice",
        ]
    )
    expect(box).to_have_attribute("aria-invalid", "true")
    box.fill("dog = Hund | Hündin\nDRAGOMAN")
    expect(tab.locator("#glossary-problems li")).to_have_count(0)
    translated(tab, "a dog")
    assert asked[-1]["glossary"] == {"dog": ["Hund", "Hündin"], "DRAGOMAN": None}
    expect(tab.locator("#translation")).to_contain_text("Hund")
    box.fill("")
    expect(tab.locator("#translation")).to_have_text("DOG A")
    assert "glossary" not in asked[-1]
