"""Learning-rate schedules as curves."""

from collections.abc import Mapping

import numpy as np

from dragoman.figures.curves import Curve, CurvePanel, Curves
from dragoman.training.optimisers.schedule import ScheduleConfig

_POINTS = 2000
"""Number of steps at which a schedule is computed."""


def schedule_curves(schedules: Mapping[str, ScheduleConfig], steps: int, width: int) -> Curves:
    """Return the learning rate over the steps of a run.

    schedules: by the label in the legend. steps: number of updates of the run. width: the model width d.
    """
    warmups = [each.warmup if each.warmup >= 1 else each.warmup * steps for each in schedules.values()]
    peaks = [round(each) for each in warmups if 1 <= round(each) <= steps]
    x = np.unique([*np.linspace(1, steps, min(steps, _POINTS)).round(), *peaks])
    curves = []
    for number, (label, schedule) in enumerate(schedules.items()):
        rates = [schedule.rate(int(step), float(step) / steps, width) for step in x]
        curves.append(Curve(label, x, np.array(rates, np.float64), number))
    largest = max((float(curve.y.max()), float(curve.x[curve.y.argmax()])) for curve in curves)
    panel = CurvePanel(f"Learning rate · peak {largest[0]:.3g} at step {largest[1]:,.0f}", "", tuple(curves))
    return Curves(
        title=f"{steps:,} updates, model width {width}",
        caption="The learning rate at each update. It rises linearly during the warm-up, and then decays.",
        slide="deck 000, training as in the paper; deck 003, the Transformer",
        panels=(panel,),
    )
