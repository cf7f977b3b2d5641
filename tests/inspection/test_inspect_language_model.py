"""The inspector's view of a language model: its attention and its parts."""

from pathlib import Path

import numpy as np
import pytest
from tiny_language_model import tiny_language_model

from dragoman import inspect
from dragoman.base.errors import DataError


def test_a_text_attends_to_itself_and_to_the_start_symbol(tmp_path: Path) -> None:
    model = tiny_language_model(tmp_path / "model")
    maps = inspect(model, "a dog").maps
    assert [each.name for each in maps] == [f"decoder.layers.{layer}.self_attention" for layer in (0, 1)]
    pieces = tuple(model.tokenizer.pieces(model.tokenizer.encode("a dog")))
    for each in maps:
        assert each.keys == ("<s>", *pieces)
        assert each.queries == (*pieces, "</s>")
        assert each.weights.shape == (2, len(each.queries), len(each.keys))
        np.testing.assert_allclose(each.weights.sum(-1), 1, rtol=1e-5)
        assert not np.triu(each.weights, 1).any()
    with pytest.raises(DataError, match="the window holds 15: shorten"):
        inspect(model, "a dog runs in the park, and another dog sleeps")
