"""`PositionsState`: position schemes and deck 001's criteria for them, attention masks, and learning-rate schedules."""

from typing import Any, Literal, cast

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from dragoman.addons.lecture.position_criteria import Probe, Setting, first_rise, judge
from dragoman.addons.lecture.position_figures import distance_curve, position_figures
from dragoman.addons.workbench.views.view import ViewContent, ViewState
from dragoman.addons.workbench.workspace import Workspace
from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import kinds, union_members
from dragoman.base.settings.load import load_settings
from dragoman.figures.figure import Figure
from dragoman.figures.heat_maps import HeatMaps
from dragoman.figures.masks import mask_maps
from dragoman.nn.mask import CausalSpan, Mask
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.positions.union import PositionsConfig
from dragoman.training.optimisers.schedule import ScheduleConfig
from dragoman.training.optimisers.schedule_curves import schedule_curves

_BASE = 10000.0


class PositionsState(ViewState):
    """Position schemes and deck 001's criteria for them, attention masks, and learning-rate schedules."""

    title = "Positions and masks"

    view: Literal["positions"] = Field("positions", description="The name of the view.")
    scheme: Literal[
        "sinusoidal",
        "learned",
        "relative",
        "rotary",
        "alibi",
        "bucketed",
        "none",
        "index",
        "one_hot",
        "fraction",
    ] = Field("sinusoidal", description="Kind of the position scheme.")
    width: int = Field(128, ge=2, le=1024, description="Model width d.")
    heads: int = Field(8, ge=1, le=64, description="Number of attention heads, which must divide d.")
    length: int = Field(100, ge=4, le=512, description="Text length in tokens.")
    base: float = Field(_BASE, ge=2, le=1e9, description="Base of the wavelengths (paper: 10000; deck 001: 100000).")
    compared: bool = Field(False, description="Whether all schemes are compared by the criteria.")
    tokens: int = Field(12, ge=2, le=64, description="Number of tokens in the masks.")
    padding: int = Field(3, ge=0, le=64, description="Number of these tokens that are padding.")
    schedule: Literal["inverse_sqrt", "cosine", "linear", "constant"] = Field(
        "inverse_sqrt", description="Kind of the learning-rate schedule."
    )
    warmup: float = Field(4000, ge=0, description="Warm-up in steps, or as a fraction of the run if below 1.")
    steps: int = Field(20000, ge=2, le=10_000_000, description="Number of updates of the run.")
    picture: Literal["", "products", "distances", "masks", "schedule"] = Field(
        "", description="The picture that is shown; empty for the vectors, or the weights of a scheme inside attention."
    )
    panel: int = Field(1, ge=1, description="Number of the head or mask that is shown, from 1.")

    def content(self, workspace: Workspace) -> ViewContent:
        """Return the figures of the scheme, the masks and the schedule, and the verdicts on the criteria."""
        if self.width % self.heads:
            raise ConfigError(f"a width of {self.width} is not divisible by {self.heads} heads: change one of them")
        scheme, setting = self._scheme(), Setting(self.width, self.heads, self.length)
        probe = Probe(scheme, setting)
        if probe.limit is not None and self.length > probe.limit:
            raise ConfigError(
                f"length {self.length} exceeds the {probe.limit} positions of {self.scheme}: choose a shorter length"
            )
        verdicts = judge(scheme, setting)
        trained = "" if verdicts["deterministic"].holds else ", before training"
        title = f"Positions of kind {self.scheme}, d = {self.width}{trained}"
        figures: dict[str, Figure] = {**position_figures(probe, setting, title)}
        rise = None
        if probe.encoding is not None:
            products = probe.pairs(self.length)[0]
            figures["distances"], rise = distance_curve(products, title), first_rise(products)
        figures |= {"masks": self._masks(), "schedule": self._schedule()}
        rows: dict[str, dict[str, str]] = {self.scheme: {name: str(verdict) for name, verdict in verdicts.items()}}
        if self.compared:
            rows |= _criteria(setting, self.scheme)
        return ViewContent(figures, {"criteria": rows, "first_rise": rise, "has_base": hasattr(scheme, "base")})

    def _scheme(self) -> PositionScheme:
        """Return the scheme. Raises ConfigError for a base of a scheme without one."""
        loaded: Any = load_settings(None, [f"kind={self.scheme}"], cast(Any, PositionsConfig))
        if self.base != _BASE:
            if not hasattr(loaded, "base"):
                raise ConfigError(f"positions of kind {self.scheme} have no base: remove base={self.base:g}")
            loaded = loaded.model_copy(update={"base": self.base})
        return cast(PositionScheme, loaded)

    def _masks(self) -> HeatMaps:
        if self.padding > self.tokens:
            raise ConfigError(f"padding {self.padding} exceeds the {self.tokens} tokens: choose a smaller number")
        cpu, size = torch.device("cpu"), (self.tokens, self.tokens)
        causal, prefix = (
            CausalSpan(0, self.tokens, cpu, left_padding=left_padding).mask
            for left_padding in (None, torch.tensor([self.padding]))
        )
        assert causal is not None and prefix is not None  # there are at least two tokens
        present = torch.arange(self.tokens)[None] < self.tokens - self.padding
        masks = {
            "source: padding": Mask.padding(present),
            "target: causal": causal,
            "target: causal, padded on the left": prefix,
        }
        labels = [str(number) for number in range(1, self.tokens + 1)]
        return mask_maps(
            {name: _pairs(mask.allowed, size) for name, mask in masks.items()},
            labels,
            labels,
            f"{self.padding} of {self.tokens} tokens are padding: the last ones of the source, and the first ones of "
            "the third mask, which aligns the ends of prefixes. A padding position there attends to itself only.",
        )

    def _schedule(self) -> Figure:
        schedule: Any = load_settings(
            None, [f"kind={self.schedule}", f"warmup={self.warmup}"], cast(Any, ScheduleConfig)
        )
        return schedule_curves({self.schedule: schedule}, self.steps, self.width)


def _pairs(allowed: Tensor, size: tuple[int, int]) -> np.ndarray:
    return np.asarray(allowed.expand(1, 1, *size)[0, 0].numpy())


def _criteria(setting: Setting, shown: str) -> dict[str, dict[str, str]]:
    """Return the verdicts on all other schemes with default settings; a reason for those that cannot be built."""
    rows = {}
    for member in union_members(PositionsConfig):
        kind = kinds(member)[0]
        if kind == shown:
            continue
        try:
            rows[kind] = {name: str(verdict) for name, verdict in judge(member(), setting).items()}
        except ConfigError as error:
            rows[kind] = {"impossible": str(error)}
    return rows
