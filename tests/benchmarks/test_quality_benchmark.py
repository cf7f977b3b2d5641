"""benchmarks/quality.py: its variations are settings of the recipe, and its table."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from repository import ROOT

from dragoman.base.settings.load import dump_settings, load_settings
from dragoman.tasks.translation.config import TranslationRun

RECIPES = [ROOT / "recipes" / f"{corpus}-en-de.yaml" for corpus in ("multi30k", "tatoeba")]


@pytest.fixture(scope="module")
def quality() -> ModuleType:
    spec = importlib.util.spec_from_file_location("quality", ROOT / "benchmarks" / "quality.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_every_variation_changes_a_recipe_differently(
    quality: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DRAGOMAN_DATA", str(tmp_path))
    settings = [[], *quality.VARIATIONS.values()]
    # a setting that one recipe has already may still be a variation of the other
    dumped = {
        tuple(dump_settings(load_settings(recipe, each, TranslationRun)) for recipe in RECIPES) for each in settings
    }
    assert len(dumped) == len(settings)


def test_the_table_has_the_centre_first_and_then_the_lowest_loss(quality: ModuleType) -> None:
    scores = {"greedy": 30.0, "beam": 31.25, "tokenised": 32.0, "steps": 1200}
    lines = [
        {"recipe": "r", "minutes": 20.0, "seed": 1, "variation": name, "loss": loss, **scores}
        for name, loss in (("a", 1.5), ("centre", 2.0), ("b", 1.25))
    ]
    rows = quality.table(lines).splitlines()[2:]
    assert [row.split(" | ")[3] for row in rows] == ["centre", "b", "a"]
    assert rows[1] == "| r | 20.0 | 1 | b | 1,200 | 1.2500 | 30.00 | 31.25 | 32.00 |"
