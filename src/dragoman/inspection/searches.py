"""`compare_searches`: beam search beside greedy and exact search, which tells errors of the search from the model's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Literal, TypeVar

from dragoman.base.errors import ConfigError
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.figures.search_tree import Outcome, SearchTreeFigure, search_tree
from dragoman.inference.abilities import SupportsTranslate
from dragoman.inference.subject import check_not_blank
from dragoman.inference.translation.files.trees import tree_of
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.result import Translation
from dragoman.text.symbols import EOS

DEFAULT_EXACT = 10_000
"""Number of prefixes that exact search may expand by default."""

Found = TypeVar("Found", Translation, Hypothesis)

Verdict = Literal["search error", "no search error", "open"]


@dataclass(frozen=True)
class SearchComparison:
    """The results of three searches with the same score.

    tree: the hypotheses of the beam search, and its outcomes, the best first. The best output of the exact search is
    `tree.exact`, None without one. greedy: the output of greedy search. bound: an upper bound
    on the scores of all other outputs, which the exact search has proved; None without one.

    verdict: whether the search or the model is to blame if the beam's best output is bad; None without exact search.
    With a "search error", the model gives another output a higher score. With "no search error", it is proved that no
    output has a higher score, so that the model errs (Stahlberg and Byrne 2019). With "open", neither is known, because
    the exact search has reached its limit.
    """

    tree: SearchTreeFigure
    greedy: Outcome
    bound: float | None = None
    verdict: Verdict | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the outcomes and the verdict as JSON types. The bound is None if no output can be finished."""
        exact = self.tree.exact
        return {
            "greedy": self.greedy.as_json(),
            "beam": [each.as_json() for each in self.tree.outcomes],
            "exact": None if exact is None else exact.as_json(),
            "bound": self.bound if self.bound is not None and isfinite(self.bound) else None,
            "verdict": self.verdict,
        }


def compare_searches(
    translator: SupportsTranslate, text: str, request: Request | None = None, exact: int = DEFAULT_EXACT
) -> SearchComparison:
    """Return the results of beam, greedy and exact search for a text, which is translated as a whole.

    request: with the settings of the beam search; None for the model's own. exact: maximum number of prefixes that the
    exact search expands (`search.exact`); 0 for no exact search. Raises ConfigError for sampling, and for an exact
    search with `search.diversity`, which changes the scores; DataError for a text that is blank; and the errors of
    `Translator.translate_nbest`.

    >>> from dragoman import Translator, compare_searches
    >>> comparison = compare_searches(Translator.load("runs/ende"), "The dog sleeps.")
    >>> comparison.verdict in ("search error", "no search error", "open")
    True
    """
    check_not_blank(text, "text")
    request = request or translator.request()
    config = request.decoding
    if not isinstance(config, SearchConfig):
        raise ConfigError("sampling has no search tree: request a search")

    def search(changed: SearchConfig) -> list[Translation]:
        found = translator.translate_nbest([text], replace(request, decoding=changed, divide=False))
        return list(found[0])

    def figure(found: Sequence[Translation]) -> SearchTreeFigure:
        return search_tree(tree_of(1, text, found))

    return compare_results(search, figure, lambda each: (each.text, each.ids), config, exact)


def compare_results(
    search: Callable[[SearchConfig], list[Found]],
    figure: Callable[[Sequence[Found]], SearchTreeFigure],
    text_and_tokens: Callable[[Found], tuple[str, Sequence[int]]],
    config: SearchConfig,
    exact: int,
) -> SearchComparison:
    """Return the results of beam, greedy and exact search by the same function.

    search: returns the outputs of a search with some settings, the best first. figure: returns the picture of a beam
    search. text_and_tokens: returns the text of an output, and its tokens without the end symbol. config: the settings
    of the beam search. exact: as in `compare_searches`. Raises ConfigError for an exact search with
    `search.diversity`.
    """
    if exact and config.diversity is not None:
        raise ConfigError("exact search has no groups: set search.diversity to null, or leave out the exact search")

    def outcome(found: Found, node: int | None) -> Outcome:
        return Outcome(node, text_and_tokens(found)[0], found.score, found.log_probability)

    beam = search(config.model_copy(update={"tree": True, "exact": 0}))
    searched, tree = figure(beam), beam[0].tree
    assert tree is not None, "a text that is not blank has a tree"
    plain = config.model_copy(update={"tree": False, "exact": 0, "nbest": 1, "diversity": None, "shrinking": False})
    greedy = search(plain.model_copy(update={"beam": 1}))[0]
    comparison = SearchComparison(searched, outcome(greedy, None))
    if not exact:
        return comparison
    best: Found = search(plain.model_copy(update={"exact": exact}))[0]
    path = (*text_and_tokens(best)[1], *((EOS,) if best.finished else ()))
    searched = replace(searched, exact=outcome(best, tree.deepest(path)))
    is_better = (best.finished, best.score) > (beam[0].finished, beam[0].score)
    is_proven = best.bound is not None and best.bound <= best.score
    verdict: Verdict = "search error" if is_better else "no search error" if is_proven else "open"
    return replace(comparison, tree=searched, bound=best.bound, verdict=verdict)
