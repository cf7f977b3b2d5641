"""The view of search trees: nodes and paths of the search, replay, scores, and the keyboard."""

import re
from typing import Any

import pytest
from workbench_server import WorkbenchServer
from workbench_tabs import WorkbenchTabs, expect, wait_until_drawn

from dragoman.decode.search_tree import SearchTree

SENTENCE = "source=a+dog+runs"


def searched(server: WorkbenchServer, beam: int) -> tuple[list[Any], SearchTree]:
    """The translations of the sentence, and the tree of their search."""
    translator = server.workspace.model("one").translator
    request = translator.request(beam=beam, nbest=beam, search={"tree": True})
    (translations,) = translator.translate_nbest(["a dog runs"], request)
    assert translations[0].tree is not None
    return translations, translations[0].tree


def test_the_tree_is_that_of_the_search(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    translations, tree = searched(server, 2)
    tab = tabs.open(f"view=tree&{SENTENCE}&beam=2")
    wait_until_drawn(tab)
    expect(tab.locator(".node")).to_have_count(len(tree))
    expect(tab.locator(".outcomes tbody bdi")).to_have_text([each.text for each in translations])
    own, penalty, score = (
        float(text.replace("−", "-"))
        for text in tab.locator(".outcomes tbody tr").first.locator("td").all_inner_texts()[1:]
    )
    assert score == pytest.approx(translations[0].score, abs=1e-3)
    assert own + penalty == pytest.approx(score, abs=2e-3)
    best = tab.locator(".node.is-best")
    expect(best).to_have_count(len(tree.path(tree.ends()[0])) + 1)


def test_a_wider_beam_is_searched_again(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    tab = tabs.open(f"view=tree&{SENTENCE}&beam=1")
    wait_until_drawn(tab)
    expect(tab.locator(".node")).to_have_count(len(searched(server, 1)[1]))
    field = tab.get_by_label("Beam size")
    field.fill("3")
    field.press("Enter")
    expect(tab.locator(".node")).to_have_count(len(searched(server, 3)[1]))
    assert "beam=3" in tab.evaluate("location.hash")
    tab.get_by_label("Length penalty").select_option("mean")
    wait_until_drawn(tab)
    assert "penalty=mean" in tab.evaluate("location.hash")


def test_the_search_is_replayed(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    steps = [node.step for node in searched(server, 2)[1]]
    tab = tabs.open(f"view=tree&{SENTENCE}&beam=2&step=1")
    wait_until_drawn(tab)
    visible = tab.locator(".node:not(.is-hidden)")
    expect(visible).to_have_count(sum(step <= 1 for step in steps))
    tab.get_by_role("slider").fill("2")
    expect(visible).to_have_count(sum(step <= 2 for step in steps))
    assert "step=2" in tab.evaluate("location.hash")
    tab.clock.install()
    tab.get_by_role("button", name="Play").click()
    tab.clock.run_for(750)
    expect(tab.get_by_role("slider")).to_have_value("3")
    tab.get_by_role("button", name="Pause").click()
    tab.clock.run_for(3000)
    expect(tab.get_by_role("slider")).to_have_value("3")


def test_arrow_keys_walk_along_the_tree(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=tree&{SENTENCE}&beam=2")
    wait_until_drawn(tab)
    tab.get_by_role("listbox", name="Hypotheses of the search").focus()
    tab.keyboard.press("ArrowRight")
    expect(tab.locator("#announced")).to_have_text(re.compile(r"^\S+, step 1, rank \d: log-probability −"))
    expect(tab.locator(".node.is-lit")).to_have_class(re.compile("is-best"))
    tab.keyboard.press("Home")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowDown")
    expect(tab.locator(".single .readout")).to_have_text(re.compile(r"step 1, rank 2"))
    tab.keyboard.press("End")
    expect(tab.locator("#announced")).to_have_text(re.compile(r"finished$|unfinished: longest output$"))
    tab.keyboard.press("ArrowLeft")
    expect(tab.locator(".single .readout")).to_have_text(re.compile("continued"))
