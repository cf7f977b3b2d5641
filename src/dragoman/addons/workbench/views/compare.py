"""`CompareState`: the translations of a sentence by two models, or by two checkpoints of a run."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from dragoman.addons.workbench.views.view import SentenceState, ViewContent
from dragoman.addons.workbench.workspace import Workspace, WorkspaceModel
from dragoman.base.errors import ConfigError
from dragoman.figures.figure import Figure
from dragoman.inference.subject import check_not_blank, check_token_count
from dragoman.inspection.comparison import compare_translations, rank_pairs

MAX_PAIRS = 100
"""Maximum number of sentence pairs, which both models translate when the pairs are ranked."""


def _check_pair(pair: str) -> str:
    source, separator, reference = pair.partition("\t")
    if not (separator and source.strip() and reference.strip()) or "\t" in reference:
        raise ValueError("should be a sentence, a tab and its reference")
    return pair


Pair = Annotated[str, AfterValidator(_check_pair), Field(json_schema_extra={"pattern": r"[a-z]+\t[a-z]+"})]
"""A sentence and its reference, separated by a tab."""


class CompareState(SentenceState):
    """The translations of a sentence by two models, with their differences, scores and links."""

    title = "Compare"

    view: Literal["compare"] = Field("compare", description="The name of the view.")
    other: str = Field(
        "",
        description="Name of the second model, or RUN@STEP for a checkpoint, also for `model`; empty for the first "
        "model that is not `model`.",
    )
    reference: str = Field("", description="Right translation, with which both translations are compared.")
    pairs: tuple[Pair, ...] = Field(
        (),
        description=f"Up to {MAX_PAIRS} sentence pairs to step through, as repeated settings: a sentence, a tab and "
        "its reference.",
    )
    order: Literal["", "chrf", "bleu"] = Field(
        "", description="Metric by whose difference the pairs are ordered; empty for the order in which they are given."
    )

    @field_validator("pairs")
    @classmethod
    def _check_count(cls, pairs: tuple[str, ...]) -> tuple[str, ...]:
        if len(pairs) > MAX_PAIRS:
            raise ValueError(f"the file has {len(pairs)} sentence pairs, but the limit is {MAX_PAIRS}: choose a part")
        return pairs

    def content(self, workspace: Workspace) -> ViewContent:
        """Translate with both models, and rank the sentence pairs if there are any."""
        check_not_blank(self.source, "text")
        first = workspace.model(self.model)
        others = [name for name in workspace.models if name != first.run]
        second = workspace.model(self.other or next(iter(others), first.name))
        _check_languages(first, second)
        for model in (first, second):
            for text in (self.source, *(pair.split("\t")[0] for pair in self.pairs)):
                check_token_count(len(model.translator.tokenizers.source.encode(text)))
        found = [workspace.translate(each.name, [self.source], self.to)[0] for each in (first, second)]
        names = (_title(first), _title(second))
        comparison = compare_translations(
            (first.translator, second.translator),
            self.source,
            (found[0].text, found[1].text),
            self.reference,
            names=names,
            to=self.to or None,
        )
        figures: dict[str, Figure] = {"comparison": comparison.figure()}
        order = list(range(len(self.pairs)))
        if self.order and self.pairs:
            sources, references = zip(*(pair.split("\t") for pair in self.pairs), strict=True)
            translations = [workspace.translate(each.name, sources, self.to) for each in (first, second)]
            texts = [(one.text, other.text) for one, other in zip(*translations, strict=True)]
            ranked = rank_pairs(texts, references, self.order)
            order = list(ranked.order)
            current = f"{self.source}\t{self.reference}"
            marked = self.pairs.index(current) if current in self.pairs else None
            figures["differences"] = ranked.figure(sources, names, marked)
        facts = {
            "sides": [
                {
                    "name": model.name,
                    "run": model.run,
                    "step": model.step,
                    "steps": workspace.checkpoints(model.run),
                    "text": translation.text,
                    "finished": translation.finished,
                }
                for model, translation in zip((first, second), found, strict=True)
            ],
            "absent": list(comparison.absent),
            "order": order,
        }
        return ViewContent(figures, facts)


def _check_languages(first: WorkspaceModel, second: WorkspaceModel) -> None:
    """Raise ConfigError if the models are known to translate between different languages."""
    for side, one, other in zip(("from", "to"), first.languages(), second.languages(), strict=True):
        if one and other and one != other:
            raise ConfigError(
                f"{first.name} translates {side} {one}, and {second.name} {side} {other}: compare models of the same "
                "languages"
            )


def _title(model: WorkspaceModel) -> str:
    """Return the name of a model as figures show it."""
    return model.name if model.step is None else f"{model.run}, step {model.step:,}"
