"""`AttentionState`: the attention weights of all layers and heads, their rollout, and one head in detail."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from dragoman.addons.workbench.views.view import SentenceState, ViewContent
from dragoman.addons.workbench.workspace import Workspace
from dragoman.base.errors import ConfigError
from dragoman.figures.figure import Figure
from dragoman.figures.head_lines import head_lines
from dragoman.figures.heads import head_grid, single_head
from dragoman.inspection.inspection import Inspection
from dragoman.inspection.rollout import Rollout, roll_out
from dragoman.models.attention_weights import KINDS, AttentionMap

_SMALLEST = 0.02
"""Weight below which a line would be too pale to see."""


class AttentionState(SentenceState):
    """The attention weights of all layers and heads, and one head in detail."""

    title = "Attention"

    view: Literal["attention"] = Field("attention", description="The name of the view.")
    kind: Literal[
        "",
        "encoder.self_attention",
        "decoder.self_attention",
        "decoder.cross_attention",
        "encoder.rollout",
        "decoder.rollout",
    ] = Field(
        "",
        description=f"Kind of attention, one of {', '.join(KINDS)}, or the attention of a side through several layers, "
        "encoder.rollout or decoder.rollout; empty for the last kind that the model has.",
    )
    layer: int = Field(0, ge=0, description="Layer, from 1; 0 for the last one. A rollout ends after it.")
    head: int = Field(1, ge=0, description="Head, from 1; 0 for the mean of all heads of the layer.")
    drawing: Literal["map", "lines"] = Field("map", description="Form of the single head: a heat map, or lines.")
    order: Literal["layer", "entropy"] = Field("layer", description="Order of the heads in the overview.")

    def content(self, workspace: Workspace) -> ViewContent:
        """Return the weights of one kind of attention, or the rollout of one side."""
        inspection = workspace.inspect(self.model, self.source, self.target, self.to)
        rollouts, without_rollout = _rollouts(inspection)
        absent = [*inspection.absent, *without_rollout]
        kinds = [*inspection.kinds, *rollouts]
        kind = self.kind or list(inspection.kinds)[-1]
        if kind not in kinds:
            reason = next((line for line in absent if line.startswith(kind)), f"{kind}: the model has none")
            raise ConfigError(f"{reason}. It has {', '.join(kinds)}")
        figures = self._rollout(rollouts[kind]) if kind in rollouts else self._heads(inspection.kinds[kind])
        facts = {
            "source": inspection.source,
            "target": inspection.target,
            "kind": kind,
            "kinds": kinds,
            "absent": absent,
        }
        return ViewContent(figures, facts)

    def _heads(self, maps: Sequence[AttentionMap]) -> dict[str, Figure]:
        """Raises ConfigError if there is no such layer or head."""
        if self.layer > len(maps):
            raise ConfigError(f"there is no layer {self.layer}: {maps[0].kind} has layers 1 to {len(maps)}")
        layer, head = maps[self.layer - 1], self.head or None
        lines = head_lines(layer, [head], smallest=_SMALLEST)
        return {"heads": head_grid(maps), "head": single_head(layer, head), "lines": lines}

    def _rollout(self, rollout: Rollout) -> dict[str, Figure]:
        """Raises ConfigError if there is no such layer."""
        layer = self.layer or len(rollout.layers)
        return {"heads": rollout.grid(), "head": rollout.figure(layer), "lines": rollout.lines(layer, _SMALLEST)}


def _rollouts(inspection: Inspection) -> tuple[dict[str, Rollout], list[str]]:
    """Return the rollouts by their kinds, and lines with the reasons why sides have none."""
    reason = "rollout multiplies the weights of self-attention, which the layers of this side do not have"
    try:
        found = {f"{each.side}.rollout": each for each in roll_out(inspection.maps)}
    except ConfigError as error:
        found, reason = {}, str(error)
    sides = {line.partition(".")[0] for line in (*inspection.kinds, *inspection.absent)}
    without = [side for side in ("encoder", "decoder") if side in sides and f"{side}.rollout" not in found]
    return found, [f"{side}.rollout: {reason}" for side in without]
