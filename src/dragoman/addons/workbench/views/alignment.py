"""`AlignmentState`: the words that a model links by attention and by gradients, beside aligners and annotated links."""

from typing import Literal

from pydantic import Field

from dragoman.addons.lecture.demo_links import grammar_gold, grammar_translation
from dragoman.addons.workbench.views.view import SentenceState, ViewContent
from dragoman.addons.workbench.workspace import Workspace, other_attention
from dragoman.base.errors import ConfigError
from dragoman.figures.alignments import GOLD
from dragoman.figures.figure import Figure
from dragoman.inference.subject import check_not_blank
from dragoman.inspection.alignments import ATTENTION, GRADIENT, STORED

DEMO = "demo"
"""The value of the annotated links that stands for those of the embedded corpus."""


class AlignmentState(SentenceState):
    """The words that a model links by attention and by gradients, beside aligners and annotated links."""

    title = "Alignment"

    view: Literal["alignment"] = Field("alignment", description="The name of the view.")
    gold: str = Field(
        "",
        description="Annotated links of words numbered from 0, such as 0-0 1?2 (? for a possible link), or demo for "
        "those of a sentence of the demo, whose reference is then the target.",
    )
    others: tuple[str, ...] = Field(
        (), description="Names of word aligners, and of further models whose attention is shown, as repeated settings."
    )
    off: tuple[str, ...] = Field((), description="Layers of links that are not drawn, such as attention or gold.")

    def content(self, workspace: Workspace) -> ViewContent:
        """Align the words, and compare the links with the annotated ones."""
        check_not_blank(self.source, "text")
        target, gold = self.target, self.gold.strip()
        if gold == DEMO:
            target = target or grammar_translation(self.source)
        elif gold and not target:
            raise ConfigError("annotated links belong to a translation: give the translation, or remove the links")
        found = workspace.align(self.model, self.source, target, self.to, self.others)
        layers = {ATTENTION, GRADIENT, STORED, GOLD, *workspace.aligners, *map(other_attention, workspace.models)}
        if unknown := [name for name in self.off if name not in layers]:
            raise ConfigError(f"there is no layer {unknown[0]!r}: the layers are {', '.join([*found.links, GOLD])}")
        if gold:
            found = found.with_gold(grammar_gold(self.source, target) if gold == DEMO else gold)
        figures: dict[str, Figure] = {"links": found.figure(hidden=self.off)}
        if found.gold is not None:
            figures["confusion"] = found.confusion()
        absent = list(found.absent)
        if not workspace.aligners and STORED not in found.links:
            absent.append(
                "word aligner: none is open; train one with `dragoman align --save FOLDER`, and pass its folder, too"
            )
        facts = {
            "source": " ".join(found.source),
            "target": " ".join(found.target),
            "pharaoh": found.as_json()["pharaoh"],
            "absent": absent,
        }
        return ViewContent(figures, facts)
