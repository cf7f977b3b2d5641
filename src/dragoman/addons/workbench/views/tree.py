"""`TreeState`: all hypotheses that a beam search considers, beside greedy and exact search."""

from typing import Literal

from pydantic import Field

from dragoman.addons.lecture.example_trees import EXAMPLE_TREES
from dragoman.addons.lecture.tree_searches import compare_tree_searches
from dragoman.addons.workbench.views.view import SentenceState, ViewContent
from dragoman.addons.workbench.workspace import Workspace
from dragoman.base.settings.load import parse_settings
from dragoman.decode.search import SearchConfig
from dragoman.inspection.searches import SearchComparison, compare_searches


class TreeState(SentenceState):
    """All hypotheses that a beam search considers, beside greedy and exact search."""

    title = "Search tree"

    view: Literal["tree"] = Field("tree", description="The name of the view.")
    example: Literal["", "deck-004", "hidden"] = Field(
        "", description="A tree of the lecture that is searched instead of a model's translations; empty for a model."
    )
    beam: int = Field(4, ge=1, le=32, description="Beam size; 1 is greedy search.")
    penalty: Literal["", "none", "mean", "0.6", "1.0"] = Field(
        "",
        description="Length penalty: none, mean, or GNMT's exponent; empty for the model's own setting, and for none "
        "in a tree of the lecture.",
    )
    shrinking: bool = Field(False, description="Whether each finished hypothesis reduces the beam size by one.")
    exact: int = Field(
        0, ge=0, le=100_000, description="Maximum number of prefixes that exact search expands; 0 for none."
    )
    step: int = Field(0, ge=0, description="The last step that is shown; 0 for all.")

    def content(self, workspace: Workspace) -> ViewContent:
        """Search, and record the tree of the beam search."""
        comparison = self._example() if self.example else self._sentence(workspace)
        return ViewContent({"tree": comparison.tree}, comparison.as_json())

    def _sentence(self, workspace: Workspace) -> SearchComparison:
        translator = workspace.model(self.model).translator
        request = translator.request(
            beam=self.beam,
            nbest=self.beam,
            length_penalty=self.penalty or None,
            search={"shrinking": self.shrinking},
            to=self.to or None,
        )
        return compare_searches(translator, self.source, request, self.exact)

    def _example(self) -> SearchComparison:
        example = EXAMPLE_TREES[self.example]
        settings = {"beam": self.beam, "nbest": self.beam, "shrinking": self.shrinking}
        penalty = float(self.penalty) if self.penalty[:1].isdecimal() else self.penalty or "none"
        config = parse_settings({**settings, "length_penalty": penalty}, SearchConfig, "search")
        return compare_tree_searches(example.tree, example.title, config, self.exact)
