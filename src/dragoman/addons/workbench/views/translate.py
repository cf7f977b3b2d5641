"""`TranslateState`: the best translations of a sentence, with their scores and the links between the words."""

from typing import Literal

from pydantic import Field

from dragoman.addons.workbench.views.view import SentenceState, ViewContent
from dragoman.addons.workbench.workspace import Workspace
from dragoman.figures.bars import Bars
from dragoman.inference.subject import check_not_blank


class TranslateState(SentenceState):
    """The translations of a sentence, with their scores and the links between the words."""

    title = "Translate"

    view: Literal["translate"] = Field("translate", description="The name of the view.")
    beam: int = Field(5, ge=1, le=64, description="Beam size.")
    nbest: int = Field(5, ge=1, le=64, description="Number of translations.")
    choice: int = Field(1, ge=1, le=64, description="Rank of the translation whose links are shown, from 1.")

    def content(self, workspace: Workspace) -> ViewContent:
        """Translate, and align the words of the chosen translation."""
        check_not_blank(self.source, "text")
        translator = workspace.model(self.model).translator
        beam = max(self.beam, self.nbest)
        request = translator.request(beam=beam, nbest=self.nbest, to=self.to or None)
        (translations,) = translator.translate_nbest([self.source], request)
        rank = min(self.choice, len(translations)) - 1
        scores = Bars(
            title="Translations by score",
            caption=f"The {len(translations)} best hypotheses of a beam search of width {beam}, by their score: the "
            "log-probability with the length penalty.",
            labels=tuple(each.text for each in translations),
            values=tuple(each.score for each in translations),
            unit="score",
            marked=(rank,),
        )
        listed = [
            {
                "text": each.text,
                "score": each.score,
                "log_probability": each.log_probability,
                "finished": each.finished,
            }
            for each in translations
        ]
        text = translations[rank].text
        links = translator.align([self.source], [text], to=self.to or None)[0] if text else ()
        return ViewContent({"scores": scores}, {"translations": listed, "links": [list(link) for link in links]})
