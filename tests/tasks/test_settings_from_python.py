"""Recipes and overrides in Python have the same meaning, and the same errors, as in a file and on the command line."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import Overrides, dump_settings
from dragoman.base.settings.yaml import dump_yaml
from dragoman.models.description.footprint import Footprint
from dragoman.tasks.description import describe
from dragoman.tasks.language_model.config import LanguageModelRun
from dragoman.tasks.train import Recipe, load_recipe, train
from dragoman.tasks.translation.config import TranslationRun

RECIPE: dict[str, Any] = {
    "data": {"train": [{"source": "a", "target": "b"}, {"pairs": "c", "weight": 2}], "valid": {"pairs": "v"}},
    "text": {"subword": {"size": 700}},
    "model": {"preset": "tiny", "width": 64, "encoder": {"layers": 1}},
    "train": {"max_steps": 5, "schedule": {"warmup": 2}},
    "out": "runs/x",
}
CHANGES: dict[str, Any] = {
    "train.max_steps": 9,
    "data.train.1.weight": 0.5,
    "model.decoder": {"layers": 3},
    "out": Path("y"),
}
TEXTS = ["train.max_steps=9", "data.train.1.weight=0.5", "model.decoder={layers: 3}", "out=y"]


def recipes(folder: Path) -> list[Recipe]:
    """The same recipe in each form."""
    path = folder / "recipe.yaml"
    path.write_text(dump_yaml(RECIPE), encoding="utf-8")
    return [path, str(path), RECIPE, load_recipe(path, [])]


@pytest.mark.parametrize("overrides", [CHANGES, TEXTS], ids=["mapping", "texts"])
def test_all_forms_of_a_recipe_mean_the_same(tmp_path: Path, overrides: Overrides) -> None:
    before = repr(RECIPE)
    path, *others = recipes(tmp_path)
    expected = load_recipe(path, TEXTS)
    assert expected.train.max_steps == 9 and expected.model.decoder.layers == 3 and expected.out == Path("y")
    for recipe in others:
        found = load_recipe(recipe, overrides)
        assert found == expected and isinstance(found, TranslationRun)
    assert repr(RECIPE) == before
    assert load_recipe(others[-1], {}) is others[-1]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"train.max_stps": 3}, "unknown setting train.max_stps (WHERE); did you mean train.max_steps?"),
        ({"train.max_steps": 0}, "train.max_steps: should be greater than or equal to 1, not 0 (WHERE)"),
        ({"train.schedule.kind": "square"}, "train.schedule.kind: unknown kind 'square' (WHERE): expected one of"),
        ({"data.train.7.weight": 1}, "data.train.7.weight (WHERE): data.train is a list of length 2"),
        ({"task.kind": "astrology"}, "task.kind: unknown kind 'astrology' (WHERE): expected one of"),
    ],
)
def test_errors_are_those_of_the_command_line(tmp_path: Path, overrides: dict[str, Any], message: str) -> None:
    (key, value), *_ = overrides.items()
    path = recipes(tmp_path)[0]
    with pytest.raises(ConfigError) as told:
        load_recipe(path, [f"{key}={value}"])
    assert message.replace("WHERE", "from the command line") in str(told.value)
    for recipe in [path, RECIPE]:
        with pytest.raises(ConfigError) as told:
            load_recipe(recipe, overrides)
        assert message.replace("WHERE", "from Python") in str(told.value)


def test_errors_in_a_dictionary_equal_those_in_a_file() -> None:
    with pytest.raises(ConfigError, match=r"unknown setting data\.trian \(from Python\); did you mean data\.train\?"):
        load_recipe({**RECIPE, "data": {"trian": {"pairs": "x"}, **RECIPE["data"]}}, ())
    with pytest.raises(ConfigError, match=r"the setting out is missing \(from Python\)"):
        load_recipe({name: value for name, value in RECIPE.items() if name != "out"}, {})
    with pytest.raises(ConfigError, match=r"'train\.' is not an override"):
        load_recipe(RECIPE, {"train.": 3})


def test_variables_and_dollars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPORA", "here")
    data = {"train": {"pairs": "${CORPORA}/t"}, "valid": {"pairs": "$${CORPORA}"}}
    run = load_recipe({**RECIPE, "data": data}, {})
    assert run.data.train.pairs == Path("here/t") and run.data.valid.pairs == Path("${CORPORA}")
    changed = load_recipe(run, {"train.seed": 4})
    assert changed.data == run.data and changed.train.seed == 4


def test_language_models_too(tmp_path: Path) -> None:
    data = {"train": {"text": "t"}, "valid": {"text": "v"}}
    run = load_recipe({"task": {"kind": "language_model"}, "data": data, "out": "x"}, {"data.block": 77})
    assert isinstance(run, LanguageModelRun) and run.data.block == 77
    assert load_recipe(run, {"train.seed": 2}).data.block == 77
    assert load_recipe({"data": data, "out": "x"}, {"task.kind": "language_model"}) == load_recipe(
        run, {"data.block": 256}
    )


def test_a_moved_run_folder_is_still_its_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no run to resume in .*: it contains no config.yaml"):
        train(tmp_path, resume=True)
    (tmp_path / "config.yaml").write_text(dump_settings(load_recipe(RECIPE, {})), encoding="utf-8")
    run = load_recipe(tmp_path, {"train.max_steps": 11})
    assert run.out == tmp_path and run.train.max_steps == 11 and run.text.subword.size == 700


def test_models_are_described_from_settings_like_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unmeasured = Footprint(0, *[(0.0,)] * 4)  # memory takes a second to measure
    monkeypatch.setattr("dragoman.models.description.describe.measure_footprint", lambda *_, **__: unmeasured)
    path = recipes(tmp_path)[0]
    whole = describe(path, ["model.width=32"], depth=0).whole
    assert describe(RECIPE, {"model.width": 32}, depth=0).whole == whole
    assert describe(RECIPE["model"], {"width": 32}, vocabulary=700, depth=0).whole == whole
    text = describe(overrides={"model.preset": "tiny"}, vocabulary=(300, 400), depth=0).text()
    assert text.startswith("settings from Python\npreset tiny\nvocabularies of 300 and 400 entries (as given)\n")
