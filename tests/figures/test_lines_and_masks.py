"""Head lines, masks and schedules as figures."""

from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman.base.errors import ConfigError
from dragoman.cli.main import main
from dragoman.figures.head_lines import head_lines
from dragoman.figures.masks import applied_masks, mask_maps
from dragoman.models.attention_weights import AttentionMap
from dragoman.models.kinds.decoder_only import LanguageModelConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.nn.mask import Mask
from dragoman.text.tokenizers import VocabularySizes
from dragoman.training.optimisers.schedule import CosineConfig, InverseSquareRootConfig
from dragoman.training.optimisers.schedule_curves import schedule_curves

TOKENS = ("I", "kicked", "the", "الكرة")
SIZES = VocabularySizes(8, 8)
SMALL = {"layers": 1}


def attention() -> AttentionMap:
    weights = np.array([np.eye(4), np.full((4, 4), 0.25), np.eye(4)[[0, 3, 1, 2]]], np.float32)
    return AttentionMap("encoder.layers.0.self_attention", weights, TOKENS, TOKENS)


def test_lines_are_the_weights_of_the_chosen_heads_and_token() -> None:
    figure = head_lines(attention(), heads=[3, 1], query=1)
    assert figure.headings == ("head 3", "head 1")
    assert list(figure.lines()) == [(0, 1, 3, 1.0), (1, 1, 1, 1.0)]
    assert len(list(head_lines(attention(), smallest=0.3).lines())) == 8, "the second head has only small weights"
    assert len(list(head_lines(attention()).lines())) == 4 + 16 + 4


@pytest.mark.parametrize(("arguments", "message"), [({"heads": [4]}, "no head 4"), ({"query": 4}, "tokens 1 to 4")])
def test_lines_of_unknown_heads_and_tokens_are_errors(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        head_lines(attention(), **arguments)


def test_lines_of_several_heads_are_side_by_side(tmp_path: Path) -> None:
    axes = head_lines(attention(), query=1).draw().axes[0]
    drawn = [line for line in axes.get_lines() if line.get_xdata()[1] - line.get_xdata()[0] > 3]
    assert len(drawn) == 6
    assert len({tuple(line.get_ydata()) for line in drawn}) == 6
    head_lines(attention()).write(tmp_path / "lines.svg", tmp_path / "lines.png")
    assert "الكرة" in (tmp_path / "lines.svg").read_text("utf-8")


def masks(model: dict[str, object], length: int = 8) -> dict[str, np.ndarray]:
    config = ModelConfig.model_validate({"preset": None, "width": 8, **model})
    figure = applied_masks(config.build_for(SIZES).eval(), length)
    assert figure is not None
    return {panel.heading: panel.values.astype(bool) for panel in figure.grid[0]}


def test_the_masks_of_a_transformer_are_those_of_the_formulas() -> None:
    found = masks({"encoder": SMALL, "decoder": SMALL})
    padded = np.arange(8) < 6
    expected = {
        "encoder: self attention": np.tile(padded, (8, 1)),
        "decoder: self attention": np.tril(np.ones((8, 8), bool)),
        "decoder: cross attention": np.tile(padded, (8, 1)),
    }
    assert found.keys() == expected.keys()
    for heading, mask in expected.items():
        np.testing.assert_array_equal(found[heading], mask, heading)


def test_the_masks_of_a_window_are_bands() -> None:
    windows = {**SMALL, "attention": {"kind": "window", "window": 2}}
    found = masks({"encoder": windows, "decoder": windows})
    t, s = np.indices((8, 8))
    np.testing.assert_array_equal(found["encoder: self attention"], (abs(t - s) <= 2) & (s < 6))
    np.testing.assert_array_equal(found["decoder: self attention"], (s <= t) & (t - 2 < s))


def test_a_model_without_weights_has_no_masks() -> None:
    config = LanguageModelConfig.model_validate({"preset": None, "width": 8, "decoder": {"kind": "recurrent"}})
    assert applied_masks(config.build_for(SIZES).eval(), 8) is None


def test_a_mask_of_a_graph_is_drawn_as_it_is() -> None:
    edges = np.random.default_rng(0).random((4, 4)) < 0.5
    allowed = Mask.graph(torch.from_numpy(edges)).allowed[0, 0].numpy()
    figure = mask_maps({"graph": allowed, "reversed": allowed.T}, TOKENS, TOKENS)
    np.testing.assert_array_equal(figure.arrays()["row-0"], np.stack([edges, edges.T]))
    assert figure.limit == 1.0


def test_a_schedule_is_drawn_as_it_is_computed() -> None:
    figure = schedule_curves({"paper": InverseSquareRootConfig(), "cosine": CosineConfig()}, 20_000, 512)
    paper, cosine = figure.panels[0].curves
    peak = int(paper.y.argmax())
    assert paper.x[peak] == 4000, "the end of the warm-up"
    assert paper.y[peak] == pytest.approx((512 * 4000) ** -0.5)
    assert cosine.y[-1] == pytest.approx(0, abs=1e-9)
    assert figure.panels[0].heading.endswith("at step 1,000")


def test_describe_draws_the_masks_and_the_schedule_of_a_recipe(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "data: {train: {source: a, target: b}}\nout: run\n"
        "model: {preset: null, width: 8, encoder: {layers: 1}, decoder: {layers: 1}}\n"
        "train: {max_steps: 300, schedule: {kind: cosine, peak: 0.01, warmup: 30}}\n"
    )
    assert main(["describe", str(recipe), "--length", "4", "--draw", str(tmp_path / "figures")]) == 0
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {f"{name}.{suffix}" for name in ("masks", "schedule") for suffix in ("svg", "png", "json", "csv")}
    rows = (tmp_path / "figures" / "schedule.csv").read_text().splitlines()
    assert len(rows) == 301 and float(rows[30].split(",")[-1]) == pytest.approx(0.01)
    assert main(["describe", str(recipe), "--draw", str(tmp_path / "figures")]) == 2
