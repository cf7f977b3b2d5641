"""The view of alignments: layers of links, their weights, annotated links that are typed or chosen, and error rates."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny_model import SOURCES, TARGETS, tiny_config, write_tiny_model
from workbench_server import WorkbenchServer, workbench_served, write_workspace
from workbench_tabs import WorkbenchTabs, expect, wait_until_drawn

import dragoman
from dragoman.addons.workbench.views.alignment import AlignmentState
from dragoman.cli.main import main
from dragoman.figures.alignments import Alignments

PAIR = "source=a+dog+runs+in+the+park+.&target=ein+Hund+rennt+im+Park+."
GOLD = "gold=0-0+1-1+2-2+3-3+4%3F3+5-4+6-5"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkbenchServer]:
    folder = tmp_path_factory.mktemp("workspace")
    without = tiny_config(encoder={"kind": "recurrent"}, decoder={"kind": "recurrent", "attention": None})
    write_tiny_model(folder / "plain", config=without)
    dragoman.align(SOURCES, TARGETS, save=folder / "hmm", threads=1, quiet=True)
    with workbench_served([*write_workspace(folder), folder / "plain", folder / "hmm"]) as found:
        yield found


def figure_of(server: WorkbenchServer, **settings: object) -> Alignments:
    """The links that Python computes."""
    state = AlignmentState.model_validate({"source": SOURCES[0], "target": TARGETS[0], **settings})
    found = state.content(server.workspace).figures["links"]
    assert isinstance(found, Alignments)
    return found


def layers(tab: Any) -> list[list[str]]:
    """The cells of the table of layers."""
    return [row.locator("th, td").all_inner_texts() for row in tab.locator(".link-layers tbody tr").all()]


def test_links_and_measures_are_those_of_python(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    figure = figure_of(server, gold="0-0 1-1 2-2 3-3 4?3 5-4 6-5", others=("hmm", "two"))
    tab = tabs.open(f"view=alignment&{PAIR}&{GOLD}&others=hmm&others=two")
    wait_until_drawn(tab)
    measures = [
        [name, str(len(links)), *(f"{figure.metrics[name][key]:.1f}%" for key in ("aer", "precision", "recall"))]
        for name, links in figure.aligners.items()
    ]
    assert layers(tab) == [*measures, ["annotated links", "6 sure, 1 only possible"]]
    expect(tab.locator(".links .link-mark")).to_have_count(sum(map(len, figure.aligners.values())))
    expect(tab.locator(".links .gold-cell.is-sure")).to_have_count(6)
    expect(tab.locator(".links .gold-cell")).to_have_count(7)
    counts = [row.locator("td").all_inner_texts() for row in tab.locator(".confusion tbody tr").all()]
    assert [[int(each) for each in row] for row in counts] == [
        [sure, possible, wrong, missed]
        for sure, possible, wrong, missed in server.workspace.align("one", SOURCES[0], TARGETS[0], "", ("hmm", "two"))
        .with_gold(figure.gold)
        .confusion()
        .counts.tolist()
    ]
    shapes = {mark.get_attribute("d")[:12] for mark in tab.locator(".link-swatch .link-mark").all()}
    assert len(shapes) == len(figure.aligners), "layers differ not only by their colours"


@pytest.mark.slow
def test_the_keyboard_reads_every_cell(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    figure = figure_of(server, others=("hmm",))
    tab = tabs.open(f"view=alignment&{PAIR}&others=hmm")
    wait_until_drawn(tab)
    grid = tab.get_by_role("grid", name="Links between the words")
    grid.focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowDown")
    said = tab.locator("#announced")
    expect(said).to_have_text(re.compile(r"^dog → Hund: "))
    for name, links in figure.aligners.items():
        value = f"{name} {figure.weights[name][1, 1]:.2f}"
        group = "linked by" if (1, 1) in links else "not linked:"
        expect(said).to_contain_text(re.compile(rf"(^|[:;] ){group} [^;]*{re.escape(value)}"))
    expect(tab.locator(".single .readout")).to_have_text(said.inner_text())
    assert tab.locator(f"#{grid.get_attribute('aria-activedescendant')}").inner_text() == said.inner_text()
    tab.keyboard.press("Control+End")
    expect(said).to_have_text(re.compile(r"^\. → \.: "))
    assert grid.get_attribute("aria-details") == tab.locator(".numbers").get_attribute("id")
    tab.get_by_text("Numbers as a table").click()
    tab.locator(".numbers tbody tr").first.wait_for()
    rows = [row.locator("td").all_inner_texts() for row in tab.locator(".numbers tbody tr").all()]
    assert (
        rows
        == [
            [name, SOURCES[0].split()[i], TARGETS[0].split()[j], f"{figure.weights[name][i, j]:.4f}"]
            for name, links in figure.aligners.items()
            for i, j in sorted(links)
        ][:25]
    )


def test_a_link_is_read_with_the_mouse(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=alignment&{PAIR}&{GOLD}")
    wait_until_drawn(tab)
    tab.locator(".map-cells").hover(position={"x": 2, "y": 2})
    expect(tab.locator(".single .readout")).to_have_text(re.compile("^a → ein: .*attention .*; annotated as sure$"))
    expect(tab.locator(".row-labels > div").first).to_have_class("is-lit")
    tab.mouse.move(2, 2)
    expect(tab.locator(".is-lit")).to_have_count(0)


def test_layers_are_switched_without_the_server(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    figure = figure_of(server, others=("hmm",))
    tab = tabs.open(f"view=alignment&{PAIR}&{GOLD}&others=hmm&off=gradient")
    wait_until_drawn(tab)
    marks = tab.locator(".links .link-mark")
    expect(marks).to_have_count(len(figure.aligners["attention"]) + len(figure.aligners["hmm"]))
    requests = sum("content" in url for url in tabs.requested)
    for name in ("attention", "annotated links"):
        tab.get_by_role("checkbox", name=name, exact=True).press("Space")
    expect(marks).to_have_count(len(figure.aligners["hmm"]))
    expect(tab.locator(".links .gold-cell")).to_have_count(0)
    expect(tab.get_by_role("checkbox", name="annotated links")).to_be_focused()
    tab.get_by_role("checkbox", name="gradient", exact=True).check()
    expect(marks).to_have_count(len(figure.aligners["hmm"]) + len(figure.aligners["gradient"]))
    assert tab.evaluate("location.hash").endswith("&others=hmm&off=attention&off=gold")
    assert sum("content" in url for url in tabs.requested) == requests
    tab.go_back()
    expect(tab.get_by_role("checkbox", name="gradient", exact=True)).not_to_be_checked()


@pytest.mark.slow
def test_annotated_links_that_are_typed_keep_the_translation(tabs: WorkbenchTabs, server: WorkbenchServer) -> None:
    own = server.workspace.align("one", "a dog runs", "", "", ()).target
    tab = tabs.open("view=alignment&source=a+dog+runs")
    wait_until_drawn(tab)
    expect(tab.locator(".confusion")).to_be_hidden()
    field = tab.get_by_role("textbox", name="Annotated links")
    field.fill("0-0 1?0")
    field.press("Enter")
    wait_until_drawn(tab)
    expect(tab.get_by_label("Translation to inspect")).to_have_value(" ".join(own))
    expect(tab.locator(".link-layers tbody tr").last).to_contain_text("1 sure, 1 only possible")
    expect(tab.locator(".confusion")).to_be_visible()
    tab.get_by_role("button", name="Remove").click()
    expect(tab.locator(".confusion")).to_be_hidden()
    assert "gold" not in tab.evaluate("location.hash")


def test_links_are_annotated_in_the_cells(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=alignment&{PAIR}&gold=0-0")
    wait_until_drawn(tab)
    field = tab.get_by_role("textbox", name="Annotated links")
    grid = tab.get_by_role("grid", name="Links between the words")
    grid.focus()
    tab.keyboard.press("End")
    tab.keyboard.press("ArrowDown")
    for expected in ("0-0 1-5", "0-0 1?5", "0-0"):
        grid.press("Enter")
        expect(field).to_have_value(expected)
        wait_until_drawn(tab)
        expect(grid).to_be_focused()
    tab.locator(".map-cells").click(position={"x": 3, "y": 3})
    choice = tab.get_by_role("group", name="Annotation of the selected cell")
    expect(choice.get_by_role("button", name="Sure")).to_have_attribute("aria-pressed", "true")
    choice.get_by_role("button", name="Possible").click()
    expect(field).to_have_value("0?0")
    wait_until_drawn(tab)
    expect(tab.locator(".single .readout")).to_contain_text("annotated as possible")
    choice.get_by_role("button", name="Not linked").click()
    expect(tab.locator(".confusion")).to_be_hidden()


def test_further_aligners_are_added(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=alignment&{PAIR}")
    wait_until_drawn(tab)
    names = tab.get_by_role("group", name="Also show").locator("label")
    expect(names).to_have_text(["hmm", "attention of two", "attention of plain"])
    tab.get_by_label("hmm").check()
    expect(tab.get_by_role("checkbox", name="hmm")).to_have_count(2)
    tab.get_by_role("checkbox", name="attention of plain").check()
    expect(tab.locator(".absent li")).to_have_text(
        "No links: plain: this model's decoder has no attention weights over source tokens"
    )
    assert tab.evaluate("location.hash").endswith("others=hmm&others=plain")


def test_absent_layers_are_said_in_words(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=alignment&model=plain&{PAIR}")
    wait_until_drawn(tab)
    expect(tab.locator(".absent li").first).to_contain_text(
        "No links: attention: this model's decoder has no attention"
    )
    assert [row[0] for row in layers(tab)] == ["gradient"]


@pytest.mark.parametrize(
    ("fragment", "message"),
    [
        ("", "Enter a sentence to see which of its words the model links"),
        ("&source=a+dog&gold=0-0", "The annotated links belong to a translation: enter it, or remove the links"),
        (f"&{PAIR}&gold=0-0+x", "'x' is not a link"),
        (f"&{PAIR}&gold=9-9", "The annotated link 9-9 is outside of the sentence pair"),
        (f"&{PAIR}&off=colour", "There is no layer 'colour': the layers are attention, gradient, gold"),
        (f"&{PAIR}&others=three", "There is no word aligner or model 'three'"),
    ],
)
def test_links_that_are_missing_are_explained(tabs: WorkbenchTabs, fragment: str, message: str) -> None:
    tabs.expected = ("status of 400",)
    tab = tabs.open(f"view=alignment{fragment}")
    expect(tab.locator("main > .state")).to_contain_text(message)
    expect(tab.locator(".explanation")).to_be_hidden()
    expect(tab.locator(".map-cells")).to_be_hidden()


@pytest.mark.slow
def test_a_saved_figure_is_that_of_the_command(tabs: WorkbenchTabs, server: WorkbenchServer, tmp_path: Path) -> None:
    """Also with a word aligner, and without the layers that are off."""
    tab = tabs.open(f"view=alignment&{PAIR}&{GOLD}&others=hmm&off=gradient")
    wait_until_drawn(tab)
    folders = [str(model.folder) for model in server.workspace.models.values()]
    aligner = str(Path(folders[0]).parent / "hmm")
    command = ["workbench", "figures", tab.url, folders[0], aligner, "-o", str(tmp_path / "out"), "--device", "cpu"]
    assert main(command) == 0
    for figure, suffix in (("links", "svg"), ("links", "csv"), ("confusion", "json")):
        tab.get_by_label("Figure to save").select_option(figure)
        with tab.expect_download() as saved:
            tab.get_by_role("button", name=suffix.upper(), exact=True).click()
        saved.value.save_as(tmp_path / suffix)
        assert (tmp_path / suffix).read_bytes() == (tmp_path / "out" / f"{figure}.{suffix}").read_bytes()
        wait_until_drawn(tab)
    assert "gradient" not in (tmp_path / "csv").read_text()


def test_words_of_long_sentences_can_be_pointed_at(tabs: WorkbenchTabs) -> None:
    words = "+".join(["dog"] * 40)
    tab = tabs.open(f"view=alignment&source={words}&target={words}", viewport={"width": 400, "height": 800})
    wait_until_drawn(tab)
    box = tab.locator(".map-cells").bounding_box()
    assert box["width"] / 40 >= 20
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
