"""Names of models in metrics."""

from pathlib import Path

import pytest

from dragoman.checkpoint.names import short_names


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        ([], []),
        (["/m/en-de"], ["en-de"]),
        (["/m/en-de", "/m/de-en"], ["en-de", "de-en"]),
        (["/a/best", "/b/best", "/b/other"], ["a/best", "b/best", "other"]),
        (["/x/a/best", "/y/a/best", "/y/b/best"], ["x/a/best", "y/a/best", "b/best"]),
        (["/m/many", "/m/many", "/m/many"], ["many", "many (2)", "many (3)"]),
        (["/best", "/a/best"], ["best", "a/best"]),
    ],
)
def test_names_are_as_short_as_possible(folders: list[str], names: list[str]) -> None:
    found = short_names([Path(each) for each in folders])
    assert found == names and len(set(found)) == len(found)
