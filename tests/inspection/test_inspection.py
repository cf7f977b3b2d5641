"""`dragoman inspect`: the weights of every family as arrays and pictures, and messages where there are none."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cards import pictures, rows
from closeness import assert_close
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.image import imread
from tiny_language_model import tiny_language_model, write_tiny_language_model
from tiny_model import tiny_config, write_tiny_model

from dragoman import Translator, inspect
from dragoman.base.errors import ConfigError, DataError
from dragoman.cli.main import main
from dragoman.inference.subject import MAX_TOKENS
from dragoman.models.attention_weights import capture

SOURCE, TARGET = "a dog runs in the park .", "ein Hund rennt ."
ENCODER, DECODER, CROSS = "encoder.self_attention", "decoder.self_attention", "decoder.cross_attention"
TRANSFORMER = {"kind": "transformer", "layers": 2, "heads": 2, "feedforward": 16}
LAYERS = {"layers": 2}
SINUSOIDAL = {"target_positions": {"kind": "sinusoidal"}}

# Settings of a model, the layers of each kind that has weights, and the messages about kinds without weights.
FAMILIES: dict[str, tuple[dict[str, Any], dict[str, int], list[str]]] = {
    "transformer": ({}, {ENCODER: 2, DECODER: 2, CROSS: 2}, []),
    "recurrent": (
        {"encoder": {"kind": "recurrent"}, "decoder": {"kind": "recurrent"}},
        {CROSS: 1},
        [f"{ENCODER}: the encoder does not have", f"{DECODER}: the decoder does not have"],
    ),
    "convolutional": (
        {"encoder": {"kind": "convolutional", **LAYERS}, "decoder": {"kind": "convolutional", **LAYERS}},
        {CROSS: 2},
        [f"{ENCODER}: the encoder does not have", f"{DECODER}: the decoder does not have"],
    ),
    "bytenet with attention": (
        {"encoder": {"kind": "bytenet", **LAYERS}, "decoder": {"kind": "bytenet", **LAYERS, "cross_attention": {}}},
        {CROSS: 2},
        [f"{ENCODER}: the encoder does not have", f"{DECODER}: the decoder does not have"],
    ),
    "mean of embeddings": (
        {"encoder": {"kind": "mean"}},
        {DECODER: 2, CROSS: 2},
        [f"{ENCODER}: the encoder does not have this kind of attention"],
    ),
    "hard": ({"decoder": {**TRANSFORMER, "cross_attention": {"kind": "hard"}}}, {ENCODER: 2, DECODER: 2, CROSS: 2}, []),
    "linear": (
        {
            "encoder": {**TRANSFORMER, "attention": {"kind": "linear"}},
            "decoder": {**TRANSFORMER, "attention": {"kind": "linear"}, "cross_attention": {"kind": "linear"}},
            "positions": {"kind": "sinusoidal"},
        },
        {ENCODER: 2, DECODER: 2, CROSS: 2},
        [],
    ),
    "window": (
        {
            "encoder": {**TRANSFORMER, "attention": {"kind": "window", "window": 2}},
            "decoder": {**TRANSFORMER, "attention": {"kind": "window", "window": 2}},
        },
        {ENCODER: 2, DECODER: 2, CROSS: 2},
        [],
    ),
    "ssru": (
        {"decoder": {**TRANSFORMER, "attention": {"kind": "ssru"}}, **SINUSOIDAL},
        {ENCODER: 2, CROSS: 2},
        [f"{DECODER}: SSRU, a recurrence"],
    ),
    "average": (
        {"decoder": {**TRANSFORMER, "attention": {"kind": "average"}}, **SINUSOIDAL},
        {ENCODER: 2, CROSS: 2},
        [f"{DECODER}: average attention, which weights all earlier tokens equally"],
    ),
}


@pytest.fixture(autouse=True)
def _few_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw at a low resolution, which is not tested."""
    monkeypatch.setattr("dragoman.figures.canvas.RESOLUTION", 30)


def translator(folder: Path, **changes: Any) -> Translator:
    write_tiny_model(folder, config=tiny_config(**{"encoder": TRANSFORMER, "decoder": TRANSFORMER, **changes}))
    return Translator.load(folder, device="cpu", engine="torch")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_shows_its_weights(tmp_path: Path, family: str) -> None:
    changes, kinds, absent = FAMILIES[family]
    inspection = inspect(translator(tmp_path / "model", **changes), SOURCE, target=TARGET)
    assert {kind: len(maps) for kind, maps in inspection.kinds.items()} == kinds
    assert len(inspection.absent) == len(absent)
    assert all(told.startswith(start) for told, start in zip(inspection.absent, absent, strict=True))
    lengths = {name: len(tokens) for name, tokens in inspection.tokens.items()}
    sizes = {ENCODER: ("source", "source"), DECODER: ("target", "read"), CROSS: ("target", "source")}
    for kind, maps in inspection.kinds.items():
        rows, columns = sizes[kind]
        for each in maps:
            assert each.weights.shape[1:] == (lengths[rows], lengths[columns])
            assert_close(each.weights.sum(-1), 1)
            assert not (kind == DECODER and np.triu(each.weights, 1).any()), "what was not yet read is attended"
    if family == "hard":
        assert all(set(np.unique(each.weights)) == {0.0, 1.0} for each in inspection.kinds[CROSS])
    if family == "window":
        distance = np.abs(np.subtract.outer(np.arange(lengths["source"]), np.arange(lengths["source"])))
        assert all(not each.weights[:, distance > 2].any() for each in inspection.kinds[ENCODER])


@settings(max_examples=25)
@given(
    st.sampled_from(["transformer", "recurrent", "convolutional", "hard", "linear", "window"]),
    st.lists(st.integers(4, 270), min_size=1, max_size=40),
    st.lists(st.integers(4, 270), max_size=40),
)
def test_shapes_and_sums_for_any_lengths(
    tmp_path_factory: pytest.TempPathFactory, family: str, source: list[int], target: list[int]
) -> None:
    model = MODELS.get(family)
    if model is None:
        folder = tmp_path_factory.mktemp("family") / "model"
        model = MODELS[family] = translator(folder, **FAMILIES[family][0]).engine.model  # type: ignore[attr-defined]
    sides = {"encoder": len(source) + 1, "decoder": len(target) + 1}
    for name, weights in capture(model, target, source).items():
        side = name.split(".")[0]
        keys = sides["encoder"] if name.endswith("cross_attention") else sides[side]
        assert weights.shape[1:] == (sides[side], keys)
        assert weights.dtype == np.float32
        assert_close(weights.sum(-1), 1)


MODELS: dict[str, Any] = {}


@pytest.mark.slow
def test_saved_arrays_are_read_again_and_named(tmp_path: Path) -> None:
    inspection = inspect(translator(tmp_path / "model"), SOURCE, target=TARGET)
    files = inspection.save(tmp_path / "out")
    assert sorted(files) == sorted((tmp_path / "out").iterdir())
    with np.load(tmp_path / "out" / "attention.npz", allow_pickle=False) as archive:
        arrays = dict(archive)
    assert set(arrays) == {f"{side}.layers.{n}.self_attention" for side in ("encoder", "decoder") for n in (0, 1)} | {
        *(f"decoder.layers.{n}.cross_attention" for n in (0, 1)),
        *("tokens.source", "tokens.target", "tokens.read"),
    }
    for each in inspection.maps:
        np.testing.assert_array_equal(arrays[each.name], each.weights)
    index = json.loads((tmp_path / "out" / "index.json").read_text("utf-8"))
    for name in ("source", "target", "read"):
        assert tuple(arrays[f"tokens.{name}"]) == tuple(index["tokens"][name]) == inspection.tokens[name]
    assert index["tokens"]["target"][:-1] == index["tokens"]["read"][1:]
    pictures = {name for kind in index["kinds"] for name in kind["overview"]}
    pictures |= {name for kind in index["kinds"] for each in kind["attentions"] for name in each["pictures"]}
    assert pictures == {path.name for path in files if path.suffix in (".png", ".svg")}
    assert len(pictures) == 2 * (3 + 6)
    for path in files:
        if path.suffix == ".png":
            assert imread(path).std() > 0.01, f"{path} is empty"
        if path.suffix == ".svg":
            text = path.read_text("utf-8")
            assert "<image" in text
            assert ".layer-" not in path.name or ">&lt;/s&gt;</text>" in text, "text is text, not outlines"
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert all(name in page for name in (*pictures, "attention.npz", SOURCE, TARGET))


def test_a_single_attention_has_one_picture(tmp_path: Path) -> None:
    changes = FAMILIES["recurrent"][0]
    files = inspect(translator(tmp_path / "model", **changes), SOURCE, target=TARGET).save(tmp_path / "out")
    assert {path.name for path in files if path.suffix == ".png"} == {"decoder.cross_attention.png"}


def test_without_a_target_the_best_translation_is_shown(tmp_path: Path) -> None:
    model = translator(tmp_path / "model")
    best = model.translate_nbest([SOURCE])[0][0]
    inspection = inspect(model, SOURCE)
    assert inspection.target == best.text
    assert inspection.tokens["target"] == (*best.tokens, "</s>")
    assert rows(inspection)[:2] == [["source", SOURCE], ["target", best.text]] and len(pictures(inspection)) == 1
    assert inspection.figure(ENCODER, 1).title.startswith("Encoder")
    with pytest.raises(ConfigError, match="there is no layer 9"):
        inspection.figure(layer=9)


def test_a_language_model_attends_to_itself(tmp_path: Path) -> None:
    inspection = inspect(tiny_language_model(tmp_path / "model"), "a dog")
    assert set(inspection.kinds) == {DECODER}
    assert inspection.source is None
    assert not inspection.absent
    assert "source" not in inspection.tokens


def test_the_command_writes_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(tmp_path / "model")
    command = ["inspect", str(tmp_path / "model"), SOURCE, "--out", str(tmp_path / "out"), "--device", "cpu"]
    assert main([*command, "--target", "狗 ."]) == 0
    printed = capsys.readouterr()
    assert f"source  {SOURCE}\ntarget  狗 .\n" in printed.out
    assert "encoder.self_attention    layers 1  heads 2" in printed.out
    assert str(tmp_path / "out" / "index.html") in printed.err.replace("\n", "")
    assert main(command) == 2, "the folder is not replaced"
    assert "already exists" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_takes_a_language_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_language_model(tmp_path / "model")
    command = ["inspect", str(tmp_path / "model"), "a dog", "--out", str(tmp_path / "out")]
    assert main([*command, "--target", "x"]) == 2
    assert "--target can only be used with a translation model" in capsys.readouterr().err
    assert main(command) == 0
    assert "text  a dog\n" in capsys.readouterr().out
    assert (tmp_path / "out" / "decoder.self_attention.layer-2.svg").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model", " "], "the text is blank"),
        (["model", SOURCE, "--target", " "], "the target is blank"),
        (["model", "dog " * MAX_TOKENS], "pictures show at most 512 per side: inspect"),
        (["model", SOURCE, "--target", "Hund " * MAX_TOKENS], "pictures show at most 512 per side: inspect"),
        (["model", SOURCE, "--to", "fr"], "leave out --to fr"),
        (["few", "dog " * 20], "the text is too long: "),
        (["nothing", SOURCE], "nothing does not exist"),
    ],
)
def test_errors_are_reported(
    tmp_path: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tiny_model(tmp_path / "model")
    write_tiny_model(tmp_path / "few", config=tiny_config(positions={"kind": "learned", "limit": 16}))
    before = sorted(os.listdir(tmp_path))
    assert main(["inspect", str(tmp_path / arguments[0]), *arguments[1:], "--out", str(tmp_path / "out")]) in (1, 2)
    assert message in capsys.readouterr().err.replace("\n", " ")
    assert sorted(os.listdir(tmp_path)) == before


def test_a_model_without_attention_names_what_is_missing(tmp_path: Path) -> None:
    bytenet = {"encoder": {"kind": "bytenet"}, "decoder": {"kind": "bytenet"}}
    reason = (
        "no attention weights. encoder.self_attention: the encoder does not have this kind of attention; "
        "decoder.self_attention: the decoder does not have this kind of attention; "
        "decoder.cross_attention: the decoder does not have this kind of attention"
    )
    with pytest.raises(ConfigError, match=reason):
        inspect(translator(tmp_path / "model", **bytenet), SOURCE, target=TARGET)


def test_a_language_models_window_is_its_limit(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the window holds 15"):
        inspect(tiny_language_model(tmp_path / "model"), "a dog runs in the park, and another dog sleeps")
