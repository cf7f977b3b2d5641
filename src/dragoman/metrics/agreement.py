"""`krippendorff_alpha`: how far judges agree beyond chance."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Scale = Literal["interval", "nominal"]
"""What the differences between values mean: their squares (interval), or only whether they differ (nominal)."""

_DISTANCES: Mapping[Scale, Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]] = {
    "interval": lambda one, other: (one - other) ** 2,
    "nominal": lambda one, other: (one != other).astype(np.float64),
}


def krippendorff_alpha(units: Sequence[Sequence[float]], scale: Scale) -> float | None:
    """Return 1 − observed / expected disagreement (Krippendorff 2011, "Computing Krippendorff's alpha-reliability").

    units: the values that the judges gave to each unit, such as a sentence, in any order. Units with fewer than two
    values are ignored. Judges may have judged different units. 1: perfect agreement; 0: as by chance. Returns None if
    no unit has two values, or if all values are equal, so that chance agreement is undefined.
    """
    paired = [np.array(unit, np.float64) for unit in units if len(unit) > 1]
    if not paired:
        return None
    values, counts = np.unique(np.concatenate(paired), return_counts=True)
    distance, total = _DISTANCES[scale], int(counts.sum())
    expected = float(counts @ distance(values[:, None], values[None, :]) @ counts) / (total - 1)
    if expected == 0:
        return None
    observed = sum(float(distance(unit[:, None], unit[None, :]).sum()) / (len(unit) - 1) for unit in paired)
    return 1 - observed / expected
