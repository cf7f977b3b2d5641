"""The picture of a search tree: the paths, the rows of the nodes, and the parts of the scores."""

from math import log

import pytest

from dragoman.base.errors import DataError
from dragoman.figures.search_tree import search_tree


def tree_record() -> dict[str, object]:
    """The tree of deck 004: greedy search chooses "yes" (0.5 · 0.4), a beam of 2 finds "ok ok" (0.4 · 0.7 · 1.0)."""
    names = ("node", "parent", "step", "token", "piece", "log_probability", "total", "score", "rank", "group", "fate")
    rows = [
        (0, None, 0, None, None, 0.0, 0.0, 0.0, None, 0, "continued"),
        (1, 0, 1, 4, "yes", log(0.5), log(0.5), log(0.5), 0, 0, "continued"),
        (2, 0, 1, 5, "ok", log(0.4), log(0.4), log(0.4), 1, 0, "continued"),
        (3, 0, 1, 2, "</s>", log(0.1), log(0.1), log(0.1), None, 0, "pruned: forbidden"),
        (4, 2, 2, 5, "ok", log(0.7), log(0.28), log(0.28) / 2, 0, 0, "finished"),
        (5, 1, 2, 4, "yes", log(0.4), log(0.2), log(0.2) / 2, 1, 0, "pruned: outside the beam"),
    ]
    best = {"node": 4, "text": "ok ok", "score": log(0.28) / 2, "log_probability": log(0.28), "finished": True}
    nodes = [dict(zip(names, row, strict=True)) for row in rows]
    return {"line": 1, "source": "?", "translations": [best], "prefix": [], "nodes": nodes}


def test_the_tree_of_deck_004_shows_where_greedy_search_errs() -> None:
    figure = search_tree(tree_record())
    assert [figure.nodes[number].piece for number in figure.best_path] == ["", "ok", "ok"]
    assert [figure.nodes[number].piece for number in figure.greedy_path] == ["", "yes", "yes"]
    assert figure.greedy_is_cut
    (best,) = figure.outcomes
    assert best.log_probability == pytest.approx(log(0.4 * 0.7))
    assert best.log_probability + best.penalty == pytest.approx(best.score)


def test_no_two_nodes_of_a_step_are_in_the_same_row() -> None:
    record = tree_record()
    record["nodes"] += [  # a second group, which begins below the first
        {**record["nodes"][1], "node": 6, "group": 1},
        {**record["nodes"][3], "node": 7, "group": 1},
    ]
    figure = search_tree(record)
    places = [(node.step, int(lane)) for node, lane in zip(figure.nodes, figure.lanes, strict=True)]
    assert len(set(places)) == len(places)
    assert places[1:4] == [(1, 0), (1, 1), (1, 2)], "a forbidden continuation follows the ranked ones"
    assert places[6:] == [(1, 3), (1, 4)]


def test_the_arrays_restore_the_tree() -> None:
    figure = search_tree(tree_record())
    arrays, details = figure.arrays(), figure.details()
    assert arrays["parent"].tolist() == [-1, 0, 0, 0, 2, 1]
    assert [details["fates"][code] for code in arrays["fate"]] == [node.fate for node in figure.nodes]
    assert details["greedy_path"] == [0, 1, 5]


@pytest.mark.parametrize(
    ("change", "message"),
    [({"nodes": []}, "line 1 is empty"), ({"nodes": [{}]}, "not a search tree"), ({"nodes": 3}, "not a search tree")],
)
def test_a_record_that_is_not_a_tree_is_an_error(change: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        search_tree({**tree_record(), **change})
