"""Greedy, beam and exact search beside each other, and the reason for a bad result."""

from pathlib import Path

import pytest
from tiny_model import tiny_config, write_tiny_model

from dragoman import Sampling, Translator, compare_searches
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.load import parse_settings
from dragoman.cli.main import main
from dragoman.decode.search import SearchConfig
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.result import Translation


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    stack = {"layers": 1, "heads": 2, "feedforward": 16}
    folder = tmp_path_factory.mktemp("searched") / "model"
    write_tiny_model(folder, seed=3, config=tiny_config(encoder=stack, decoder=stack))
    return folder


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
