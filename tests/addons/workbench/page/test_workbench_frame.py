"""The frame of the workbench: addresses, navigation, keys, states without content, and saved figures."""

import gzip
import re
from pathlib import Path

import httpx
import pytest
from workbench_server import WorkbenchServer
from workbench_tabs import SOURCE, WorkbenchTabs, expect, violations, wait_until_drawn

SENTENCE = "source=a+dog+runs+in+the+park+."
VIEWS = [
    *(f"view={name}&{SENTENCE}" for name in ("translate", "attention", "what-if", "tree")),
    f"view=alignment&{SENTENCE}&target=ein+Hund+rennt+im+Park&gold=0-0+1-1+2?2&others=two",
    f"view=compare&{SENTENCE}&reference=ein+Hund+rennt",
    "view=training",
    "view=positions",
]


def test_the_first_load_is_small(tabs: WorkbenchTabs) -> None:
    tab = tabs.open()
    expect(tab.get_by_role("link", name="Attention")).to_be_visible()
    tab.wait_for_load_state("networkidle")
    with httpx.Client() as client:
        sizes = {url: len(gzip.compress(client.get(url).content)) for url in set(tabs.requested)}
    assert len(sizes) > 15
    assert sum(sizes.values()) <= 60_000, sizes


def test_an_address_restores_its_view(tabs: WorkbenchTabs) -> None:
    """Also in another tab, and after a reload; the browser's history leads back."""
    tab = tabs.open(f"view=attention&{SENTENCE}&layer=1&head=2&drawing=lines")
    wait_until_drawn(tab)
    expect(tab.get_by_role("heading", name="Layer 1, head 2")).to_be_visible()
    tab.get_by_role("button", name="Heat map").click()
    tab.get_by_role("gridcell", name="layer 2, head 1").click()
    address = tab.evaluate("location.href")
    tab.get_by_role("button", name="By entropy").click()
    assert tab.evaluate("location.href") != address
    tab.go_back()
    assert tab.evaluate("location.href") == address
    expect(tab.get_by_role("button", name="By layer")).to_have_attribute("aria-pressed", "true")
    other = tabs.open(address.partition("#")[2])
    for each in (tab, other):
        wait_until_drawn(each)
        expect(each.get_by_role("heading", name="Layer 2, head 1")).to_be_visible()
        expect(each.get_by_label("Sentence", exact=True)).to_have_value(SOURCE)
    assert tab.locator(".attention").inner_text() == other.locator(".attention").inner_text()


def test_views_share_the_sentence_and_keep_their_own_settings(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=attention&{SENTENCE}&layer=1")
    wait_until_drawn(tab)
    tab.get_by_role("link", name="Translate").click()
    expect(tab.get_by_label("Sentence to translate")).to_have_value(SOURCE)
    assert "layer" not in tab.evaluate("location.hash")
    expect(tab.get_by_role("link", name="Translate")).to_have_attribute("aria-current", "page")
    tab.locator("main").focus()
    tab.keyboard.press("2")
    expect(tab.get_by_role("heading", name="Layer 1, head 1")).to_be_visible()
    tab.get_by_label("Model").select_option("two")
    wait_until_drawn(tab)
    assert "model=two" in tab.evaluate("location.hash") and "layer=1" in tab.evaluate("location.hash")


@pytest.mark.slow
def test_the_sentence_outlives_views_without_one(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=attention&{SENTENCE}&model=two")
    for name in ("Training", "Positions and masks"):
        tab.get_by_role("link", name=name).click()
        wait_until_drawn(tab)
        assert "source" not in tab.evaluate("location.hash")
    tab.get_by_role("link", name="Attention").click()
    wait_until_drawn(tab)
    assert "model=two" in tab.evaluate("location.hash")
    expect(tab.get_by_label("Sentence", exact=True)).to_have_value(SOURCE)


def test_keys_are_listed(tabs: WorkbenchTabs) -> None:
    tab = tabs.open("view=attention")
    tab.get_by_label("Sentence", exact=True).press("?")
    box = tab.get_by_role("dialog", name="Keys")
    expect(box).to_be_hidden()
    tab.get_by_role("link", name="Attention").press("?")
    expect(box).to_contain_text("select another head")
    tab.keyboard.press("Escape")
    expect(box).to_be_hidden()
    expect(tab.get_by_role("link", name="Attention")).to_be_focused()


def test_only_typing_delays_a_request(tabs: WorkbenchTabs) -> None:
    """A changed address, such as a link that was pasted, is shown at once."""
    tab = tabs.open(f"view=attention&{SENTENCE}")
    wait_until_drawn(tab)
    tab.evaluate(
        """() => {
          const { setTimeout } = window;
          window.delays = [];
          window.setTimeout = (call, delay) => setTimeout(call, delay, window.delays.push(delay));
        }"""
    )
    tab.evaluate("location.hash = 'view=attention&source=two+dogs'")
    expect(tab.locator(".column-labels > div").first).to_have_text(re.compile("^t"))
    assert max(tab.evaluate("window.delays"), default=0) < 300
    tab.get_by_label("Sentence", exact=True).fill("two dogs sleep .")
    wait_until_drawn(tab)
    assert max(tab.evaluate("window.delays")) == 300


WITHOUT_CONTENT = [
    (f"view=attention&{SENTENCE}&layer=7", "There is no layer 7: decoder.cross_attention has layers 1 to 2"),
    ("view=attention", "Enter a sentence to see how the model attends"),
    ("view=nothing", "There is no view “nothing”. The views are: translate, attention"),
    (f"view=attention&{SENTENCE}&laier=2", "Unknown setting laier (the address); did you mean layer?"),
    (f"view=attention&{SENTENCE}&model=three", "There is no model 'three': the loaded models are one, two"),
    ("view=attention&source=" + "a+dog+" * 600, "tokens, but pictures show at most 512 per side"),
    ("view=training&runs=x", "There is no run 'x': the runs are run"),
]


def test_a_view_without_content_says_why(tabs: WorkbenchTabs) -> None:
    tabs.expected = ("status of 400",)
    tab = tabs.open()
    for fragment, message in WITHOUT_CONTENT:
        tab.goto(f"{tabs.address}#{fragment}")
        expect(tab.locator("main > .state")).to_contain_text(message)
        expect(tab.locator(".explanation")).to_be_hidden()
        expect(tab.get_by_role("group", name="Save a figure")).to_be_hidden()


@pytest.mark.slow
def test_a_server_that_is_gone_and_returns(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    tabs.expected = ("ERR_CONNECTION_REFUSED", "ERR_EMPTY_RESPONSE", "ERR_INCOMPLETE_CHUNKED")
    tab = tabs.open(f"view=attention&{SENTENCE}")
    wait_until_drawn(tab)
    server.stop()
    tab.get_by_label("Sentence", exact=True).fill("two dogs sleep .")
    expect(tab.locator("main > .state")).to_have_attribute("data-state", "waiting")
    expect(tab.locator("main > .state")).to_contain_text("The server cannot be reached: is dragoman workbench running?")
    expect(tab.locator("#announced")).to_contain_text("The server cannot be reached")
    server.start()
    tab.get_by_role("button", name="Try now").click()
    wait_until_drawn(tab)
    expect(tab.locator(".row-labels")).not_to_be_empty()


def test_a_view_is_loaded_when_the_server_returns(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    """Views are loaded when they are first opened."""
    tabs.expected = ("ERR_CONNECTION_REFUSED", "ERR_EMPTY_RESPONSE", "ERR_INCOMPLETE_CHUNKED")
    tab = tabs.open(f"view=attention&{SENTENCE}")
    wait_until_drawn(tab)
    assert not any(url.endswith("positions.js") for url in tabs.requested)
    server.stop()
    tab.get_by_role("link", name="Positions and masks").click()
    expect(tab.locator("main > .state")).to_contain_text("The server cannot be reached: is dragoman workbench running?")
    server.start()
    tab.get_by_role("button", name="Try now").click()
    wait_until_drawn(tab)
    expect(tab.get_by_role("grid", name="Matrix")).to_be_visible()


def test_a_failing_computation_can_be_repeated(tabs: WorkbenchTabs) -> None:
    tabs.expected = ("status of 500",)
    tab = tabs.open()
    tab.route(
        "**/content*", lambda route: route.fulfill(status=500, json={"error": "internal error: see the terminal"})
    )
    tab.goto(f"{tabs.address}#view=attention&{SENTENCE}")
    expect(tab.locator("main > .state")).to_contain_text("Internal error: see the terminal")
    tab.unroute("**/content*")
    tab.get_by_role("button", name="Try again").click()
    wait_until_drawn(tab)


def test_a_message_appears_at_once(tabs: WorkbenchTabs) -> None:
    """Only the progress of a request fades in, and not what replaces it."""
    tab = tabs.open("view=training")
    wait_until_drawn(tab)
    browser = tab.context.new_cdp_session(tab)
    browser.send("Animation.enable")
    browser.send("Animation.setPlaybackRate", {"playbackRate": 0.001})
    tab.get_by_role("link", name="Attention").click()
    expect(tab.locator("main > .state")).to_contain_text("Enter a sentence")
    expect(tab.locator("main .state-text")).to_have_css("opacity", "1")


def test_figures_are_saved(tabs: WorkbenchTabs, tmp_path: Path) -> None:
    tab = tabs.open(f"view=attention&{SENTENCE}&layer=1&head=2")
    wait_until_drawn(tab)
    tab.get_by_label("Figure to save").select_option("head")
    for suffix, start in (("SVG", b"<?xml"), ("JSON", b'{"kind": "heat-maps"'), ("CSV", b"panel,row,column")):
        with tab.expect_download() as saved:
            tab.get_by_role("button", name=suffix, exact=True).click()
        assert saved.value.suggested_filename == f"attention-head.{suffix.lower()}"
        saved.value.save_as(tmp_path / suffix)
        assert (tmp_path / suffix).read_bytes().startswith(start)
        wait_until_drawn(tab)


@pytest.mark.parametrize("views", [VIEWS[1:2], pytest.param(VIEWS, marks=pytest.mark.slow)], ids=["one", "all"])
def test_axe_finds_nothing(tabs: WorkbenchTabs, views: list[str]) -> None:
    tabs.expected = ("status of 400",)
    tab = tabs.open(views[0], reduced_motion="reduce", bypass_csp=True)
    found: list[str] = []
    for fragment in views:
        tab.goto(f"{tabs.address}#{fragment}")
        wait_until_drawn(tab)
        for details in tab.locator("details").all():
            if details.is_visible():
                details.locator("summary").click()
        found += violations(tab)
    others = "attention&drawing=lines&order=entropy", "attention&kind=decoder.rollout", "what-if&layer=1"
    for more in others if views is VIEWS else ():
        tab.goto(f"{tabs.address}#view={more}&{SENTENCE}")
        wait_until_drawn(tab)
        tab.locator(".single [role=listbox], .lens td").first.focus()
        found += violations(tab)
    tab.goto(f"{tabs.address}#view=attention&{SENTENCE}&drawing=clouds")
    expect(tab.locator("main > .state")).to_have_attribute("data-state", "failed")
    tab.get_by_role("button", name="Keys").click()
    found += violations(tab)
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_narrow_screens_do_not_scroll_sideways(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(viewport={"width": 320, "height": 640})
    for fragment in VIEWS:
        tab.goto(f"{tabs.address}#{fragment}")
        wait_until_drawn(tab)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 320, fragment
        names = tab.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
        assert len(names) == len(set(names)), fragment


def test_hostile_texts_are_shown_as_text(tabs: WorkbenchTabs) -> None:
    hostile = "<script>alert(1)</script> <img src=x onerror=alert(1)> \u202eabc \U0001f600 &amp; {{x}} 'quoted'"
    tab = tabs.open("view=attention")
    tab.get_by_label("Sentence", exact=True).fill(hostile)
    wait_until_drawn(tab)
    expect(tab.locator(".column-labels div").first).to_be_visible()
    assert tab.locator("main script, main img").count() == 0
    tab.get_by_role("link", name="Translate").click()
    wait_until_drawn(tab)
    expect(tab.get_by_label("Sentence to translate")).to_have_value(hostile)
    assert tab.locator("main script, main img").count() == 0
