"""The view of translations: typing, choosing one of several, and links between words."""

import re
from typing import Any

from workbench_server import WorkbenchServer
from workbench_tabs import WorkbenchTabs, expect, wait_until_drawn

from dragoman.translation.translator import Translator


def best(server: WorkbenchServer, source: str, count: int = 5) -> list[Any]:
    translator = server.workspace.model("one").loaded
    assert isinstance(translator, Translator)
    return translator.translate_nbest([source], translator.request(beam=5, nbest=count))[0]


def test_typing_causes_few_requests_and_shows_only_the_last(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    tab = tabs.open("view=translate")
    states: list[str] = []
    tab.on("request", lambda request: "content" in request.url and states.append(request.post_data))
    field = tab.get_by_label("Sentence to translate")
    field.press_sequentially("two dogs sleep in the park and a man see", delay=50)
    wait_until_drawn(tab)
    expect(tab.locator(".translation")).to_have_text(best(server, field.input_value())[0].text)
    assert 1 <= len(states) <= 2
    assert "man+see" in states[-1]


def test_a_stale_translation_is_never_shown(tabs: WorkbenchTabs) -> None:
    """The answers arrive in the wrong order, and only the last request's is shown."""
    tab = tabs.open("view=translate")
    tab.locator(".translation").wait_for(state="attached")
    shown: list[str] = []
    tab.expose_function("note", lambda text: shown.append(text))
    tab.evaluate(
        "() => new MutationObserver(() => note(document.querySelector('.translation').textContent))"
        ".observe(document.querySelector('.translation'), {childList: true, subtree: true, characterData: true})"
    )
    field = tab.get_by_label("Sentence to translate")
    tab.route("**/content*", lambda route: (tab.wait_for_timeout(30), route.continue_()))
    texts = [f"a dog {number}" for number in range(12)]
    for text in texts:
        field.fill(text)
        tab.wait_for_timeout(60)
    wait_until_drawn(tab)
    tab.unroute("**/content*")
    final = tab.locator(".translation").inner_text()
    assert {text for text in shown if text} == {final}


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


def test_an_example_is_offered(tabs: WorkbenchTabs) -> None:
    tab = tabs.open("view=translate")
    expect(tab.locator("main > .state")).to_have_text(re.compile("Enter a sentence to see its translations"))
    tab.get_by_role("button", name="Try an example").click()
    wait_until_drawn(tab)
    expect(tab.get_by_label("Sentence to translate")).to_have_value(re.compile("playing in the park"))
    expect(tab.get_by_role("button", name="Try an example")).to_be_hidden()
