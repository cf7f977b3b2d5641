"""Symmetrisation: worked examples, properties, and the links of another program."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.errors import ConfigError
from dragoman.statistical.alignment.symmetrization import symmetrize

# Words:       0 1 2 3   A forward link per target word, a reverse link per source word.
FORWARD = [(0, 0), (1, 1), (1, 2), (3, 4)]
REVERSE = [(0, 0), (1, 1), (2, 2), (3, 5), (5, 7)]

NESTED = ("intersection", "grow-diag-and", "grow-diag", "grow-diag-final-and", "grow-diag-final", "union")


@pytest.mark.parametrize(
    ("heuristic", "added"),
    [
        ("intersection", []),
        ("grow", [(1, 2), (2, 2)]),
        # (2, 2) is next to (1, 1) diagonally, and neither word has a link; (1, 2) is not added, since word 1 has one.
        ("grow-diag-and", [(2, 2)]),
        ("grow-diag", [(1, 2), (2, 2)]),
        ("grow-diag-final-and", [(1, 2), (2, 2), (3, 4), (5, 7)]),
        ("grow-diag-final", [(1, 2), (2, 2), (3, 4), (3, 5), (5, 7)]),
        ("union", [(1, 2), (2, 2), (3, 4), (3, 5), (5, 7)]),
    ],
)
def test_worked_example(heuristic: str, added: list[tuple[int, int]]) -> None:
    assert symmetrize(FORWARD, REVERSE, heuristic) == tuple(sorted([(0, 0), (1, 1), *added]))


def test_one_direction() -> None:
    assert symmetrize(FORWARD, REVERSE, "forward") == tuple(FORWARD)
    assert symmetrize(FORWARD, REVERSE, "reverse") == tuple(REVERSE)


def test_unknown_heuristic() -> None:
    with pytest.raises(ConfigError, match=r"there is no symmetrisation 'grown': choose one of intersection, union,"):
        symmetrize([], [], "grown")


LINKS = st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=12)


@given(LINKS, LINKS)
def test_heuristics_lie_between_intersection_and_union(
    forward: set[tuple[int, int]], reverse: set[tuple[int, int]]
) -> None:
    results = {name: set(symmetrize(forward, reverse, name)) for name in (*NESTED, "grow")}
    for name, links in results.items():
        assert results["intersection"] <= links <= results["union"], name
    for smaller, larger in (("grow-diag", "grow-diag-final-and"), ("grow-diag", "grow-diag-final")):
        assert results[smaller] <= results[larger]
    # After "final", every word with a link in one of the directions has one.
    for side in (0, 1):
        assert {link[side] for link in results["grow-diag-final"]} == {link[side] for link in results["union"]}


@given(LINKS, LINKS)
def test_equals_sil_thot(forward: set[tuple[int, int]], reverse: set[tuple[int, int]]) -> None:
    thot = pytest.importorskip("thot", reason="sil-thot is not installed")

    def matrix(links: set[tuple[int, int]]) -> object:
        result = thot.common.WordAlignmentMatrix(8, 8)
        for i, j in links:
            result.set(i, j)
        return result

    for name in ("grow", "grow-diag", "grow-diag-final", "grow-diag-final-and"):
        combined = matrix(forward)
        returned = getattr(combined, name.replace("-", "_"))(matrix(reverse))
        combined = combined if returned is None else returned
        links = [(i, j) for i in range(8) for j in range(8) if combined[i, j]]
        assert symmetrize(forward, reverse, name) == tuple(links), name
