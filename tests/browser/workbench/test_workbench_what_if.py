"""The view of changed computations: forced tokens, alternatives, and heads that are switched off."""

import re
from typing import Any

import pytest
from workbench_server import WorkbenchServer
from workbench_tabs import WorkbenchTabs, expect, wait_until_drawn

from dragoman.analysis.ablation import ablate_heads
from dragoman.analysis.next_tokens import next_tokens
from dragoman.text.symbols import BOS, PAD

SENTENCE = "source=a+dog+runs"
HEAD = "decoder.cross_attention:2:1"


def values(bars: Any) -> list[float]:
    return [float(text.replace("−", "-")) for text in bars.locator(".bar-value").all_inner_texts()]


def test_a_token_is_forced_and_the_rest_is_searched_again(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    loaded = server.workspace.model("one").loaded
    tab = tabs.open(f"view=what-if&{SENTENCE}")
    wait_until_drawn(tab)
    alternatives = next_tokens(loaded, "a dog runs", ())
    bars = tab.get_by_role("region", name="Alternatives").locator(".bars")
    shown = values(bars)
    assert shown == pytest.approx([*alternatives.probabilities.tolist(), alternatives.rest], abs=6e-4)
    chosen = alternatives.ids.index(
        server.workspace.model("one").translator.translate_nbest(["a dog runs"])[0][0].ids[0]
    )
    forced = next(index for index, each in enumerate(alternatives.ids) if index != chosen and each not in (PAD, BOS))
    bars.locator("li").nth(forced).locator("button").click()
    first = tab.locator(".token").first
    expect(first).to_have_class(re.compile("is-forced"))
    assert first.inner_text().startswith(alternatives.tokens[forced].removesuffix("@@"))
    assert f"prefix={alternatives.ids[forced]}" in tab.evaluate("location.hash")
    expect(tab.locator(".change")).to_contain_text("With the forced tokens, the log-probability is −")
    tab.get_by_role("button", name="Let the model choose all tokens").click()
    expect(tab.locator(".token.is-forced")).to_have_count(0)
    tab.go_back()
    expect(tab.locator(".token.is-forced")).to_have_count(1)


def test_arrow_keys_choose_a_position_and_a_token(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=what-if&{SENTENCE}&count=3")
    wait_until_drawn(tab)
    tab.locator(".token").first.focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("heading", name="Alternatives at position 2")).to_be_visible()
    expect(tab.locator(".token").nth(1)).to_be_focused()
    tab.keyboard.press("Tab")
    expect(tab.locator(".bars button").first).to_be_focused()
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    expect(tab.locator(".token.is-forced")).to_have_count(2)
    expect(tab.locator(".bars button").nth(1)).to_be_focused()


def test_a_head_is_switched_off_and_its_effect_is_shown(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    effect = ablate_heads(server.workspace.model("one").loaded, "a dog runs", [HEAD])
    tab = tabs.open(f"view=what-if&{SENTENCE}")
    wait_until_drawn(tab)
    expect(tab.locator(".change")).to_be_hidden()
    source = tab.get_by_role("group", name="Decoder, attention over the source")
    switch = source.get_by_role("switch", name="layer 2, head 1")
    expect(switch).to_have_attribute("aria-checked", "true")
    source.get_by_role("switch", name="layer 1, head 1").focus()
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Space")
    expect(switch).to_have_attribute("aria-checked", "false")
    change = f"Δ = {effect.change:+.3f}".replace("-", "−")
    expect(tab.locator(".change")).to_contain_text(
        f"1 head is off: the log-probability of the original output changes by {change}"
    )
    terms = [float(each) for each in effect.after - effect.before]
    assert values(tab.locator(".effect .bars")) == pytest.approx(terms, abs=6e-4)
    assert "off=decoder.cross_attention%3A2%3A1" in tab.evaluate("location.hash")
    tab.get_by_role("button", name="Switch all heads on").click()
    expect(switch).to_have_attribute("aria-checked", "true")
    expect(tab.locator(".change")).to_be_hidden()
