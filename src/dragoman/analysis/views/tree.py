"""`TreeState`: all hypotheses that a beam search considers for a sentence."""

from typing import Literal

from pydantic import Field

from dragoman.analysis.views.view import SentenceState, ViewContent
from dragoman.analysis.workspace import Workspace
from dragoman.inspect.figures.search_tree import search_tree
from dragoman.inspect.inspection import check_not_blank
from dragoman.translation.tree import tree_of


class TreeState(SentenceState):
    """All hypotheses that a beam search considers for a sentence."""

    title = "Search tree"

    view: Literal["tree"] = Field("tree", description="The name of the view.")
    beam: int = Field(4, ge=1, le=32, description="Beam size; 1 is greedy search.")
    penalty: Literal["", "none", "mean", "0.6", "1.0"] = Field(
        "", description="Length penalty: none, mean, or GNMT's exponent; empty for the model's own setting."
    )
    shrinking: bool = Field(False, description="Whether each finished hypothesis takes a place of the beam.")
    step: int = Field(0, ge=0, description="The last step that is shown; 0 for all.")

    def content(self, workspace: Workspace) -> ViewContent:
        """Translate, and record the search."""
        check_not_blank(self.source, "text")
        translator = workspace.model(self.model).translator
        request = translator.request(
            beam=self.beam,
            nbest=self.beam,
            length_penalty=self.penalty or None,
            search={"tree": True, "shrinking": self.shrinking},
            to=self.to or None,
            divide=False,
        )
        (translations,) = translator.translate_nbest([self.source], request)
        return ViewContent({"tree": search_tree(tree_of(1, self.source, translations))}, {})
