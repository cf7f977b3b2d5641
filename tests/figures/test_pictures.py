"""Pictures: the drawn numbers, and robustness to unusual input."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from matplotlib import font_manager
from matplotlib.ft2font import FT2Font
from matplotlib.image import imread

from dragoman.figures import text_layout
from dragoman.figures.curves import Curve, CurvePanel, Curves
from dragoman.figures.heads import head_grid, layer_heads
from dragoman.figures.token_grid import Labels, TokenGrid
from dragoman.models.attention_weights import AttentionMap
from dragoman.training.progress.run_log import RunLog
from dragoman.training.progress.training_curves import draw_curves, training_curves

BLUE, ORANGE = (31, 95, 168), (194, 87, 12)


def _attention(queries: tuple[str, ...], keys: tuple[str, ...], heads: int = 2) -> AttentionMap:
    weights = np.full((heads, len(queries), len(keys)), 1 / len(keys), dtype=np.float32)
    return AttentionMap("decoder.layers.1.cross_attention", weights, queries, keys)


def _share(png: Path, colour: tuple[int, int, int]) -> float:
    """Return the fraction of pixels with this colour."""
    pixels = np.round(imread(png)[..., :3] * 255)
    return float((np.abs(pixels - np.array(colour)).max(-1) <= 2).mean())


def _log(path: Path, steps: int, validations: bool = True) -> Path:
    lines = []
    for step in range(10, steps + 1, 10):
        lines.append({"step": step, "epoch": 0, "loss": 8 / step, "learning_rate": 1e-3, "seconds": step / 2})
        if validations and step % 50 == 0:
            lines.append(
                {"step": step, "valid_loss": 9 / step, "valid_perplexity": 2 + 99 / step, "valid_bleu": step / 9}
            )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_curves_show_each_validation_set(tmp_path: Path) -> None:
    lines = [
        {
            "step": step,
            "valid_loss": 2.0,
            "valid_perplexity": 7.4,
            "valid_bleu": 15.0,
            "valid_sets": {
                name: {"loss": 2.0, "perplexity": 7.4, "bleu": step} for name in ("a $x", "_b")[: 1 + step // 20]
            },
        }
        for step in (10, 20)
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    bleu = training_curves(RunLog(tmp_path / "log.jsonl").records).draw().axes[2]
    drawn = {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in bleu.get_lines()}
    assert drawn["a $x"] == ([10, 20], [10, 20])
    assert drawn["b"] == ([20], [20])
    assert len({line.get_marker() for line in bleu.get_lines()} - {"None", ""}) == 3, "a single point has no line"
    assert [text.get_text() for text in bleu.get_legend().get_texts()] == ["mean", "a $x", "b"]


@pytest.mark.slow
def test_curves_show_training_and_validation(tmp_path: Path) -> None:
    draw_curves(_log(tmp_path / "log.jsonl", 400), tmp_path / "both.png")
    draw_curves(_log(tmp_path / "log.jsonl", 400, validations=False), tmp_path / "training.png")
    assert _share(tmp_path / "both.png", BLUE) > 1e-3
    assert _share(tmp_path / "both.png", ORANGE) > 1e-3
    assert _share(tmp_path / "training.png", BLUE) > 1e-3
    assert _share(tmp_path / "training.png", ORANGE) == 0


def test_a_single_report_is_visible(tmp_path: Path) -> None:
    draw_curves(_log(tmp_path / "log.jsonl", 10), tmp_path / "curves.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curves.png", "log.jsonl"], "a temporary file remains"
    pixels = np.round(imread(tmp_path / "curves.png")[..., :3] * 255)
    learning_rate = pixels[pixels.shape[0] // 2 :]
    assert (np.abs(learning_rate - np.array(BLUE)).max(-1) <= 2).sum() > 4


@pytest.mark.slow
def test_an_incomplete_last_line_and_invalid_numbers_are_left_out(tmp_path: Path) -> None:
    log = _log(tmp_path / "log.jsonl", 100)
    draw_curves(log, tmp_path / "whole.png")
    with log.open("a") as file:
        file.write('{"step": 100, "loss": NaN, "learning_rate": null}\n[1]\n{"step": 110, "lo')
    # the record of step 100 is replaced by one without numbers, so that only its own point may be missing
    draw_curves(log, tmp_path / "torn.png")
    assert _share(tmp_path / "torn.png", BLUE) > 1e-3
    assert _share(tmp_path / "torn.png", ORANGE) == pytest.approx(_share(tmp_path / "whole.png", ORANGE), rel=0.05)


@pytest.mark.slow
def test_a_log_without_a_line_gives_an_empty_picture(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("")
    draw_curves(tmp_path / "log.jsonl", tmp_path / "curves.png")
    assert _share(tmp_path / "curves.png", BLUE) == 0


def test_a_heavier_weight_is_darker(tmp_path: Path) -> None:
    weights = np.tile(np.eye(4, dtype=np.float32) * 0.97 + 0.01, (1, 1, 1))
    labels = ("a", "b", "c", "d")
    layer_heads(AttentionMap("encoder.layers.0.self_attention", weights, labels, labels)).write(tmp_path / "map.png")
    darkest = (13, 47, 92)
    assert 0.02 < _share(tmp_path / "map.png", darkest) < 0.5


@pytest.mark.parametrize(
    "labels",
    [("$x$", "_{", "\\frac", "^"), ("\n", "\t", " ", ""), ("犬", "🐕", "שלום", "й@@")],
    ids=["mathematics", "blanks", "scripts"],
)
def test_any_piece_can_be_a_label(tmp_path: Path, labels: tuple[str, ...]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer_heads(_attention(labels, labels)).write(tmp_path / "map.png")
    assert imread(tmp_path / "map.png").shape[0] > 300


def test_long_sentences_stay_within_a_printable_size(tmp_path: Path) -> None:
    many = tuple(f"p{number}" for number in range(260))
    layer_heads(_attention(many[:3], many, heads=1)).write(tmp_path / "map.png")
    height, width, _ = imread(tmp_path / "map.png").shape
    assert height < 1000
    assert width < 7500


def test_layers_and_heads_of_a_long_text_are_drawn_without_names(tmp_path: Path) -> None:
    many = tuple(f"p{number}" for number in range(70))
    weights = np.full((3, 70, 70), 1 / 70, dtype=np.float32)
    maps = [AttentionMap(f"encoder.layers.{layer}.self_attention", weights, many, many) for layer in (0, 1)]
    head_grid(maps).write(tmp_path / "map.svg")
    text = (tmp_path / "map.svg").read_text("utf-8")
    assert text.count("<image") == 2 * 4 + 1, "two layers of three heads and their mean, and the bar of colours"
    assert all(f"layer {layer}, {name}<" in text for layer in (1, 2) for name in ("mean of the heads", "head 3"))
    assert ">p3<" not in text


@pytest.mark.parametrize(("count", "length"), [(3, 4), (40, 12), (64, 9), (300, 30), (512, 24)])
def test_names_never_overlap(count: int, length: int) -> None:
    tokens = [f"{number:0{length}}" for number in range(count)]
    grid = TokenGrid.with_labels(2, 3, tokens, tokens)
    for names in (grid.row_labels, grid.column_labels):
        assert names.every * grid.cell * 72 >= 1.1 * names.points
        assert names.points >= 5.5
        assert names.length < 2.5
    assert max(grid.size) <= 42


def test_a_long_piece_is_truncated() -> None:
    (short, long, newline) = Labels.from_tokens(["Kapitän", "Donaudampfschifffahrtsgesellschaft", "\n"], 0.3).texts
    assert (short, long, newline) == ("Kapitän", "Donaudampfschifffahrtsg…", "<0A>")


def test_characters_are_searched_for_in_all_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (FT2Font(font_manager.findfont(name)).get_charmap() for name in ("DejaVu Sans", "STIXGeneral"))
    character = chr(min(code for code in set(second) - set(first) if chr(code).isprintable()))
    others = tuple(item for item in text_layout._other_fonts() if item[0] == "STIXGeneral")
    monkeypatch.setattr(text_layout, "_other_fonts", lambda: others)
    text_layout.find_fonts.cache_clear()
    assert text_layout.find_fonts("ab") == (("DejaVu Sans",), frozenset())
    assert text_layout.find_fonts(f"a{character}") == (("DejaVu Sans", "STIXGeneral"), frozenset())
    assert text_layout.find_fonts("a犬\n") == (("DejaVu Sans",), frozenset("犬"))
    text_layout.find_fonts.cache_clear()


def test_the_numbers_of_a_logarithmic_axis_are_plain() -> None:
    curve = Curve("", np.arange(3.0), np.array([2.0, 30.0, 9000.0]))
    panel = CurvePanel("perplexity", "", (curve,), is_logarithmic=True)
    (axes,) = Curves(title="", caption="", panels=(panel,)).draw().axes
    labels = {label.get_text() for label in axes.get_yticklabels()}
    assert {"10", "100", "1,000"} <= labels
    assert not any("$" in label for label in labels)


@pytest.mark.parametrize("span", [2.0, 1e3, 1e9, 1e18])
def test_a_logarithmic_axis_has_numbers_whatever_its_span(span: float) -> None:
    curve = Curve("", np.arange(2.0), np.array([1.0, span]))
    (axes,) = Curves(title="", caption="", panels=(CurvePanel("norm", "", (curve,), is_logarithmic=True),)).draw().axes
    low, high = axes.get_ylim()
    assert 2 <= sum(low <= each <= high for each in axes.get_yticks()) <= 20
