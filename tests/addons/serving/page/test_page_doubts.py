"""The page says what speaks against a translation, and underlines the sentences that the model is unsure of."""

from collections.abc import Iterator
from typing import Any

import pytest
from browser_tabs import expect
from known_words import known_words
from page_server import PageServer

from dragoman.addons.serving.models.served_models import ServedModel
from dragoman.checkpoint.confidence import Confidence
from dragoman.inference.translation.doubts import DoubtFinder

CONFIDENCE = Confidence(system="neural", intercept=90, slope=300, lowest=-9, correlation=0.6, sentences=200, mean=60)


def typed(tab: Any, text: str) -> None:
    tab.get_by_label("Text to translate").fill(text)
    expect(tab.locator("#state")).to_have_attribute("data-state", "done")


def test_a_good_translation_has_no_word_of_doubt(tab: Any) -> None:
    typed(tab, "a dog runs.")
    expect(tab.locator("#doubts")).to_be_hidden()
    expect(tab.locator(".is-unsure")).to_have_count(0)


@pytest.fixture
def model(site: PageServer) -> Iterator[ServedModel]:
    """The model from English into German, whose doubts a test may change."""
    model = site.service.directions.models[0]
    usual = model.doubts
    yield model
    model.doubts = usual


def test_doubts_are_told_and_go_with_the_text(model: ServedModel, tab: Any) -> None:
    """Unknown words and the wrong language stand below the translation, and screen readers announce them."""
    model.doubts = DoubtFinder(known_words(), None, 30)
    typed(tab, "the house. дом!")
    told = "Words that the model does not know: дом."
    expect(tab.locator("#doubts")).to_have_text(told)
    expect(tab.locator("#announced")).to_contain_text(told)
    tab.get_by_label("Translate from").select_option("en")
    typed(tab, "the Hund stands behind the house")
    expect(tab.locator("#doubts")).to_contain_text("seems to be in German, but it is translated from English.")
    tab.get_by_role("button", name="Clear the text").click()
    expect(tab.locator("#doubts")).to_be_hidden()


def test_unsure_sentences_are_underlined_until_another_translation_is_chosen(model: ServedModel, tab: Any) -> None:
    """Only the sentence with the improbable translation is; an alternative that the reader chose is not."""
    model.doubts = DoubtFinder(known_words(), CONFIDENCE, 60)
    typed(tab, "the small house stands behind another garden. the")
    expect(tab.locator(".is-unsure")).to_have_text(["THE"])
    expect(tab.locator("#doubts")).to_have_text("The model is unsure of the underlined sentences: they may be wrong.")
    tab.locator(".is-unsure").click()
    tab.get_by_role("button", name="THE!", exact=True).click()
    expect(tab.locator("#translation")).to_contain_text("THE!")
    expect(tab.locator(".is-unsure")).to_have_count(0)
