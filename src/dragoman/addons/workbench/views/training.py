"""`TrainingState`: the curves of training runs, also while they train."""

from dataclasses import replace
from typing import Literal

from pydantic import Field

from dragoman.addons.workbench.views.view import ViewContent, ViewState
from dragoman.addons.workbench.workspace import Workspace
from dragoman.base.errors import ConfigError
from dragoman.training.progress.training_curves import compared_curves, training_curves

_PIXELS = 1000
"""Width of a panel for which points are left out, in pixels. Extreme values are kept."""


class TrainingState(ViewState):
    """The curves of training runs."""

    title = "Training"

    view: Literal["training"] = Field("training", description="The name of the view.")
    runs: tuple[str, ...] = Field((), description="Names of the runs, as repeated settings; none for all of them.")
    scale: Literal["", "linear", "log"] = Field(
        "", description="Scale of the vertical axes; empty for the usual one of each quantity."
    )

    def content(self, workspace: Workspace) -> ViewContent:
        """Return the curves of the records that the runs have logged so far."""
        names = self.runs or tuple(workspace.runs)
        if not names:
            raise ConfigError("no training run is open: pass the folder of a run, which contains log.jsonl")
        records = {name: workspace.records(name) for name in names}
        curves = compared_curves(records) if len(names) > 1 else training_curves(records[names[0]])
        if self.scale:
            panels = tuple(replace(panel, is_logarithmic=self.scale == "log") for panel in curves.panels)
            curves = replace(curves, panels=panels)
        last = {name: each[-1]["step"] if each else 0 for name, each in records.items()}
        return ViewContent({"curves": curves.thinned(_PIXELS)}, {"steps": last})
