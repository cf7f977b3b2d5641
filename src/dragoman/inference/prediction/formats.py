"""The formats in which predictions are written, and which of them fit a head."""

import json
from collections.abc import Sequence
from typing import Any, Literal, get_args

from dragoman.data.labelled.examples import TaggedSentence
from dragoman.inference.abilities import Prediction
from dragoman.inference.prediction.heads.classification import ClassPrediction
from dragoman.inference.prediction.heads.parsing import TreePrediction
from dragoman.inference.prediction.heads.regression import ValuePrediction
from dragoman.inference.prediction.heads.tagging import TagPrediction
from dragoman.models.heads.spans import SpanHeadConfig
from dragoman.models.heads.tagging import TaggingHeadConfig
from dragoman.models.heads.texts import ClassificationHeadConfig, RegressionHeadConfig
from dragoman.models.heads.trees import TreeHead
from dragoman.models.heads.union import HeadConfig
from dragoman.text.trees.tree import draw_tree

OutputFormat = Literal["auto", "jsonl", "table", "tsv", "conll", "squad", "squad_nbest", "trees", "drawing"]
OUTPUT_FORMATS: tuple[OutputFormat, ...] = get_args(OutputFormat)
SQUAD: tuple[OutputFormat, ...] = ("squad", "squad_nbest")
"""The formats that consist of one JSON object with the answers of all questions."""


def formats_of(head: HeadConfig) -> tuple[OutputFormat, ...]:
    """Return the formats that fit the predictions of a head; the first is the default."""
    if isinstance(head, TreeHead):
        return "trees", "drawing", "jsonl"
    if isinstance(head, ClassificationHeadConfig | RegressionHeadConfig):
        return "jsonl", "table", "tsv"
    if isinstance(head, TaggingHeadConfig):
        return "jsonl", "table", "conll"
    return ("jsonl", "table", *SQUAD) if isinstance(head, SpanHeadConfig) else ("jsonl", "table")


def format_prediction(number: int, example: Any, prediction: Prediction, output_format: OutputFormat) -> str:
    """Return the line or lines of one prediction. number: index of the example, counted from 0."""
    if output_format == "conll" and isinstance(prediction, TagPrediction):
        columns: list[Sequence[str]] = [prediction.words]
        if isinstance(example, TaggedSentence):
            columns += [*example.features, *([] if example.tags is None else [example.tags])]
        rows = zip(*columns, prediction.tags, strict=True)
        return "".join(f"{' '.join(row)}\n" for row in rows) + "\n"
    if isinstance(prediction, TreePrediction) and output_format in ("trees", "drawing"):
        return f"{prediction.tree.rooted()}\n" if output_format == "trees" else f"{draw_tree(prediction.tree)}\n\n"
    if output_format == "tsv" and isinstance(prediction, ClassPrediction):
        return f"{number}\t{prediction.label}\n"
    if output_format == "tsv" and isinstance(prediction, ValuePrediction):
        return f"{number}\t{prediction.value:.6g}\n"
    name = getattr(example, "id", None) or str(number + 1)
    return json.dumps({"id": name, **prediction.as_json()}, ensure_ascii=False) + "\n"
