"""`Validated`: what a run was worth at each of its validations, read off its log."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_VALID = "valid_"


@dataclass(frozen=True)
class Validated:
    """A validation. step: updates made; epoch: counted from 1; seconds: of the run so far.

    measures: by key, such as `loss`, `perplexity` and `bleu`.
    """

    step: int
    epoch: int
    seconds: float
    measures: Mapping[str, float]


def read_history(log: Path) -> tuple[Validated, ...]:
    """The validations in a run's `log.jsonl`, in order, those of earlier sittings too."""
    found = []
    for text in log.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        measures = {
            key.removeprefix(_VALID): float(value)
            for key, value in line.items()
            if key.startswith(_VALID) and isinstance(value, int | float)
        }
        if measures:
            found.append(Validated(line["step"], line["epoch"], line["seconds"], measures))
    return tuple(found)
