"""`compare_tree_searches`: beam search beside greedy and exact search in a tree of the lecture."""

from collections.abc import Sequence

from dragoman.addons.lecture.probability_tree import ProbabilityTree
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.figures.search_tree import SearchTreeFigure
from dragoman.inspection.searches import DEFAULT_EXACT, SearchComparison, compare_results


def compare_tree_searches(
    tree: ProbabilityTree, title: str, config: SearchConfig, exact: int = DEFAULT_EXACT
) -> SearchComparison:
    """Return the results of three searches for the best sentence of a tree; see `compare_searches`."""

    def search(changed: SearchConfig) -> list[Hypothesis]:
        return tree.search(**dict(changed))

    def figure(found: Sequence[Hypothesis]) -> SearchTreeFigure:
        return tree.figure(title, found)

    return compare_results(search, figure, lambda each: (tree.text(each), each.tokens), config, exact)
