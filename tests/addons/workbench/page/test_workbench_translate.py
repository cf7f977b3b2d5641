"""The view of translations: typing, choosing one of several, and links between words."""

import re
from typing import Any

import pytest
from browser_tabs import stop_clock
from workbench_server import WorkbenchServer
from workbench_tabs import WorkbenchTabs, expect, wait_until_drawn

from dragoman.inference.translation.translator import Translator


def best(server: WorkbenchServer, source: str, count: int = 5) -> list[Any]:
    translator = server.workspace.model("one").loaded
    assert isinstance(translator, Translator)
    return translator.translate_nbest([source], translator.request(beam=5, nbest=count))[0]


def test_typing_causes_one_request(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    tab = tabs.open("view=translate")
    states: list[str] = []
    tab.on("request", lambda request: "content" in request.url and states.append(request.post_data))
    field = tab.get_by_label("Sentence to translate")
    stop_clock(tab)
    for character in "two dogs sleep":
        field.press_sequentially(character)
        tab.clock.run_for(250)
    assert not states
    tab.clock.run_for(50)
    expect(tab.locator(".translation")).to_have_text(best(server, "two dogs sleep")[0].text)
    assert len(states) == 1 and "two+dogs+sleep" in states[0]


def test_a_stale_translation_is_never_shown(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    """The answers arrive in the wrong order, and only the last request's is shown."""
    texts = ["a dog runs", "two dogs sleep", "the man sees a dog", "a man runs in the park"]
    translations = [best(server, text)[0].text for text in texts]
    assert len({*translations}) == len(texts)
    tab = tabs.open("view=translate")
    tab.locator(".translation").wait_for(state="attached")
    tab.evaluate(
        """() => {
          const translation = document.querySelector(".translation");
          window.shown = [];
          const note = () => window.shown.push(translation.textContent);
          new MutationObserver(note).observe(translation, { childList: true });
        }"""
    )
    routes: list[Any] = []

    def answer(route: Any) -> None:
        routes.append(route)
        if len(routes) == len(texts):
            for each in reversed(routes):
                each.continue_()

    tab.route("**/content*", answer)
    for text in texts:
        with tab.expect_request("**/content*"):
            tab.get_by_label("Sentence to translate").fill(text)
    wait_until_drawn(tab)
    tab.wait_for_load_state("networkidle")
    expect(tab.locator(".translation")).to_have_text(translations[-1])
    assert {text for text in tab.evaluate("window.shown") if text} == {translations[-1]}


def test_the_translations_are_those_of_the_model(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    tab = tabs.open("view=translate&source=a+dog+runs&nbest=3")
    wait_until_drawn(tab)
    expected = best(server, "a dog runs", 3)
    expect(tab.locator(".hypothesis")).to_have_text([each.text for each in expected])
    score = f"score {expected[0].score:.3f} · log-probability {expected[0].log_probability:.3f}".replace("-", "−")
    expect(tab.locator(".score").first).to_contain_text(score.replace("log−prob", "log-prob"))


def test_a_chosen_translation_is_inspected_by_other_views(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    tab = tabs.open("view=translate&source=a+dog+runs")
    wait_until_drawn(tab)
    second = best(server, "a dog runs")[1].text
    tab.locator(".translations button").first.focus()
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    expect(tab.locator(".translation")).to_have_text(second)
    expect(tab.locator(".translations button").nth(1)).to_have_attribute("aria-pressed", "true")
    tab.get_by_role("link", name="Attention").click()
    wait_until_drawn(tab)
    expect(tab.get_by_label("Translation to inspect")).to_have_value(second)
    tab.get_by_label("Sentence", exact=True).fill("two dogs sleep")
    expect(tab.get_by_label("Translation to inspect")).to_have_value("")


def test_linked_words_are_highlighted(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    tab = tabs.open("view=translate&source=a+dog+runs")
    wait_until_drawn(tab)
    text = best(server, "a dog runs")[0].text
    translator = server.workspace.model("one").translator
    links = translator.align(["a dog runs"], [text])[0]
    target = links[0][1]
    tab.locator(".translation .word").nth(target).hover()
    linked = [i for i, j in links if j == target]
    expect(tab.locator(".mirror .is-highlighted")).to_have_text(["a dog runs".split()[i] for i in sorted(linked)])
    tab.mouse.move(2, 2)
    expect(tab.locator(".is-highlighted")).to_have_count(0)
    tab.locator(".sentence").focus()
    for _ in range(target):
        tab.keyboard.press("ArrowRight")
    expect(tab.locator("#announced")).to_have_text(re.compile(r": from "))


@pytest.mark.slow
def test_an_example_is_offered(tabs: WorkbenchTabs) -> None:
    tab = tabs.open("view=translate")
    expect(tab.locator("main > .state")).to_have_text(re.compile("Enter a sentence to see its translations"))
    tab.get_by_role("button", name="Try an example").click()
    wait_until_drawn(tab)
    expect(tab.get_by_label("Sentence to translate")).to_have_value(re.compile("playing in the park"))
    expect(tab.get_by_role("button", name="Try an example")).to_be_hidden()
