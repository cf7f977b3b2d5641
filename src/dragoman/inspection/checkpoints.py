"""`follow_checkpoints`: one text through the checkpoints of a run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.cancellation import until_cancelled
from dragoman.base.errors import ConfigError, DragomanError
from dragoman.checkpoint.folder import read_config
from dragoman.checkpoint.store import checkpoints_by_step
from dragoman.figures.curves import Curve, CurvePanel, Curves
from dragoman.figures.heat_maps import HeatMap, HeatMaps
from dragoman.inference.abilities import SupportsInspect
from dragoman.inference.subject import NO_SETTINGS, SubjectSettings
from dragoman.inspection.attention import attention_of
from dragoman.inspection.heads import Head, check_heads
from dragoman.inspection.inspect import open_visible
from dragoman.models.attention_weights import AttentionMap


@dataclass(frozen=True)
class CheckpointOutput:
    """The output of one checkpoint for a text.

    step: number of updates. predicted: the translation or the label that the checkpoint predicts; the text itself for a
    language model. output: describes the analysed output, that of the given target if there is one. terms, values: the
    labels and the values (N,) of the terms that sum to it. weights: those of one head, (1, T, S); None without a head.
    """

    step: int
    predicted: str
    output: str
    terms: tuple[str, ...]
    values: NDArray[np.float64]
    weights: AttentionMap | None = None

    @property
    def total(self) -> float:
        """The output, such as the log-probability of a reference."""
        return float(self.values.sum())

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON types."""
        weights = self.weights
        return {
            "step": self.step,
            "predicted": self.predicted,
            "output": self.output,
            "total": self.total,
            "terms": list(self.terms),
            "values": self.values.tolist(),
            "weights": None
            if weights is None
            else {"rows": list(weights.queries), "columns": list(weights.keys), "values": weights.weights[0].tolist()},
        }


def follow_checkpoints(
    run: str | Path,
    text: Any,
    settings: SubjectSettings = NO_SETTINGS,
    head: Head | str | None = None,
    device: str | None = None,
    *,
    task: str | None = None,
) -> list[CheckpointOutput]:
    """Return the output of each checkpoint of a run for a text, by step. The run may still be in progress.

    A checkpoint that the run deletes while it is read is left out. settings: with a reference as the target, outputs
    are comparable. head: whose weights are returned. task: as in `Predictor.load`. Raises ConfigError for a run without
    checkpoints; and the errors of `open_visible`, `subject` and `check_heads`.

    >>> from dragoman import follow_checkpoints
    >>> [output.step for output in follow_checkpoints("runs/ende", "The dog sleeps.")]
    [300]
    """
    found = []
    for step, folder in until_cancelled(checkpoints_by_step(Path(run)).items()):
        try:
            loaded = open_visible(folder, device, task)
        except DragomanError:
            if folder.is_dir():
                raise
            continue  # the run has deleted it
        found.append(_output(step, loaded, text, settings, head))
    if not found:
        read_config(Path(run))
        raise ConfigError(
            f"{run} has no checkpoints in {Path(run) / 'checkpoints'}: give the folder of a run, which writes one "
            "every train.checkpoint_every updates"
        )
    return found


def reference_figure(outputs: Sequence[CheckpointOutput]) -> Curves:
    """Return the curve of the output over the checkpoints."""
    steps, totals = np.array([each.step for each in outputs], float), np.array([each.total for each in outputs])
    panel = CurvePanel(outputs[0].output, "nats", (Curve("", steps, totals, style="points"),))
    return Curves(
        title="One text through the checkpoints of a run",
        caption=f"The {outputs[0].output} after each checkpoint.",
        limits="" if all(each.terms == outputs[0].terms for each in outputs) else "Each checkpoint has its own output.",
        panels=(panel,),
    )


def head_figure(outputs: Sequence[CheckpointOutput], columns: int = 4) -> HeatMaps | None:
    """Return the weights of the head at each checkpoint as a grid; None unless all have the same tokens."""
    maps = [each.weights for each in outputs if each.weights is not None]
    if len(maps) < len(outputs) or any((each.queries, each.keys) != (maps[0].queries, maps[0].keys) for each in maps):
        return None
    panels = [HeatMap(f"step {each.step:,}", maps[number].weights[0]) for number, each in enumerate(outputs)]
    return HeatMaps(
        title=f"One head of {maps[0].name} through training",
        caption="The attention weights of a head for the same tokens at each checkpoint.",
        rows=maps[0].queries,
        columns=maps[0].keys,
        grid=tuple(tuple(panels[start : start + columns]) for start in range(0, len(panels), columns)),
        unit="weight",
        compact=True,
        full_scale=True,
    )


def _output(
    step: int, loaded: SupportsInspect, text: Any, settings: SubjectSettings, head: Head | str | None
) -> CheckpointOutput:
    subject = loaded.subject(text, settings)
    predicted = subject.target if settings.target is None else subject.own() or subject.target
    weights = None
    if head is not None:
        (chosen,) = check_heads(subject.model, [head])
        maps = attention_of(subject)
        (layer,) = [each for each in maps if (each.kind, each.layer or 1) == (chosen.kind, chosen.layer)]
        weights = replace(layer, weights=layer.weights[chosen.number - 1 : chosen.number])
    return CheckpointOutput(step, predicted, subject.output, subject.terms, subject.values(), weights)
