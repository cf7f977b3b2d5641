"""The state of the view of attention: rollouts beside the heads, the same output in all views, and messages."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_language_model import write_tiny_language_model
from tiny_model import tiny_config, write_tiny_model
from workbench_server import write_workspace

from dragoman.addons.workbench.views.attention import AttentionState
from dragoman.addons.workbench.views.translate import TranslateState
from dragoman.addons.workbench.views.what_if import WhatIfState
from dragoman.addons.workbench.workspace import Workspace
from dragoman.base.errors import ConfigError
from dragoman.figures.head_lines import HeadLines
from dragoman.figures.heat_maps import HeatMaps
from dragoman.inference.subject import SubjectSettings
from dragoman.inference.translation.translator import Translator
from dragoman.inspection.rollout import attention_rollout

SIDES = {
    "recurrent": tiny_config(encoder={"kind": "recurrent"}, decoder={"kind": "recurrent"}),
    "ssru": tiny_config(decoder={"layers": 2, "heads": 2, "feedforward": 16, "attention": {"kind": "ssru"}}),
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("workspace")
    write_tiny_language_model(folder / "lm")
    for name, config in SIDES.items():
        write_tiny_model(folder / name, config=config)
    return Workspace([*write_workspace(folder), folder / "lm", *(folder / name for name in SIDES)], "cpu")


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_the_figures_of_a_rollout_are_those_of_the_function(workspace: Workspace, side: str) -> None:
    loaded = workspace.model("one").loaded
    rollouts = attention_rollout(loaded, "a dog runs", SubjectSettings(target="ein Hund"))
    rollout = next(each for each in rollouts if each.side == side)
    state = AttentionState.model_validate(
        {"kind": f"{side}.rollout", "source": "a dog runs", "target": "ein Hund", "layer": 1}
    )
    content = state.content(workspace)
    heads, head, lines = (content.figures[name] for name in ("heads", "head", "lines"))
    assert isinstance(heads, HeatMaps) and isinstance(head, HeatMaps) and isinstance(lines, HeadLines)
    assert [panel.layer for row in heads.grid for panel in row] == [1, 2]
    for row, values in zip(heads.grid, rollout.layers, strict=True):
        np.testing.assert_array_equal(row[0].values, values)
    assert (heads.rows, heads.columns) == (rollout.queries, rollout.keys)
    np.testing.assert_array_equal(head.grid[0][0].values, rollout.layers[0])
    np.testing.assert_array_equal(lines.weights, rollout.layers[:1])
    assert "through layers 1 to 1" in head.title and "through layers 1 to 1" in lines.caption
    last = state.model_copy(update={"layer": 0}).content(workspace).figures["head"]
    np.testing.assert_array_equal(last.arrays()["row-0"][0], rollout.values)
    assert content.facts["kinds"][-2:] == ["encoder.rollout", "decoder.rollout"]


def test_the_lines_of_the_mean_are_those_of_its_heat_map(workspace: Workspace) -> None:
    figures = AttentionState(source="a dog runs", target="ein Hund", head=0).content(workspace).figures
    lines = figures["lines"]
    assert isinstance(lines, HeadLines) and lines.headings == ("mean of the heads",)
    np.testing.assert_array_equal(lines.weights[0], figures["head"].arrays()["row-0"][0])
    assert all(weight >= 0.02 for *_, weight in lines.lines())


@pytest.mark.parametrize(
    ("model", "kinds", "absent"),
    [
        ("recurrent", [], ["encoder", "decoder"]),
        ("ssru", ["encoder.rollout"], ["decoder"]),
        ("lm", ["decoder.rollout"], []),
    ],
)
def test_a_side_without_a_rollout_is_named(
    workspace: Workspace, model: str, kinds: list[str], absent: list[str]
) -> None:
    facts = AttentionState(model=model, source="a dog runs").content(workspace).facts
    assert [kind for kind in facts["kinds"] if kind.endswith(".rollout")] == kinds
    lines = [line for line in facts["absent"] if ".rollout: rollout multiplies the weights of self-attention" in line]
    assert [line.partition(".")[0] for line in lines] == absent


def test_all_views_show_the_same_translation(workspace: Workspace) -> None:
    sentence = "two dogs sleep ."
    translated = TranslateState(source=sentence).content(workspace).facts["translations"][0]["text"]
    assert AttentionState(source=sentence).content(workspace).facts["target"] == translated
    facts = WhatIfState(source=sentence).content(workspace).facts
    assert facts["before"]["text"] == facts["after"]["text"] == translated
    reference = Translator.load(workspace.model().folder, "cpu", engine="torch")
    assert reference.translate([sentence]) == [translated]


def test_a_sentence_is_searched_once_for_all_views(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    translator: Any = workspace.model().translator
    engine = translator.engine
    searches: list[int] = []
    search = engine.hypotheses
    monkeypatch.setattr(engine, "hypotheses", lambda rows, size: searches.append(len(rows)) or search(rows, size))
    sentence = "the man sees a dog ."
    AttentionState(source=sentence).content(workspace)
    for layer in (None, 0, 1):
        for position in (1, 2):
            WhatIfState(source=sentence, position=position, layer=layer).content(workspace)
    assert searches == [1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "encoder.rollout", "layer": 7}, "there is no layer 7: the encoder has layers 1 to 2"),
        ({"layer": 7}, "there is no layer 7: decoder.cross_attention has layers 1 to 2"),
        ({"head": 7}, "there is no head 7"),
        ({"model": "recurrent", "kind": "encoder.rollout"}, "encoder.rollout: rollout multiplies the weights"),
        ({"model": "ssru", "kind": "decoder.rollout"}, "which the layers of this side do not have. It has encoder"),
        ({"model": "lm", "kind": "encoder.rollout"}, "encoder.rollout: the model has none"),
    ],
)
def test_messages_name_the_setting(workspace: Workspace, changes: dict[str, object], message: str) -> None:
    state = AttentionState.model_validate({"source": "a dog runs", **changes})
    with pytest.raises(ConfigError) as error:
        state.content(workspace)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_figure_of_a_rollout_is_saved(workspace: Workspace, tmp_path: Path) -> None:
    content = AttentionState(kind="decoder.rollout", source="a dog", target="ein Hund").content(workspace)
    names = {path.name for path in content.save(tmp_path / "out")}
    assert {"head.svg", "heads.png", "lines.csv", "facts.json"} <= names
