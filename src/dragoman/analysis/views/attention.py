"""`AttentionState`: the attention weights of all layers and heads, and one head in detail."""

from typing import Literal

from pydantic import Field

from dragoman.analysis.views.view import SentenceState, ViewContent
from dragoman.analysis.workspace import Workspace
from dragoman.base.errors import ConfigError
from dragoman.inspect.attention import KINDS, AttentionMap
from dragoman.inspect.figures.heads import head_grid, single_head


class AttentionState(SentenceState):
    """The attention weights of all layers and heads, and one head in detail."""

    title = "Attention"

    view: Literal["attention"] = Field("attention", description="The name of the view.")
    kind: Literal["", "encoder.self_attention", "decoder.self_attention", "decoder.cross_attention"] = Field(
        "", description=f"Kind of attention, one of {', '.join(KINDS)}; empty for the last one that the model has."
    )
    layer: int = Field(0, ge=0, description="Layer, from 1; 0 for the last one.")
    head: int = Field(1, ge=0, description="Head, from 1; 0 for the mean of all heads of the layer.")
    drawing: Literal["map", "lines"] = Field("map", description="Form of the single head: a heat map, or lines.")
    order: Literal["layer", "entropy"] = Field("layer", description="Order of the heads in the overview.")

    def content(self, workspace: Workspace) -> ViewContent:
        """Return the weights of one kind of attention."""
        inspection = workspace.inspect(self.model, self.source, self.target, self.to)
        kind = self.kind or list(inspection.kinds)[-1]
        if kind not in inspection.kinds:
            absent = next((line for line in inspection.absent if line.startswith(kind)), f"{kind}: the model has none")
            raise ConfigError(f"{absent}. It has {', '.join(inspection.kinds)}")
        maps = inspection.kinds[kind]
        facts = {
            "source": inspection.source,
            "target": inspection.target,
            "kind": kind,
            "kinds": list(inspection.kinds),
            "absent": list(inspection.absent),
        }
        head = single_head(self._layer(maps), self.head or None)
        return ViewContent({"heads": head_grid(maps), "head": head}, facts)

    def _layer(self, maps: list[AttentionMap]) -> AttentionMap:
        """Return the map of the layer. Raises ConfigError if there is no such layer."""
        if self.layer > len(maps):
            raise ConfigError(f"there is no layer {self.layer}: {maps[0].kind} has layers 1 to {len(maps)}")
        return maps[self.layer - 1]
