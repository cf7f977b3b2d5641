"""Deck 001's criteria for every scheme, the dot products of sinusoids, and the command that shows both."""

from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.image import imread

from dragoman.addons.lecture.position_criteria import CRITERIA, Probe, Setting, criteria_table, first_rise, judge
from dragoman.base.settings.config import kinds, union_members
from dragoman.cli.main import main
from dragoman.figures.matrices import Matrices
from dragoman.nn.positions.learned import LearnedConfig
from dragoman.nn.positions.relative import RelativeConfig
from dragoman.nn.positions.sinusoidal import SinusoidalConfig, sinusoids
from dragoman.nn.positions.union import PositionsConfig

SMALL = Setting(width=32, heads=4, length=24)
SCHEMES = {kinds(member)[0]: member for member in union_members(PositionsConfig)}
# unique, deterministic, evenly spaced, longer texts; the first four rows are deck 001's own
EXPECTED = {
    "index": (True, True, True, False),
    "one_hot": (True, True, True, False),
    "fraction": (True, True, False, True),
    "sinusoidal": (True, True, True, True),
    "learned": (True, False, False, False),
    "relative": (False, False, True, True),  # all distances beyond δ are alike
    "bucketed": (False, True, True, True),  # its biases are zero before training
    "rotary": (True, True, True, True),
    "alibi": (False, True, True, True),  # left and right are alike
    "none": (False, True, True, True),
}


@pytest.mark.parametrize("kind", SCHEMES)
def test_the_criteria_of_deck_001(kind: str) -> None:
    setting = Setting(width=32, heads=4, length=40) if kind == "relative" else SMALL
    found = judge(SCHEMES[kind](), setting)
    assert tuple(found) == CRITERIA
    assert tuple(verdict.holds for verdict in found.values()) == EXPECTED[kind]
    assert all(verdict.holds or verdict.counterexample for verdict in found.values())


def test_distances_are_distinguished_up_to_clipping() -> None:
    assert judge(RelativeConfig(distance=12), SMALL)["unique"].holds
    assert str(judge(RelativeConfig(distance=10), SMALL)["unique"]) == "no: 0 and 1 are equal"
    assert judge(RelativeConfig(distance=12, keys=False), SMALL)["unique"].holds
    assert judge(RelativeConfig(distance=12, values=False), SMALL)["unique"].holds


def test_the_table_has_the_results_and_omits_criteria_that_do_not_apply() -> None:
    lines = criteria_table({"learned": LearnedConfig(limit=20), "rotary": SCHEMES["rotary"]()}, Setting(6, 2, 24))
    learned, rotary = (line.split("  ") for line in lines.split("\n")[1:])
    assert [cell.strip() for cell in learned if cell][-1] == "no: ends at 20"
    assert set("".join(rotary).replace(" ", "").removeprefix("rotary")) == {"–"}


@pytest.mark.parametrize(("width", "distance"), [(64, 6), (512, 44), (1024, 69)])
def test_dot_products_of_sinusoids_rise_again(width: int, distance: int) -> None:
    """Deck 001 says that they "decay nicely with time", deck 002 that distances grow with |i − j|; true up to here."""
    pairs = Probe(SinusoidalConfig(), Setting(width, 8, 100)).pairs(100)[0]
    frequencies = 10000.0 ** (-np.arange(0, width, 2) / width)
    products = np.cos(np.arange(100)[:, None] * frequencies).sum(1)
    np.testing.assert_allclose(pairs[0].numpy(), products, atol=1e-3)
    assert first_rise(pairs) == int(np.flatnonzero(np.diff(products) > 0)[0]) + 1 == distance
    torch.testing.assert_close(pairs, pairs.t())
    apart = torch.cdist(*[sinusoids(100, width)] * 2)[0]
    assert apart[distance] < apart[distance - 1]


def test_products_that_fall_all_the_way_never_rise() -> None:
    assert first_rise(torch.arange(5.0).neg()[None] - torch.arange(5.0)[:, None]) is None


def test_weights_of_relations_are_those_of_equal_tokens() -> None:
    pairs = Probe(SCHEMES["alibi"](), SMALL).pairs(10)
    offsets = (torch.arange(10)[None] - torch.arange(10)[:, None]).abs()
    for head, found in enumerate(pairs):
        torch.testing.assert_close(found, torch.exp(-(2.0 ** (-2 * (head + 1))) * offsets))
    assert len(Probe(SCHEMES["rotary"](), SMALL).pairs(10)) == 1


@pytest.mark.parametrize(
    ("scheme", "pictures"),
    [
        ([], ["dot-products.png", "encoding.png"]),
        (["base=100000"], ["dot-products.png", "encoding.png"]),
        (["kind=alibi"], ["weights.png"]),
        (["kind=none"], []),
    ],
)
def test_the_command(
    tmp_path: Path, scheme: list[str], pictures: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = ["--width", "16", "--heads", "2", "--length", "12", "--layers", "2"]
    assert main(["positions", *scheme, *sizes, "--out", str(tmp_path / "deep" / "pictures")]) == 0
    out = capsys.readouterr().out
    assert all(f"\n{kind} " in out for kind in SCHEMES)
    assert ("dot products with position 0" in out) == ("encoding.png" in pictures)
    assert "\nattention, full " in out
    assert sorted(path.name for path in tmp_path.glob("deep/pictures/*")) == pictures


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["kind=one_hot", "--width", "8", "--heads", "2", "--length", "9"], "--length 9 exceeds the 8 positions"),
        (["--width", "9", "--heads", "2"], "a width of 9 is not divisible by 2 heads"),
        (["kind=learned", "limits=3"], "did you mean limit?"),
        (["kind=rotary", "--width", "6", "--heads", "2"], "width 3"),
    ],
)
def test_errors_of_the_command(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["positions", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_matrices_are_drawn_as_they_are(tmp_path: Path) -> None:
    """The same matrix with one changed cell gives a picture that differs in that cell only."""
    matrix = np.zeros((4, 4), np.float32)
    matrix[0, 0] = 1
    pictures = []
    for place, value in enumerate((0.0, -1.0)):
        matrix[3, 1] = value
        matrices = {"a": matrix, "b": np.eye(4, dtype=np.float32)}
        Matrices(title="t", caption="", matrices=matrices, axes=("y", "x"), unit="v").write(tmp_path / f"{place}.png")
        pictures.append(imread(tmp_path / f"{place}.png")[..., :3])
    one, two = pictures
    orange = (np.abs(two - np.array([0x8A, 0x3D, 0x06]) / 255).max(-1) < 0.02).nonzero()
    assert len(orange[0]) and not (np.abs(one - np.array([0x8A, 0x3D, 0x06]) / 255).max(-1) < 0.02).any()
