"""The view of changed computations: forced tokens, alternatives, and heads that are switched off."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tiny_model import tiny_config, write_tiny_model
from workbench_server import WorkbenchServer, workbench_served, write_workspace
from workbench_tabs import WorkbenchTabs, expect, wait_until_drawn

from dragoman.inspection.ablation import ablate_heads
from dragoman.inspection.lens import decoder_lens
from dragoman.inspection.next_tokens import next_tokens
from dragoman.text.symbols import BOS, PAD

SENTENCE = "source=a+dog+runs"
HEAD = "decoder.cross_attention:2:1"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkbenchServer]:
    folder = tmp_path_factory.mktemp("workspace")
    recurrent = tiny_config(encoder={"kind": "recurrent"}, decoder={"kind": "recurrent"})
    write_tiny_model(folder / "recurrent", config=recurrent)
    with workbench_served([*write_workspace(folder), folder / "recurrent"]) as found:
        yield found


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
    expect(tab.locator(".lens td[aria-selected=true]")).to_be_focused()
    tab.keyboard.press("Tab")
    expect(tab.get_by_label("Predicted after")).to_be_focused()
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


def test_the_lens_shows_what_the_decoder_would_predict_after_each_layer(
    tabs: WorkbenchTabs, server: WorkbenchServer
) -> None:
    lens = decoder_lens(server.workspace.model("one").loaded, "a dog runs", count=10)
    tab = tabs.open(f"view=what-if&{SENTENCE}")
    wait_until_drawn(tab)
    table = tab.get_by_role("grid", name="Most probable token after each layer")
    expect(table.get_by_role("rowheader")).to_have_text(["layer 2", "layer 1", "embeddings", "output"])
    for row, layer in zip(table.locator("tbody tr").all(), lens.layers[::-1], strict=True):
        shown = row.locator("td").all_inner_texts()
        assert [text.split("\n")[-1] for text in shown] == [f"{each.probabilities[0]:.2f}" for each in layer.positions]
        assert [text.split("\n")[0] for text in shown] == [each.tokens[0] for each in layer.positions]
    # the alternatives at a position after a layer, by mouse
    table.locator("tbody tr").nth(1).locator("td").nth(2).click()
    expect(tab.get_by_role("heading", name="Alternatives at position 3")).to_be_visible()
    assert "layer=1&position=3" in tab.evaluate("location.hash")
    expect(tab.get_by_label("Predicted after")).to_have_value("1")
    alternatives = lens.layers[1].positions[2]
    bars = tab.get_by_role("region", name="Alternatives").locator(".bars")
    assert values(bars) == pytest.approx([*alternatives.probabilities.tolist(), alternatives.rest], abs=6e-4)
    expect(tab.locator(".explanation")).to_contain_text("the token that the output projection would predict")
    # by keyboard
    table.locator("td[aria-selected=true]").focus()
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        tab.keyboard.press(key)
    expect(tab.get_by_role("heading", name="Alternatives at position 4")).to_be_visible()
    expect(tab.get_by_label("Predicted after")).to_have_value("0")
    expect(table.locator("tbody tr").nth(2).locator("td").nth(3)).to_be_focused()
    # by menu: the last layer is the model
    tab.get_by_label("Predicted after").select_option(label="layer 2 (the prediction)")
    expect(table.locator("tbody tr").first.locator("td").nth(3)).to_have_attribute("aria-selected", "true")
    assert "layer" not in tab.evaluate("location.hash")


@pytest.mark.slow
def test_changes_are_undone_one_by_one(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=what-if&{SENTENCE}")
    wait_until_drawn(tab)
    undo = tab.get_by_role("button", name="Undo")
    expect(undo).to_be_hidden()
    tab.locator(".bars button").nth(1).click()
    expect(tab.locator(".token.is-forced")).to_have_count(1)
    switch = tab.get_by_role("group", name="Decoder, attention over the source").get_by_role("switch").first
    switch.click()
    expect(tab.locator(".change")).to_contain_text("1 head is off")
    tab.locator(".token").nth(1).click()  # a position is not a change
    expect(tab.get_by_role("heading", name="Alternatives at position 2")).to_be_visible()
    undo.click()
    expect(switch).to_have_attribute("aria-checked", "true")
    expect(tab.locator(".token.is-forced")).to_have_count(1)
    expect(tab.locator("#announced")).to_have_text("The last change is undone")
    tab.keyboard.press("Control+z")
    expect(tab.locator(".token.is-forced")).to_have_count(0)
    expect(undo).to_be_hidden()
    tab.keyboard.press("Control+z")
    expect(tab.get_by_role("heading", name="Alternatives at position 2")).to_be_visible()
    # another sentence has no earlier changes
    switch.click()
    expect(undo).to_be_visible()
    tab.get_by_label("Sentence", exact=True).fill("two dogs")
    expect(undo).to_be_hidden()


@pytest.mark.slow
def test_a_decoder_without_a_lens_says_so(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=what-if&model=recurrent&{SENTENCE}")
    wait_until_drawn(tab)
    layers = tab.get_by_role("region", name="Layers")
    expect(layers).to_contain_text("Not available: this decoder has no prediction after each layer")
    expect(layers.get_by_role("grid")).to_be_hidden()
    expect(tab.get_by_label("Predicted after")).to_be_hidden()
    assert sum(values(tab.get_by_role("region", name="Alternatives").locator(".bars"))) == pytest.approx(1, abs=6e-3)
