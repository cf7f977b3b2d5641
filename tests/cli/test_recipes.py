"""Recipes are listed, printed and copied."""

from pathlib import Path

import pytest
from repository import ROOT

import dragoman
from dragoman.base.errors import ConfigError, ResourceError
from dragoman.cli.main import main

RECIPES = ROOT / "recipes"


def test_all_recipes_are_listed_with_their_purpose(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(path.stem for path in RECIPES.iterdir())
    assert all(line.endswith(".") and len(line.split()) > 5 for line in lines)
    assert "image descriptions (Elliott et al. 2016)." in "".join(lines)


def test_one_recipe_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes", "homework-bpe.yaml"]) == 0
    assert capsys.readouterr().out == (RECIPES / "homework-bpe.yaml").read_text(encoding="utf-8")


def test_the_beginning_of_a_name_copies_all_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):  # equal files are no obstacle
        assert main(["recipes", "multi30k", "--to", str(tmp_path / "new" / "folder")]) == 0
    copied = sorted((tmp_path / "new" / "folder").iterdir())
    assert len(copied) == len(list(RECIPES.glob("multi30k-*"))) > 1
    assert sorted({*capsys.readouterr().out.split()}) == [str(path) for path in copied]
    assert main(["recipes", "multi30k", "--to", str(RECIPES)]) == 0


def test_a_recipe_that_was_changed_is_kept(tmp_path: Path) -> None:
    (recipe,) = dragoman.recipes("wikitext-2")
    path = recipe.copy(tmp_path)
    path.write_text("mine")
    with pytest.raises(ConfigError, match="exists and is different"):
        recipe.copy(tmp_path)
    assert path.read_text() == "mine"
    with pytest.raises(ResourceError, match="cannot write"):
        recipe.copy(path)


def test_unknown_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes", "multi30k-en-dr"]) == 2
    assert "did you mean multi30k-en-de?" in capsys.readouterr().err
    assert main(["recipes", "../x"]) == 2
    assert "homework-additive-attention, homework-bpe, " in capsys.readouterr().err
