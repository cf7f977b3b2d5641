"""The search trees of the lecture, which the workbench searches without a model."""

import json
from math import log
from pathlib import Path

import numpy as np
import pytest
from repository import ROOT

from dragoman.addons.lecture.example_trees import EXAMPLE_TREES
from dragoman.addons.lecture.tree_searches import compare_tree_searches
from dragoman.addons.workbench.view_state import parse_view_state
from dragoman.addons.workbench.workspace import Workspace
from dragoman.cli.main import main
from dragoman.decode.rules.length_penalty import NoPenalty
from dragoman.decode.search import SearchConfig


def test_exact_search_finds_what_the_beam_pruned() -> None:
    example = EXAMPLE_TREES["hidden"]
    found = compare_tree_searches(example.tree, "?", SearchConfig(beam=2, nbest=2, length_penalty=NoPenalty()))
    assert found.verdict == "search error"
    assert found.greedy.text == "ok well" and found.tree.outcomes[0].text == "ok well"
    assert found.tree.exact is not None and found.tree.exact.text == "well yes"
    assert found.bound == found.tree.exact.score == pytest.approx(log(0.2))
    last = found.tree.nodes[found.tree.exact_path[-1]]
    assert (last.piece, last.step, last.fate) == ("well", 1, "pruned: outside the beam")


@pytest.mark.parametrize("penalty", ["none", "mean", "0.6"])
def test_a_wide_enough_beam_makes_no_search_error(penalty: str) -> None:
    state = parse_view_state(f"view=tree&example=hidden&beam=3&exact=100&penalty={penalty}")
    facts = state.content(Workspace([])).facts
    assert facts["verdict"] == "no search error"
    assert facts["exact"] == facts["beam"][0] and facts["exact"]["text"] == "well yes"


def test_deck_004s_tree_needs_no_model() -> None:
    def facts(beam: int) -> dict:
        return dict(parse_view_state(f"view=tree&example=deck-004&beam={beam}&exact=100").content(Workspace([])).facts)

    assert facts(1)["verdict"] == "search error" and facts(1)["greedy"]["text"] == "yes yes"
    assert facts(2)["verdict"] == "no search error" and facts(2)["beam"][0]["text"] == "ok ok"
    assert np.exp(facts(2)["bound"]) == pytest.approx(0.4 * 0.7)


def test_the_examples_are_the_trees_of_the_lecture() -> None:
    page = (ROOT / "docs" / "lecture" / "search.md").read_text("utf-8")
    for name in ("deck-004", "hidden"):
        assert f"example={name}" in page
        for words, probabilities in EXAMPLE_TREES[name].tree.successors.items():
            row = ", ".join(
                f"{'END' if word == '</s>' else json.dumps(word)}: {p}" for word, p in probabilities.items()
            )
            assert f"{words!r}: {{{row}}}".replace("'", '"') in page


def test_views_without_a_model_need_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = "http://127.0.0.1:1/#view=tree&example=deck-004&beam=2&exact=9"
    assert main(["workbench", "figures", address, "--out", str(tmp_path / "tree")]) == 0
    facts = json.loads((tmp_path / "tree" / "facts.json").read_text("utf-8"))
    assert facts["exact"]["text"] == "ok ok"
    assert main(["workbench", "figures", "#view=tree&source=a", "--out", str(tmp_path / "none")]) == 2
    assert "no model is loaded" in capsys.readouterr().err
