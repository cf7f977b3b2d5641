"""Times and sizes that the workbench must keep on a quiet machine, with a model of 144 heads."""

import gc
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from tiny_model import tiny_config, write_tiny_model
from workbench_server import WorkbenchServer, workbench_served
from workbench_tabs import WorkbenchTabs, expect, wait_until_drawn

from dragoman.base.machine.memory import resident_memory

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def quiet_machine() -> None:
    """Skip a test while other programs use the processor, because its times would be theirs."""
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cores:
        pytest.skip(f"the machine is busy: a load of {load:.1f} on {cores} cores")


WORDS = "dog " * 62
SENTENCE = f"source={WORDS.strip().replace(' ', '+')}&target={WORDS.strip().replace(' ', '+')}"

# Returns the times in milliseconds from each of several actions to the next frame that is painted after it.
FRAMES = """async ([actions, selector, kind]) => {
  const times = [];
  for (const [x, y] of actions) {
    const start = performance.now();
    const target = document.querySelector(selector);
    const box = target.getBoundingClientRect();
    const options = {bubbles: true, clientX: box.left + x * box.width, clientY: box.top + y * box.height};
    const key = x ? 'ArrowRight' : 'ArrowLeft';
    if (kind === 'key') target.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
    else target.dispatchEvent(new PointerEvent('pointermove', options));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    times.push(performance.now() - start);
  }
  return times.sort((a, b) => a - b);
}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkbenchServer]:
    folder = tmp_path_factory.mktemp("workspace")
    stack = {"layers": 6, "heads": 8, "feedforward": 64}
    for seed, name in enumerate(("large", "other"), 1):
        write_tiny_model(folder / name, seed=seed, config=tiny_config(width=64, encoder=stack, decoder=stack))
    (folder / "run").mkdir()
    lines = (f'{{"step": {step}, "loss": {1 + 1 / step}, "learning_rate": 0.001}}\n' for step in range(1, 100_001))
    (folder / "run" / "log.jsonl").write_text("".join(lines), "utf-8")
    with workbench_served([folder / "large", folder / "other", folder / "run"]) as found:
        yield found


def seconds(tab: Any, fragment: str, ready: str) -> float:
    """The time from a change of the address to the appearance of an element, in the page's own clock."""
    script = """([fragment, ready]) => new Promise((done) => {
      const start = performance.now();
      location.hash = fragment;
      const look = () => {
        if (document.querySelector(ready)?.checkVisibility()) done((performance.now() - start) / 1000);
        else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    })"""
    return float(tab.evaluate(script, [fragment, ready]))


def test_the_page_is_usable_within_a_second(tabs: WorkbenchTabs) -> None:
    start = time.perf_counter()
    tab = tabs.open("view=translate")
    expect(tab.get_by_label("Sentence to translate")).to_be_enabled()
    assert time.perf_counter() - start < 1


def test_all_heads_of_a_long_sentence_appear_within_half_a_second(tabs: WorkbenchTabs) -> None:
    """144 heads at 64 × 64 tokens, all three kinds; the first request computes the weights."""
    tab = tabs.open("view=attention")
    expect(tab.locator("main > .state")).to_contain_text("Enter a sentence")
    seconds(tab, f"view=attention&{SENTENCE}", ".head canvas")
    wait_until_drawn(tab)
    total = 0.0
    for kind in ("encoder.self_attention", "decoder.self_attention", "decoder.cross_attention"):
        tab.goto(f"{tabs.address}#view=attention")
        expect(tab.locator(".attention")).to_be_hidden()
        total += seconds(tab, f"view=attention&{SENTENCE}&kind={kind}", ".head canvas")
    assert total < 0.5


def test_a_head_is_selected_within_50_milliseconds(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=attention&{SENTENCE}&layer=1&head=1")
    wait_until_drawn(tab)
    times = tab.evaluate(FRAMES, [[[turn % 8 < 4, 0] for turn in range(40)], ".head[aria-selected=true]", "key"])
    assert times[len(times) * 95 // 100] < 50


def test_a_cell_is_read_within_32_milliseconds(tabs: WorkbenchTabs) -> None:
    tab = tabs.open(f"view=attention&{SENTENCE}&layer=1&head=1")
    wait_until_drawn(tab)
    path = [[(turn * 37 % 64) / 64, (turn * 23 % 64) / 64] for turn in range(100)]
    times = tab.evaluate(FRAMES, [path, ".map-cells", "pointer"])
    assert times[94] < 32


def test_128_tokens_appear_within_a_second(tabs: WorkbenchTabs) -> None:
    words = "+".join(["dog"] * 126)
    tab = tabs.open("view=attention")
    expect(tab.locator("main > .state")).to_contain_text("Enter a sentence")
    assert seconds(tab, f"view=attention&source={words}&target={words}", ".head canvas") < 1


def test_the_translation_of_a_short_sentence_takes_60_milliseconds(server: WorkbenchServer) -> None:
    """Median over sentences, from the request to the whole response, without the delay after the last keystroke."""
    times = []
    with httpx.Client(base_url=server.address, timeout=60) as client:
        for number in range(21):
            start = time.perf_counter()
            assert client.post("/content", content=f"view=translate&source=a+dog+{number}").status_code == 200
            times.append(time.perf_counter() - start)
    assert sorted(times)[10] < 0.06


def test_two_models_are_compared_within_two_and_a_half_times_the_time_of_one(server: WorkbenchServer) -> None:
    """Medians over sentences that are new to the server. One: the mean of both models, which translate with links, and
    compute the scores of the three texts that the comparison scores. Two: the comparison, with a reference.
    """
    reference = "ein Hund"
    translators = {name: server.workspace.model(name).translator for name in ("large", "other")}
    ones, twos = [], []
    with httpx.Client(base_url=server.address, timeout=60) as client:
        for number in range(21):
            source = f"two dogs sleep in park {number}"
            texts = [each.translate([source])[0] for each in translators.values()]
            start = time.perf_counter()
            for name, translator in translators.items():
                query = {"view": "translate", "nbest": 1, "model": name, "source": source}
                assert client.post("/content", content=urlencode(query)).status_code == 200
                translator.score([source] * 3, [*texts, reference])
            between = time.perf_counter()
            query = {"view": "compare", "other": "other", "reference": reference, "source": f"{source} again"}
            assert client.post("/content", content=urlencode(query)).status_code == 200
            ones.append((between - start) / 2)
            twos.append(time.perf_counter() - between)
    one, two = sorted(ones)[10], sorted(twos)[10]
    assert two <= 2.5 * one, f"{two:.3f} s, and {one:.3f} s with one model"


@pytest.mark.parametrize("change", ["position=3", "layer=2", "prefix=20", "off=decoder.cross_attention:2:1"])
def test_a_change_of_what_if_is_answered_within_100_milliseconds(server: WorkbenchServer, change: str) -> None:
    """Median over sentences whose own output is shown, from the request to the whole response."""
    times = []
    with httpx.Client(base_url=server.address, timeout=60) as client:
        for number in range(11):
            state = f"view=what-if&source=a+dog+{number}"
            assert client.post("/content", content=state).status_code == 200
            start = time.perf_counter()
            assert client.post("/content", content=f"{state}&{change}").status_code == 200
            times.append(time.perf_counter() - start)
    assert sorted(times)[5] < 0.1


def test_a_token_is_highlighted_in_all_pictures_within_32_milliseconds(tabs: WorkbenchTabs) -> None:
    """At 64 × 64 tokens: the row and the column in the heat map, in 54 small maps, and in the rows of tokens."""
    tab = tabs.open(f"view=attention&{SENTENCE}&layer=1&head=1")
    wait_until_drawn(tab)
    times = tab.evaluate(
        """async () => {
          const tokens = [...document.querySelectorAll(".word-token")];
          const times = [];
          for (let turn = 0; turn < 100; turn += 1) {
            const start = performance.now();
            tokens[(turn * 37) % tokens.length].dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
            times.push(performance.now() - start);
          }
          return times.sort((a, b) => a - b);
        }"""
    )
    assert times[94] < 32


def test_a_hundred_thousand_points_are_drawn_within_100_milliseconds(tabs: WorkbenchTabs) -> None:
    tab = tabs.open("view=training")
    wait_until_drawn(tab)
    assert seconds(tab, "view=training&scale=log", ".curve-panel polyline") < 0.1


def test_a_tree_of_a_thousand_nodes_is_drawn_within_200_milliseconds(tabs: WorkbenchTabs) -> None:
    tab = tabs.open("view=tree&source=a+dog+runs+in+the+park&beam=31")
    wait_until_drawn(tab)
    assert tab.locator(".node").count() >= 1000
    drawing = "() => { const t = performance.now(); dispatchEvent(new HashChangeEvent('hashchange')); return t; }"
    tab.evaluate(drawing)
    wait_until_drawn(tab)
    times = tab.evaluate(
        """async () => {
          const tree = document.querySelector('.tree');
          const copies = [...tree.children];
          const start = performance.now();
          tree.replaceChildren();
          tree.replaceChildren(...copies);
          tree.getBoundingClientRect();
          await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
          return performance.now() - start;
        }"""
    )
    assert times < 200


def test_memory_stays_flat_over_a_thousand_sentences(server: WorkbenchServer) -> None:
    with httpx.Client(base_url=server.address, timeout=60) as client:

        def inspect(first: int, count: int) -> None:
            for number in range(first, first + count):
                state = f"view=attention&source=a+dog+{number}&target=ein+Hund"
                assert client.post("/content?figure=heads", content=state).status_code == 200

        inspect(0, 200)
        gc.collect()
        before = resident_memory()
        inspect(200, 1000)
        gc.collect()
        assert resident_memory() < 1.1 * before


def test_the_best_path_is_the_translation_of_the_command_for_200_sentences(
    server: WorkbenchServer, tmp_path: Path
) -> None:
    from dragoman.addons.workbench.views.tree import TreeState

    translator = server.workspace.model("large").translator
    words = ["a", "dog", "runs", "two", "dogs", "sleep", "the", "man", "sees", "in", "park"]
    sentences = [
        " ".join(words[(number * 7 + place * 3) % 11] for place in range(2 + number % 6)) for number in range(200)
    ]
    expected = [each[0].text for each in translator.translate_nbest(sentences, translator.request(beam=4))]
    for sentence, text in zip(sentences, expected, strict=True):
        figure = TreeState(source=sentence).content(server.workspace).figures["tree"]
        best = figure.best_path[1:]  # type: ignore[attr-defined]
        pieces = [figure.nodes[node].piece for node in best]  # type: ignore[attr-defined]
        assert figure.outcomes[0].text == text  # type: ignore[attr-defined]
        assert figure.outcomes[0].node == best[-1] and len(pieces) >= 1  # type: ignore[attr-defined]
