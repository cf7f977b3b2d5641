"""Hostile texts, files, servers and names are shown as text, and do not break the layout."""

from typing import Any

import pytest
from browser_tabs import Error, Tabs, expect

HOSTILE = {
    "script": "<script>window.hurt = 1</script> a",
    "handler": "<img src=x onerror='window.hurt=1'><svg/onload=window.hurt=1> b",
    "markup": "&lt;b&gt; </textarea></div><!-- ${1} {{2}} b",
    "right to left": "שלום \u202eabc\u202c مرحبا \u2066x",
    "emoji": "👩‍👧‍👦 🇩🇪 a 🐶👍🏽 \ufe0f",
    "marks": "Z\u0351\u036b\u0343\u036a a\u0301\u0301\u0301\u0301\u0301",
    "control": "a\x00b \x07 \x1b[31m \x1c c \x85 d \u2028 e \ufeff",
    "half characters": "a \ud800 b \udfff",
    "one word": "w" * 3000,
}
STANDS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


def is_harmless(tab: Any) -> None:
    assert tab.evaluate("window.hurt") is None
    assert tab.locator("main script, main img, #translation :not(span), #mirror :not(span)").count() == 0
    assert tab.evaluate(STANDS)


@pytest.mark.parametrize(
    "names", [("script", "half characters"), pytest.param(tuple(HOSTILE), marks=pytest.mark.slow)], ids=["two", "all"]
)
def test_hostile_texts(tabs: Tabs, names: tuple[str, ...]) -> None:
    tab = tabs.open(viewport={"width": 360, "height": 640})
    field = tab.get_by_label("Text to translate")
    for name in names:
        text = HOSTILE[name]
        tab.evaluate("(t) => { document.getElementById('text').value = t }", text)
        field.press("End")
        field.press_sequentially(".")
        expect(tab.locator("#state")).to_have_attribute("data-state", "done")
        found = tab.evaluate("document.getElementById('translation').textContent")
        words = text.replace("\ud800", "�").replace("\udfff", "�").upper().split()
        if name in ("script", "handler", "one word"):  # the other characters form sentences of their own
            assert {*" ".join(words).casefold()} <= {*found.casefold()}, name  # tags are kept
        assert found
        is_harmless(tab)
        tab.locator("#translation .word").first.hover()
        tab.locator("#translation .word").first.click()
        expect(tab.get_by_role("dialog").get_by_role("button").first).to_be_visible()
        is_harmless(tab)
        tab.keyboard.press("Escape")


@pytest.mark.slow
def test_ten_thousand_characters(tabs: Tabs) -> None:
    tab = tabs.open(viewport={"width": 360, "height": 640})
    tab.get_by_label("Text to translate").fill("a dog runs. " * 833)
    expect(tab.locator("#state")).to_have_attribute("data-state", "done")
    expect(tab.locator("#counter")).to_have_text("9,996 / 10,000")
    assert tab.locator("#translation .sentence").count() == 833
    assert tab.evaluate(STANDS)
    tab.locator(".sentence").last.focus()
    tab.keyboard.press("ArrowUp")
    expect(tab.locator("#mirror .is-highlighted")).to_have_text(["runs."])
    tab.set_viewport_size({"width": 1100, "height": 700})
    expect(tab.get_by_role("button", name="Copy")).to_be_in_viewport()
    assert tab.evaluate(STANDS)


@pytest.mark.slow
def test_hostile_servers(tabs: Tabs) -> None:
    tabs.expected = ("status of 400",)
    tab = tabs.open()
    bad = "<img src=x onerror=window.hurt=1>"
    tab.route("**/languages", lambda route: route.fulfill(json=[{"code": bad, "name": bad, "targets": [bad, "de"]}]))
    tab.reload()
    tab.get_by_label("Translate from").select_option(bad)
    tab.get_by_label("Translate into").select_option("de")
    sentence = {"source": "a", "hypotheses": [{"text": bad}], "finished": True}
    answers = iter([(400, {"error": bad}), (200, {"translations": [{"text": bad, "sentences": [sentence]}]})])

    def answer(route: Any) -> None:
        status, body = next(answers)
        route.fulfill(status=status, json=body)

    tab.route("**/v1/translate", answer)
    tab.get_by_label("Text to translate").fill("a")
    expect(tab.locator("#state-text")).to_have_text(bad)
    is_harmless(tab)
    tab.keyboard.press("Control+Enter")
    expect(tab.locator("#translation")).to_have_text(bad)
    is_harmless(tab)


def test_the_policy_is_in_force(tabs: Tabs) -> None:
    """Even a bug of the page could neither turn text into markup nor send it elsewhere."""
    tabs.expected = ("Content Security Policy", "TrustedHTML", "TrustedScript")
    tab = tabs.open()
    for code in ("document.body.innerHTML = '<b>x</b>'", "document.write('x')"):
        with pytest.raises(Error, match="TrustedHTML"):
            tab.evaluate(f"() => {{ {code} }}")
    tab.evaluate(
        """() => {
          const style = document.createElement('style');
          style.textContent = 'body { color: rgb(1, 2, 3) }';
          const image = document.createElement('img');
          image.src = 'https://example.org/';
          document.body.append(style, image);
        }"""
    )
    assert tab.evaluate("() => fetch('https://example.org/').then(() => 'sent', () => 'kept')") == "kept"
    assert tab.evaluate("getComputedStyle(document.body).color") != "rgb(1, 2, 3)"
    broken = [each for each in tabs.complaints if "Content Security Policy" in each]
    for directive in ("style-src", "img-src", "connect-src"):
        assert any(directive in each for each in broken), directive
