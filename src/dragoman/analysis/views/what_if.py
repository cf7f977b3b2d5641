"""`WhatIfState`: what a model predicts if a token of its output is forced, or if some of its heads are switched off."""

from contextlib import nullcontext
from typing import Any, Literal

from pydantic import Field, field_validator

from dragoman.analysis.heads import check_heads, heads_of, heads_off
from dragoman.analysis.next_tokens import NextTokens, continue_prefix, next_tokens
from dragoman.analysis.subject import Loaded, Subject, SubjectSettings, subject_of, text_subject, visible_model
from dragoman.analysis.views.view import SentenceState, ViewContent
from dragoman.analysis.workspace import Workspace
from dragoman.base.errors import ConfigError
from dragoman.generation.language_model import LanguageModel
from dragoman.inspect.figures.bars import Bars
from dragoman.inspect.figures.figure import Figure
from dragoman.prediction.predictor import Predictor
from dragoman.text.symbols import BOS, EOS, PAD


class WhatIfState(SentenceState):
    """What a model predicts if a token of its output is forced, or if some of its heads are switched off."""

    title = "What if"

    view: Literal["what-if"] = Field("what-if", description="The name of the view.")
    position: int = Field(1, ge=1, description="Position in the output, from 1, whose alternatives are shown.")
    count: int = Field(10, ge=1, le=50, description="Number of alternatives.")
    prefix: str = Field(
        "",
        description="Ids of the tokens that the output must begin with, separated by dots.",
        json_schema_extra={"pattern": r"([0-9]+(\.[0-9]+)*)?"},
    )
    off: tuple[str, ...] = Field((), description="Heads that are off, such as decoder.cross_attention:4:3.")

    @field_validator("prefix")
    @classmethod
    def _check_prefix(cls, prefix: str) -> str:
        if prefix and not all(each.isascii() and each.isdecimal() for each in prefix.split(".")):
            raise ValueError("should be token ids separated by dots, such as 17.250.8")
        return prefix

    @property
    def prefix_ids(self) -> tuple[int, ...]:
        """The ids of the tokens that the output must begin with."""
        return tuple(map(int, self.prefix.split("."))) if self.prefix else ()

    def content(self, workspace: Workspace) -> ViewContent:
        """Compute the output as it is, the effect of the changes, and the alternatives at the position."""
        opened = workspace.model(self.model)
        loaded = opened.loaded
        if isinstance(loaded, Predictor):
            raise ConfigError(f"{opened.name} {opened.kind.refusal('generate')}")
        settings = SubjectSettings(to=self.to or None)
        usual = subject_of(loaded, self.source, SubjectSettings(target=self.target or None, to=self.to or None))
        off = check_heads(visible_model(loaded), self.off)
        before = usual.values()
        with heads_off(visible_model(loaded), off) if off else nullcontext():
            after = usual.values() if off else before
            changed = self._changed(loaded, usual, settings)
            position = min(self.position, len(changed.target_ids) + 1)
            text = "" if isinstance(loaded, LanguageModel) else self.source
            alternatives = next_tokens(loaded, text, changed.target_ids[: position - 1], settings, self.count)
            values = after if changed is usual else changed.values()
        ids = (*changed.target_ids, EOS)
        figures: dict[str, Figure] = {"next": _bars(alternatives, ids[position - 1], position)}
        if off:
            figures["effect"] = _effect(usual, after - before)
        facts = {
            "before": _output(usual, before),
            "after": {**_output(changed, values), "ids": list(ids)},
            "change": float(after.sum() - before.sum()),
            "position": position,
            "alternatives": [None if each in (PAD, BOS) else each for each in alternatives.ids],
            "heads": _layers(loaded),
            "off": list(map(str, off)),
        }
        return ViewContent(figures, facts)

    def _changed(self, loaded: Loaded, usual: Subject, settings: SubjectSettings) -> Subject:
        """Return the output that begins with the forced tokens, or is searched without the heads."""
        is_translated_again = not isinstance(loaded, LanguageModel) and self.off and not self.target
        if not self.prefix_ids and not is_translated_again:
            return usual
        text = "" if isinstance(loaded, LanguageModel) else self.source
        best = continue_prefix(loaded, text, self.prefix_ids, settings)
        if isinstance(loaded, LanguageModel):
            return text_subject(loaded, best.ids)
        return subject_of(loaded, self.source, SubjectSettings(target=best.ids, to=self.to or None))


def _bars(alternatives: NextTokens, actual: int, position: int) -> Bars:
    marked = (alternatives.ids.index(actual),) if actual in alternatives.ids else ()
    return Bars(
        title=f"Tokens at position {position}",
        caption="The most probable tokens after the tokens before this position, and the probability of all others "
        "together. The marked token is the one in the output.",
        slide="deck 004, greedy and beam search",
        limits="The output is found by a search, so that the marked token need not be the most probable one.",
        labels=alternatives.tokens,
        values=tuple(alternatives.probabilities.tolist()),
        rest=alternatives.rest,
        marked=marked,
    )


def _effect(subject: Subject, changes: Any) -> Bars:
    return Bars(
        title="Change of the log-probability without the heads",
        caption="The change of the log-probability of each token of the original output when the heads are off. "
        "Negative values mean that the model needs the heads for the token.",
        slide="deck 002, multi-head attention",
        limits="Other heads can take over the function of a head, so a small change does not show that it has none.",
        labels=subject.terms,
        values=tuple(changes.tolist()),
        unit="Δ log-probability",
    )


def _output(subject: Subject, values: Any) -> dict[str, Any]:
    return {
        "text": subject.target,
        "tokens": list(subject.terms),
        "log_probabilities": values.tolist(),
        "log_probability": float(values.sum()),
    }


def _layers(loaded: Loaded) -> list[dict[str, Any]]:
    """Return the number of heads of each layer, empty for a model without heads."""
    try:
        heads = heads_of(visible_model(loaded))
    except ConfigError:
        return []
    counts: dict[tuple[str, int], int] = {}
    for head in heads:
        counts[head.kind, head.layer] = max(counts.get((head.kind, head.layer), 0), head.number)
    return [{"kind": kind, "layer": layer, "heads": count} for (kind, layer), count in counts.items()]
