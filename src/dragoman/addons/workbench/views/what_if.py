"""`WhatIfState`: what a model predicts if a token of its output is forced, or if some of its heads are switched off."""

from contextlib import nullcontext
from dataclasses import dataclass
from sys import float_info
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from dragoman.addons.workbench.views.view import SentenceState, ViewContent
from dragoman.addons.workbench.workspace import Workspace
from dragoman.base.errors import ConfigError
from dragoman.figures.bars import Bars
from dragoman.figures.figure import Figure
from dragoman.inference.abilities import SupportsInspect
from dragoman.inference.subject import Subject, SubjectSettings
from dragoman.inspection.heads import Head, check_heads, heads_of, heads_off
from dragoman.inspection.lens import DecoderLens, subject_lens
from dragoman.inspection.next_tokens import NextTokens, continue_prefix, sequence_of, subject_next_tokens
from dragoman.text.symbols import BOS, EOS, PAD


@dataclass(frozen=True)
class _Change:
    """What changes if tokens are forced and heads are off.

    changed: the output with the forced tokens and without the heads. after: the terms of the original output without
    the heads. values: the terms of the changed output. lens: its predictions after each layer; a message for a model
    without a lens. last: its predictions after the last layer.
    """

    changed: Subject
    after: NDArray[np.float64]
    values: NDArray[np.float64]
    lens: DecoderLens | str
    last: tuple[NextTokens, ...]


class WhatIfState(SentenceState):
    """What a model predicts if a token of its output is forced, or if some of its heads are switched off."""

    title = "What if"

    view: Literal["what-if"] = Field("what-if", description="The name of the view.")
    position: int = Field(1, ge=1, description="Position in the output, from 1, whose alternatives are shown.")
    layer: int | None = Field(
        None, ge=0, description="Layer after which the alternatives are predicted; 0: the embeddings; empty: the last."
    )
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
        """Compute the output as it is, the effect of the changes, and the alternatives at the position.

        The outputs are computed once for all positions and layers.
        """
        opened = workspace.model(self.model)
        loaded = opened.loaded
        if opened.kind.abilities.isdisjoint({"translate", "generate"}):
            raise ConfigError(f"{opened.name} {opened.kind.refusal('generate')}")
        usual = workspace.subject(self.model, self.source, self.target, self.to)
        off = check_heads(loaded.model, self.off)
        key = ("what-if", opened.name, self.source, self.target, self.to)
        before = workspace.remember(key, usual.values)
        change = workspace.remember(
            (*key, self.prefix, off, self.count), lambda: self._change(loaded, usual, before, off)
        )
        ids = (*change.changed.target_ids, EOS)
        position = min(self.position, len(ids))
        alternatives = self._predictions(change)[position - 1]
        figures: dict[str, Figure] = {"next": _bars(alternatives, ids[position - 1], position, self.layer)}
        if isinstance(change.lens, DecoderLens):
            figures["lens"] = change.lens.predictions()
        if off:
            figures["effect"] = _effect(usual, change.after - before)
        facts = {
            "before": _output(usual, before),
            "after": {**_output(change.changed, change.values), "ids": list(ids)},
            "change": float(change.after.sum() - before.sum()),
            "position": position,
            "layer": self.layer,
            "without_lens": change.lens if isinstance(change.lens, str) else "",
            "alternatives": [None if each in (PAD, BOS) else each for each in alternatives.ids],
            "heads": _layers(loaded),
            "off": list(map(str, off)),
        }
        return ViewContent(figures, facts)

    def _predictions(self, change: _Change) -> tuple[NextTokens, ...]:
        """Return the predictions at all positions after the layer. Raises ConfigError if there is no such layer."""
        if self.layer is None:
            return change.last
        if isinstance(change.lens, str):
            raise ConfigError(f"{change.lens}; or leave out the layer")
        if self.layer >= len(change.lens.layers):
            raise ConfigError(
                f"there is no layer {self.layer}: the decoder has layers 1 to {len(change.lens.layers) - 1}, and its "
                "embeddings are layer 0"
            )
        return change.lens.layers[self.layer].positions

    def _change(
        self, loaded: SupportsInspect, usual: Subject, before: NDArray[np.float64], off: tuple[Head, ...]
    ) -> _Change:
        with heads_off(loaded.model, off) if off else nullcontext():
            after = usual.values() if off else before
            changed = self._changed(loaded, usual)
            lens: DecoderLens | str
            try:
                lens = subject_lens(changed, self.count)
                last = lens.layers[-1].positions
            except ConfigError as error:  # no layers, such as those of a recurrent decoder
                lens, last = str(error), subject_next_tokens(changed, self.count)
        values = after
        if changed is not usual:
            values = np.log([each.actual_probability or float_info.min for each in last])  # 0 if rounded
        return _Change(changed, after, values, lens, last)

    def _changed(self, loaded: SupportsInspect, usual: Subject) -> Subject:
        """Return the output that begins with the forced tokens, or is searched without the heads."""
        is_predicted_again = usual.source is not None and self.off and not self.target
        if not self.prefix_ids and not is_predicted_again:
            return usual
        text, settings = usual.source or "", SubjectSettings(to=self.to or None)
        best = continue_prefix(loaded, text, self.prefix_ids, settings)
        return sequence_of(loaded, text, settings).subject(best.ids)


def _bars(alternatives: NextTokens, actual: int, position: int, layer: int | None) -> Bars:
    name = "the embeddings" if layer == 0 else f"layer {layer}"
    caption = "The most probable tokens after the tokens before this position, and the probability of all others"
    if layer is not None:
        caption += f", if the decoder ended after {name}"
    limits = "Only the last layer was trained to be projected to the vocabulary."
    if layer is None:
        limits = "The output is found by a search, so that the marked token need not be the most probable one."
    return Bars(
        title=f"Tokens at position {position}{'' if layer is None else f' after {name}'}",
        caption=f"{caption}. The marked token is the one in the output.",
        slide="deck 004, greedy and beam search",
        limits=limits,
        labels=alternatives.tokens,
        values=tuple(alternatives.probabilities.tolist()),
        rest=alternatives.rest,
        marked=(alternatives.ids.index(actual),) if actual in alternatives.ids else (),
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


def _layers(loaded: SupportsInspect) -> list[dict[str, Any]]:
    """Return the number of heads of each layer, empty for a model without heads."""
    try:
        heads = heads_of(loaded.model)
    except ConfigError:
        return []
    counts: dict[tuple[str, int], int] = {}
    for head in heads:
        counts[head.kind, head.layer] = max(counts.get((head.kind, head.layer), 0), head.number)
    return [{"kind": kind, "layer": layer, "heads": count} for (kind, layer), count in counts.items()]
