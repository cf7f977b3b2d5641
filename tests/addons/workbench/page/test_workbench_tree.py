"""The view of search trees: nodes and paths of the search, replay, scores, and the keyboard."""

import re
from typing import Any

import pytest
from browser_tabs import stop_clock
from workbench_server import WorkbenchServer, workbench_served
from workbench_tabs import WorkbenchTabs, expect, violations, wait_until_drawn

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
    rows = tab.locator(".outcomes tbody tr")
    expect(rows.filter(has_text="beam").locator("bdi")).to_have_text([each.text for each in translations])
    best = tab.locator(".outcomes .is-best td").all_inner_texts()
    own, penalty, score = (float(text.replace("−", "-")) for text in best[1:])
    assert score == pytest.approx(translations[0].score, abs=1e-3)
    assert own + penalty == pytest.approx(score, abs=2e-3)
    expect(tab.locator(".node.is-best")).to_have_count(len(tree.path(tree.ends()[0])) + 1)
    expect(rows.first.get_by_role("rowheader")).to_have_text("greedy")
    expect(tab.locator(".verdict")).to_be_hidden()


@pytest.mark.slow
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
    stop_clock(tab)
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


@pytest.mark.slow
def test_exact_search_tells_errors_of_the_search_from_those_of_the_model(tabs: WorkbenchTabs) -> None:
    tab = tabs.open("view=tree&example=hidden&beam=2")
    wait_until_drawn(tab)
    expect(tab.locator(".edge.is-exact, .tree-legend .of-is-exact:visible")).to_have_count(0)
    tab.get_by_label("Exact search").select_option("1000")
    expect(tab.locator(".verdict")).to_have_text(
        "Search error: well yes has a higher score (−1.609) than the best translation of the beam (−1.715). "
        "In step 1, the beam pruned its token well."
    )
    assert "exact=1000" in tab.evaluate("location.hash")
    expect(tab.locator(".edge.is-exact")).to_have_count(1)
    field = tab.get_by_label("Beam size")
    field.fill("3")
    field.press("Enter")
    expect(tab.locator(".verdict")).to_have_text(re.compile("^No search error: .* If it is wrong, the model errs.$"))
    expect(tab.locator(".outcomes tr").last.get_by_role("cell")).to_have_text(["well yes", "−1.609", "0.000", "−1.609"])
    assert not violations(tab)


def test_an_exact_search_that_ends_early_says_what_is_not_excluded(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=tree&{SENTENCE}&beam=2&penalty=mean&exact=5")
    wait_until_drawn(tab)
    expect(tab.locator(".verdict")).to_have_text(
        re.compile(r"Exact search stopped after 5 prefixes, and scores up to −\d+\.\d{3} are not excluded\.$")
    )
    expect(tab.get_by_label("Exact search")).to_have_value("5")


@pytest.mark.slow
def test_a_tree_of_the_lecture_needs_no_sentence_and_no_model(browser: Any) -> None:
    with workbench_served([]) as empty:
        tabs = WorkbenchTabs(browser, empty.address)
        tab = tabs.open()
        expect(tab.get_by_role("link", name="Positions and masks")).to_have_attribute("aria-current", "page")
        tab.get_by_role("link", name="Search tree").click()
        expect(tab.locator("main > .state")).to_have_text(
            re.compile("No model is open: choose one of the lecture's trees")
        )
        assert not violations(tab)
        tab.get_by_label("Search among").select_option("deck-004")
        wait_until_drawn(tab)
        expect(tab.get_by_label("Sentence")).to_be_hidden()
        tab.get_by_label("Beam size").fill("2")
        tab.get_by_label("Beam size").press("Enter")
        expect(tab.locator(".outcomes tbody")).to_have_text(re.compile(r"greedy\s*yes yes.*beam, rank 1\s*ok ok"))
        expect(tab.locator(".view")).to_contain_text("In step 1, greedy search chooses yes")
        assert "example=deck-004&beam=2" in tab.evaluate("location.hash")
        tabs.close()
