"""A misspelt setting is reported before torch is imported, in the same words as by the config classes."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import ROOT
from training_runs import process_environment

from dragoman.base.errors import ConfigError
from dragoman.cli.setting_names import check_setting_names, store_setting_names
from dragoman.tasks.train import load_recipe

BASE = ["data={train: {pairs: a}, valid: {pairs: b}}", "out=run"]
RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for the stored names, which are written once."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        store_setting_names()
        yield folder


@pytest.mark.parametrize(
    "overrides",
    [
        ["train.max_step=3"],
        ["model.encoder={kind: recurrent, hids: 2}"],
        ["model.encoder.width=3"],
        ["data.train=[{pairs: a, wieght: 2}]"],
        ["zzz=1"],
        ["zzz=1", "train.sede=2"],
        ["task.kind=language_model", "train.lr=1"],
        ["train.schedule={kind: cosine, warm: 3}"],
        ["model.encoder={kind:recurrent}"],
        ["optimizer={lr: 1}"],
    ],
)
def test_unknown_settings_are_found(overrides: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        load_recipe(None, [*BASE, *overrides])
    expected = str(error.value)
    with pytest.raises(ConfigError) as error:
        check_setting_names(None, [*BASE, *overrides])
    assert str(error.value).splitlines()[-1].strip().partition(" (from")[0] in expected


@pytest.mark.parametrize(
    "override",
    [
        "search.length_penalty=0.6",
        "search.unknown=copy",
        "model.dropout=0.1",
        "train.schedule=null",
        "train.start=${HOME}/model",
        "train.max_steps=abc",
        "model.encoder.kind=rrn",
        "task.kind=[1]",
        "task=own",
    ],
)
def test_values_are_left_to_the_config_classes(override: str) -> None:
    check_setting_names(None, [*BASE, override])


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_passes(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_DATA", "/nowhere")
    check_setting_names(recipe, [])


def test_a_mistake_is_found_without_torch(cache: Path) -> None:
    """The names are read by a process that imports neither torch nor numpy."""
    assert len(list((cache / "dragoman").glob("settings-*.json"))) == 1
    code = (
        "import sys; from dragoman.cli.main import main; code = main(['train', 'lr=3']); "
        "sys.exit(10 * code + ('torch' in sys.modules or 'numpy' in sys.modules))"
    )
    environment = {**process_environment(), "XDG_CACHE_HOME": str(cache)}
    finished = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (finished.returncode, finished.stdout) == (20, "")
    assert finished.stderr == "error: unknown setting lr (from the command line); did you mean train.schedule.peak?\n"
