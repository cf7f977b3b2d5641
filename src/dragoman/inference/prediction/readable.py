"""Predictions as lines for a reader at a terminal."""

import json
import shutil
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size

from dragoman.base.line_breaks import fit
from dragoman.inference.abilities import Prediction
from dragoman.inference.prediction.heads.answering import AnswerPrediction
from dragoman.inference.prediction.heads.classification import ClassPrediction
from dragoman.inference.prediction.heads.filling import FillPrediction
from dragoman.inference.prediction.heads.regression import ValuePrediction
from dragoman.inference.prediction.heads.tagging import TagPrediction

_LONGEST_LABEL = 24
_GAP = "  "


class ReadablePredictions:
    """Formats predictions: first what is predicted, then the text, cut to the width of the terminal."""

    def __init__(self, labels: Sequence[str], width: int | None = None) -> None:
        """labels: names of the classes, which determine the width of their column. width: by default the terminal's."""
        self._labels = min(max(map(cell_len, labels), default=0), _LONGEST_LABEL)
        self._width = width or shutil.get_terminal_size().columns

    def __call__(self, example: Any, prediction: Prediction) -> str:
        """Return the line or lines of one prediction. A class from outside the package is shown as JSON."""
        match prediction:
            case ClassPrediction():
                probability = prediction.probabilities[prediction.label]
                start = f"{_pad(prediction.label, self._labels)}{_GAP}{probability:4.0%}"
            case ValuePrediction():
                start = f"{prediction.value:10.4g}"
            case AnswerPrediction():
                answer = f"{_GAP}{prediction.answer or '(no answer)'}"
                return f"{self._line('', example.question)}\n{fit(answer, self._width)}\n"
            case FillPrediction():
                return "".join(f"{fit(line, self._width)}\n" for line in [prediction.text, *_fills(prediction)])
            case TagPrediction():
                return self._interlinear(prediction.words, prediction.tags)
            case _:
                return json.dumps(_rounded(prediction.as_json()), ensure_ascii=False) + "\n"
        return self._line(start + _GAP, " | ".join(example.texts)) + "\n"

    def _line(self, start: str, text: str) -> str:
        """Return a line that fits, in which each run of spaces and line ends of the text is a space."""
        text = start + " ".join(text.split())
        return text if cell_len(text) <= self._width else f"{set_cell_size(text, self._width - 1)}…"

    def _interlinear(self, words: Sequence[str], tags: Sequence[str]) -> str:
        """Return the words with their tags below, in as many pairs of lines as the width needs."""
        rows: list[tuple[str, str]] = [("", "")]
        for word, tag in zip(words, tags, strict=True):
            width = max(cell_len(word), cell_len(tag))
            if rows[-1][0] and cell_len(rows[-1][0]) + width > self._width:
                rows.append(("", ""))
            above, below = rows[-1]
            rows[-1] = f"{above}{_pad(word, width)}{_GAP}", f"{below}{_pad(tag, width)}{_GAP}"
        return "".join(f"{above.rstrip()}\n{below.rstrip()}\n" for above, below in rows) + "\n"


def _pad(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def _fills(prediction: FillPrediction) -> list[str]:
    """Return a line for each masked position, with its most probable tokens."""
    return [
        _GAP + ", ".join(f"{each.text.strip()} {each.probability:.0%}" for each in place) for place in prediction.fills
    ]


def _rounded(value: Any) -> Any:
    """Return JSON types with four digits of each number."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value
