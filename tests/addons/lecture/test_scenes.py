"""Drawn scenes with captions: their grammar, the vectors of regions, and attention weights over a picture."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread
from repository import ROOT

from dragoman import Translator, inspect, train, write_scenes
from dragoman.addons.lecture.scenes import (
    CELL,
    COLOURS,
    COMBINATIONS,
    GRID,
    HELD_OUT,
    REGION_WIDTH,
    SHAPES,
    draw_scenes,
    paint,
    region_vectors,
)
from dragoman.base.errors import ConfigError, DataError
from dragoman.cli.main import main


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "scenes"
    write_scenes(folder, train=150, valid=10, test=15)
    return folder


def test_captions_follow_the_grammar() -> None:
    for scene in draw_scenes(300, 4, unseen=False):
        words = [word.text for word in scene.words]
        first, *others = scene.things
        assert words[:3] == ["a", first.colour, first.shape]
        for word in scene.words:
            if word.region is not None:
                thing = next(each for each in scene.things if each.region == word.region)
                assert word.text in (thing.colour, thing.shape)
        if others:
            (second,) = others
            assert words[-3:] == ["a", second.colour, second.shape]
            assert (first.column, first.row) < (second.column, second.row)
            assert ("above" in words) == (first.column == second.column)
        else:
            assert words[3:5] == ["at", "the"] and len(words) == 7


def test_unseen_combinations_do_not_occur_in_training(corpus: Path) -> None:
    assert {colour for colour, _ in HELD_OUT} == set(COLOURS) and {shape for _, shape in HELD_OUT} == set(SHAPES)
    held_out = [f"a {colour} {shape}" for colour, shape in HELD_OUT]
    for part, is_unseen in (("train", False), ("valid", False), ("test", False), ("unseen", True)):
        lines = (corpus / f"{part}.txt").read_text().splitlines()
        assert all(any(each in line for each in held_out) == is_unseen for line in lines)
    text = (corpus / "train.txt").read_text()
    assert all(f"a {colour} {shape}" in text for colour, shape in set(COMBINATIONS) - set(HELD_OUT))


def test_files_are_parallel_and_pictures_have_their_vectors(corpus: Path) -> None:
    for part in ("train", "valid", "test", "unseen"):
        vectors, captions, regions = (
            (corpus / f"{part}{suffix}").read_text().splitlines() for suffix in (".jsonl", ".txt", ".regions.jsonl")
        )
        assert len(vectors) == len(captions) == len(regions)
        for line, caption, numbers in zip(vectors, captions, regions, strict=True):
            assert np.array(json.loads(line)).shape == (GRID * GRID, REGION_WIDTH)
            assert len(json.loads(numbers)) == len(caption.split())
    pixels = (imread(corpus / "unseen-1.png")[:, :, :3] * 255).round().astype(np.uint8)
    assert pixels.shape == (GRID * CELL, GRID * CELL, 3)
    stored = json.loads((corpus / "unseen.jsonl").read_text().splitlines()[0])
    np.testing.assert_allclose(region_vectors(pixels).round(3), stored, atol=2e-3)
    again = corpus.parent / "again"
    write_scenes(again, train=150, valid=10, test=15)
    assert (again / "train.jsonl").read_bytes() == (corpus / "train.jsonl").read_bytes()


def test_a_corpus_without_scenes_is_rejected(tmp_path: Path) -> None:
    for changes, message in (({"train": -1}, "train must be at least 1"), ({"seed": -1}, "seed must be at least 0")):
        with pytest.raises(ConfigError, match=message):
            write_scenes(tmp_path / "scenes", **changes)
    assert not (tmp_path / "scenes").exists()


def test_only_cells_with_shapes_are_covered() -> None:
    random = np.random.default_rng(5)
    for scene in draw_scenes(50, 6, unseen=True):
        vectors = region_vectors(paint(scene, random))
        blocks = (CELL // 4) ** 2
        covered = set(np.flatnonzero(vectors[:, :blocks].sum(1) > 3).tolist())
        assert covered == {thing.region for thing in scene.things}


def recipe(corpus: Path, out: Path, **settings: Any) -> dict[str, Any]:
    return {
        "data": {
            "train": {"source": str(corpus / "train.jsonl"), "target": str(corpus / "train.txt")},
            "valid": {"source": str(corpus / "valid.jsonl"), "target": str(corpus / "valid.txt")},
        },
        "text": {"vectors": {"width": REGION_WIDTH}, "subword": {"kind": "word"}},
        "model": {
            "preset": None,
            "width": 16,
            "positions": {"kind": "none"},
            "encoder": {"kind": "convolutional", "layers": 1, "kernel": 1},
            "decoder": {"kind": "recurrent", "attention": {"kind": "soft"}},
        },
        "train": {"max_steps": 2, "device": "cpu", "threads": 1, "precision": "float32", **settings},
        "out": str(out),
    }


def test_weights_are_drawn_over_the_picture(corpus: Path, tmp_path: Path) -> None:
    train(recipe(corpus, tmp_path / "run"), quiet=True)
    line = (corpus / "unseen.jsonl").read_text().splitlines()[0]
    caption = (corpus / "unseen.txt").read_text().splitlines()[0]
    picture, out = str(corpus / "unseen-1.png"), tmp_path / "weights"
    command = ["inspect", str(tmp_path / "run"), line, "--target", caption, "--picture", picture]
    assert main([*command, "--grid", "3x3", "--out", str(out)]) == 0
    svg = (out / "regions.svg").read_text()
    assert all(f">{word}<" in svg for word in caption.split()) and (out / "regions.png").stat().st_size > 1000
    inspection = inspect(Translator.load(tmp_path / "run", "cpu"), line, target=caption)
    with pytest.raises(DataError, match="2 × 3 regions, but the input has 9 vectors"):
        inspection.save(tmp_path / "other", (picture, 2, 3))
    with pytest.raises(DataError, match="cannot read the picture"):
        inspection.save(tmp_path / "other", (corpus / "train.txt", 3, 3))
    for options in (["--picture", picture], ["--picture", picture, "--grid", "3"]):
        assert main(["inspect", str(tmp_path / "run"), line, *options, "--out", str(out / "x")]) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "least"),
    [
        ({}, 0.95),
        ({"model.decoder.attention.kind": "hard", "model.dropout": 0.1, "train.max_epochs": 12}, 0.9),
    ],
    ids=["soft", "hard"],
)
def test_unseen_combinations_are_named_and_looked_at(settings: dict[str, Any], least: float, tmp_path: Path) -> None:
    write_scenes(tmp_path / "scenes")
    root = ROOT
    files = {
        f"data.{part}": {side: str(tmp_path / "scenes" / f"{part}{end}") for side, end in ENDS.items()}
        for part in ("train", "valid")
    }
    overrides = {**files, **settings, "train.device": "cpu", "out": str(tmp_path / "run")}
    train(root / "recipes" / "captions.yaml", overrides, quiet=True)
    translator = Translator.load(tmp_path / "run", "cpu")
    lines, captions, regions = (
        (tmp_path / "scenes" / f"unseen{end}").read_text().splitlines() for end in (".jsonl", ".txt", ".regions.jsonl")
    )
    found = translator.translate(lines)
    assert sum(ours == theirs for ours, theirs in zip(found, captions, strict=True)) >= least * len(lines)
    top = []
    for line, caption, numbers in list(zip(lines, captions, regions, strict=True))[:100]:
        (weights,) = (
            each.mean
            for each in inspect(translator, line, target=caption).maps
            if each.kind == "decoder.cross_attention"
        )
        words = zip(caption.split(), json.loads(numbers), weights, strict=False)
        top += [int(row.argmax()) == region for word, region, row in words if word in SHAPES]
    assert np.mean(top) >= 0.9


ENDS = {"source": ".jsonl", "target": ".txt"}
