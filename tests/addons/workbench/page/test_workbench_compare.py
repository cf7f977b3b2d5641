"""The view of two models: differences, scores, links, checkpoints, and a file of sentence pairs."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from sacrebleu import sentence_bleu, sentence_chrf
from tiny_model import write_tiny_model
from workbench_server import WorkbenchServer, log_step, workbench_served
from workbench_tabs import WorkbenchTabs, expect, violations, wait_until_drawn

from dragoman.addons.workbench.views.compare import CompareState
from dragoman.cli.main import main
from dragoman.figures.comparison import Comparison

SOURCE, REFERENCE = "a dog runs", "ein Hund rennt"
SENTENCE = urlencode({"source": SOURCE, "reference": REFERENCE})
PAIRS = {SOURCE: REFERENCE, "two dogs sleep": "zwei Hunde schlafen", "the man sees a dog": "der Mann sieht einen Hund"}
LINES = [f"{source}\t{reference}" for source, reference in PAIRS.items()]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The models `one` and `two`, and the run `trained` with three checkpoints."""
    folder = tmp_path_factory.mktemp("workspace")
    names = ("one", "two", "trained")
    for seed, name in enumerate(names, 1):
        write_tiny_model(folder / name, seed=seed)
    for step in (5, 10, 1500):
        write_tiny_model(folder / "trained" / "checkpoints" / f"step-{step:08d}", step=step, seed=step)
    log_step(folder / "trained", 1)
    return [folder / name for name in names]


@pytest.fixture(scope="module")
def server(folders: list[Path]) -> Iterator[WorkbenchServer]:
    with workbench_served(folders) as found:
        yield found


def shown(number: float) -> str:
    return f"{number:.3f}".replace("-", "−")


def comparison(server: WorkbenchServer, **settings: Any) -> Comparison:
    figure = CompareState(source=SOURCE, reference=REFERENCE, **settings).content(server.workspace).figures
    assert isinstance(figure["comparison"], Comparison)
    return figure["comparison"]


def outputs(tab: Any) -> list[str]:
    return [" ".join(text.split()) for text in tab.locator("bdi.output").all_inner_texts()]


def test_both_translations_are_shown_with_differences_and_scores(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    tab = tabs.open(f"view=compare&{SENTENCE}")
    wait_until_drawn(tab)
    models = [server.workspace.model(name).translator for name in ("one", "two")]
    texts = [model.translate([SOURCE])[0] for model in models]
    assert outputs(tab) == [" ".join(text.split()) for text in texts]
    table = tab.get_by_role("region", name="Scores of both models")

    def row(name: str) -> list[str]:
        return list(table.get_by_role("row", name=name).get_by_role("cell").all_inner_texts())

    own = [model.score([SOURCE], [text])[0].log_probability for model, text in zip(models, texts, strict=True)]
    assert row("log-probability of its own translation") == [shown(each) for each in own]
    right = [model.score([SOURCE], [REFERENCE])[0].log_probability for model in models]
    assert row("log-probability of the reference") == [shown(each) for each in right]
    bleu = [sentence_bleu(text, [REFERENCE], use_effective_order=True).score for text in texts]
    assert row("BLEU") == [shown(each) for each in bleu]
    assert row("chrF2") == [shown(sentence_chrf(text, [REFERENCE]).score) for text in texts]
    figure = comparison(server)
    first, second = (set(each) for each in figure.different)
    expect(tab.locator(".compared-column").first.locator(".is-different")).to_have_count(len(first))
    expect(tab.locator(".compared-column").last.locator(".is-different")).to_have_count(len(second))
    marked = " ".join(tab.locator("bdi.output").first.locator("mark").all_inner_texts()).split()
    assert marked == [figure.translations[0][word] for word in sorted(first)]
    rows = tab.get_by_role("region", name="Differences").locator("tbody tr")
    expect(rows).to_have_count(len(figure.differences))
    expect(tab.locator(".change")).to_contain_text(f"differ in {len(figure.differences)} place")


def test_the_slider_moves_over_the_checkpoints_of_a_run(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    tab = tabs.open(f"view=compare&{SENTENCE}&other=trained")
    wait_until_drawn(tab)
    side = tab.get_by_role("group", name="Second model")
    slider = side.get_by_label("Checkpoint")
    expect(slider).to_have_attribute("aria-valuetext", "model of the run")
    expect(tab.get_by_role("group", name="First model").get_by_label("Checkpoint")).to_be_hidden()
    slider.focus()
    expected = {"Home": "trained@5", "ArrowRight": "trained@10", "End": "trained", "ArrowLeft": "trained@1500"}
    for key, name in expected.items():
        tab.keyboard.press(key)
        wait_until_drawn(tab)
        expect(tab.locator(".output-name bdi").last).to_have_text(
            name if name == "trained" else f"trained, step {int(name.partition('@')[2]):,}"
        )
        assert outputs(tab)[1] == " ".join(comparison(server, other=name).translations[1])
        expect(slider).to_be_focused()
    expect(slider).to_have_attribute("aria-valuetext", "step 1,500")
    assert "other=trained%401500" in tab.evaluate("location.hash")


@pytest.mark.slow
def test_models_are_chosen_and_swapped(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=compare&{SENTENCE}")
    wait_until_drawn(tab)
    tab.get_by_role("group", name="Second model").get_by_label("Second model").select_option("trained")
    wait_until_drawn(tab)
    before = outputs(tab)
    tab.get_by_role("button", name="Swap").click()
    wait_until_drawn(tab)
    expect(tab.locator(".output-name bdi").first).to_have_text("trained")
    assert outputs(tab) == before[::-1]
    tab.go_back()
    wait_until_drawn(tab)
    expect(tab.locator(".output-name bdi").first).to_have_text("one")
    assert outputs(tab) == before
    tab.get_by_role("group", name="Second model").get_by_label("Second model").select_option("one")
    expect(tab.locator(".change")).to_contain_text("Both sides are the same model.")


def test_a_checkpoint_can_be_inspected_by_other_views(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    tab = tabs.open(f"view=compare&{SENTENCE}&model=trained%405")
    wait_until_drawn(tab)
    expect(tab.get_by_label("Model", exact=True)).to_have_value("trained@5")
    tab.get_by_role("link", name="Translate").click()
    wait_until_drawn(tab)
    text = server.workspace.model("trained@5").translator.translate([SOURCE])[0]
    expect(tab.locator(".hypothesis").first).to_have_text(text)
    tab.get_by_label("Model", exact=True).select_option("two")
    wait_until_drawn(tab)
    expect(tab.get_by_label("Model", exact=True).locator("option")).to_have_text(["one", "two", "trained"])


@pytest.mark.slow
def test_linked_words_are_read(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    figure = comparison(server)
    source, target = sorted(figure.links[0])[0]
    tab = tabs.open(f"view=compare&{SENTENCE}")
    wait_until_drawn(tab)
    columns = tab.locator(".compared-column")
    columns.nth(0).locator("div").nth(target).hover()
    linked = [figure.source[i] for i, j in sorted(figure.links[0]) if j == target]
    expect(columns.nth(1).locator(".is-lit")).to_have_text(linked)
    tab.mouse.move(2, 2)
    expect(tab.locator(".is-lit")).to_have_count(0)
    box = tab.get_by_role("listbox", name="Words of the translations and of the source")
    box.focus()
    for _ in range(target):
        tab.keyboard.press("ArrowDown")
    expect(tab.locator("#announced")).to_contain_text(f" (one, differs); source: {', '.join(linked)}; two: ")
    tab.keyboard.press("ArrowRight")
    expect(tab.locator("#announced")).to_contain_text(f"{figure.source[source]} (source); one: ")
    tab.get_by_text("Numbers as a table").click()
    rows = tab.get_by_role("region", name="Numbers of the figure").locator("tbody tr")
    expect(rows).to_have_count(sum(map(len, figure.translations)))


@pytest.mark.slow
def test_a_file_is_stepped_through_by_the_largest_difference(
    tabs: WorkbenchTabs, server: WorkbenchServer, tmp_path: Path
) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("\n".join(LINES) + "\n\n", "utf-8")
    tab = tabs.open("view=compare")
    expect(tab.locator("main > .state")).to_contain_text("Enter a sentence to compare its translations")
    tab.get_by_text("Step through a file").click()
    tab.get_by_label("Sentence pairs (TSV)").set_input_files(file)
    wait_until_drawn(tab)
    expect(tab.get_by_label("Sentence", exact=True)).to_have_value(SOURCE)
    expect(tab.get_by_label("Reference")).to_have_value(REFERENCE)
    expect(tab.get_by_text("1 of 3")).to_be_visible()
    expect(tab.get_by_role("button", name="Previous")).to_be_disabled()
    tab.get_by_role("button", name="Next").click()
    expect(tab.get_by_label("Sentence", exact=True)).to_have_value("two dogs sleep")
    tab.get_by_role("button", name="By chrF2").click()
    wait_until_drawn(tab)
    content = CompareState(source=SOURCE, pairs=tuple(LINES), order="chrf").content(server.workspace)
    ranked = [LINES[number].partition("\t")[0] for number in content.facts["order"]]
    listed = tab.get_by_role("region", name="Sentences by difference")
    expect(listed.locator(".bar-label")).to_have_text(ranked)
    values = content.figures["differences"].arrays()["values"]
    expect(listed.locator(".bar-value")).to_have_text([shown(each) for each in values])
    listed.locator("button").first.press("Enter")
    wait_until_drawn(tab)
    expect(listed.locator("button").first).to_be_focused()
    for place, source in enumerate(ranked, 1):
        expect(tab.get_by_text(f"{place} of 3")).to_be_visible()
        expect(tab.get_by_label("Sentence", exact=True)).to_have_value(source)
        expect(listed.locator(".is-marked .bar-label")).to_have_text(source)
        if place < 3:
            tab.get_by_role("button", name="Next").click()
    address = tab.evaluate("location.hash")
    other = tabs.open(address.removeprefix("#"))
    for each in (tab, other):
        wait_until_drawn(each)
    for shown_part in (".outputs", ".ranking", ".compared-tables", ".compared-words"):
        assert other.locator(shown_part).inner_text() == tab.locator(shown_part).inner_text()
    tab.get_by_role("button", name="Close the file").click()
    wait_until_drawn(tab)
    expect(listed).to_be_hidden()
    assert "pairs" not in tab.evaluate("location.hash")


def test_a_file_that_cannot_be_used_is_refused(tabs: WorkbenchTabs, tmp_path: Path) -> None:
    tabs.expected = ("status of 400",)
    tab = tabs.open("view=compare")
    tab.get_by_text("Step through a file").click()
    files = {
        "pairs.tsv is not a text file in UTF-8": "ä".encode("latin-1"),
        "pairs.tsv is empty": b"\n",
        "pairs.tsv is too large: an address has at most 100,000 characters": b"a\tb\n" * 30_000,
        "pairs.tsv is too large": "ж\tж\n".encode() * 6_000,
        "Pairs: should be a sentence, a tab and its reference, not 'a dog'": b"a dog\n",
        "The file has 101 sentence pairs, but the limit is 100": b"a\tb\n" * 101,
    }
    for message, content in files.items():
        (tmp_path / "pairs.tsv").write_bytes(content)
        tab.get_by_label("Sentence pairs (TSV)").set_input_files(tmp_path / "pairs.tsv")
        expect(tab.locator("main")).to_contain_text(re.compile(re.escape(message), re.IGNORECASE))


def test_a_model_or_checkpoint_that_does_not_exist_is_refused(tabs: WorkbenchTabs) -> None:
    tabs.expected = ("status of 400",)
    tab = tabs.open(f"view=compare&{SENTENCE}&other=trained%407")
    state = tab.locator("main > .state")
    expect(state).to_contain_text("Trained has no checkpoint of step 7: its checkpoints are 5, 10, 1500")
    expect(tab.locator(".explanation")).to_be_hidden()
    tab.get_by_role("group", name="Second model").get_by_label("Second model").select_option("two")
    wait_until_drawn(tab)
    assert len(outputs(tab)) == 2


def test_a_server_that_is_gone_is_reported_and_found_again(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    tabs.expected = ("ERR_CONNECTION_REFUSED", "ERR_EMPTY_RESPONSE", "ERR_INCOMPLETE_CHUNKED")
    tab = tabs.open(f"view=compare&{SENTENCE}")
    wait_until_drawn(tab)
    server.stop()
    tab.get_by_role("button", name="Swap").click()
    expect(tab.locator("main > .state")).to_contain_text("The server cannot be reached: is dragoman workbench running?")
    server.start()
    tab.get_by_role("button", name="Try now").click()
    wait_until_drawn(tab)
    expect(tab.locator(".output-name bdi").first).to_have_text("two")


def test_two_instances_share_no_ids(tabs: WorkbenchTabs) -> None:
    tab = tabs.open("view=training")
    wait_until_drawn(tab)
    found = tab.evaluate(
        """async ([first, second]) => {
          const { CompareView } = await import("/page/views/compare.js");
          const { fetchContent } = await import("/page/content.js");
          const workspace = await (await fetch("workspace")).json();
          const main = document.querySelector("main");
          for (const fragment of [first, second]) {
            const root = main.appendChild(document.createElement("div"));
            const state = Object.fromEntries(new URLSearchParams(fragment));
            const store = { state, get: (name, other) => state[name] ?? other, set() {} };
            const view = new CompareView(root, { store, workspace, announce() {}, refresh() {} });
            view.show(await fetchContent(fragment, undefined, undefined), state);
          }
          const ids = [...main.querySelectorAll("[id]")].map(({ id }) => id);
          const named = ["for", "aria-describedby", "aria-details", "aria-activedescendant"];
          const isOwn = (root, id) => root.querySelector(`#${id}`) !== null;
          const targets = [...main.children].slice(-2).map((root) => named.flatMap((name) =>
            [...root.querySelectorAll(`[${name}]`)].map((each) => isOwn(root, each.getAttribute(name)))));
          const texts = [...main.querySelectorAll("bdi.output")].map((each) => each.textContent);
          return { ids, targets, texts };
        }""",
        [f"view=compare&{SENTENCE}", f"view=compare&{SENTENCE}&model=two&other=one"],
    )
    assert len(found["ids"]) == len(set(found["ids"])) >= 18
    assert all(len(each) > 8 and all(each) for each in found["targets"]), "each reference is to the same instance"
    assert found["texts"][:2] == found["texts"][:1:-1]


@pytest.mark.slow
def test_saved_figures_are_those_of_the_command(
    tabs: WorkbenchTabs, folders: list[Path], tmp_path: Path, server: WorkbenchServer
) -> None:
    query = urlencode(
        [("model", "two"), ("other", "trained@10"), ("order", "bleu"), *(("pairs", line) for line in LINES)]
    )
    fragment = f"view=compare&{SENTENCE}&{query}"
    tab = tabs.open(fragment)
    wait_until_drawn(tab)
    command = ["workbench", "figures", tab.evaluate("location.href"), str(folders[1]), str(folders[2])]
    assert main([*command, "-o", str(tmp_path / "out")]) == 0
    for name in ("comparison", "differences"):
        tab.get_by_label("Figure to save").select_option(name)
        for suffix in ("svg", "json", "csv"):
            with tab.expect_download() as saved:
                tab.get_by_role("button", name=suffix.upper(), exact=True).click()
            saved.value.save_as(tmp_path / "saved")
            wait_until_drawn(tab)
            assert (tmp_path / "saved").read_bytes() == (tmp_path / "out" / f"{name}.{suffix}").read_bytes()


@pytest.mark.slow
def test_axe_finds_nothing_in_a_ranked_file(tabs: WorkbenchTabs) -> None:
    query = urlencode([("other", "trained@10"), ("order", "chrf"), *(("pairs", line) for line in LINES)])
    tab = tabs.open(f"view=compare&{SENTENCE}&{query}", bypass_csp=True, viewport={"width": 320, "height": 640})
    wait_until_drawn(tab)
    tab.get_by_text("Step through a file").click()
    tab.get_by_text("Numbers as a table").click()
    assert not violations(tab)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 320


def test_hostile_texts_are_shown_as_text(tabs: WorkbenchTabs) -> None:
    hostile = "<script>alert(1)</script> <img src=x onerror=alert(1)> \u202eabc \U0001f600 &amp;"
    pair = f"{hostile}\t{hostile}"
    query = urlencode([("source", hostile), ("reference", hostile), ("pairs", pair), ("order", "chrf")])
    tab = tabs.open(f"view=compare&{query}")
    wait_until_drawn(tab)
    expect(tab.locator(".compared-column").nth(1).locator("div").first).to_have_text("<script>alert(1)</script>")
    expect(tab.locator(".bar-label")).to_contain_text("<script>")
    assert tab.locator("main script, main img").count() == 0
