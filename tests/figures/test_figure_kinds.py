"""Figures as data: what the browser receives is exact, and each kind is drawn with the same bytes every time."""

import csv
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from test_search_tree_figure import tree_record

from dragoman.base.errors import ConfigError, DataError
from dragoman.figures.alignments import Alignments, alignment_figure, link_confusion
from dragoman.figures.bars import largest_probabilities
from dragoman.figures.comparison import Comparison
from dragoman.figures.figure import Figure
from dragoman.figures.heads import head_grid, layer_heads, single_head
from dragoman.figures.lens import layer_lens
from dragoman.figures.matrices import Matrices
from dragoman.figures.search_tree import search_tree
from dragoman.metrics.alignment_error_rate import GoldLinks
from dragoman.models.attention_weights import AttentionMap
from dragoman.text.words import Difference
from dragoman.training.progress.training_curves import compared_curves

GOLD = GoldLinks({(0, 0), (1, 1)}, {(0, 0), (1, 1), (2, 1)})


def attention(heads: int = 3, rows: int = 4, columns: int = 5) -> AttentionMap:
    weights = np.random.default_rng(1).dirichlet(np.ones(columns), (heads, rows)).astype(np.float32)
    queries, keys = (tuple(f"{side}{n}" for n in range(size)) for side, size in (("q", rows), ("k", columns)))
    return AttentionMap("decoder.layers.1.cross_attention", weights, queries, keys)


def figures() -> dict[str, Figure]:
    """One figure of each kind."""
    log = [{"step": 10, "loss": 2.0, "learning_rate": 0.1}, {"step": 20, "loss": 1.0, "valid_loss": 1.5}]
    runs = compared_curves({"a": log, "b": log})
    probabilities = np.array([0.1, 0.6, 0.05, 0.25])
    return {
        "grid": head_grid([attention(), attention()]),
        "layer": layer_heads(attention()),
        "head": single_head(attention(), 2),
        "bars": largest_probabilities(probabilities, str, 2, title="t", caption="c", chosen=2),
        "tree": search_tree(tree_record()),
        "curves": replace(runs, panels=runs.panels[:2]),
        "lens": layer_lens(["layer 1", "layer 2"], ["Hund", "</s>"], ["ab", "cd"], np.array([[0.5, 0.2], [0.9, 1.0]])),
        "links": alignment_figure("a b c".split(), "A B".split(), {"HMM": [(0, 0), (2, 0)]}, gold=GOLD),
        "comparison": Comparison(
            title="t",
            caption="c",
            names=("one", "two"),
            source=("a", "b"),
            translations=(("A", "B"), ("A",)),
            links=([(0, 0), (1, 1)], [(0, 0)]),
            differences=(Difference(1, 2, 1, 1),),
            scores={"BLEU": (2.5, 1.0)},
        ),
        "confusion": link_confusion({"HMM": [{(0, 0), (2, 0), (2, 1)}]}, [GOLD]),
        "matrices": Matrices(title="t", caption="c", matrices={"m": np.eye(3)}, axes=("i", "j"), unit="v"),
    }


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=pytest.mark.slow if each in ("grid", "curves") else ()) for each in figures()],
)
def test_a_figure_is_the_same_as_data_and_as_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.figures.canvas.RESOLUTION", 30)  # not tested, and faster
    figure = figures()[name]
    paths = figure.save(tmp_path, name)
    assert [path.suffix for path in paths] == [".svg", ".png", ".json", ".csv"]
    content = json.loads((tmp_path / f"{name}.json").read_text("utf-8"))
    assert content["kind"] == figure.kind and content["caption"]
    for key, array in figure.arrays().items():
        assert content["arrays"][key] == {"shape": list(array.shape), "dtype": str(array.dtype)}
        np.testing.assert_array_equal(np.array(content["values"][key], array.dtype).reshape(array.shape), array)
    header, *rows = csv.reader((tmp_path / f"{name}.csv").read_text("utf-8").splitlines())
    assert rows and all(len(row) == len(header) for row in rows)
    before = [path.read_bytes() for path in paths[:2]]
    figures()[name].write(*map(str, paths[:2]))
    assert [path.read_bytes() for path in paths[:2]] == before, "the same figure gives the same bytes"
    png, size = figure._repr_png_()
    svg = figure._repr_svg_().replace(' style="max-width:100%;height:auto"', "", 1)
    assert [svg.encode(), png] == before
    assert size["width"] == pytest.approx(imread(paths[1]).shape[1] / 30 * 96, abs=4)


@pytest.mark.slow
def test_another_process_imports_matplotlib_only_to_draw_and_writes_the_same_bytes(tmp_path: Path) -> None:
    program = (
        "import importlib, pkgutil, sys, dragoman.figures as figures\n"
        "for module in pkgutil.iter_modules(figures.__path__):\n"
        "    importlib.import_module(f'dragoman.figures.{module.name}')\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from pathlib import Path; from test_search_tree_figure import tree_record\n"
        "from dragoman.figures.search_tree import search_tree\n"
        "search_tree(tree_record()).save(Path(sys.argv[1]), 'tree')"
    )
    folders = tmp_path / "this", tmp_path / "other"
    for folder in folders:
        folder.mkdir()
    search_tree(tree_record()).save(folders[0], "tree")
    path = os.pathsep.join([*sys.path, str(Path(__file__).parent)])
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", program, str(folders[1])], env=environment, check=True)
    this, other = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders)
    assert len(this) == 4
    assert this == other


def test_heads_are_the_weights() -> None:
    one = attention()
    figure = head_grid([one])
    (row,) = figure.description()["grid"]
    assert [(panel["layer"], panel["head"]) for panel in row] == [(2, None), (2, 1), (2, 2), (2, 3)]
    values = figure.arrays()["row-0"]
    np.testing.assert_array_equal(values[1:], one.weights)
    np.testing.assert_allclose(values[0], one.weights.mean(0), rtol=1e-6)
    assert figure.values_at("row-0", (2, 3, 4)) == float(one.weights[1, 3, 4])
    assert figure.values_at("row-0", (2, 3)) == one.weights[1, 3].tolist()


@pytest.mark.parametrize(
    ("name", "index"), [("row-9", ()), ("row-0", (0, 4)), ("row-0", (0, 0, -1)), ("row-0", (0,) * 4)]
)
def test_a_place_outside_of_the_arrays_is_an_error(name: str, index: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="row-"):
        layer_heads(attention(heads=1)).values_at(name, index)


def test_a_head_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ConfigError, match="heads 1 to 3"):
        single_head(attention(), 4)


def test_the_largest_probabilities_and_the_rest_sum_to_one() -> None:
    probabilities = np.random.default_rng(0).dirichlet(np.ones(1000)).astype(np.float32)
    least = int(probabilities.argmin())
    bars = largest_probabilities(probabilities, lambda token: f"<{token}>", 5, title="", caption="", chosen=least)
    assert bars.labels == tuple(f"<{token}>" for token in [*np.argsort(-probabilities, kind="stable")[:5], least])
    assert bars.marked == (5,)
    assert bars.rest is not None
    assert sum(bars.values) + bars.rest == pytest.approx(1, abs=1e-6)


def test_links_have_the_error_rate_of_the_metric() -> None:
    figure = alignment_figure(
        "a b c".split(), "A B".split(), {"one": [(0, 0), (1, 1)], "two": [(0, 0), (2, 0)]}, gold=GOLD
    )
    assert figure.error_rates == {"one": 0.0, "two": pytest.approx(50.0)}, "1 − (1 + 1) / (2 + 2)"
    confusion = link_confusion({"two": [{(0, 0), (2, 0), (2, 1)}]}, [GOLD])
    assert confusion.counts.tolist() == [[1, 1, 1, 1]], "a sure, a possible and a wrong link; one sure link is missed"


def test_hidden_links_are_not_drawn_and_the_others_look_the_same() -> None:
    links = {"one": [(0, 0)], "two": [(1, 1)], "three": [(2, 0)]}
    weights = {"two": np.array([[0.25, 0.5], [0.125, 0.75], [0.0, 0.0]])}
    words = "a b c".split(), "A B".split()
    all_layers = alignment_figure(*words, links, gold=GOLD, weights=weights)
    some = alignment_figure(*words, links, gold=GOLD, weights=weights, hidden=("one", "gold"))

    def marks(figure: Alignments) -> list[tuple[object, ...]]:
        lines = [line for line in figure.draw().axes[0].lines if len(line.get_xdata()) == 1]
        return [(line.get_marker(), line.get_markersize(), line.get_markeredgecolor()) for line in lines]

    assert marks(some) == marks(all_layers)[2:], "two marks per aligner: the link, and that of the legend"
    assert [row[0] for row in some.table()] == ["aligner", "two", "three"]
    assert next(row[-1] for row in some.table() if row[0] == "two") == 0.75
    assert {"gold, sure", "gold, possible"} < {row[0] for row in all_layers.table()}
    assert some.error_rates == all_layers.error_rates
    assert [each["hidden"] for each in some.details()["aligners"]] == [True, False, False]
    assert some.arrays()["weights-1"].tolist() == weights["two"].tolist()


def test_the_lens_shows_the_last_layer_at_the_top() -> None:
    axes = figures()["lens"].draw().axes[0]
    heights = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert heights["c"] < heights["a"] < heights["Hund"], "in inches from the top"
