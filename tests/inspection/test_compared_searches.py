"""Greedy, beam and exact search beside each other, and the reason for a bad result."""

import json
from math import log
from pathlib import Path

import numpy as np
import pytest
from repository import ROOT
from tiny_model import tiny_config, write_tiny_model

from dragoman import Sampling, Translator, compare_searches
from dragoman.addons.lecture.example_trees import EXAMPLE_TREES
from dragoman.addons.workbench.view_state import parse_view_state
from dragoman.addons.workbench.workspace import Workspace
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.load import parse_settings
from dragoman.cli.main import main
from dragoman.decode.rules.length_penalty import NoPenalty
from dragoman.decode.search import SearchConfig
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.result import Translation
from dragoman.inspection.searches import compare_tree_searches


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    stack = {"layers": 1, "heads": 2, "feedforward": 16}
    folder = tmp_path_factory.mktemp("searched") / "model"
    write_tiny_model(folder, seed=3, config=tiny_config(encoder=stack, decoder=stack))
    return folder


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


def test_the_searches_are_those_of_translate(model: Path) -> None:
    translator = Translator.load(model, engine="torch")
    request = translator.request(beam=2, nbest=2, length_penalty="none", search={"maximum_length": 4})
    found = compare_searches(translator, "a dog runs", request, exact=5000)

    def best(beam: int, exact: int = 0) -> Translation:
        search = {"maximum_length": 4, "exact": exact}
        changed = translator.request(beam=beam, length_penalty="none", search=search)
        return translator.translate_nbest(["a dog runs"], changed)[0][0]

    exact, bound = found.tree.exact, found.bound
    assert exact is not None and bound is not None
    for outcome, wanted in (
        (found.greedy, best(beam=1)),
        (found.tree.outcomes[0], best(beam=2)),
        (exact, best(beam=1, exact=5000)),
    ):
        assert (outcome.text, outcome.score) == (wanted.text, pytest.approx(wanted.score, abs=1e-5))
    assert best(beam=400).score == pytest.approx(exact.score, abs=1e-5), "a beam that holds every hypothesis"
    assert bound == pytest.approx(exact.score, abs=1e-5)
    (without,) = {compare_searches(translator, "a dog runs", request, exact=0).verdict}
    assert without is None


def test_a_search_that_reaches_its_limit_proves_nothing(model: Path) -> None:
    translator = Translator.load(model, engine="torch")
    found = compare_searches(translator, "a dog runs", translator.request(beam=2, length_penalty="mean"), exact=3)
    assert found.tree.exact is not None and found.bound is not None
    assert found.bound > found.tree.exact.score
    assert found.verdict in ("open", "search error")


def test_the_command_draws_the_path_and_reports_the_verdict(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "tree.svg"
    arguments = ["inspect", "tree", str(model), "a dog", "--beam", "1", "--exact", "50", "--out", str(out)]
    assert main([*arguments, "--length-penalty", "none"]) == 0
    assert "exact search" in out.read_text("utf-8")
    assert any(each in capsys.readouterr().err for each in ("search error: score", "open: score"))


def test_views_without_a_model_need_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = "http://127.0.0.1:1/#view=tree&example=deck-004&beam=2&exact=9"
    assert main(["workbench", "figures", address, "--out", str(tmp_path / "tree")]) == 0
    facts = json.loads((tmp_path / "tree" / "facts.json").read_text("utf-8"))
    assert facts["exact"]["text"] == "ok ok"
    assert main(["workbench", "figures", "#view=tree&source=a", "--out", str(tmp_path / "none")]) == 2
    assert "no model is loaded" in capsys.readouterr().err


def test_invalid_comparisons_are_errors(model: Path) -> None:
    translator = Translator.load(model, engine="torch")
    groups = translator.request(beam=4, search={"diversity": {"groups": 2}})
    with pytest.raises(ConfigError, match="exact search has no groups"):
        compare_searches(translator, "a dog", groups)
    with pytest.raises(ConfigError, match="sampling has no search tree"):
        compare_searches(translator, "a dog", Request(Sampling()))
    with pytest.raises(DataError, match="blank"):
        compare_searches(translator, " ")
    with pytest.raises(ConfigError, match="exact"):
        parse_settings({"exact": -1}, SearchConfig, "search")
