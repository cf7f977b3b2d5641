"""Recipes of the models that lecture pages share."""

from pathlib import Path

import pytest

from dragoman.base.errors import ConfigError
from dragoman.tasks.train import load_recipe
from lecture_code.models import recipe, short_corpus


@pytest.mark.parametrize("name", ["transformer", "recurrent", "recurrent-without-attention", "language-model"])
def test_a_recipe_is_valid_and_its_corpus_is_written_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = load_recipe(recipe(name), ())
    assert run.out == Path("runs/lecture") / name
    english = tmp_path / "runs/lecture/corpus/train.en"
    assert english.read_text("utf-8").splitlines() == [each.en for each in short_corpus().train]
    english.write_text("changed\n", "utf-8")
    recipe(name)
    assert english.read_text("utf-8") == "changed\n"


def test_sentences_are_short_and_the_parts_are_disjoint() -> None:
    corpus = short_corpus()
    assert max(len(each.en.split()) for part in (corpus.train, corpus.valid, corpus.test) for each in part) == 8
    assert len(corpus.train) > 4000 and len(corpus.test) > 40
    assert not set(corpus.test) & set(corpus.train)


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(ConfigError, match="no lecture model lstm: choose one of transformer, recurrent"):
        recipe("lstm")
