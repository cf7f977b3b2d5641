"""Languages on the page: menus, detection, swapping, writing direction, stored settings, and the page's own texts."""

import re
from typing import Any

import pytest
from browser_tabs import Tabs, expect


def write(tab: Any, text: str) -> None:
    tab.get_by_label("Text to translate").fill(text)


def options(tab: Any, label: str) -> list[str]:
    return tab.get_by_label(label).locator("option").all_text_contents()  # type: ignore[no-any-return]


def test_targets_are_those_of_the_source(tabs: Tabs) -> None:
    tab = tabs.open(source=None, target=None)
    assert options(tab, "Translate from") == ["Detect language", "English", "German"]
    assert options(tab, "Translate into") == ["German", "Arabic", "English"]
    tab.get_by_label("Translate from").select_option("de")
    assert options(tab, "Translate into") == ["English", "Arabic"]
    tab.get_by_label("Translate from").select_option("en")
    assert options(tab, "Translate into") == ["German", "Arabic"]
    write(tab, "a b")
    expect(tab.locator("#translation")).to_have_text("B A")
    for pane in (tab.get_by_label("Text to translate"), tab.locator("#mirror")):
        expect(pane).to_have_attribute("lang", "en")
        expect(pane).to_have_attribute("dir", "ltr")
    tab.get_by_label("Translate into").select_option("ar")
    expect(tab.locator("#translation")).to_have_attribute("lang", "ar")
    expect(tab.locator("#translation")).to_have_attribute("dir", "rtl")
    expect(tab.locator("#state")).to_have_attribute("data-state", "done")
    pane, word = (tab.locator(each).bounding_box() for each in ("#translation", "#translation .word >> nth=0"))
    assert word["x"] > pane["x"] + pane["width"] / 2


def test_detected_languages_are_shown_with_their_confidence(tabs: Tabs) -> None:
    tab = tabs.open("auto", "de")
    swap = tab.get_by_role("button", name="Swap")
    expect(swap).to_be_disabled()
    write(tab, "a dog")
    expect(tab.locator("#detected")).to_have_text("English, 87% sure")
    expect(tab.get_by_label("Text to translate")).to_have_attribute("lang", "en")
    expect(swap).to_be_enabled()
    write(tab, "hello")
    expect(tab.locator("#detected")).to_have_text("English, over 99% sure")
    write(tab, "12 + 3")
    expect(tab.locator("#detected")).to_have_text("unknown")
    expect(swap).to_be_disabled()
    write(tab, "")
    expect(tab.locator("#detected")).to_be_hidden()


def test_a_text_in_the_target_language_is_translated_in_reverse(tabs: Tabs) -> None:
    tabs.expected = ("status of 400",)
    tab = tabs.open("auto", "de")
    write(tab, "Ein Hund")
    expect(tab.locator("#translation")).to_have_text("HUND EIN")
    expect(tab.locator("#detected")).to_have_text("German, 93% sure")
    expect(tab.get_by_label("Translate into")).to_have_value("en")
    expect(tab.locator("#translation")).to_have_attribute("lang", "en")


def test_swapping_exchanges_texts_and_languages(tabs: Tabs) -> None:
    tab = tabs.open("auto", "de")
    write(tab, "a dog runs")
    expect(tab.locator("#translation")).to_have_text("RUNS DOG A")
    tab.get_by_role("button", name="Swap").click()
    expect(tab.get_by_label("Translate from")).to_have_value("de")
    expect(tab.get_by_label("Translate into")).to_have_value("en")
    expect(tab.get_by_label("Text to translate")).to_have_value("RUNS DOG A")
    expect(tab.locator("#translation")).to_have_text("A DOG RUNS")
    tab.keyboard.press("Control+.")
    expect(tab.get_by_label("Text to translate")).to_have_value("A DOG RUNS")
    tab.get_by_label("Translate into").select_option("ar")
    swap = tab.get_by_role("button", name="Swap")
    expect(swap).to_be_disabled()
    expect(swap).to_have_attribute("title", "This server does not translate from Arabic into English")
    tab.keyboard.press("Control+.")
    expect(tab.get_by_label("Translate from")).to_have_value("en")


def test_languages_and_glossaries_are_remembered_and_texts_are_not(tab: Any) -> None:
    tab.get_by_label("Translate into").select_option("ar")
    tab.locator("#glossary-box summary").click()
    tab.locator("#glossary").fill("dog = كلب")
    write(tab, "a secret")
    expect(tab.locator("#state")).to_have_attribute("data-state", "done")
    assert "secret" not in tab.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    tab.reload()
    expect(tab.get_by_label("Translate from")).to_have_value("en")
    expect(tab.get_by_label("Translate into")).to_have_value("ar")
    expect(tab.locator("#glossary-count")).to_have_text("1 term")
    expect(tab.get_by_label("Text to translate")).to_have_value("")
    tab.get_by_label("Translate into").select_option("de")
    expect(tab.locator("#glossary-count")).to_have_text("")


@pytest.mark.slow
def test_a_browser_that_stores_nothing(tabs: Tabs) -> None:
    tab = tabs.open()
    tab.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no', 'SecurityError'); }})"
    )
    tab.reload()
    tab.get_by_label("Translate from").select_option("en")
    tab.locator("#glossary-box summary").click()
    tab.locator("#glossary").fill("dog = Hund")
    expect(tab.locator("#glossary-storage")).to_have_text(re.compile("stores nothing"))
    expect(tab.locator("#glossary-count")).to_have_text("1 term")
    write(tab, "a b")
    expect(tab.locator("#translation")).to_have_text("B A")


def test_the_page_is_in_the_language_of_the_browser(tabs: Tabs) -> None:
    tab = tabs.open(None, None, locale="de-AT")
    expect(tab.locator("html")).to_have_attribute("lang", "de")
    expect(tab).to_have_title("dragoman – übersetzen")
    assert options(tab, "Übersetzen aus") == ["Sprache erkennen", "Englisch", "Deutsch"]
    tab.get_by_label("Übersetzen aus").select_option("en")
    tab.get_by_label("Zu übersetzender Text").fill("a b")
    expect(tab.locator("#state")).to_contain_text(re.compile(r"In \d+,\d s übersetzt"))
    tab.locator("#glossary-box summary").click()
    tab.locator("#glossary").fill("dog = Hund\n= x")
    expect(tab.locator("#glossary-count")).to_have_text("1 Begriff")
    expect(tab.locator("#glossary-problems")).to_have_text("Zeile 2: vor dem = fehlt ein Begriff")
    assert tab.locator("label[for=glossary] code").all_text_contents() == [
        "Begriff = Übersetzung",
        "|",
        "cat = Kater | Katze",
    ]


def test_the_page_in_a_language_that_is_written_from_right_to_left(tabs: Tabs) -> None:
    tab = tabs.open(None, None, locale="ar", viewport={"width": 360, "height": 640})
    expect(tab.locator("html")).to_have_attribute("dir", "rtl")
    mark, help_ = (tab.locator(each).bounding_box() for each in ("h1", "#help-button"))
    assert mark["x"] > help_["x"] and tab.evaluate("document.documentElement.scrollWidth") <= 360
    tab.locator("#glossary-box summary").click()
    tab.locator("#glossary").fill("a = b\nc = d")
    expect(tab.locator("#glossary-count")).to_have_text(re.compile("^مصطلحان"))


@pytest.mark.parametrize(
    ("locale", "language", "states"),
    [
        ("ja-JP", "ja", ["翻訳元の言語", "翻訳先の言語", "翻訳するテキスト", "1 件", "テキストが長すぎます"]),
        ("zh-CN", "zh-Hans", ["源语言", "目标语言", "要翻译的文本", "1 个术语", "文本过长"]),
        ("zh-TW", "zh-Hant", ["來源語言", "目標語言", "要翻譯的文字", "1 個術語", "文字過長"]),
    ],
)
def test_the_page_in_a_language_without_spaces(tabs: Tabs, locale: str, language: str, states: list[str]) -> None:
    tab = tabs.open(None, None, locale=locale, viewport={"width": 400, "height": 800})
    source, target, text, terms, too_long = states
    expect(tab.locator("html")).to_have_attribute("lang", language)
    tab.get_by_label(source).select_option("en")
    tab.get_by_label(target).select_option("de")
    tab.locator("#glossary-box summary").click()
    tab.locator("#glossary").fill("dog = Hund")
    expect(tab.locator("#glossary-count")).to_have_text(terms)
    tab.get_by_label(text).fill("a " * 5600)
    expect(tab.locator("#state")).to_contain_text(too_long)
    written = tab.locator("body").inner_text().replace(tab.get_by_label(text).input_value(), "")
    names = {"dragoman", "API", "Markdown", "HTML", "cat", "Kater", "Katze", "a"}
    assert {*re.findall(r"[A-Za-z]{2,}", written)} <= names, "all other words are in the language"
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
    tab.keyboard.press("Control+/")
    expect(tab.get_by_role("dialog")).to_be_visible()
    assert {*re.findall(r"[A-Za-z]{2,}", tab.get_by_role("dialog").inner_text())} <= {
        "Ctrl",
        "Enter",
        "Esc",
        "Tab",
        "Mac",
    }


def test_a_page_without_the_language_of_the_browser_is_in_english(tabs: Tabs) -> None:
    tab = tabs.open(None, None, locale="is")
    expect(tab.locator("html")).to_have_attribute("lang", "en")
    expect(tab.get_by_role("button", name="Help")).to_be_visible()


@pytest.mark.parametrize(
    ("locale", "language"),
    [("zh", "zh-Hans"), ("zh-SG", "zh-Hans"), ("zh-HK", "zh-Hant"), ("zh-Hant", "zh-Hant"), ("zh-Hans-HK", "zh-Hans")],
)
def test_chinese_is_in_the_script_of_the_browser(tabs: Tabs, locale: str, language: str) -> None:
    tab = tabs.open(None, None, locale=locale)
    expect(tab.locator("html")).to_have_attribute("lang", language)


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (413, "Das ist mehr, als dieser Server erlaubt"),
        (503, "Der Server ist ausgelastet. "),
        (400, "Something else"),
        (None, "Der Server ist nicht erreichbar. "),
    ],
)
def test_frequent_errors_are_in_the_language_of_the_page(tabs: Tabs, status: int | None, shown: str) -> None:
    tabs.expected = ("status of", "ERR_FAILED")
    tab = tabs.open(None, None, locale="de")
    tab.get_by_label("Übersetzen aus").select_option("en")

    def answer(route: Any) -> None:
        if status is None:
            route.abort()
        else:
            route.fulfill(status=status, json={"error": "something else"})

    tab.route("**/v1/translate", answer)
    tab.get_by_label("Zu übersetzender Text").fill("a b")
    expect(tab.locator("#state-text")).to_have_text(re.compile(f"^{shown}"))
    expect(tab.locator("#state")).to_have_attribute("title", "" if status is None else "something else")
