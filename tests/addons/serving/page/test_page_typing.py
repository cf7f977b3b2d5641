"""The page translates while the user types, and reports problems."""

import re
from typing import Any

import pytest
from browser_tabs import Tabs, expect, stop_clock
from page_server import SLOW, PageServer, page_served


def write(tab: Any, text: str) -> None:
    tab.get_by_label("Text to translate").fill(text)


def test_typed_text_is_translated_after_a_pause(tab: Any) -> None:
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    stop_clock(tab)
    for character in "a dog runs. It barks":
        tab.get_by_label("Text to translate").press_sequentially(character)
        tab.clock.run_for(250)
    assert not asked
    tab.clock.run_for(50)
    expect(tab.locator("#translation")).to_have_text("RUNS. DOG A BARKS IT")
    expect(tab.locator("#state")).to_have_attribute("data-state", "done")
    assert len(asked) == 1 and asked[0].endswith("/v1/translate")
    expect(tab.locator("#announced")).to_have_text("")
    tab.clock.run_for(900)
    expect(tab.locator("#announced")).to_have_text("RUNS. DOG A BARKS IT")
    write(tab, "")
    expect(tab.locator("#translation")).to_have_text("")
    expect(tab.locator("#state-text")).to_have_text("")


@pytest.mark.slow
def test_layout_is_kept(tab: Any) -> None:
    write(tab, "  a b\n\n\t- c d\n")
    expect(tab.locator("#state")).to_have_attribute("data-state", "done")
    assert tab.locator("#translation").text_content() == "  B A\n\n\t- D C\n"


def test_late_answers_are_not_shown_and_their_requests_are_cancelled(tab: Any) -> None:
    given_up: list[str] = []
    tab.on("requestfailed", lambda request: given_up.append(request.post_data))
    with tab.expect_request("**/v1/translate"):
        write(tab, "a slow text")
    expect(tab.locator("#state-text")).to_have_text("Translating …")
    write(tab, "another one")
    expect(tab.locator("#translation")).to_have_text("ONE ANOTHER")
    tab.wait_for_timeout(int(SLOW * 1000))
    expect(tab.locator("#translation")).to_have_text("ONE ANOTHER")
    assert len(given_up) == 1 and "a slow text" in given_up[0]


@pytest.mark.slow
def test_the_page_recovers_when_the_server_returns(tabs: Tabs, site: PageServer) -> None:
    tabs.expected = ("Failed to load resource",)
    tab = tabs.open()
    write(tab, "a dog")
    expect(tab.locator("#translation")).to_have_text("DOG A")
    site.stop()
    try:
        write(tab, "a cat")
        expect(tab.locator("#state-text")).to_have_text(re.compile("cannot be reached. Trying again in 1 s"))
        expect(tab.locator("#translation")).to_have_class(re.compile("is-stale"))
        tab.get_by_label("Text to translate").press_sequentially(" sits")
    finally:
        site.start()
    expect(tab.locator("#translation")).to_have_text("SITS CAT A")
    expect(tab.locator("#state")).to_have_attribute("data-state", "done")


def test_a_page_opened_before_its_server_starts(tabs: Tabs, site: PageServer) -> None:
    tabs.expected = ("Failed to load resource",)
    tab = tabs.open()
    failing = [True]
    tab.route("**/languages", lambda route: route.abort() if failing.pop() else route.continue_())
    failing.insert(0, False)
    tab.reload()
    expect(tab.locator("#state-text")).to_have_text(re.compile("cannot be reached"))
    tab.get_by_role("button", name="Try now").click()
    expect(tab.get_by_label("Translate into")).to_have_value("de")


def test_retry_after_is_respected(tabs: Tabs) -> None:
    tabs.expected = ("status of 429", "status of 503")
    tab = tabs.open()
    stop_clock(tab)
    asked: list[str] = []
    waits = iter([(429, "2"), (503, None)])

    def answer(route: Any) -> None:
        asked.append(route.request.url)
        status, seconds = next(waits, (200, None))
        if status == 200:
            route.continue_()
        else:
            headers = {} if seconds is None else {"Retry-After": seconds}
            route.fulfill(status=status, headers=headers, json={"error": "too much"})

    tab.route("**/v1/translate", answer)
    write(tab, "a dog")
    tab.clock.run_for(300)
    expect(tab.locator("#state-text")).to_have_text(re.compile(r"Quota exceeded\. Trying again in 2 s"))
    write(tab, "a dog runs")
    tab.clock.run_for(1900)
    assert len(asked) == 1
    tab.clock.run_for(1000)
    expect(tab.locator("#state-text")).to_have_text(re.compile(r"The server is busy\. Trying again in \d s"))
    assert len(asked) == 2
    tab.clock.run_for(10_000)
    expect(tab.locator("#translation")).to_have_text("RUNS DOG A")
    assert len(asked) == 3


@pytest.mark.slow
def test_internal_errors_are_shown_and_retried_manually(tabs: Tabs) -> None:
    tabs.expected = ("status of 500",)
    tab = tabs.open()
    write(tab, "a faulty text")
    expect(tab.locator("#state-text")).to_have_text("Internal error: see the server's log")
    expect(tab.locator("#announced")).to_have_text("Internal error: see the server's log")
    with tab.expect_request("**/v1/translate"):
        tab.get_by_role("button", name="Try again").click()
    write(tab, "a text")
    expect(tab.locator("#translation")).to_have_text("TEXT A")


def test_answers_that_are_not_json_are_reported(tabs: Tabs) -> None:
    tabs.expected = ("status of 502", "status of 413")
    tab = tabs.open()
    stop_clock(tab)
    answers = iter([(413, "<h1>proxy</h1>"), (200, "<h1>hotel</h1>")])

    def answer(route: Any) -> None:
        status, body = next(answers)
        route.fulfill(status=status, body=body)

    tab.route("**/v1/translate", answer)
    write(tab, "a")
    tab.clock.run_for(300)
    expect(tab.locator("#state-text")).to_have_text("It exceeds the size that this server allows")
    write(tab, "a b")
    tab.clock.run_for(300)
    expect(tab.locator("#state-text")).to_have_text(re.compile("status 200. Trying again"))


def test_a_text_beyond_the_limit_is_not_sent(browser: Any) -> None:
    with page_served("en-de", limits={"characters": 12}) as server:
        tabs = Tabs(browser, server.address)
        tab = tabs.open()
        asked: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        write(tab, "🐶" * 12)
        expect(tab.locator("#counter")).to_have_text("12 / 12")
        expect(tab.locator("#state")).to_have_attribute("data-state", "done")
        before = len(asked)
        write(tab, "🐶" * 14)
        expect(tab.locator("#text-problem")).to_have_text(re.compile("^2 characters over"))
        expect(tab.get_by_label("Text to translate")).to_have_attribute("aria-invalid", "true")
        tab.wait_for_timeout(500)
        assert len(asked) == before
        tabs.close()


def test_copy_clear_and_example(tabs: Tabs) -> None:
    tab = tabs.open(permissions=["clipboard-read", "clipboard-write"])
    expect(tab.get_by_role("button", name="Copy")).to_be_disabled()
    tab.get_by_role("button", name="Try an example").click()
    expect(tab.locator("#translation")).to_have_text("PARK. THE IN PLAYING ARE CHILDREN TWO")
    tab.get_by_role("button", name="Copy").click()
    expect(tab.locator("#copy-text")).to_have_text("Copied")
    assert tab.evaluate("navigator.clipboard.readText()") == tab.locator("#translation").text_content()
    tab.get_by_role("button", name="Clear the text").click()
    expect(tab.get_by_label("Text to translate")).to_be_focused()
    expect(tab.get_by_label("Text to translate")).to_have_value("")
    expect(tab.get_by_role("button", name="Try an example")).to_be_visible()


@pytest.mark.slow
def test_copying_without_a_clipboard(tab: Any) -> None:
    """Pages loaded by http from another machine have no clipboard."""
    tab.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    write(tab, "a dog")
    expect(tab.locator("#translation")).to_have_text("DOG A")
    tab.get_by_role("button", name="Copy").click()
    expect(tab.locator("#copy-text")).to_have_text("Copied")
    expect(tab.get_by_role("button", name="Copied")).to_be_focused()


def test_translations_of_a_poor_model_are_marked(tab: Any) -> None:
    """The mark of a finished translation is not that of other models, and says why."""
    write(tab, "a dog")
    expect(tab.locator("#translation")).to_have_text("DOG A")
    expect(tab.locator("#state")).not_to_have_class(re.compile("is-doubtful"))
    usual = tab.locator("#state .sign").evaluate("element => getComputedStyle(element).backgroundColor")

    def answer(route: Any) -> None:
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), "unreliable": True})

    tab.route("**/v1/translate", answer)
    write(tab, "a cat")
    expect(tab.locator("#translation")).to_have_text("CAT A")
    expect(tab.locator("#state")).to_have_attribute("title", re.compile("^Do not rely on this translation"))
    expect(tab.locator("#state .sign")).not_to_have_css("background-color", usual)
